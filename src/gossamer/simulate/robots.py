"""Robots: what the crawl knows of a modelled host's robots.txt; its waits are those of the real room's defaults."""

from __future__ import annotations

from gossamer.robots.options import RobotsOptions

_OPTIONS = RobotsOptions()
ALLOWED, DENIED, UNREACHABLE, UNKNOWN, WAIT = "allowed", "robots_denied", "robots_unreachable", "unknown", "wait"


class ModelRobots:
    """One host's robots.txt, as far as it decides when its pages may be asked for."""

    __slots__ = ("_denied", "_failed_first", "_failures", "_good_until", "wait_until")

    def __init__(self) -> None:
        self._good_until = 0.0
        self._denied = False
        self._failures = 0
        self._failed_first = 0.0
        self.wait_until = 0.0
        """When to ask again, after it could not be had."""

    def verdict(self, now: float) -> str:
        """Return `ALLOWED`, `UNKNOWN` (ask first), `WAIT`, or the outcome that the page ends with."""
        if self._good_until > now:
            return DENIED if self._denied else ALLOWED
        if not self._failures:
            return UNKNOWN
        if now - self._failed_first >= _OPTIONS.robots_wait_max_s:
            return UNREACHABLE
        return WAIT if self.wait_until > now else UNKNOWN

    def answered(self, now: float, *, denied: bool) -> None:
        """Note that it came."""
        self._good_until, self._denied, self._failures = now + _OPTIONS.ttl_s, denied, 0

    def failed(self, now: float) -> None:
        """Note that it could not be had."""
        if not self._failures:
            self._failed_first = now
        wait_s = min(_OPTIONS.retry_first_s * 2.0 ** min(self._failures, 40), _OPTIONS.retry_s_max)
        self._failures += 1
        self.wait_until = now + wait_s
