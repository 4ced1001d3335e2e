"""Tally: what a simulated shard counts, and how its slots were used over time."""

from __future__ import annotations


class Tally:
    """Counts since the start, of what was simulated; nothing is scaled here."""

    __slots__ = (
        "_full", "_since", "_used", "discovered", "full_s", "hosts_active", "pages", "requests", "used_s",
    )  # fmt: skip

    def __init__(self) -> None:
        self.pages = 0
        self.requests = 0
        """Of pages, of robots.txt, and in vain."""
        self.discovered = 0
        self.hosts_active = 0
        """Hosts with URLs that are not finished."""
        self.full_s = 0.0
        """Time in which every slot was in use."""
        self.used_s = 0.0
        """Integral over time of the share of slots in use."""
        self._since = 0.0
        self._full = False
        self._used = 0.0

    def pass_to(self, now: float, *, full: bool, used: float) -> None:
        """Note how the slots are from now on."""
        if self._since:
            span_s = now - self._since
            self.used_s += span_s * self._used
            self.full_s += span_s if self._full else 0.0
        self._since, self._full, self._used = now, full, used
