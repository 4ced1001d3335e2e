"""URLs: the duplicate URL eliminator in the shard's store; exact to 64 bits."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer.seen.ways import DEPTH_MAX, HOPS_MAX, KNOWN, NEW, SHORTER, depth_and_hops, least_of, way_of
from gossamer.state.epoch import Epochs
from gossamer.url.url import Url


class RocksUrlSeen:
    """Promises: a URL is new once, across restarts; its least depth and its least hops are remembered.

    Each for itself, whatever ways they came by: then what is remembered in the end does not depend on the order.

    Costs about 0.1 µs for a popular URL (navigation repeats on every page), else 1 µs. Two URLs share a fingerprint
    once in 10¹¹ offers at 100 million URLs known: the second is then never fetched.
    """

    def __init__(self, epochs: Epochs, popular_urls_max: int) -> None:
        self._epochs = epochs
        self._popular_urls_max = popular_urls_max
        self._popular: dict[int, int] = {}
        """Fingerprint to depth and hops as one number."""

    def offer(self, urls: Sequence[Url], depths: Sequence[int], hops: Sequence[int]) -> Sequence[int]:
        """Return for each URL `KNOWN`, `NEW` or `SHORTER`."""
        popular = self._popular
        answers = [KNOWN] * len(urls)
        asked: list[int] = []
        ways: list[int] = []
        for index, (url, depth, hop) in enumerate(zip(urls, depths, hops, strict=True)):
            way = depth << 8 | hop if depth <= DEPTH_MAX and hop <= HOPS_MAX else way_of(depth, hop)
            ways.append(way)
            known = popular.get(url.fingerprint)
            if known is None or way < known or (way & HOPS_MAX) < (known & HOPS_MAX):
                asked.append(index)
        if asked:
            self._ask(urls, ways, asked, answers)
        return answers

    def way(self, url: Url) -> tuple[int, int] | None:
        """Return the least depth and hops, or None when the URL was never offered."""
        value = self._epochs.get("seen", _key(url))
        if value is None:
            return None
        return depth_and_hops(int.from_bytes(value))

    def _ask(self, urls: Sequence[Url], ways: list[int], asked: list[int], answers: list[int]) -> None:
        if len(self._popular) + len(asked) > self._popular_urls_max:
            self._popular.clear()  # It fills again with what is popular now.
        keys = [_key(urls[index]) for index in asked]
        values = self._epochs.get_many("seen", keys)
        earlier: dict[bytes, int] = {}
        for index, key, value in zip(asked, keys, values, strict=True):
            way = ways[index]
            known = earlier.get(key)
            if known is None and value is not None:
                known = int.from_bytes(value)
            least = way if known is None else least_of(way, known)
            if least != known:
                answers[index] = NEW if known is None else SHORTER
                self._epochs.put("seen", key, least.to_bytes(3))
                known = least
            earlier[key] = known
            self._popular[urls[index].fingerprint] = known


def _key(url: Url) -> bytes:
    return url.partition.to_bytes(2) + url.fingerprint.to_bytes(8)
