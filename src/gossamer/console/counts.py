"""Counts: the counts of a console's connections, requests and searches."""

from typing import Annotated, Self

import msgspec
from msgspec import Meta


class ConsoleCounts(msgspec.Struct, kw_only=True):
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

    @classmethod
    def zero(cls) -> Self:
        """Return the counts of a console that begins."""
        *numbers, _ = cls.__struct_fields__
        return cls(search_last_failure="", **dict.fromkeys(numbers, 0))
