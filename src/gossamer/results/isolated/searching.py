"""Searching: what the search process does: it reads queries and writes answers, within limits that the kernel keeps."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from gossamer.model import verbs
from gossamer.results.isolated.questions import answer_questions
from gossamer.results.isolated.searches import SEARCHING, SearchRequest
from gossamer.results.search.query import QueryAnswer, search
from gossamer.results.search.question import QueryError


def answer_queries(source: BinaryIO, sink: BinaryIO) -> None:
    """Answer until the input ends."""
    answer_questions(source, sink, SEARCHING, SearchRequest, _answer)


def _answer(asked: SearchRequest) -> verbs.SearchResults:
    try:
        return _as_verb(search([Path(folder) for folder in asked.folders], asked.question))
    except QueryError as error:
        raise verbs.RefusedError(str(error)) from error


def _as_verb(found: QueryAnswer) -> verbs.SearchResults:
    """Return an answer as JSON has it, on the command line and over HTTP."""
    hits = [
        verbs.SearchHit(
            url=hit.url, title=hit.title, host=hit.host, language=hit.language,
            fetched_at=f"{hit.fetched_at:%Y-%m-%dT%H:%M:%SZ}", score=hit.score, snippet=hit.snippet,
            highlights=hit.highlights,
        )
        for hit in found.hits
    ]  # fmt: skip
    return verbs.SearchResults(
        query=found.query, total=found.total, problems=found.problems, notice=found.notice, hits=tuple(hits),
        suggestion=found.suggestion, hosts=found.hosts, languages=found.languages,
    )  # fmt: skip
