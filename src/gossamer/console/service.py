"""Service: shared by all requests to one server: the search process, the limits, the counts."""

import asyncio
import secrets
from typing import Self

import msgspec

from gossamer.console.events import Streams
from gossamer.console.operations import ConsoleCounts, UnderWay
from gossamer.results.isolated.reads import Reads
from gossamer.results.isolated.searches import Searches
from gossamer.world.loop import LoopShare

CRAWL_SHARE = 0.2
"""Share of a loop that also crawls which the console may take."""
OWN_SHARE = 1.0
"""The same of a loop that only serves."""


class Replay(msgspec.Struct):
    """How archived pages are served."""

    secret: bytes
    """Signs the paths: who does not have one from the console gets nothing."""
    port: int = 0
    """0: they are not served."""
    public_host: str = ""
    """`Host` of requests for the console through a proxy, in lower case."""
    public_url: str = ""
    """Where they are then; empty: nowhere."""


class Service:
    """Divides the connections of a server: a quarter may be event streams, half may wait for answers; the rest stays
    free for the page and its files. Open while the server is.
    """

    def __init__(self, connections_max: int, loop_share: float) -> None:
        """Take the number of connections, and the share of the loop's time that requests may have."""
        self.figures = ConsoleCounts.zero()
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
        """Return the counts as the API has them."""
        searches = self.searches
        return msgspec.structs.replace(
            self.figures, searches=searches.asked, search_processes=searches.starts,
            search_failures=searches.failures, search_last_failure=searches.last_failure,
        )  # fmt: skip

    def metrics(self) -> bytes:
        """Return the counts in Prometheus' text format."""
        from gossamer.api.metrics import struct_metrics  # noqa: PLC0415 - needed only for scrapes

        return struct_metrics("console", self.counts(), ("connections", "streams"))
