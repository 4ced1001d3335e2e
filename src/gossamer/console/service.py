"""Service: shared by all requests to one server: the search process, the limits, the counts."""

from __future__ import annotations

import asyncio
import secrets
from typing import Annotated, Self

import msgspec
from msgspec import Meta

from gossamer.console.events import Streams
from gossamer.console.operations import UnderWay
from gossamer.isolated.reads import Reads
from gossamer.isolated.searches import Searches
from gossamer.world.loop import LoopShare

CRAWL_SHARE = 0.2
"""Share of a loop that also crawls which the console may take."""
OWN_SHARE = 1.0
"""The same of a loop that only serves."""


class Figures(msgspec.Struct):
    """Counts since the console began."""

    connections: int = 0
    """Open now."""
    displaced: int = 0
    refused: int = 0
    streams: int = 0
    """Open now."""
    streams_displaced: int = 0
    busy: int = 0


class Replay(msgspec.Struct):
    """How archived pages are served."""

    secret: bytes
    """Signs the paths: who does not have one from the console gets nothing."""
    port: int = 0
    """0: they are not served."""


class ConsoleCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The console's own state, since it began."""

    connections: Annotated[int, Meta(description="Connections that are open now.")]
    connections_displaced: Annotated[int, Meta(description="Slow or idle connections closed to make room for others.")]
    connections_refused: Annotated[int, Meta(description="Connections closed because no room could be made.")]
    streams: Annotated[int, Meta(description="Event streams that are open now.")]
    streams_displaced: Annotated[int, Meta(description="Event streams closed to make room for others.")]
    requests_busy: Annotated[int, Meta(description="Requests refused because too many were under way.")]
    searches: Annotated[int, Meta(description="Queries passed to the search process.")]
    search_processes: Annotated[int, Meta(description="Search processes started.")]
    search_failures: Annotated[int, Meta(description="Queries at which the search process died or took too long.")]
    search_last_failure: Annotated[str, Meta(description="How it failed last; empty: it never did.")]


def counts_of(figures: Figures, searches: Searches) -> ConsoleCounts:
    """Return the counts as the API has them."""
    return ConsoleCounts(
        connections=figures.connections, connections_displaced=figures.displaced, connections_refused=figures.refused,
        streams=figures.streams, streams_displaced=figures.streams_displaced, requests_busy=figures.busy,
        searches=searches.asked, search_processes=searches.starts, search_failures=searches.failures,
        search_last_failure=searches.last_failure,
    )  # fmt: skip


def as_metrics(counts: ConsoleCounts) -> str:
    """Return the counts in Prometheus' text format."""
    lines = []
    for field in msgspec.structs.fields(counts):
        value = getattr(counts, field.name)
        if isinstance(value, int):
            kind = "gauge" if field.name in ("connections", "streams") else "counter"
            full = f"gossamer_console_{field.name}" + ("_total" if kind == "counter" else "")
            [meta] = field.type.__metadata__
            says = meta.description.rstrip(".")
            lines += [f"# HELP {full} {says}", f"# TYPE {full} {kind}", f"{full} {value}"]
    return "\n".join(lines) + "\n"


class Service:
    """Divides the connections of a server: a quarter may be event streams, half may wait for answers; the rest stays
    free for the page and its files. Open while the server is.
    """

    def __init__(self, connections_max: int, loop_share: float) -> None:
        """Take the number of connections, and the share of the loop's time that requests may have."""
        self.figures = Figures()
        self.share = LoopShare(loop_share, asyncio.get_running_loop().time)
        self.searches = Searches()
        self.reads = Reads()
        self.replay = Replay(secrets.token_bytes(32))
        self.streams = Streams(max(1, connections_max // 4), self.figures)
        self.under_way = UnderWay(max(1, connections_max // 2), self.figures)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.searches.close()
        await self.reads.close()

    def counts(self) -> ConsoleCounts:
        """Return the counts."""
        return counts_of(self.figures, self.searches)

    def metrics(self) -> str:
        """Return the counts in Prometheus' text format."""
        return as_metrics(self.counts())
