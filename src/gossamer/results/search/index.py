"""Index: the tantivy index: its fields, and a writer that records its position in the logs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import tantivy

from gossamer.model.errors import ConfigError
from gossamer.model.words import shell_word
from gossamer.results.search.folder import SUMS, record

if TYPE_CHECKING:
    from gossamer.results.search.documents import IndexedPage  # It brings pyarrow, which a search has no use for.

POSITION = "\0position"
"""Key of the document with the index's position in the logs; it is in the same commit as the pages up to there."""
_LOCK = ".tantivy-meta.lock"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def fields() -> tantivy.Schema:
    """Return the index's fields. Those that are searched are cut into words and lower-cased; others match whole."""
    builder = tantivy.SchemaBuilder()
    for name in ("key", "host", "site", "language"):
        builder.add_text_field(name, stored=True, tokenizer_name="raw", index_option="basic")
    for name in ("title", "text", "url"):
        builder.add_text_field(name, stored=True)
    builder.add_text_field("anchors")
    builder.add_text_field("position", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_date_field("at", stored=True, indexed=True, fast=True)
    return builder.build()


class IndexWriter:
    """Writes one index; it must have no other writer meanwhile. All calls block: for a thread."""

    def __init__(self, folder: Path, memory_bytes_max: int) -> None:
        """Open or begin the index.

        Raises:
            ConfigError: it is another version's, or another process writes it.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        (folder / SUMS).unlink(missing_ok=True)  # What they say is over.
        self._index = opened(folder) if tantivy.Index.exists(str(folder)) else tantivy.Index(fields(), str(folder))
        try:
            # One thread: the crawl has its own, and documents of one key must stay in order.
            self._writer = self._index.writer(memory_bytes_max, 1)
        except ValueError as error:
            raise ConfigError(f"{folder} is written by another process; wait for it") from error

    def position(self) -> str:
        """Return the position of the last commit; empty before the first."""
        self._index.reload()
        return position_in(self._index)

    def put(self, document: IndexedPage) -> None:
        """Index a page; it replaces the page that has its key."""
        self._writer.delete_documents_by_term("key", document.key)
        entry = tantivy.Document()
        for name in ("key", "url", "host", "site", "title", "text", "language", "anchors"):
            if value := getattr(document, name):
                entry.add_text(name, value)
        entry.add_date("at", _EPOCH + timedelta(microseconds=document.at))
        self._writer.add_document(entry)

    def commit(self, position: str) -> None:
        """Make the pages that were put findable and durable, together with `position`. 10 to 100 ms."""
        self._writer.delete_documents_by_term("key", POSITION)
        entry = tantivy.Document()
        entry.add_text("key", POSITION)
        entry.add_text("position", position)
        self._writer.add_document(entry)
        self._writer.commit()

    def pages(self) -> int:
        """Return how many pages the last commit holds."""
        self._index.reload()
        searcher = self._index.searcher()
        query = tantivy.Query.term_query(self._index.schema, "key", POSITION)
        return searcher.num_docs - len(searcher.search(query, 1).hits)

    def close(self) -> None:
        """Wait for merges of segments, and record the checksums of all files. Nothing can be put afterwards."""
        self._writer.wait_merging_threads()
        record(self._folder)


def opened(folder: Path) -> tantivy.Index:
    """Open an index.

    Raises:
        ConfigError: it is none, or another version's.
    """
    return _opened(folder, folder)


@contextmanager
def reading(folder: Path) -> Iterator[tantivy.Index]:
    """Open an index to search in it, for as long as the context lasts; also one that may not be written.

    Raises:
        ConfigError: it is none, another version's, or may not be read.
        OSError: there is no room for a temporary directory where one is needed.
    """
    lock = folder / _LOCK
    if os.access(folder, os.W_OK) and (os.access(lock, os.W_OK) or not lock.exists()):
        yield opened(folder)
        return
    # Tantivy locks what it reads, by a file beside it: here beside links to it.
    with tempfile.TemporaryDirectory(prefix="gossamer-search-") as aside:
        for path in folder.iterdir():
            if not path.name.endswith(".lock"):
                Path(aside, path.name).symlink_to(path.absolute())
        yield _opened(Path(aside), folder)


def _opened(place: Path, folder: Path) -> tantivy.Index:
    """Open the index of a folder where it is, or where links to it are."""
    try:
        index = tantivy.Index.open(str(place))
        index.parse_query("x", ["title", "text", "anchors", "url", "position"])
    except (ValueError, OSError) as error:
        if closed := [path for path in folder.iterdir() if not os.access(path, os.R_OK)]:
            raise ConfigError(f"{closed[0]} may not be read by you; ask its owner, or search a copy") from error
        raise ConfigError(
            f"{folder} is no index that this version can read; "
            f"`gossamer search {shell_word(folder.parent)} --build` rebuilds it"
        ) from error
    return index


def position_in(index: tantivy.Index) -> str:
    """Return the position of an index's last commit; empty before the first."""
    searcher = index.searcher()
    query = tantivy.Query.term_query(index.schema, "key", POSITION)
    for _, address in searcher.search(query, 1).hits:
        return text_in(searcher.doc(address), "position")
    return ""


def put_all(writer: IndexWriter, documents: Iterable[IndexedPage]) -> int:
    """Put documents and return their number."""
    count = 0
    for document in documents:
        writer.put(document)
        count += 1
    return count


def text_in(document: tantivy.Document, field: str) -> str:
    """Return the text of a field of a document; empty where it has none."""
    return str(document.get_first(field) or "")
