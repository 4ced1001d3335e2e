"""Memory: the duplicate URL eliminator as one dictionary; exact to 64 bits, as large as the machine's memory."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer.ports import KNOWN, NEW, SHORTER
from gossamer.seen.groups import GROUP_SHIFT
from gossamer.seen.offers import Offers
from gossamer.seen.ways import depth_and_hops, least_of, way_of
from gossamer.state.epoch import Epochs
from gossamer.url.url import Url


class MemoryUrlSeen:
    """Promises what `RocksUrlSeen` promises, for about 90 bytes of memory a URL, and never reads the disk to answer.

    The store keeps a log of what each epoch brought; opening a crawl reads it whole, about 0.5 µs a URL.
    """

    def __init__(self, epochs: Epochs) -> None:
        self._offers = Offers(epochs)
        self._known: dict[int, int] = {}
        self._ways: dict[int, int] = {}
        """Each way once: a crawl has few of them, and a number of its own for every URL would take 32 bytes more."""
        for _, fingerprints, ways in self._offers.replay():
            self._known.update(zip(fingerprints, map(self._once, ways), strict=True))

    def offer(self, urls: Sequence[Url], depths: Sequence[int], hops: Sequence[int]) -> Sequence[int]:
        """Return for each URL `KNOWN`, `NEW` or `SHORTER`. About 0.2 µs each."""
        answers = [KNOWN] * len(urls)
        find = self._known.get
        for index, url in enumerate(urls):
            way = way_of(depths[index], hops[index])
            known = find(url.fingerprint)
            if known == way:
                continue
            least = way if known is None else least_of(way, known)
            if least != known:
                answers[index] = NEW if known is None else SHORTER
                self._known[url.fingerprint] = self._once(least)
                self._offers.note(url.partition >> GROUP_SHIFT, url.fingerprint, least)
        return answers

    def way(self, url: Url) -> tuple[int, int] | None:
        """Return the least depth and hops, or None when the URL was never offered."""
        way = self._known.get(url.fingerprint)
        return None if way is None else depth_and_hops(way)

    def cut(self, now: float) -> None:  # noqa: ARG002 - the same for every room
        """Give the epoch what was offered since the last one."""
        self._offers.cut()

    def _once(self, way: int) -> int:
        return self._ways.setdefault(way, way)
