"""Overview: hosts told to people: who is active and what limits him, who is slow, who fails and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from heapq import nlargest
from itertools import islice

import msgspec

from gossamer.frontier.host import Host
from gossamer.frontier.origins import facts_of_origins, why_waiting
from gossamer.frontier.record import Origin

LOOKED_AT_MAX = 20_000
"""Hosts that are looked at: about 1 µs each, on the loop."""


def overview(active: Iterable[Host], known: Iterable[Host], now: float, most: int) -> dict[str, object]:
    """Return what limits the active hosts, counted, and the `most` largest, slowest and worst hosts in memory."""
    active, known = list(islice(active, LOOKED_AT_MAX)), list(islice(known, LOOKED_AT_MAX))
    largest = nlargest(most, active, key=lambda host: (host.out, host.record.queued))
    slowest = nlargest(most, (host for host in known if host.record.fetches_s), key=mean_s)
    failing = [host for host in known if host.record.closed or any(one.failures for one in _origins(host).values())]
    worst = nlargest(most, failing, key=lambda host: (*_worst(host), host.record.queued))
    return {
        "limits": dict(Counter(limit_of(host, now) for host in active)),
        "active": [_told(host, now) for host in largest],
        "slowest": [_told(host, now) for host in slowest],
        "failing": [_told(host, now) for host in worst],
    }


def limit_of(host: Host, now: float) -> str:
    """Return what an active host waits for, in a word: a bounded set, for counting."""
    record = host.record
    if record.closed:
        return "closed"
    if host.out:
        return "fetching"
    if record.origins is not None and (host.turn_at or 0.0) > max(record.rest_until, now):
        return "failing"
    if record.rest_until > now:
        if record.backoffs:
            return "asked_to_wait"
        return "crawl_delay" if record.crawl_delay_s else "politeness"
    if host.parked:
        return "robots"
    if host.place is None:
        return "lookup"
    if host.place.rest_until > now or (host.place.most and host.place.out >= host.place.most):
        return "address"
    if host.site is not None and (host.site.out or host.site.rest_until > now):
        return "site"
    return "ready"


def mean_s(host: Host) -> float:
    """Return how long a host's last requests took."""
    return sum(host.record.fetches_s) / len(host.record.fetches_s)


def _told(host: Host, now: float) -> dict[str, object]:
    record = host.record
    return {
        "host": host.name,
        "limit": limit_of(host, now),
        "queued": record.queued,
        "out": host.out,
        "requests": record.requests,
        "fetch_s": round(mean_s(host), 4) if record.fetches_s else None,
        "rest_until": record.rest_until if record.rest_until > now else None,
        "failures": _worst(host)[1],
        "sleeps": _worst(host)[0],
        "reason": record.closed or record.reason or why_waiting(record),
        "origins": [msgspec.structs.asdict(one) for one in facts_of_origins(record)],
    }


def _origins(host: Host) -> Mapping[str, Origin]:
    return host.record.origins or {}


def _worst(host: Host) -> tuple[int, int]:
    """Return waits and failures in a row of the origin that failed most often."""
    return max(((one.sleeps, one.failures) for one in _origins(host).values()), default=(0, 0))
