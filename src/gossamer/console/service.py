"""Service: what the requests to one server have in common: the search process, the bounds, the counts."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from gossamer.console.events import Streams
from gossamer.console.figures import ConsoleCounts, Figures, as_metrics, counts_of
from gossamer.console.operations import UnderWay
from gossamer.console.share import Share
from gossamer.isolated.searches import Searches


class Service:
    """Divides the connections of a server: a quarter may be event streams, half may wait for answers; the rest stays
    free for the page and its files. Open while the server is.
    """

    def __init__(self, connections_max: int, loop_share: float) -> None:
        """Take the number of connections, and the share of the loop's time that requests may have."""
        self.figures = Figures()
        self.share = Share(loop_share, asyncio.get_running_loop().time)
        self.searches = Searches()
        self.streams = Streams(max(1, connections_max // 4), self.figures)
        self.under_way = UnderWay(max(1, connections_max // 2), self.figures)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.searches.close()

    def counts(self) -> ConsoleCounts:
        """Return the counts."""
        return counts_of(self.figures, self.searches)

    def metrics(self) -> str:
        """Return the counts in Prometheus' text format."""
        return as_metrics(self.counts())
