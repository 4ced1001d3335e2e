"""Counts: how many URLs were found, wait, and ended how."""

from __future__ import annotations

import msgspec


class Counts(msgspec.Struct):
    """`discovered = pending + the sum of terminal` at every commit; `pending` is what is queued or under way."""

    discovered: int = 0
    pending: int = 0
    terminal: dict[str, int] = msgspec.field(default_factory=dict)
    hosts: int = 0
    """Hosts with a record."""
    working: int = 0
    """Hosts with URLs that are not finished."""
    deferred: int = 0
    """Those of them that have used up their budget."""
    most: int = 0
    """Most hosts with work at once, since somebody last began to count."""

    answers: int = 0
    """Requests that a server answered."""
    levels: list[int] = msgspec.field(default_factory=list)
    """URLs in queues, by level."""

    def end(self, outcome: str, urls: int = 1) -> None:
        """Note how URLs that were pending ended."""
        self.pending -= urls
        self.terminal[outcome] = self.terminal.get(outcome, 0) + urls
