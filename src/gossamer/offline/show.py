"""Show: what a segment holds, for people and programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from gossamer.offline.segment import Segment, values_of

SITES_MAX = 10_000
"""Sites and hosts that are counted at once: of more than twice as many the smallest are let go of."""


def summary(path: Path, limit: int) -> Mapping[str, object]:
    """Return a segment's counts by site, host, level, depth and type of link, and its first rows. 0.3 µs a row.

    Raises:
        ConfigError: it is no segment.
    """
    by: dict[str, Counter[Any]] = {name: Counter() for name in ("level", "depth", "hops", "link_type", "host", "site")}
    rows: list[dict[str, object]] = []
    hosts = 0
    last: set[str] = set()
    with closing(Segment(path)) as segment:
        for _, batch in segment.batches():
            for name, counter in by.items():
                counter.update(_counts(batch[name]))
            named = set(values_of(batch["host"].dictionary.take(batch["host"].indices.unique())))
            # A host is in one site, and a site in one place: only where batches meet can it be counted twice.
            hosts += len(named - last)
            last = named
            for name in ("host", "site"):
                if len(by[name]) > 2 * SITES_MAX:
                    by[name] = Counter(dict(by[name].most_common(SITES_MAX)))
            if len(rows) < limit:
                rows += batch.slice(0, limit - len(rows)).to_pylist()
        about = segment.about
        return {
            "file": str(path),
            "urls": segment.rows,
            "sites": about.sites,
            "hosts": hosts,
            "part": about.part,
            "parts": about.parts,
            "made_by": about.made_by,
            "by_level": dict(sorted(by["level"].items())),
            "by_depth": dict(sorted(by["depth"].items())),
            "by_hops": dict(sorted(by["hops"].items())),
            "by_link_type": dict(by["link_type"].most_common()),
            "largest_sites": dict(by["site"].most_common(limit)),
            "largest_hosts": dict(by["host"].most_common(limit)),
            "first": rows,
        }


def _counts(column: pa.Array) -> dict[Any, int]:
    if pa.types.is_dictionary(column.type):
        counts = np.bincount(column.indices.to_numpy(), minlength=len(column.dictionary)).tolist()
        return {name: count for name, count in zip(values_of(column.dictionary), counts, strict=True) if count}
    values, counts = np.unique(column.to_numpy(), return_counts=True)
    return dict(zip(values.tolist(), counts.tolist(), strict=True))
