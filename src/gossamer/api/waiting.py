"""Waiting: what an idle crawl waits for, and until when. No stall is silent."""

from __future__ import annotations

from gossamer.archive.uploads import Uploads
from gossamer.assembly.values import CrawlRing
from gossamer.crawl.counters import Telemetry
from gossamer.model.status import WaitingReason
from gossamer.model.words import duration

QUIET_S = 3.0
"""A reply that takes longer is reported if nothing else happens meanwhile."""


def waiting(ring: CrawlRing, uploads: Uploads | None, telemetry: Telemetry) -> WaitingReason | None:
    """Return what the crawl waits for; None while it works, or is over. A pass over the hosts in memory at worst."""
    crawl = ring.loop
    counts = uploads.counts if uploads is not None else None
    if counts is not None and counts.waiting_files and crawl.state in ("finished", "stopped"):
        return WaitingReason("uploads", f"uploads to {counts.store}")
    if crawl.state != "running":
        return None
    if crawl.paused:
        return WaitingReason("operator", "`gossamer unpause`")
    if crawl.brakes.held:
        who, why = next(iter(crawl.brakes.held.items()))
        return WaitingReason(who, why)
    if crawl.in_flight:
        return _answer(ring, telemetry) or (WaitingReason("blocked", crawl.blocked) if crawl.blocked else None)
    if blocked := crawl.blocked:
        return WaitingReason("blocked", blocked)
    turn = ring.frontier.next_turn()
    now = telemetry.clock.now()
    if turn is None or turn.at <= now:
        return None
    says = f"{turn.host or 'a sleeping host'} ({turn.reason}), next request in {duration(turn.at - now)}"
    return WaitingReason("host", says, turn.host, None, turn.at)


def _answer(ring: CrawlRing, telemetry: Telemetry) -> WaitingReason | None:
    """Return the request that has been under way for longest, when nothing has come for a while."""
    now = telemetry.clock.now()
    lease, since = min(ring.loop.under_way, key=lambda under_way: under_way[1])
    lasts_s = now - max(since, telemetry.counters.last_at)
    if lasts_s < QUIET_S:
        return None
    host, more = lease.url.host, ring.loop.in_flight - 1
    others = f", and {more} more" if more else ""
    if not lease.address:
        return WaitingReason("lookup", f"the address of {host} (DNS, for {now - since:.0f} s){others}", host, since)
    return WaitingReason("answer", f"an answer of {host} (for {now - since:.0f} s){others}", host, since)
