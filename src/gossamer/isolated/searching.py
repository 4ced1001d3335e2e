"""Searching: what the search process does: it reads queries and writes answers, within limits that the kernel keeps."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import msgspec

from gossamer.archive.search.query import QueryAnswer, search
from gossamer.archive.search.question import QueryError
from gossamer.isolated.searches import MEMORY_BYTES_MAX, QUERY_CPU_S_MAX, SearchAnswer, SearchRequest
from gossamer.model import verbs
from gossamer.model.errors import ConfigError, DamagedError
from gossamer.world.workers import answer_frames

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(SearchRequest).decode


def answer_queries(source: BinaryIO, sink: BinaryIO) -> None:
    """Answer until the input ends."""
    answer_frames(source, sink, lambda frame: _encode(_answer(_decode(frame))), QUERY_CPU_S_MAX, MEMORY_BYTES_MAX)


def _answer(asked: SearchRequest) -> SearchAnswer:
    try:
        return SearchAnswer(_as_verb(search([Path(folder) for folder in asked.folders], asked.question)))
    except QueryError as error:
        return SearchAnswer(query_error=str(error))
    except (ConfigError, DamagedError, OSError) as error:
        return SearchAnswer(config_error=str(error))


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
        query=found.query, total=found.total, problems=found.problems, notice=found.notice, hits=tuple(hits)
    )
