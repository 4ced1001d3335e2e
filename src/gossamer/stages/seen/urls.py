"""URLs: duplicate URL eliminators in the shard's store and in one dictionary in memory, both exact to 64 bits."""

from collections.abc import Sequence

from xxhash import xxh32_intdigest

from gossamer.model.counters import Counters
from gossamer.ports import KNOWN, NEW, SHORTER
from gossamer.stages.seen.moved import MovedUrls
from gossamer.stages.seen.offers import GROUP_SHIFT, Offers, depth_and_hops, least_of, shortest, way_of
from gossamer.stages.seen.popular import Popular
from gossamer.state.epoch import Epochs
from gossamer.url.url import Url

STARTS_MAX = 10_000
"""Origins whose key prefix is cached: about 1.5 MB."""
_SCHEME = len("https://")
"""From this index on, the next slash ends an origin; without a slash it ends before the last character."""


class RocksUrlSeen:
    """Promises: a URL is new only once, across restarts; its least depth and its least hops are stored.

    Both are minimized separately over all paths, so that the result does not depend on the order of offers.

    Costs about 0.2 µs for a recently offered URL (navigation repeats on every page), else 1.5 µs. Recently offered URLs
    take `POPULAR_BYTES` for each of `popular_urls_max`, which is rounded down to a power of two. On a host with a
    million seen URLs, one of 10¹³ offers has the fingerprint of another URL and is then never fetched.
    """

    def __init__(self, epochs: Epochs, popular_urls_max: int) -> None:
        self._epochs = epochs
        self._popular = Popular(popular_urls_max)
        self._starts: dict[str, bytes] = {}
        """Origin to its key prefix."""

    def offer(self, urls: Sequence[Url], depths: Sequence[int], hops: Sequence[int]) -> Sequence[int]:
        """Return `KNOWN`, `NEW` or `SHORTER` for each URL."""
        answers = [KNOWN] * len(urls)
        if not urls:
            return answers
        ways, asked = self._popular.unknown(urls, depths, hops)
        if asked:
            self._ask(urls, ways, asked, answers)
        return answers

    def forget(self) -> None:
        """Clear the cache, after partitions have arrived whose URLs were in another shard."""
        self._popular.forget()

    def count(self, into: Counters) -> None:
        """Set the counts of URLs that were found in memory, and that were looked up in the store."""
        self._popular.count(into)
        into.urls_on_disk = self._epochs.keys_read("seen")

    def way(self, url: Url) -> tuple[int, int] | None:
        """Return the least depth and hops, or None when the URL was never offered."""
        if (recent := self._popular.way(url.fingerprint)) is not None:
            return depth_and_hops(recent)
        value = self._epochs.get("seen", self._start(url) + url.fingerprint.to_bytes(8))
        return None if value is None else depth_and_hops(int.from_bytes(value))

    def _ask(self, urls: Sequence[Url], ways: list[int], asked: list[int], answers: list[int]) -> None:
        starts = self._starts
        keys = [
            (starts.get(url.key[: url.key.find("/", _SCHEME)]) or self._start(url)) + url.fingerprint.to_bytes(8)
            for url in [urls[index] for index in asked]
        ]
        values = self._epochs.get_many("seen", keys)
        changed: dict[bytes, bytes] = {}
        note = self._popular.note
        for index, key, value in zip(asked, keys, values, strict=True):
            way = ways[index]
            if key in changed:
                value = changed[key]
            if value is None:
                answers[index] = NEW
                changed[key] = way.to_bytes(3)
            elif (known := int.from_bytes(value)) != way:
                least = least_of(way, known)
                if least != known:
                    answers[index] = SHORTER
                    changed[key] = least.to_bytes(3)
                way = least
            note(urls[index].fingerprint, way)
        if changed:
            self._epochs.put_many("seen", changed)

    def _start(self, url: Url) -> bytes:
        """Return the key prefix of a host's URLs: these keys are adjacent, so that a page's links, mostly to their own
        host, are found in few blocks. The host is that of the key, since host rules compare several hosts as one.
        """
        origin = url.key[: url.key.find("/", _SCHEME)]
        start = self._starts.get(origin)
        if start is None:
            if len(self._starts) >= STARTS_MAX:
                self._starts.clear()
            start = self._starts[origin] = _start_of(url.partition, origin)
        return start


def url_seen_key(url: Url) -> bytes:
    """Return the key under which `RocksUrlSeen` stores a URL."""
    return _start_of(url.partition, url.key[: url.key.find("/", _SCHEME)]) + url.fingerprint.to_bytes(8)


def _start_of(partition: int, origin: str) -> bytes:
    return partition.to_bytes(2) + xxh32_intdigest(origin.encode()).to_bytes(4)


class MemoryUrlSeen:
    """Promises the same as `RocksUrlSeen`, with about 90 bytes of memory a URL, and never reads the disk to answer.

    The store has a log of the offers of each epoch; opening a crawl reads the whole log, about 0.5 µs a URL.
    """

    def __init__(self, epochs: Epochs) -> None:
        self._offers = Offers(epochs)
        self._known: dict[int, int] = {}
        self._ways: dict[int, int] = {}
        """Interned paths: a crawl has few different ones; a separate number for every URL would take 32 bytes more."""
        for _, fingerprints, ways in self._offers.replay():
            self._known.update(zip(fingerprints, map(self._once, ways), strict=True))
        self.moved = MovedUrls(epochs, self._find)

    def offer(self, urls: Sequence[Url], depths: Sequence[int], hops: Sequence[int]) -> Sequence[int]:
        """Return `KNOWN`, `NEW` or `SHORTER` for each URL. About 0.2 µs each."""
        answers = [KNOWN] * len(urls)
        find = self._known.get
        moved = self.moved.partitions
        for index, url in enumerate(urls):
            way = way_of(depths[index], hops[index])
            known = find(url.fingerprint) if url.partition not in moved else self._find(url.partition, url.fingerprint)
            if known == way:
                continue
            least = way if known is None else least_of(way, known)
            if least != known:
                answers[index] = NEW if known is None else SHORTER
                self._known[url.fingerprint] = self._once(least)
                self._offers.note(url.partition >> GROUP_SHIFT, url.fingerprint, least)
                self.moved.note(url, least)
        return answers

    def way(self, url: Url) -> tuple[int, int] | None:
        """Return the least depth and hops, or None when the URL was never offered."""
        way = self._find(url.partition, url.fingerprint)
        return None if way is None else depth_and_hops(way)

    def cut(self, now: float) -> None:
        """Put the offers of this epoch into the store."""
        self._offers.cut()

    def _find(self, partition: int, fingerprint: int) -> int | None:
        return shortest(self._known.get(fingerprint), self.moved.way(partition, fingerprint))

    def _once(self, way: int) -> int:
        return self._ways.setdefault(way, way)
