"""Rates: how much of what politeness permits a crawl makes use of, by the server's log alone."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from gossamer.lab.simweb.judge import Promise, politeness_gaps
from gossamer.lab.simweb.log import Logged
from gossamer.lab.simweb.truth import Truth
from gossamer.lab.simweb.web import Web, parts_of


class HostRate(msgspec.Struct, frozen=True):
    """How one host was visited while the crawler knew of pages there that it had yet to fetch."""

    host: str
    requests: int
    backlog_s: float
    """Time with a backlog: from one request to the next, when the next one's page, or a later one's, was known."""
    permitted: float
    """Requests that were permitted in this time: a host at its limit has as many as it had requests."""
    achieved: int
    """Requests that were made in this time."""
    idle_s: float
    """Time in which a request was permitted, and known, and not made."""

    @property
    def utilisation(self) -> float:
        """Share of the backlog's time that the host's gate, its address's gate or the request itself took up."""
        return 1.0 - self.idle_s / self.backlog_s if self.backlog_s else 1.0


def rates(
    log: Iterable[Logged], promise: Promise, web: Web, *, restarts: Sequence[float] = (), since: float = 0.0
) -> dict[str, HostRate]:
    """Return the rate of every host in the log.

    A page counts as known from the end of the first request whose answer links to it; one that nothing links to (a
    seed) from the log's beginning. A request was permitted once the host's promised pause, its Retry-After, and the
    pause and the last request of its address were over. What came before `since` is not counted.
    Costs some 30 µs a request.
    """
    requests = sorted((one for one in log if one.host != "-"), key=lambda one: one.contact_at)
    truth = Truth(web)
    known = _discovery_times(requests, web)
    addresses = _busy(requests)
    by_host: defaultdict[str, list[Logged]] = defaultdict(list)
    for one in requests:
        by_host[one.host].append(one)
    found: dict[str, HostRate] = {}
    for name, mine in by_host.items():
        host = web.host(name)
        if host is not None:
            gaps = politeness_gaps(mine, promise, truth.crawl_delay_s(host), restarts, most=True)
            found[name] = _rate(mine, [gap_s for gap_s, _ in gaps], known, addresses[host.address], promise, since)
    return found


class _Busy(msgspec.Struct):
    """One address: its requests in order of contact, and the latest end among each and those before."""

    contacts: list[float] = msgspec.field(default_factory=list)
    ends: list[float] = msgspec.field(default_factory=list)


def _busy(requests: Sequence[Logged]) -> dict[str, _Busy]:
    found: defaultdict[str, _Busy] = defaultdict(_Busy)
    for one in requests:
        busy = found[one.address]
        busy.contacts.append(one.contact_at)
        busy.ends.append(max(one.ended_at, busy.ends[-1] if busy.ends else 0.0))
    return found


def _discovery_times(requests: Sequence[Logged], web: Web) -> dict[tuple[str, str], float]:
    """Return when the crawler could know of each page, by host and path."""
    known: dict[tuple[str, str], float] = {}
    for one in sorted(requests, key=lambda one: one.ended_at):
        host = web.host(one.host)
        if host is None or not 200 <= one.status < 400:
            continue
        for mark in web.describe(host, one.path).marks:
            known.setdefault(parts_of(mark.url), one.ended_at)
    return known


def _rate(
    mine: list[Logged],
    gaps: list[float],
    known: dict[tuple[str, str], float],
    busy: _Busy,
    promise: Promise,
    since: float,
) -> HostRate:
    backlog_s = permitted = idle_s = 0.0
    achieved = 0
    waiting_since = _waiting_since(mine, known)
    retry_at = 0.0
    for k in range(1, len(mine)):
        before = mine[k - 1]
        one = mine[k]
        retry_at = max(retry_at, before.retry_at)
        begin = max(before.contact_at, min(waiting_since[k], one.contact_at))
        span_s = one.contact_at - begin
        earliest = max(before.ended_at + gaps[k - 1], retry_at, begin)
        wasted_s = _free_s(busy, earliest, one.contact_at, promise.address_delay_s)
        if span_s <= 0 or before.contact_at < since:
            continue
        backlog_s += span_s
        idle_s += wasted_s
        achieved += 1
        permitted += span_s / max(span_s - wasted_s, 1e-9) if wasted_s < span_s else 1.0
    return HostRate(mine[0].host, len(mine), backlog_s, permitted, achieved, idle_s)


def _free_s(busy: _Busy, begin: float, end: float, address_delay_s: float) -> float:
    """Return how much of a time the address's gate was open."""
    free_s = 0.0
    at = begin
    for k in range(max(0, bisect_right(busy.contacts, begin) - 1), bisect_left(busy.contacts, end)):
        free_s += max(0.0, busy.contacts[k] - at)
        at = max(at, busy.ends[k] + address_delay_s)
    return free_s + max(0.0, end - at)


def _waiting_since(mine: list[Logged], known: dict[tuple[str, str], float]) -> list[float]:
    """Return for each request since when it, or a later one to the host, could have been made."""
    since: list[float] = []
    asked: set[str] = set()
    for one in mine:
        # When a page must be asked for again is the crawler's to say; robots.txt is no backlog.
        again = one.path in asked or one.path.startswith("/robots")
        named_at = known.get((one.host, one.path), 0.0)
        # Asked for before anything named it: a seed.
        named_at = named_at if named_at <= one.contact_at else 0.0
        since.append(one.contact_at if again else named_at)
        asked.add(one.path)
    for k in range(len(since) - 2, -1, -1):
        since[k] = min(since[k], since[k + 1])
    return since
