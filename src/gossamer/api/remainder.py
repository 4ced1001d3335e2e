"""Remainder: what an offline crawl leaves, as a segment for the next one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import merge
from itertools import islice
from pathlib import Path

from gossamer.config import Config
from gossamer.crawl.explain import offered_to
from gossamer.frontier.overview import remaining
from gossamer.model.links import Link
from gossamer.model.product import PRODUCT, __version__
from gossamer.ports import UrlSeen
from gossamer.state.store import Store
from gossamer.url.url import Url

FILE = "remainder.parquet"
"""In the crawl's directory."""
URLS_A_STEP = 8_192

Left = Iterator[tuple[Link, int]]
"""Links with their levels, by partition and site."""


def write_remainder(
    directory: Path, config: Config, store: Store, name_url: Callable[[str], Url | None], others: list[Left],
    url_seen: UrlSeen,
) -> int:  # fmt: skip
    """Write what the last commit has in its queues, and of `others` what this crawl never saw, and return how many URLs
    that is; where nothing is left there is no file. Blocks, for a thread: about 10 µs a URL; memory does not grow.

    Raises:
        OSError: the disk refuses; there is no file then.
    """
    # It brings pyarrow.compute: only an offline crawl has a use for it.
    from gossamer.offline.segment import SegmentInfo, SegmentWriter, rules_of  # noqa: PLC0415

    path = directory / FILE
    was_offered = offered_to(url_seen)
    unseen = (((link, level) for link, level in left if not was_offered(link.url)) for left in others)
    rows = merge(remaining(store, name_url), *unseen, key=lambda row: (row[0].url.partition, row[0].url.site))
    first = next(rows, None)
    if first is None:
        path.unlink(missing_ok=True)
        return 0
    about = SegmentInfo(made_by=f"{PRODUCT} {__version__}: what {directory.name} left", rules=rules_of(config.url))
    with SegmentWriter(path, about) as writer:
        step = [first, *islice(rows, URLS_A_STEP)]
        while step:
            writer.write_links([link for link, _ in step], [level for _, level in step], [1] * len(step))
            step = list(islice(rows, URLS_A_STEP))
    return writer.urls
