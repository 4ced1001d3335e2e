"""URLs: the duplicate URL eliminator in the shard's store; exact to 64 bits."""

from __future__ import annotations

from collections.abc import Sequence

from xxhash import xxh32_intdigest

from gossamer.seen.ways import HOPS_MAX, KNOWN, NEW, SHORTER, depth_and_hops, least_of, way_of
from gossamer.state.epoch import Epochs
from gossamer.url.url import Url

STARTS_MAX = 10_000
"""Origins whose beginning of keys is kept in memory: about 1.5 MB."""
_SCHEME = len("https://")
"""From here on the next slash ends an origin; where there is none, so does the last character."""
FARTHEST = (1 << 24) | HOPS_MAX
"""Farther than any way."""


class RocksUrlSeen:
    """Promises: a URL is new once, across restarts; its least depth and its least hops are remembered.

    Each for itself, whatever ways they came by: then what is remembered in the end does not depend on the order.

    Costs about 0.1 µs for a popular URL (navigation repeats on every page), else 1 µs. Two URLs of a host
    with a million known ones share a fingerprint once in 10¹³ offers: the second is then never fetched.
    """

    def __init__(self, epochs: Epochs, popular_urls_max: int) -> None:
        self._epochs = epochs
        self._popular_urls_max = popular_urls_max
        self._popular: dict[int, int] = {}
        """Fingerprint to depth and hops as one number."""
        self._starts: dict[str, bytes] = {}
        """Origin to what its seen keys begin with."""

    def offer(self, urls: Sequence[Url], depths: Sequence[int], hops: Sequence[int]) -> Sequence[int]:
        """Return for each URL `KNOWN`, `NEW` or `SHORTER`."""
        known_way = self._popular.get
        answers = [KNOWN] * len(urls)
        if not urls:
            return answers
        if depths.count(depths[0]) == len(urls) and hops.count(hops[0]) == len(urls):
            # The links of one page, nearly always.
            way = way_of(depths[0], hops[0])
            hop = way & HOPS_MAX
            ways = [way] * len(urls)
            asked = [
                index
                for index, url in enumerate(urls)
                if (known := known_way(url.fingerprint, FARTHEST)) > way or known & HOPS_MAX > hop
            ]
        else:
            ways = [way_of(depth, hop) for depth, hop in zip(depths, hops, strict=True)]
            asked = [
                index
                for index, (url, way) in enumerate(zip(urls, ways, strict=True))
                if (known := known_way(url.fingerprint, FARTHEST)) > way or known & HOPS_MAX > way & HOPS_MAX
            ]
        if asked:
            self._ask(urls, ways, asked, answers)
        return answers

    def way(self, url: Url) -> tuple[int, int] | None:
        """Return the least depth and hops, or None when the URL was never offered."""
        value = self._epochs.get("seen", self._start(url) + url.fingerprint.to_bytes(8))
        if value is None:
            return None
        return depth_and_hops(int.from_bytes(value))

    def _ask(self, urls: Sequence[Url], ways: list[int], asked: list[int], answers: list[int]) -> None:
        popular = self._popular
        if len(popular) + len(asked) > self._popular_urls_max:
            popular.clear()  # It fills again with what is popular now.
        starts = self._starts
        keys = [
            (starts.get(url.key[: url.key.find("/", _SCHEME)]) or self._start(url)) + url.fingerprint.to_bytes(8)
            for url in [urls[index] for index in asked]
        ]
        values = self._epochs.get_many("seen", keys)
        changed: dict[bytes, bytes] = {}
        for index, key, value in zip(asked, keys, values, strict=True):
            way = ways[index]
            if key in changed:
                value = changed[key]
            if value is None:
                answers[index] = NEW
                changed[key] = way.to_bytes(3)
                popular[urls[index].fingerprint] = way
                continue
            known = int.from_bytes(value)
            least = least_of(way, known)
            if least != known:
                answers[index] = SHORTER
                changed[key] = least.to_bytes(3)
            popular[urls[index].fingerprint] = least
        if changed:
            self._epochs.put_many("seen", changed)

    def _start(self, url: Url) -> bytes:
        """Return what the seen keys of a host's URLs begin with: they lie side by side, so that a page's links, which
        mostly name their own host, are found in few blocks. The host is the key's: host rules compare several as one.
        """
        origin = url.key[: url.key.find("/", _SCHEME)]
        start = self._starts.get(origin)
        if start is None:
            if len(self._starts) >= STARTS_MAX:
                self._starts.clear()
            start = self._starts[origin] = url.partition.to_bytes(2) + xxh32_intdigest(origin.encode()).to_bytes(4)
        return start
