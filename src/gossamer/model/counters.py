"""Counters: figures of DNS lookups and caches. Status, metrics, `epochs` and the report derive from them."""

from __future__ import annotations

from operator import sub
from typing import Annotated, Any

import msgspec


class Counters(msgspec.Struct):
    """Counts since the process began. Each field is a column of `epochs`, and a metric that its text describes."""

    dns_lookups: Annotated[int, "Lookups of a host by name servers, all its record types together"] = 0
    dns_failures: Annotated[int, "Lookups without an address"] = 0
    dns_s: Annotated[float, "Seconds that lookups took"] = 0.0
    dns_within_10_ms: Annotated[int, "Lookups that took 10 ms at most"] = 0
    dns_within_100_ms: Annotated[int, "Lookups that took 100 ms at most"] = 0
    dns_within_1_s: Annotated[int, "Lookups that took 1 s at most"] = 0
    dns_hits: Annotated[int, "Addresses found in the cache of DNS answers"] = 0
    dns_misses: Annotated[int, "Addresses that were not in it"] = 0
    robots_hits: Annotated[int, "Parsed robots.txt rules found in memory"] = 0
    robots_misses: Annotated[int, "Rules that were parsed again from the host's record"] = 0
    records_hits: Annotated[int, "Host records found in memory"] = 0
    records_misses: Annotated[int, "Host records read from disk, or made for new hosts"] = 0
    links_submitted: Annotated[int, "Links that pages, redirects, sitemaps and seeds submitted"] = 0
    links_rejected: Annotated[int, "Links of these that a filter rejected"] = 0
    links_elsewhere: Annotated[int, "Links of these that were sent to another shard, which submits them there"] = 0
    admitted_hits: Annotated[
        int, "Links of these found in the table of recently admitted links, the first of the duplicate check"
    ] = 0
    urls_hits: Annotated[int, "Links found in the table of popular URLs, the second"] = 0
    urls_misses: Annotated[
        int, "Links in neither, for which the duplicate URL eliminator read its front buffer, its store or files"
    ] = 0
    urls_on_disk: Annotated[
        int, "Links of these that its front buffer did not answer, so that it read its store or files"
    ] = 0
    requests_s: Annotated[float, "Seconds that requests for pages took"] = 0.0

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


CACHES = ("dns", "robots", "records", "urls")
"""Prefixes of the fields that end in `_hits` and `_misses`."""
