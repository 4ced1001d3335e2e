"""Query: searches an index, also while it is written."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import msgspec
import tantivy
from msgspec.structs import replace

from gossamer.model.errors import ConfigError
from gossamer.model.words import shell_word
from gossamer.results.search.folder import crawl_of, is_behind, require_sound
from gossamer.results.search.index import POSITION, position_in, reading, text_in
from gossamer.results.search.question import QueryError, SearchQuestion

SNIPPET_CHARACTERS_MAX = 200
PROBLEMS_MAX = 10
_WEIGHTS = {"title": 3.0, "anchors": 2.0, "text": 1.0, "url": 0.5}
_OPENINGS_MAX = 3


class QueryHit(msgspec.Struct, frozen=True):
    """One page of the result. Title and snippet are untrusted text, unchanged."""

    url: str
    title: str
    host: str
    language: str
    fetched_at: datetime
    score: float
    snippet: str
    """On one line: each line break and tab is a space."""
    highlights: tuple[tuple[int, int], ...]
    """Matches in the snippet, as ranges of characters [first, end)."""


class QueryAnswer(msgspec.Struct, frozen=True):
    """The answer to a query."""

    query: str
    total: int
    """Pages that match, of which `hits` are the best."""
    hits: tuple[QueryHit, ...]
    problems: tuple[str, ...] = ()
    """Parts of the query that were not understood and left out."""
    notice: str = ""
    """What the index lacks, and how to bring it up to date."""


def search(folders: Sequence[Path], question: SearchQuestion) -> QueryAnswer:
    """Return the best pages of a crawl's indexes: words (all of them), `"phrases"`, `-without`, `title:word`, `OR`.
    A few milliseconds each.

    Raises:
        QueryError: the query passes a bound, or cannot be run.
        ConfigError: an index is missing, or cannot be read.
        DamagedError: a file of an index is missing, or is not what was written.
    """
    question.check()
    for folder in folders:
        require_sound(folder)
    answers = [_search_one(folder, question) for folder in folders]
    return answers[0] if len(answers) == 1 else best_of(answers, question.limit)


def _search_one(folder: Path, question: SearchQuestion) -> QueryAnswer:
    for opening in range(_OPENINGS_MAX):
        try:
            with reading(folder) as index:
                return replace(_answer(index, question), notice=_notice(crawl_of(folder), position_in(index)))
        except (ConfigError, ValueError, OSError) as error:  # A writer may have merged away what was about to be read.
            if opening + 1 < _OPENINGS_MAX:
                continue
            if isinstance(error, ValueError):
                raise QueryError(f"the query cannot be run: {' '.join(str(error).split())}; simplify it") from error
            raise
    raise AssertionError("the last opening returns or raises")


def best_of(answers: Sequence[QueryAnswer], limit: int) -> QueryAnswer:
    """Merge the answers of several indexes of different pages. Each index computes word frequencies alone, which
    differ little since sites are divided at random. A page in two indexes is listed once, as last fetched.
    """
    latest: dict[str, QueryHit] = {}
    for hit in (hit for answer in answers for hit in answer.hits):
        if hit.url not in latest or latest[hit.url].fetched_at < hit.fetched_at:
            latest[hit.url] = hit
    hits = sorted(latest.values(), key=lambda hit: (-hit.score, hit.url))[:limit]
    total = sum(answer.total for answer in answers)
    notice = next((answer.notice for answer in answers if answer.notice), "")
    return QueryAnswer(answers[0].query, total, tuple(hits), answers[0].problems, notice)


def _notice(directory: Path, position: str) -> str:
    if not is_behind(directory, position):
        return ""
    return (
        "the crawl has fetched more since this index was built; "
        f"`gossamer search {shell_word(directory)} --build` brings it up to date"
    )


def _answer(index: tantivy.Index, question: SearchQuestion) -> QueryAnswer:
    searcher = index.searcher()
    query = question.query
    schema = index.schema
    asked, problems = index.parse_query_lenient(query, list(_WEIGHTS), _WEIGHTS, conjunction_by_default=True)
    position = tantivy.Query.term_query(schema, "key", POSITION)  # No page, though it matches `*` and `-word`.
    parts = [(tantivy.Occur.Must, asked), (tantivy.Occur.MustNot, position)]
    for field in ("host", "site", "language"):
        if value := getattr(question, field):
            only = tantivy.Query.const_score_query(tantivy.Query.term_query(schema, field, value.lower()), 0.0)
            parts.append((tantivy.Occur.Must, only))
    whole = tantivy.Query.boolean_query(parts)
    result: Any = searcher.search(whole, question.limit)  # Its stub knows nothing of the count.
    snippets = tantivy.SnippetGenerator.create(searcher, asked, schema, "text")
    snippets.set_max_num_chars(SNIPPET_CHARACTERS_MAX)
    hits = []
    for score, address in result.hits:
        document = searcher.doc(address)
        snippet = snippets.snippet_from_doc(document)
        text, marks = _in_characters(snippet.fragment(), [(one.start, one.end) for one in snippet.highlighted()])
        if not text:  # The match is elsewhere: show the start of the page.
            text = str(document.get_first("text") or "")[:SNIPPET_CHARACTERS_MAX]
        text = "".join(" " if character.isspace() else character for character in text)
        hits.append(
            QueryHit(
                url=text_in(document, "url"),
                title=text_in(document, "title"),
                host=text_in(document, "host"),
                language=text_in(document, "language"),
                fetched_at=cast("datetime", document.get_first("at")),
                score=float(score),
                snippet=text,
                highlights=marks,
            )
        )
    said = tuple(" ".join(str(one).split()) for one in problems[:PROBLEMS_MAX])
    return QueryAnswer(query, result.count, tuple(hits), said)


def _in_characters(text: str, marks: list[tuple[int, int]]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Return marks that were bytes of UTF-8 as characters."""
    data = text.encode()
    if len(data) == len(text):
        return text, tuple(marks)
    return text, tuple((len(data[:start].decode()), len(data[:end].decode())) for start, end in marks)
