"""Lasting: names the hosts whose URLs take longer than those of all others, and what would shorten that."""

from collections.abc import Iterable
from heapq import nlargest
from itertools import islice

from msgspec.structs import replace

from gossamer.model.standing import Lasting
from gossamer.model.words import counted, duration
from gossamer.stages.frontier.host import Host
from gossamer.stages.frontier.overview import LOOKED_AT_MAX
from gossamer.stages.frontier.politeness import Politeness

NAMED_MAX = 5
LONGER_S_MIN = 600.0
LONGER_MIN = 1.5
"""A host is named if its URLs take longer than those of the others by this time, and by this factor."""


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
    return [_describe(host, left_s, left_s - others_s, alone=not others_s) for left_s, host in longest[:named]]


def _left_s(host: Host, rules: Politeness) -> float:
    """Return how long a host's URLs take at least, if it answers as fast as before."""
    record = host.record
    interval_s = 1.0 / rules.visits_per_s(record.fetches_s, record.crawl_delay_s)
    address_s = rules.address_delay_s if rules.per_address and not rules.has_own_gate else 0.0
    site_s = rules.site_delay_s / rules.per_site if rules.per_site else 0.0
    return record.urls_queued * max(interval_s, address_s, site_s)


def _describe(host: Host, left_s: float, longer_s: float, *, alone: bool) -> Lasting:
    record = host.record
    after = "" if alone else f", {duration(longer_s)} after all others"
    each_s = left_s / record.urls_queued
    says = f"{counted(record.urls_queued, 'URL')} at {each_s:.3g} s each take {duration(left_s)}{after}"
    return Lasting(record.name, record.urls_queued, left_s, longer_s, f"{says}; {_remedy(host, left_s)}")


def _remedy(host: Host, left_s: float) -> str:
    """Return what would shorten it. A Crawl-delay is the host's wish, and is never shortened."""
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
