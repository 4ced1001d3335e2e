"""Searching: what the search process does: it reads queries and writes answers, within limits that the kernel keeps."""

from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec.structs import asdict

from gossamer.model import verbs
from gossamer.results.isolated.questions import answer_questions
from gossamer.results.isolated.searches import SEARCHING, SearchRequest
from gossamer.results.search.query import search
from gossamer.results.search.question import QueryError


def answer_queries(source: BinaryIO, sink: BinaryIO) -> None:
    """Answer until the input ends."""
    answer_questions(source, sink, SEARCHING, SearchRequest, _answer)


def _answer(asked: SearchRequest) -> verbs.SearchResults:
    try:
        found = search([Path(folder) for folder in asked.folders], asked.question)
        hits = [asdict(hit) | {"fetched_at": f"{hit.fetched_at:%Y-%m-%dT%H:%M:%SZ}"} for hit in found.hits]
        return msgspec.convert(asdict(found) | {"hits": hits}, verbs.SearchResults)
    except QueryError as error:
        raise verbs.RefusedError(str(error)) from error
