"""Query: questions to an index, also while it is written."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import msgspec
import tantivy

from gossamer.archive.search.index import reading
from gossamer.model.errors import ConfigError

SNIPPET_CHARACTERS_MAX = 200
LIMIT_MAX = 1_000
_WEIGHTS = {"title": 3.0, "anchors": 2.0, "text": 1.0, "url": 0.5}
_OPENINGS_MAX = 3


class Hit(msgspec.Struct, frozen=True):
    """One page that was found. Title and snippet are as the page has them: strangers wrote them."""

    url: str
    title: str
    host: str
    language: str
    fetched_at: datetime
    score: float
    snippet: str
    highlights: tuple[tuple[int, int], ...]
    """Characters of the snippet, from and to, that the query asked for."""


class Found(msgspec.Struct, frozen=True):
    """The answer to a query."""

    query: str
    total: int
    """Pages that match, of which `hits` are the best."""
    hits: tuple[Hit, ...]
    problems: tuple[str, ...] = ()
    """What of the query was not understood, and left out."""


def search(folder: Path, query: str, *, limit: int = 10, host: str = "", site: str = "", language: str = "") -> Found:
    """Return the best pages: words (all of them), `"phrases"`, `-without`, `title:word`, `OR`. A few milliseconds.

    Raises:
        ConfigError: there is no index, or it cannot be read.
    """
    if not 1 <= limit <= LIMIT_MAX:
        raise ConfigError(f"--limit: expected 1 to {LIMIT_MAX}")
    for opening in range(_OPENINGS_MAX):
        try:
            with reading(folder) as index:
                return _asked(index, query, limit, {"host": host, "site": site, "language": language})
        except (ConfigError, ValueError, OSError):  # A writer may have merged away what was about to be read.
            if opening + 1 == _OPENINGS_MAX:
                raise
    raise AssertionError("the last opening returns or raises")


def best_of(answers: Sequence[Found], limit: int) -> Found:
    """Return the answer of several indexes, each of other pages, as of one. How rare a word is each reckons by itself,
    which differs little where sites were dealt out by chance. A page that two have is told once, as last fetched.
    """
    latest: dict[str, Hit] = {}
    for hit in (hit for answer in answers for hit in answer.hits):
        if hit.url not in latest or latest[hit.url].fetched_at < hit.fetched_at:
            latest[hit.url] = hit
    hits = sorted(latest.values(), key=lambda hit: (-hit.score, hit.url))[:limit]
    total = sum(answer.total for answer in answers)
    return Found(answers[0].query, total, tuple(hits), answers[0].problems)


def _asked(index: tantivy.Index, query: str, limit: int, exact: dict[str, str]) -> Found:
    searcher = index.searcher()
    asked, problems = index.parse_query_lenient(query, list(_WEIGHTS), _WEIGHTS, conjunction_by_default=True)
    whole = asked
    for field, value in exact.items():
        if value:
            only = tantivy.Query.const_score_query(tantivy.Query.term_query(index.schema, field, value.lower()), 0.0)
            whole = tantivy.Query.boolean_query([(tantivy.Occur.Must, whole), (tantivy.Occur.Must, only)])
    result: Any = searcher.search(whole, limit)  # Its stub knows nothing of the count.
    snippets = tantivy.SnippetGenerator.create(searcher, asked, index.schema, "text")
    snippets.set_max_num_chars(SNIPPET_CHARACTERS_MAX)
    hits = []
    for score, address in result.hits:
        document = searcher.doc(address)
        snippet = snippets.snippet_from_doc(document)
        text, marks = _in_characters(snippet.fragment(), [(one.start, one.end) for one in snippet.highlighted()])
        if not text:  # What matched stands elsewhere: show how the page begins.
            text = str(document.get_first("text") or "")[:SNIPPET_CHARACTERS_MAX]
        hits.append(
            Hit(
                url=_text(document, "url"),
                title=_text(document, "title"),
                host=_text(document, "host"),
                language=_text(document, "language"),
                fetched_at=cast("datetime", document.get_first("at")),
                score=float(score),
                snippet=text,
                highlights=marks,
            )
        )
    return Found(query, result.count, tuple(hits), tuple(" ".join(str(one).split()) for one in problems))


def _in_characters(text: str, marks: list[tuple[int, int]]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Return marks that were bytes of UTF-8 as characters."""
    data = text.encode()
    if len(data) == len(text):
        return text, tuple(marks)
    return text, tuple((len(data[:start].decode()), len(data[:end].decode())) for start, end in marks)


def _text(document: tantivy.Document, field: str) -> str:
    return str(document.get_first(field) or "")
