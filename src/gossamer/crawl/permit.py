"""Permit: may we, this minute? The exclusion list, traps and robots.txt, checked at the last moment; and robots.txt
fetched through the gates of each host that its redirects lead to.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from gossamer.cluster.exchange import Exchange
from gossamer.frontier.control import Control
from gossamer.model.visits import Errand, Failure, Reply
from gossamer.revisit.websub import Subscriptions
from gossamer.robots.robots import SiteRobots
from gossamer.scope.lists import ExcludedHost
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
        exclusions: ExcludedHost,
        robots: SiteRobots,
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


ELSEWHERE_S_MAX = 40.0
"""How long an origin waits for a robots.txt that another host has, before it is requested anew. The wait is in the host
record and the request is not: a process that dies in between leaves the wait behind."""


class Errands:
    """Takes what a robots.txt request brought: the next hop, or an answer that lets the waiting host go on."""

    def __init__(
        self,
        permit: Permit,
        control: Control,
        name: Callable[[str], Url | None],
        failed: Callable[[Errand, str], None],
        exchange: Exchange | None = None,
        hubs: Subscriptions | None = None,
    ) -> None:
        """`name` makes a `Url` of where a robots.txt redirects; `failed` hears why one could not be fetched."""
        self._permit = permit
        self._control = control
        self._name = name
        self._failed = failed
        self._exchange = exchange
        self._hubs = hubs

    def answer(self, errand: Errand, body: bytes, result: Reply | Failure, now: float) -> None:
        """Take what a robots.txt or a WebSub hub answered. A redirect is followed as another errand; the rules of a
        robots.txt let the host go on that waits for them.
        """
        if errand.token:
            self._hub_answered(errand, result, now)
            return
        if self._exchange is not None and not self._exchange.has(errand.origin):
            self._exchange.answer_errand(errand, result, body)
            return
        robots = self._permit.robots
        target = robots.answer(errand, result, body, now)
        while target is not None:
            url = self._name(target)
            refused = Failure("robots_unreachable", f"robots.txt redirects to {target}, which cannot be asked")
            may = url is None or not self._permit.excludes(url)
            if url is not None and may and self._run(Errand(errand.origin, url, errand.hops + 1), now):
                return
            target = robots.answer(errand, refused, b"", now)
        if isinstance(result, Failure) or result.status >= 400:
            why = result.error if isinstance(result, Failure) else f"HTTP {result.status}"
            self._failed(errand, why)
        self._control.set_crawl_delay(errand.origin, robots.crawl_delay_s(errand.origin), now)
        said = robots.verdict(errand.origin, now)
        if said.kind == "wait":
            self._control.hold(errand.origin, said.until, said.reason, now)
        elif errand.hops:
            self._control.release(errand.origin, now)
        self._control.unpark(errand.origin, now)

    def _hub_answered(self, errand: Errand, result: Reply | Failure, now: float) -> None:
        further = self._hubs.answered(errand, result, now) if self._hubs is not None else None
        if further is not None and self._hubs is not None and not self._control.run_errand(further, now):
            self._hubs.answered(further, Failure("host_closed", "the hub cannot be requested now"), now)

    def _run(self, errand: Errand, now: float) -> bool:
        """Request where a robots.txt redirects to. Meanwhile the origin waits, and the others of its host need not."""
        if self._exchange is None or self._exchange.has(errand.url):
            runs = self._control.run_errand(errand, now)
        else:
            runs = self._exchange.run_errand(errand)
        if runs and errand.url.host != errand.origin.host:
            self._control.hold(errand.origin, now + ELSEWHERE_S_MAX, f"its robots.txt is at {errand.url.text}", now)
            self._control.unpark(errand.origin, now)
        return runs
