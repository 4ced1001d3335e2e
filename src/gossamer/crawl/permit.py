"""Permit: may we, this minute? The exclusion list, traps and robots.txt, asked at the last moment."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from gossamer.model.visits import Errand
from gossamer.ports import Exclusions, Robots
from gossamer.url.url import Url


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """The answer. Not allowed: `errand` must be run first, or `wait_until` be waited for, or `outcome` is the end."""

    allowed: bool = False
    errand: Errand | None = None
    wait_until: float = 0.0
    outcome: str = ""
    reason: str = ""


ALLOWED = Verdict(allowed=True)


class Permit:
    """Asks the owner's list, then what is known of traps, then the site's robots.txt. 5 µs with the rules in memory."""

    def __init__(
        self,
        exclusions: Exclusions,
        robots: Robots,
        trapped: Callable[[Url], str | None] = lambda _: None,
        *,
        obey: bool,
    ) -> None:
        """`trapped` says why a URL is in a trap, if it is in one."""
        self._exclusions = exclusions
        self.trapped = trapped
        self.robots = robots
        self._obey = obey

    def excludes(self, url: Url) -> bool:
        """Say whether a URL's host is to be left alone, also by requests that no page asked for."""
        return self._exclusions.covers(url.host)

    def ask(self, url: Url, now: float) -> Verdict:
        """Return whether a URL may be fetched now."""
        if self._exclusions.covers(url.host):
            return Verdict(outcome="excluded", reason="its host is on the exclusion list")
        trap = self.trapped(url)
        if trap is not None:
            return Verdict(outcome="trapped", reason=trap)
        if not self._obey:
            return ALLOWED
        said = self.robots.verdict(url, now)
        if said.kind == "allowed":
            return ALLOWED
        if said.kind == "denied":
            return Verdict(outcome="robots_denied", reason="robots.txt disallows it")
        if said.kind == "unknown":
            return Verdict(errand=self.robots.errand(url), reason="robots.txt must be read first")
        if said.kind == "wait":
            return Verdict(wait_until=said.until, reason=said.reason)
        return Verdict(outcome="robots_unreachable", reason=said.reason)
