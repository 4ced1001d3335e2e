"""Counters: figures of DNS lookups and caches. Status, metrics, `epochs` and the report derive from them."""

from __future__ import annotations

from collections.abc import Mapping
from operator import sub
from typing import Any

import msgspec


class Counters(msgspec.Struct):
    """Counts since the process began. Each field is a column of `epochs` and a metric; `SAYS` describes it."""

    dns_lookups: int = 0
    dns_failures: int = 0
    dns_s: float = 0.0
    dns_within_10_ms: int = 0
    dns_within_100_ms: int = 0
    dns_within_1_s: int = 0
    dns_hits: int = 0
    dns_misses: int = 0
    robots_hits: int = 0
    robots_misses: int = 0
    records_hits: int = 0
    records_misses: int = 0
    links_submitted: int = 0
    links_rejected: int = 0
    links_elsewhere: int = 0
    admitted_hits: int = 0
    urls_hits: int = 0
    urls_misses: int = 0
    urls_on_disk: int = 0
    requests_s: float = 0.0

    def since(self, before: Counters) -> Counters:
        """Return the difference from an earlier value."""
        return Counters(*map(sub, msgspec.structs.astuple(self), msgspec.structs.astuple(before)))


def total(one: Any, other: Any) -> Any:
    """Return the sum of two counts of the same kind: structs and mappings by their parts, of texts the first one."""
    match one:
        case msgspec.Struct():
            return type(one)(*map(total, msgspec.structs.astuple(one), msgspec.structs.astuple(other)))
        case dict():
            return other | {name: total(count, other[name]) if name in other else count for name, count in one.items()}
        case bool() | str():
            return one or other
    return one + other


SAYS: Mapping[str, str] = {
    "dns_lookups": "Lookups of a host by name servers, all its record types together",
    "dns_failures": "Lookups without an address",
    "dns_s": "Seconds that lookups took",
    "dns_within_10_ms": "Lookups that took 10 ms at most",
    "dns_within_100_ms": "Lookups that took 100 ms at most",
    "dns_within_1_s": "Lookups that took 1 s at most",
    "dns_hits": "Addresses found in the cache of DNS answers",
    "dns_misses": "Addresses that were not in it",
    "robots_hits": "Parsed robots.txt rules found in memory",
    "robots_misses": "Rules that were parsed again from the host's record",
    "records_hits": "Host records found in memory",
    "records_misses": "Host records read from disk, or made for new hosts",
    "links_submitted": "Links that pages, redirects, sitemaps and seeds submitted",
    "links_rejected": "Links of these that a filter rejected",
    "links_elsewhere": "Links of these that were sent to another shard, which submits them there",
    "admitted_hits": "Links of these found in the table of recently admitted links, the first of the duplicate check",
    "urls_hits": "Links found in the table of popular URLs, the second",
    "urls_misses": "Links in neither, for which the duplicate URL eliminator read its front buffer, its store or files",
    "urls_on_disk": "Links of these that its front buffer did not answer, so that it read its store or files",
    "requests_s": "Seconds that requests for pages took",
}
CACHES = ("dns", "robots", "records", "urls")
"""Prefixes of the fields that end in `_hits` and `_misses`."""
