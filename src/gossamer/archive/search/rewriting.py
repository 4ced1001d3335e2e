"""Rewriting: an index without some of its pages, made aside: documents that were deleted stay in its old segments."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import tantivy

from gossamer.archive.search.documents import IndexedPage
from gossamer.archive.search.index import POSITION, IndexWriter, opened

COMMIT_PAGES: Final = 5_000


def rewrite(folder: Path, target: Path, memory_bytes_max: int, leaves: Callable[[str], bool]) -> int:
    """Write an index to `target` without the pages whose address `leaves`; return how many leave. Where none does,
    nothing is written. Anchor texts are not stored, so the new index has none.

    Blocks: about 0.1 ms a page of 500 words.

    Raises:
        ConfigError: the index cannot be read.
        OSError: the disk is full.
    """
    index: Any = opened(folder)
    searcher = index.searcher()
    places = [place for _, place in searcher.search(tantivy.Query.all_query(), max(1, searcher.num_docs)).hits]
    gone = sum(leaves(_text(searcher.doc(place), "url")) for place in places)
    if not gone:
        return 0
    writer, position = IndexWriter(target, memory_bytes_max), ""
    try:
        for number, place in enumerate(places, 1):
            document = searcher.doc(place)
            if _text(document, "key") == POSITION:
                position = _text(document, "position")
            elif not leaves(_text(document, "url")):
                writer.put(_document(document))
            if number % COMMIT_PAGES == 0:
                writer.commit("")
        writer.commit(position)
    finally:
        writer.close()
    return gone


def _document(found: Any) -> IndexedPage:
    at: datetime = found.get_first("at")
    at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    fields = {name: _text(found, name) for name in ("key", "url", "host", "site", "title", "text", "language")}
    return IndexedPage(**fields, anchors="", at=round(at.timestamp() * 1_000_000))


def _text(document: Any, field: str) -> str:
    return str(document.get_first(field) or "")
