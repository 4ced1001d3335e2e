"""Options of the duplicate tests."""

from math import log
from typing import Literal

from pydantic import Field

from gossamer.model.options import BASIC, Section


class SeenOptions(Section):
    """What counts as the same, and how much of it is kept in memory."""

    backend: Literal["rocksdb", "memory", "diskmerge", "bloom"] = Field(
        "rocksdb",
        description="How URLs are remembered; a crawl keeps the backend that it began with.",
        json_schema_extra=BASIC,
    )
    popular_bytes_max: int = Field(
        20 << 20, ge=0, description="Memory for recently offered URLs, in front of the store: 12 bytes each (rocksdb)."
    )
    popular_urls_max: int = Field(
        1_740_000,
        ge=0,
        description="Recently offered URLs, in memory in front of the files: 12 bytes each (diskmerge).",
    )
    front_urls_max: int = Field(
        200_000, ge=1, description="New URLs gathered in memory before they are merged with files (diskmerge)."
    )
    filter_bits: int = Field(
        12,
        ge=1,
        le=64,
        description="Bits of memory for each URL that spare reading the files for new ones (diskmerge).",
    )
    expected_urls: int = Field(
        10_000_000,
        ge=1,
        description="URLs that the first filters are sized for; more may come (bloom).",
    )
    false_positive_rate: float = Field(
        1e-4, gt=0, lt=1, description="Share of new URLs that may be taken for known and lost (bloom)."
    )
    log_urls_max: int = Field(
        1_000_000, ge=1, description="New URLs that an opening must read again, before filters are saved (bloom)."
    )
    content_scope: Literal["host", "site", "shard"] = Field(
        "site",
        description="Within what an identical body is archived as a revisit, and a copy is called one.",
    )
    near_scope: Literal["off", "host", "site", "shard"] = Field(
        "off",
        description="Within what near-duplicates are looked for and marked; costs about 0.15 ms a page.",
        json_schema_extra=BASIC,
    )
    near_bits_max: int = Field(
        3, ge=0, le=3, description="Bits of 64 in which the simhashes of near-duplicates may differ."
    )

    @property
    def filter_bytes(self) -> int:
        """Memory of the filters for `expected_urls`, and as much on disk; 0 for a backend without filters.

        A Bloom filter of rate p takes -ln p / (ln 2)² bits an entry (Bloom 1970); the first of a chain has half of the
        configured rate.
        """
        if self.backend != "bloom":
            return 0
        return int(self.expected_urls * -log(self.false_positive_rate / 2) / log(2) ** 2 / 8)
