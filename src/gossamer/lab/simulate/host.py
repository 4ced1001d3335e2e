"""Host: one host of the modelled web, and what the crawl has found of it."""

from __future__ import annotations

from xxhash import xxh3_64_intdigest

from gossamer.url.fingerprint import PARTITIONS, fingerprint
from gossamer.url.url import Url


class ModelHost:
    """One host of the web. What the crawl has found of it, and has not finished, stands here too."""

    __slots__ = (
        "address", "closed", "crawl_delay_s", "dead", "denied", "fetch_s", "known", "name", "pages", "partition",
        "pending", "shard", "slow",
    )  # fmt: skip

    def __init__(self, name: str, address: str, pages: int, fetch_s: float, shards: int) -> None:
        self.name = name
        self.address = address
        self.pages = pages
        self.fetch_s = fetch_s
        """Median of its fetch times."""
        self.partition = fingerprint(name) % PARTITIONS
        self.shard = fingerprint(address) % shards
        """All hosts of an address are on one shard: the address's gate then holds for all shards, as its lease will."""
        self.dead = False
        self.denied = False
        self.slow = False
        self.crawl_delay_s: float | None = None
        self.known = 0
        """Pages that some link has led to; they are numbered from 0."""
        self.pending = 0
        """Pages that are queued or under way."""
        self.closed = False
        """The frontier has given it up."""

    @property
    def robots_txt(self) -> bytes:
        """Its robots.txt; empty where it has none."""
        if self.denied:
            return b"User-agent: *\nDisallow: /\n"
        return b"" if self.crawl_delay_s is None else b"User-agent: *\nCrawl-delay: %g\n" % self.crawl_delay_s

    def url(self, number: int) -> Url:
        """Return the address of a page, canonical as it is."""
        text = f"http://{self.name}/{number}"
        return Url(text, text, xxh3_64_intdigest(text.encode()), self.name, self.name, self.partition)
