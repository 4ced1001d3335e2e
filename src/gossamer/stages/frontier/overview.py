"""Overview: reports of the frontier: hosts by what limits them or outlasts others, next turns, facts, the URLs left.

For a crawl that does not run, the state is that of its last commit.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from heapq import nlargest, nsmallest
from itertools import islice
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from gossamer.model.links import Link
from gossamer.model.standing import Awaited, BudgetFacts, HostFacts, Lasting
from gossamer.model.words import counted, duration
from gossamer.stages.frontier import record as host_record
from gossamer.stages.frontier.budgets import budget_facts, round_of
from gossamer.stages.frontier.host import ROBOTS, Host
from gossamer.stages.frontier.hosts import HostTable
from gossamer.stages.frontier.index import HostIndex
from gossamer.stages.frontier.options import BudgetOptions
from gossamer.stages.frontier.origins import facts_of_origins, key_of, name_of, why_waiting
from gossamer.stages.frontier.politeness import Politeness
from gossamer.state.epoch import Epochs
from gossamer.state.schema import PARTITIONED
from gossamer.state.store import Store
from gossamer.url.site import site_of
from gossamer.url.url import NameUrl, Url

LOOKED_AT_MAX = 20_000
"""Hosts that an overview examines: about 1 µs each, on the loop."""
NAMED_MAX = 5
LONGER_S_MIN = 600.0
LONGER_MIN = 1.5
"""A host is named if its URLs take longer than those of the others by this time, and by this factor."""


def overview(active: Iterable[Host], known: Iterable[Host], now: float, most: int) -> dict[str, object]:
    """Return counts of what limits the active hosts, and the `most` largest, slowest and worst hosts in memory."""
    active = list(islice(active, LOOKED_AT_MAX))
    known = list(islice(known, LOOKED_AT_MAX))
    largest = nlargest(most, active, key=lambda host: (host.out, host.record.urls_queued))
    slowest = nlargest(most, (host for host in known if host.record.fetches_s), key=mean_s)
    failing = [host for host in known if host.record.closed or any(one.failures for one in _origins(host).values())]
    worst = nlargest(most, failing, key=lambda host: (*_worst(host), host.record.urls_queued))
    return {
        "limits": dict(Counter(limit_of(host, now) for host in active)),
        "active": [_describe(host, now) for host in largest],
        "slowest": [_describe(host, now) for host in slowest],
        "failing": [_describe(host, now) for host in worst],
    }


def limit_of(host: Host, now: float) -> str:
    """Return the reason for which an active host waits, as one of a fixed set of words."""
    record = host.record
    if record.closed:
        return "closed"
    if host.out:
        return "fetching" if host.place is not None else "lookup"
    turn_at = host.turn_at or 0.0
    origin_waits = any(one.wait_until > now for one in _origins(host).values())
    if origin_waits and turn_at > max(record.delay_until, now):
        return "failing"
    if record.delay_until > now:
        if record.backoffs:
            return "asked_to_wait"
        return "crawl_delay" if record.crawl_delay_s else "politeness"
    if host.parked == ROBOTS:
        return "robots"
    if host.place is None:
        return "lookup"
    address_full = bool(host.place.most) and host.place.out >= host.place.most
    if address_full or host.place.delay_until > now:
        return "address"
    site = host.site
    if site is not None:
        lacks_token = site.tokens is not None and site.tokens.most == 0
        if lacks_token or site.out or site.delay_until > now:
            return "site"
    return "politeness" if turn_at > now else "ready"


def mean_s(host: Host) -> float:
    """Return the mean time of a host's last requests in seconds."""
    return sum(host.record.fetches_s) / len(host.record.fetches_s)


def _describe(host: Host, now: float) -> dict[str, object]:
    record = host.record
    return {
        "host": host.name,
        "limit": limit_of(host, now),
        "queued": record.urls_queued,
        "out": host.out,
        "requests": record.requests,
        "fetch_s": round(mean_s(host), 4) if record.fetches_s else None,
        "delay_until": record.delay_until if record.delay_until > now else None,
        "failures": _worst(host)[1],
        "sleeps": _worst(host)[0],
        "reason": record.closed or record.reason or why_waiting(record),
        "origins": [msgspec.structs.asdict(one) for one in facts_of_origins(record)],
    }


def _origins(host: Host) -> Mapping[str, host_record.Origin]:
    return host.record.origins or {}


def _worst(host: Host) -> tuple[int, int]:
    """Return waits and failures in a row of the origin that failed most often."""
    return max(((one.sleeps, one.failures) for one in _origins(host).values()), default=(0, 0))


REASON_S = 0.001
"""Times in the index are rounded by less."""


class NextTurn(NamedTuple):
    """When the next host may be requested, and why not earlier."""

    at: float
    host: str
    """Empty if not known."""
    reason: str
    """For people."""


def next_turn(active: Iterable[Host], index: HostIndex, hosts: HostTable, *, has_sites: bool) -> NextTurn | None:
    """Return when the next host may be requested, which, and why not earlier; `has_sites`: whether sites have gates."""
    waiting = [host for host in active if host.turn_at is not None]
    if not waiting:
        return _next_sleeper(index, hosts)
    first = min(waiting, key=lambda host: host.turn_at or 0.0)
    at = first.turn_at or 0.0
    record = first.record
    reason = why_waiting(record) if not record.reason and at > record.delay_until else record.reason
    if not reason and first.window is None and at > record.delay_until and record.due:
        reason = "its URLs are tried again then"
    if not reason and record.crawl_delay_s:
        reason = f"Crawl-delay of {record.crawl_delay_s:g} s"
    if has_sites and first.site is not None and first.site.delay_until >= at:
        reason = f"its site {first.site.name} waits"
    return NextTurn(at, first.name, reason or "politeness")


def _next_sleeper(index: HostIndex, hosts: HostTable) -> NextTurn | None:
    wake_at = index.next_wake_at()
    if wake_at is None:
        return None
    found = index.next_sleeper()
    if found is None:
        return NextTurn(wake_at, "", "it waits")
    record = hosts.get(found[1], found[0]).record
    return NextTurn(wake_at, record.name, _why_not_before(record, wake_at) or "it waits")


def next_hosts(active: Iterable[Host], index: HostIndex, hosts: HostTable, most: int) -> list[Awaited]:
    """Return up to `most` of the hosts that can be requested later, the earliest first."""
    turns = nsmallest(most, (host for host in active if host.turn_at is not None), key=lambda one: one.turn_at or 0.0)
    found = [(host.turn_at or 0.0, host) for host in turns]
    found += [(at, hosts.get(name, partition)) for at, partition, name in index.sleepers(most)]
    found.sort(key=lambda one: one[0])
    return [
        Awaited(host.name, at, _why_not_before(host.record, at) or "politeness", host.record.urls_queued)
        for at, host in found[:most]
    ]


def _why_not_before(record: host_record.HostRecord, at: float) -> str:
    """Return why a host is not requested before `at`: its own reason, or an origin that does not answer."""
    if record.reason and record.delay_until >= at - REASON_S:
        return record.reason
    return why_waiting(record) or record.reason


def facts_of(
    epochs: Epochs,
    url: Url,
    host: Host | None = None,
    site_gate: str = "",
    budget: BudgetOptions | None = None,
    usage: BudgetFacts | None = None,
    split: frozenset[str] = frozenset(),
) -> HostFacts:
    """Return the facts of a URL's host, and when the URL itself is due. A pass over the host's due URLs.

    `budget` are the budgets, `usage` is their current use; None: as of the last commit. `split` are sites whose hosts
    have a partition each.
    """
    prefix = host_record.host_prefix(url.partition, url.host)
    if host is not None:
        record: host_record.HostRecord | None = host.record
    else:
        data = epochs.get("host", prefix)
        record = host_record.decode_record(data) if data is not None else None
    if record is None:
        return HostFacts(url.host)
    due_at = None
    attempt = 1
    error = ""
    if record.due:
        for key, value in epochs.scan("due", prefix, host_record.range_end(prefix)):
            if key.endswith(url.fingerprint.to_bytes(8)):
                entry = host_record.decode_entry(value)
                due_at = host_record.due_time(key)
                attempt = entry.attempt
                error = entry.error
                break
    delay_until = record.delay_until
    reason = record.reason
    if host is not None and host.site is not None and host.site.delay_until > delay_until:
        delay_until = host.site.delay_until
        reason = f"its site {host.site.name} waits (politeness.site_delay_s)"
    if usage is None and budget is not None:
        usage = budget_facts(epochs, budget, url, split)
    scheme = key_of(url)
    failing = record.origin(scheme)
    origin = next((one for one in facts_of_origins(record) if one.origin == name_of(record.name, scheme)), None)
    failures = failing.failures if failing is not None else 0
    is_deferred = usage is not None and record.index_family == "deferred" and round_of(record.index_key) >= usage.round
    return HostFacts(
        record.name, record.urls_queued, delay_until, reason, record.closed, record.crawl_delay_s,
        record.requests, failures, host.out if host else 0, host.parked if host else "",
        due_at, attempt, error, site_gate, is_deferred, usage, origin,
    )  # fmt: skip


def remaining(store: Store, name_url: NameUrl) -> Iterator[tuple[Link, int]]:
    """Yield every URL that is not finished, with its level, by partition, site and host; within a host retries come
    first, then URLs in the order of the queue. A pass over all hosts, 1 µs each; memory holds the names of one
    partition's hosts with work.
    """
    names: list[tuple[str, str]] = []
    partition = b""
    for key, data in store.scan("host", *PARTITIONED):
        if key[:2] != partition:
            yield from _of_partition(store, partition, names, name_url)
            partition = key[:2]
            names = []
        record = host_record.decode_record(data)
        if record.urls_queued:
            names.append((site_of(record.name), record.name))
    yield from _of_partition(store, partition, names, name_url)


def _of_partition(
    store: Store, partition: bytes, names: list[tuple[str, str]], name_url: NameUrl
) -> Iterator[tuple[Link, int]]:
    for _, name in sorted(names):
        prefix = host_record.host_prefix(int.from_bytes(partition), name)
        data = store.get("host", prefix)
        assert data is not None, f"{name} is listed and has no record"
        for entry, level in _queue(store, prefix, host_record.decode_record(data)):
            if (url := name_url(entry.url)) is not None:
                yield Link(url, entry.link_type, entry.depth, entry.hops, entry.referrer, entry.seed), level


def _queue(store: Store, prefix: bytes, record: host_record.HostRecord) -> Iterator[tuple[host_record.QueueEntry, int]]:
    if record.due:
        for _, data in store.scan("due", prefix, host_record.range_end(prefix)):
            yield host_record.decode_entry(data), 0
    for lane, queue in sorted(record.levels.items()):
        first = queue.block
        while first < queue.tail:
            stored = store.get("queue", host_record.block_key(prefix, lane, first))
            assert stored is not None, f"{record.name} lacks the block {first} of queue {lane}"
            block = host_record.decode_block(stored)
            for number, entry in enumerate(block.entries(record.name), first):
                if not queue.is_finished(number):
                    yield entry, host_record.level_of(lane)
            first += block.count


def lasting_hosts(active: Iterable[Host], pending: int, urls_s: float) -> list[Lasting]:
    """Return the hosts that will outlast all others, the longest first. `pending` are the URLs of all hosts; the crawl
    fetches `urls_s` of them a second. 1 µs a host.
    """
    found = [(_left_s(host, host.rules), host) for host in islice(active, LOOKED_AT_MAX) if not host.record.closed]
    longest = nlargest(NAMED_MAX + 1, found, key=lambda one: one[0])
    named = 0
    others_s = 0.0
    for number in range(1, min(NAMED_MAX, len(longest)) + 1):
        rest = pending - sum(host.record.urls_queued for _, host in longest[:number])
        next_s = longest[number][0] if number < len(longest) else 0.0
        delay_s = max(next_s, rest / urls_s if urls_s and rest > 0 else 0.0)
        if longest[number - 1][0] >= max(LONGER_MIN * delay_s, delay_s + LONGER_S_MIN):
            named = number
            others_s = delay_s
    return [_describe_lasting(host, left_s, left_s - others_s, alone=not others_s) for left_s, host in longest[:named]]


def _left_s(host: Host, rules: Politeness) -> float:
    """Return how long a host's URLs take at least, if it answers as fast as before."""
    record = host.record
    interval_s = 1.0 / rules.visits_per_s(record.fetches_s, record.crawl_delay_s)
    address_s = rules.address_delay_s if rules.per_address and not rules.has_own_gate else 0.0
    site_s = rules.site_delay_s / rules.per_site if rules.per_site else 0.0
    return record.urls_queued * max(interval_s, address_s, site_s)


def _describe_lasting(host: Host, left_s: float, longer_s: float, *, alone: bool) -> Lasting:
    record = host.record
    after = "" if alone else f", {duration(longer_s)} after all others"
    each_s = left_s / record.urls_queued
    says = f"{counted(record.urls_queued, 'URL')} at {each_s:.3g} s each take {duration(left_s)}{after}"
    return Lasting(record.name, record.urls_queued, left_s, longer_s, f"{says}; {_remedy(host, left_s)}")


def _remedy(host: Host, left_s: float) -> str:
    """Return a remedy that shortens it. A Crawl-delay is set by the host, and is never shortened."""
    record = host.record
    rules = host.rules
    delay_s = rules.delay_s(record.fetches_s, record.crawl_delay_s)
    if record.crawl_delay_s and record.crawl_delay_s >= delay_s:
        return f"its robots.txt asks for {delay_s:g} s between requests (Crawl-delay), and that stands"
    half_s = float(f"{delay_s / 2:.2g}")
    if half_s:
        other = replace(rules, delay_s_min=half_s, delay_s_max=half_s, delay_factor=0.0)
        setting = f"delay_s={half_s:g}"
    else:
        other = replace(rules, per_host=2 * rules.per_host, has_own_gate=True)
        setting = f"per_host={other.per_host}"
    shorter_s = _left_s(host, other)
    if shorter_s > 0.9 * left_s:
        return "the delay of its address or site bounds it"
    return f"`gossamer host DIR {record.name} {setting}` makes it {duration(shorter_s)}, if its owner permits that"
