"""Ring: the decisions about one visit between its lease and its result. No clock, no waiting, no I/O.

Events come in with their time, and the next step goes out:

    leased ─► RESOLVE ─► resolved                 its host's address is not known: it is leased again once that is
       ├────► FETCH ─► begun ─► fetched           one request may go out, now
       └────► DONE                                it was dealt with: it waits for robots.txt, or ends without a request

Two drivers carry out the steps: `engine/pipeline.py` on an event loop with libcurl, `lab/simulate/simulation.py` in a
queue of events with a modelled web. Neither decides anything. `engine/outcomes.py` decides what follows from a result.
"""

from collections.abc import Callable
from enum import Enum, auto
from typing import Final, Literal

from gossamer.engine.middleware import Middlewares, Prerequisites
from gossamer.model.links import Prerequisite, RevisitPlan, Visit
from gossamer.model.visits import Contact, Failure, Located, Reply, retry_after_s, shorten_wait
from gossamer.stages.frontier.frontier import Frontier
from gossamer.stages.frontier.host import ROBOTS, Lease, PrerequisiteLease, VisitLease
from gossamer.world.dice import Dice

BUSY = frozenset((429, 503))


class RingStep(Enum):
    """A driver's next step with a lease."""

    DONE = auto()
    RESOLVE = auto()
    """Look up the address of its host; pass the answer to `Ring.on_resolved`."""
    FETCH = auto()
    """Call `Ring.begin`, send the request, then call `Ring.on_fetched`."""


class Ring:
    """Decides how a lease proceeds. Each event is handled at once; errors of the web raise nothing."""

    def __init__(
        self,
        frontier: Frontier,
        middlewares: Middlewares,
        prerequisites: Prerequisites,
        cached: Callable[[str], Located | None],
        refuse: Callable[[VisitLease, Failure, float], None],
        rejected: Callable[[VisitLease], str] = lambda _: "",
    ) -> None:
        """`cached` returns the addresses of a host if they are known; `refuse` records a visit that ends without a
        request; `rejected` returns why the filters, which may have changed, reject a queued URL, or an empty text.
        """
        self._frontier = frontier
        self._control = frontier.control
        self._middlewares = middlewares
        self._prerequisites = prerequisites
        self._cached = cached
        self._refuse = refuse
        self._rejected = rejected

    # ---- events

    def decide(self, lease: Lease, now: float) -> RingStep:
        """Decide what to do with a lease, at the last moment before its request."""
        if lease.is_visit:
            if not self._may_proceed(lease, now):
                return RingStep.DONE
        elif lease.address and not self._runs(lease, now):
            return RingStep.DONE
        if lease.address:
            return RingStep.FETCH
        known = self._cached(lease.url.host)
        if known is None:
            return RingStep.RESOLVE
        self.on_resolved(lease, known, now)
        return RingStep.DONE

    def on_resolved(self, lease: Lease, found: Located | Failure, now: float) -> None:
        """Handle the result of a lookup for a lease's host."""
        if not isinstance(found, Failure):
            self._frontier.locate(lease, lease.choose(found.addresses), found.expires_at, now)
            return
        contact = Contact(0.0, "failed", error=found.error, is_alone=found.is_alone) if found.retry else None
        self._frontier.ended(lease, contact, now)
        if not lease.is_visit:
            self.answer(lease.prerequisite, b"", found, now)
        else:
            self._refuse(lease, found, now)

    def park(self, lease: Lease, waits_for: str, now: float) -> None:
        """Return a lease whose host waits for something."""
        self._control.park(lease.url, now, waits_for)
        self._frontier.return_lease(lease, now)

    def begin(self, lease: Lease, now: float) -> bool:
        """Note that the request goes out now. False: its gate has closed meanwhile, and the lease was returned."""
        if self._frontier.begin(lease, now):
            return True
        self._frontier.return_lease(lease, now)
        return False

    def on_fetched(self, lease: Lease, result: Reply | Failure, started: float, now: float) -> Contact:
        """Release the gates after a request that began at `started`; return the recorded contact."""
        contact = self._contact(result, started, now)
        self._frontier.ended(lease, contact, now)
        return contact

    def abandon(self, lease: Lease, started: float, now: float) -> None:
        """Release the gates after a request that we ended, such as at a stop of the crawl; its URL stays queued."""
        self._frontier.ended(lease, Contact(now - started, "left", error="the crawl ended it"), now)

    def unsent(self, lease: Lease, failure: Failure, now: float) -> None:
        """Take back a request that the proxy did not pass on: it stays queued, and its host waits."""
        self._control.back_off(lease.url, 1, failure.error, now)
        self._frontier.return_lease(lease, now)

    def answer(self, prerequisite: Prerequisite, body: bytes, result: Reply | Failure, now: float) -> None:
        """Pass on the result of a prerequisite fetch."""
        self._prerequisites.answer(prerequisite, body, result, now)

    # ---- decisions

    def _may_proceed(self, lease: VisitLease, now: float) -> bool:
        """Return whether a visit goes on to its request, or its host's lookup. If not, end it or let it wait."""
        if lease.refusal:
            self._end(lease, Failure("host_closed", lease.refusal, started_at=now), now)
            return False
        if lease.address:
            return self._permit(lease, now)
        verdict = self._middlewares.judge_unresolved(lease.visit, now)
        if not verdict.allowed:
            self._end(lease, Failure(verdict.outcome, verdict.reason, started_at=now), now)
        return verdict.allowed

    def _runs(self, lease: PrerequisiteLease, now: float) -> bool:
        """Return whether a prerequisite fetch is made now. If it may not be made, or nothing waits for it, end it."""
        prerequisite = lease.prerequisite
        refused = self._middlewares.of(prerequisite.owner).refused(prerequisite, now)
        if refused is None:
            return True
        self._frontier.ended(lease, None, now)
        self.answer(prerequisite, b"", refused, now)
        return False

    def _permit(self, lease: VisitLease, now: float) -> bool:
        """Return whether filters and middleware permit a request now. If not, end the visit or let it wait."""
        if reason := self._rejected(lease):
            self._end(lease, Failure("excluded", reason, started_at=now), now)
            return False
        url = lease.url
        verdict = self._middlewares.judge(lease.visit, now)
        if verdict.allowed:
            for reserve in self._middlewares.reserves:
                reserve(url, now)
            return True
        if verdict.owner:
            self._middlewares.of(verdict.owner).wait(url, verdict, now)
        if verdict.park:
            self.park(lease, ROBOTS, now)
            if verdict.prerequisite is not None:
                self._prerequisites.run_for(url, verdict.prerequisite, now)
        elif verdict.prerequisite is not None:
            self._frontier.return_lease(lease, now)
            self._prerequisites.run_elsewhere(verdict.prerequisite, verdict.reason, now)
        elif verdict.wait_until:
            self._control.hold(url, verdict.wait_until, verdict.reason, now)
            self._frontier.return_lease(lease, now)
        else:
            self._end(lease, Failure(verdict.outcome, verdict.reason, started_at=now), now)
        return False

    def _end(self, lease: VisitLease, failure: Failure, now: float) -> None:
        self._frontier.ended(lease, None, now)
        self._refuse(lease, failure, now)

    def _contact(self, result: Reply | Failure, started: float, now: float) -> Contact:
        # Measured by the module: time that we spend on other pages is not the server's.
        fetch_s = result.fetch_s or now - started
        if isinstance(result, Failure):
            wire_bytes = max(result.wire_bytes, result.came.wire_bytes if result.came is not None else 0)
            is_closed = result.outcome == "connect_error" and result.came is None  # Its end counts as a byte.
            is_left = is_closed or (result.outcome == "internal_error" and not wire_bytes)  # Of this machine's limits.
            kind: Literal["failed", "left", "answered"] = "left" if is_left else "answered"
            kind = "failed" if result.host_level else kind
            return Contact(fetch_s, kind, error=result.error, wire_bytes=wire_bytes, is_alone=result.is_alone)
        if result.status in BUSY:
            return Contact(fetch_s, "busy", retry_after_s(result, now), wire_bytes=result.wire_bytes)
        return Contact(fetch_s, "answered", wire_bytes=result.wire_bytes)


ADDRESSES_TRIED_MAX: Final = 5
"""Attempts for a URL, if that is more than `attempts_max`, of which each finds another address of its host dead."""


class Retries:
    """Schedules retries: doubling waits with jitter, up to a number of attempts."""

    def __init__(self, attempts_max: int, first_s: float, most_s: float, dice: Dice) -> None:
        self._attempts_max = attempts_max
        self._first_s = first_s
        self._most_s = most_s
        self._dice = dice

    def has_attempts_left(self, visit: Visit, *, elsewhere: bool = False) -> bool:
        """Return whether another attempt may be made; `elsewhere`: at another address, as this one was not reached."""
        return visit.attempt < (max(self._attempts_max, ADDRESSES_TRIED_MAX) if elsewhere else self._attempts_max)

    def after(
        self, visit: Visit, error: str, now: float, *, is_alone: bool = False, elsewhere: bool = False
    ) -> RevisitPlan | None:
        """Return the next attempt, or None if there are no attempts left. `is_alone`: as in `Failure`."""
        if not self.has_attempts_left(visit, elsewhere=elsewhere):
            return None
        wait_s = min(self._first_s * 2.0 ** min(visit.attempt - 1, 40), self._most_s)
        wait_s *= 1.0 + self._dice.uniform(0.0, 0.5)
        wait_s = shorten_wait(wait_s, visit.attempt, is_alone=is_alone)
        return RevisitPlan(visit.url, now + wait_s, visit.attempt + 1, visit.hops, error)
