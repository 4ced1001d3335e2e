"""Desk: the shape of a crawl as the console sees it. `gossamer.api.Crawler` has it, and `Directory`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
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


class Desk(Protocol):
    """A crawl that can be asked, whether it runs or not, here or elsewhere."""

    @property
    def directory(self) -> Path:
        """Where it lies."""
        ...

    async def ask(self, request: dict[str, object], /) -> dict[str, object]:
        """Answer as the control socket does: `ok` with `result`, or `error` with its `kind`. Never raises."""
        ...

    def failed(self, error: Exception, /) -> None:
        """Note a mistake of ours in its log."""
        ...

    @property
    def callbacks(self) -> Callbacks | None:
        """What hubs say is said to this; None before the crawl runs, after it, and where it has no subscriptions."""
        ...
