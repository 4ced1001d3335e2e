"""Counted: what lookups of names and caches did, as the table of commits has it."""

from __future__ import annotations

from gossamer.model.counters import CACHES, Counters
from gossamer.report.figures import Cache, Dns
from gossamer.report.tables import Tables

_NAMES = Counters.__struct_fields__
_SUMS = "SELECT {sums} FROM epochs"
_FETCHED_S = "SELECT coalesce(sum(fetch_s), 0) FROM pages"


def counted(tables: Tables) -> tuple[Dns, tuple[Cache, ...]]:
    """Return the sums over all commits; nothing where there are none, or of a version that did not count."""
    if not tables.counts:
        return Dns(), ()
    row = tables.one(_SUMS, sums=", ".join(f"coalesce(sum({name}), 0)" for name in _NAMES))
    sums = dict(zip(_NAMES, row, strict=True))
    lookups, lasted_s = int(sums["dns_lookups"]), float(sums["dns_s"])
    whole_s = lasted_s + tables.one(_FETCHED_S)[0]
    dns = Dns(
        lookups, int(sums["dns_failures"]), lasted_s, lasted_s / lookups if lookups else 0.0,
        lasted_s / whole_s if whole_s else 0.0, int(sums["dns_within_10_ms"]), int(sums["dns_within_100_ms"]),
        int(sums["dns_within_1_s"]),
    )  # fmt: skip
    pairs = [(name, int(sums[f"{name}_hits"]), int(sums[f"{name}_misses"])) for name in CACHES]
    return dns, tuple(
        Cache(name, hits, misses, hits / (hits + misses)) for name, hits, misses in pairs if hits + misses
    )
