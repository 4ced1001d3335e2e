"""Index: the tantivy index: its fields, and a writer that records its position in the logs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote

import msgspec
import tantivy

from gossamer.model.errors import ConfigError
from gossamer.model.words import shell_word
from gossamer.results.search.folder import SUMS, record
from gossamer.results.search.words import joined_terms, loose_terms, terms_of

if TYPE_CHECKING:
    from gossamer.results.search.documents import IndexedPage  # It brings pyarrow, which a search has no use for.

POSITION = "\0position"
"""Key of the document with the index's position in the logs; it is in the same commit as the pages up to there."""
_LOCK = ".tantivy-meta.lock"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAYOUT = 2
"""Number of the layout of new indexes."""
_LAYOUTS = {
    "key host site language title text url anchors position at": 1,
    "key host site language title text url emphasis position at words title_words url_words anchors strong loose": 2,
}
"""Number of each known layout by its fields."""


def fields() -> tantivy.Schema:
    """Return the fields of a new index: what is stored, and the terms by which it is found (`words`)."""
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("key", stored=True, tokenizer_name="raw", index_option="basic")
    for name in ("host", "site", "language"):
        builder.add_text_field(name, stored=True, fast=True, tokenizer_name="raw", index_option="basic")
    for name in ("title", "text", "url", "emphasis"):
        builder.add_bytes_field(name, stored=True)
    builder.add_text_field("position", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_date_field("at", stored=True, indexed=True, fast=True)
    for name in ("words", "title_words", "url_words", "anchors"):
        builder.add_text_field(name, tokenizer_name="whitespace")
    for name in ("strong", "loose"):  # No phrases: positions of the loose forms would cost as much as the words.
        builder.add_text_field(name, tokenizer_name="whitespace", index_option="freq")
    return builder.build()


def layout_of(folder: Path) -> int:
    """Return the number of an index's layout; 0 for one that this version does not know."""
    meta = msgspec.json.decode((folder / "meta.json").read_bytes(), type=dict[str, Any])
    return _LAYOUTS.get(" ".join(field["name"] for field in meta.get("schema", ())), 0)


class IndexWriter:
    """Writes one index; it must have no other writer meanwhile. All calls block: for a thread."""

    def __init__(self, folder: Path, memory_bytes_max: int) -> None:
        """Open or begin the index. Raises ConfigError: it is another version's, or another process writes it."""
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        (folder / SUMS).unlink(missing_ok=True)  # What they say is over.
        self._index = open_index(folder) if tantivy.Index.exists(str(folder)) else tantivy.Index(fields(), str(folder))
        self._layout = layout_of(folder)
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
        """Index a page; it replaces the page that has its key. One without address is gone, and leaves the index."""
        self._writer.delete_documents_by_term("key", document.key)
        if not document.url:
            return
        entry = tantivy.Document()
        for name in ("key", "host", "site", "language"):
            if value := getattr(document, name):
                entry.add_text(name, value)
        entry.add_date("at", _EPOCH + timedelta(microseconds=document.at))
        if self._layout == 1:
            for name in ("url", "title", "text", "anchors"):
                entry.add_text(name, getattr(document, name))
        else:
            _add_terms(entry, document)
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


def _add_terms(entry: tantivy.Document, document: IndexedPage) -> None:
    for name in ("url", "title", "text", "emphasis"):
        if value := getattr(document, name):
            entry.add_bytes(name, value.encode("utf-8", "replace"))
    words = terms_of(document.text)
    title = terms_of(document.title)
    anchors = terms_of(document.anchors)
    loose = loose_terms([*words, *title, *anchors], document.language)
    loose += joined_terms(f"{document.title}\n{document.text}")
    named = {
        "words": words, "title_words": title, "anchors": anchors, "loose": loose,
        "url_words": terms_of(unquote(document.url)), "strong": terms_of(document.emphasis),
    }  # fmt: skip
    for name, terms in named.items():
        if terms:
            entry.add_text(name, " ".join(terms))


@contextmanager
def reading(folder: Path) -> Iterator[tantivy.Index]:
    """Open an index to search in it, for as long as the context lasts; also one that may not be written. Raises
    ConfigError: it is not an index, is of another version, or may not be read; OSError: there is no room for a
    temporary directory where one is needed.
    """
    lock = folder / _LOCK
    if os.access(folder, os.W_OK) and (os.access(lock, os.W_OK) or not lock.exists()):
        yield open_index(folder)
        return
    # Tantivy locks what it reads, by a file beside it: here beside links to it.
    with tempfile.TemporaryDirectory(prefix="gossamer-search-") as aside:
        for path in folder.iterdir():
            if not path.name.endswith(".lock"):
                Path(aside, path.name).symlink_to(path.absolute())
        yield open_index(folder, Path(aside))


def open_index(folder: Path, place: Path | None = None) -> tantivy.Index:
    """Open the index of a folder, or the links to it at `place`. Raises ConfigError: it is none of this version."""
    place = place or folder
    try:
        index = tantivy.Index.open(str(place))
        if not layout_of(place):
            raise ValueError("it has other fields")
    except (ValueError, OSError, TypeError, KeyError) as error:
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
    for _, address in searcher.search(tantivy.Query.term_query(index.schema, "key", POSITION), 1).hits:
        return text_in(searcher.doc(address), "position")
    return ""


def time_in(document: tantivy.Document) -> datetime:
    """Return when the page of a document was fetched, in UTC."""
    at = cast("datetime", document.get_first("at"))
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def text_in(document: tantivy.Document, field: str) -> str:
    """Return the text of a field of a document; empty where it has none."""
    value = document.get_first(field) or ""
    return value.decode() if isinstance(value, bytes) else str(value)
