"""Live: the shape of a running crawl as the console sees it. `gossamer.api.Crawler` has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Notification(Protocol):
    """One notification of a hub as it comes in."""

    def update(self, piece: bytes, /) -> None:
        """Take the next piece of its body."""
        ...

    async def end(self) -> bool:
        """Say whether it was signed as it must be; then it is durable."""
        ...


class Callbacks(Protocol):
    """What hubs may say."""

    def intent(self, token: str, query: Mapping[str, str]) -> tuple[int, str]:
        """Answer a hub's question: status and text."""
        ...

    def notification(self, token: str, signature: str) -> Notification | None:
        """Begin to take a notification; None where nothing is subscribed to."""
        ...


class Live(Protocol):
    """A running crawl."""

    def status(self, *, detail: bool = False) -> Mapping[str, object]:
        """Return counts, rates and state; with `detail` also hosts and the course of rates."""
        ...

    async def ask(self, request: dict[str, object], /) -> Mapping[str, object]:
        """Answer a verb: `ok` with `result`, or `error`."""
        ...

    def failed(self, error: Exception) -> None:
        """Note a mistake of ours in its log."""
        ...

    @property
    def callbacks(self) -> Callbacks | None:
        """What hubs say is said to this; None before the crawl runs, after it, and where it has no subscriptions."""
        ...
