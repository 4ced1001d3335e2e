"""Options of the duplicate tests."""

from math import log
from typing import Annotated, Literal

from gossamer.options import Key, Section

RUN_BITS = 4
"""Bits of a URL in the filter of its file (`runs.FILTER_BITS`)."""


class SeenOptions(Section, frozen=True):
    """How seen URLs and duplicate pages are recognized."""

    backend: Annotated[
        Literal["rocksdb", "memory", "diskmerge", "bloom"],
        Key("How URLs are remembered; a crawl keeps the backend that it began with.", basic=True),
    ] = "rocksdb"
    popular_bytes_max: Annotated[int, Key("Memory for recently looked-up URLs: 8 bytes each (rocksdb).", ge=0)] = (
        20 << 20
    )
    popular_urls_max: Annotated[
        int, Key("Recently looked-up URLs that are kept in memory: 8 bytes each (diskmerge).", ge=0)
    ] = 2_610_000
    front_urls_max: Annotated[
        int, Key("New URLs gathered in memory before they are merged with files (diskmerge).", ge=1)
    ] = 200_000
    held_urls_max: Annotated[
        int, Key("Links that only files can answer, gathered before they are compared with these (diskmerge).", ge=1)
    ] = 1_000_000
    filter_bits: Annotated[
        int, Key("Bits of memory for each URL by which new ones are recognized (diskmerge).", ge=1, le=64)
    ] = 8
    expected_urls: Annotated[
        int,
        Key("Number of URLs for which memory is reserved, or the first filters are sized (diskmerge, bloom).", ge=1),
    ] = 10_000_000
    false_positive_rate: Annotated[
        float, Key("Share of new URLs that may be taken for known and lost (bloom).", gt=0, lt=1)
    ] = 1e-4
    log_urls_max: Annotated[
        int, Key("New URLs in the log, which opening the crawl reads again, before filters are saved (bloom).", ge=1)
    ] = 1_000_000
    content_scope: Annotated[
        Literal["host", "site", "shard"],
        Key("Where exact duplicates are looked for; there an identical body is archived as a revisit record."),
    ] = "site"
    near_scope: Annotated[
        Literal["off", "host", "site", "shard"],
        Key("Where near-duplicates are looked for and marked; costs about 0.15 ms a page.", basic=True),
    ] = "off"
    near_bits_max: Annotated[
        int, Key("Bits of 64 in which the simhashes of near-duplicates may differ.", ge=0, le=3)
    ] = 3

    @property
    def filter_bytes(self) -> int:
        """Memory of the filters for `expected_urls`, and as much on disk; 0 for a backend without filters.

        Filters of `diskmerge` grow with the number of URLs; those of its files exist twice while they are merged. A
        Bloom filter of rate p takes -ln p / (ln 2)² bits an entry (Bloom 1970); the first of a chain has half of the
        configured rate.
        """
        if self.backend == "diskmerge":
            return self.expected_urls * (self.filter_bits + 2 * RUN_BITS) // 8
        if self.backend != "bloom":
            return 0
        return int(self.expected_urls * -log(self.false_positive_rate / 2) / log(2) ** 2 / 8)
