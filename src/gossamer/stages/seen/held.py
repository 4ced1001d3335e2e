"""Held: links that wait for a batch to be compared with the files. They are durable with the epoch that found them.

Each link takes 13 bytes in memory: fingerprint, path and group. The links themselves are in values of the store, which
are deleted in the epoch in which the last link of their batch is offered again. After a crash before that epoch the
whole batch is released again; links that were queued before are known by then.
"""

from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import count

import msgspec
import numpy as np

from gossamer.model.links import Link
from gossamer.stages.seen.offers import array_of, bytes_of
from gossamer.state.epoch import Epochs
from gossamer.state.schema import HELD_LINKS, under
from gossamer.url.url import NameUrl

PART_LINKS_MAX = 2_048
"""Links of one value: 160 KB. Putting a larger value holds up the loop."""
READS_MAX = 10_000
"""A batch of at most this size is answered by single reads of 35 µs, in place of a pass through all files."""
HELD_S_MAX = 600.0
"""The longest time that links wait while their batch is not full."""


class HeldRun(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The stored form of links that differ only in their address."""

    link_type: str
    depth: int
    hops: int
    referrer: str
    level: int | None
    urls: list[str]


class HeldPart(msgspec.Struct, array_like=True, frozen=True):
    """One value of the store: links, apart from the fields to compare; `pages` stay encoded until needed."""

    fingerprints: bytes
    ways: bytes
    groups: bytes
    counts: list[int]
    """Links of each page."""
    pages: list[bytes]


_decode_part = msgspec.msgpack.Decoder(HeldPart).decode
_decode_page = msgspec.msgpack.Decoder(list[HeldRun]).decode


class HeldBatch:
    """Held links in the order in which they were added; a place is an index in this order."""

    def __init__(self, epochs: Epochs, numbers: Iterator[int]) -> None:
        """`numbers` are for the keys of values: they increase from batch to batch."""
        self._epochs = epochs
        self._numbers = numbers
        self.fingerprints = array("Q")
        self.ways = array("I")
        self.groups = array("B")
        self._keys: list[bytes] = []
        self._starts: list[int] = []
        """The first place of each value."""
        self._counts: list[int] = []
        self._pages: list[bytes] = []
        self._stored = 0

    def __len__(self) -> int:
        return len(self.fingerprints)

    def add(self, links: Sequence[Link], ways: Sequence[int], groups: Sequence[int]) -> None:
        """Add links that were found together. About 0.4 µs each."""
        runs = []
        before = None
        texts: list[str] = []
        for link in links:
            how = link.link_type, link.depth, link.hops, link.referrer, link.level
            if how != before:
                before = how
                texts = []
                runs.append(HeldRun(*how, texts))
            texts.append(link.url.text)
        self.fingerprints.extend([link.url.fingerprint for link in links])
        self.ways.extend(ways)
        self.groups.extend(groups)
        self._counts.append(len(links))
        self._pages.append(msgspec.msgpack.encode(runs))
        if len(self) - self._stored >= PART_LINKS_MAX:
            self.store()

    def store(self) -> None:
        """Put the added links into the open epoch."""
        start = self._stored
        self._stored = len(self)
        if self._stored == start:
            return
        key = HELD_LINKS + next(self._numbers).to_bytes(8)
        value = HeldPart(
            bytes_of(self.fingerprints[start:]), bytes_of(self.ways[start:]), self.groups[start:].tobytes(),
            self._counts, self._pages,
        )  # fmt: skip
        self._epochs.put("seen", key, msgspec.msgpack.encode(value))
        self._keys.append(key)
        self._starts.append(start)
        self._counts = []
        self._pages = []

    def load(self, key: bytes, value: bytes) -> None:
        """Add a value that an earlier process stored."""
        part = _decode_part(value)
        self._keys.append(key)
        self._starts.append(len(self))
        self.fingerprints.extend(array_of("Q", part.fingerprints))
        self.ways.extend(array_of("I", part.ways))
        self.groups.frombytes(part.groups)
        self._stored = len(self)

    def links(self, places: Sequence[int], name: NameUrl) -> Iterator[Link]:
        """Yield the links at sorted places. Reads each value that has one of them."""
        at = 0
        for key, start, end in zip(self._keys, self._starts, [*self._starts[1:], len(self)], strict=True):
            first = at
            while at < len(places) and places[at] < end:
                at += 1
            if at > first:
                value = self._epochs.get("seen", key)
                assert value is not None, "a held link was deleted before its answer"
                yield from _links(_decode_part(value), [place - start for place in places[first:at]], name)

    def delete(self) -> None:
        """Delete the links from the store, after all of them were offered again."""
        if self._keys:
            self._epochs.delete_range("seen", self._keys[0], self._keys[-1] + b"\0")


class HeldLinks:
    """Collects links, gives full batches for comparison, and returns links that are new or have a shorter path."""

    def __init__(self, epochs: Epochs, urls_max: int) -> None:
        """`urls_max` is the size of a batch. Links that an earlier process held are loaded."""
        self._epochs = epochs
        self._urls_max = urls_max
        stored = list(epochs.scan("seen", *under(HELD_LINKS)))
        last = int.from_bytes(stored[-1][0][-8:]) if stored else -1
        self._numbers = count(last + 1)
        self._gathering = HeldBatch(epochs, self._numbers)
        self._since: float | None = None
        self._leaving: HeldBatch | None = None
        """The batch that is compared, and then returned."""
        self._wanted: Sequence[int] | None = None
        """Places of the links to return; None before the batch was compared."""
        self._at = 0
        self._hurries = False
        for key, value in stored:
            self._gathering.load(key, value)

    def __len__(self) -> int:
        """Links that are held: not returned yet, nor dropped by a comparison."""
        leaving = 0
        if self._leaving is not None:
            leaving = len(self._leaving) if self._wanted is None else len(self._wanted) - self._at
        return len(self._gathering) + leaving

    @property
    def is_full(self) -> bool:
        """Whether enough links are gathered for a batch."""
        return len(self._gathering) >= self._urls_max

    def hold(self, links: Sequence[Link], ways: Sequence[int], groups: Sequence[int]) -> None:
        """Hold links; see `HeldBatch.add`."""
        self._gathering.add(links, ways, groups)

    def has(self, fingerprint: int) -> bool:
        """Return whether a link to a URL is held. About 1 ms."""
        batches = [self._gathering]
        if self._leaving is not None and (self._wanted is None or self._at < len(self._wanted)):
            batches.append(self._leaving)
        return any((np.frombuffer(one.fingerprints, np.uint64) == fingerprint).any() for one in batches if len(one))

    def cut(self) -> None:
        """Put new held links into the open epoch, and delete the batch that was returned completely."""
        self._gathering.store()
        self._retire()

    def batch(self, now: float) -> HeldBatch | None:
        """Return the batch to compare now, or None; pass the result to `set_wanted`."""
        if self._leaving is not None or not self._gathering:
            return None
        self._since = now if self._since is None else min(now, self._since)  # The clock may be set back.
        is_due = self._hurries or now - self._since >= HELD_S_MAX
        if not is_due and not self.is_full:
            return None
        if is_due and len(self._gathering) <= READS_MAX:
            self._leave(range(len(self._gathering)))
            return None
        self._leave(None)
        return self._leaving

    def set_wanted(self, wanted: Sequence[int]) -> None:
        """Set the places of the links to return."""
        self._wanted = wanted

    def release(self, most: int, name: NameUrl, *, idle: bool) -> list[Link]:
        """Return up to `most` links to offer again in this epoch. `idle`: nothing else is to do; take any batch."""
        self._retire()
        if idle and self._leaving is None and self._gathering:
            if len(self._gathering) <= READS_MAX:
                self._leave(range(len(self._gathering)))
            else:
                self._hurries = True
        if self._leaving is None or not self._wanted:
            return []
        places = self._wanted[self._at : self._at + most]
        self._at += len(places)
        return list(self._leaving.links(places, name))

    def _leave(self, wanted: Sequence[int] | None) -> None:
        self._gathering.store()
        self._leaving, self._gathering = self._gathering, HeldBatch(self._epochs, self._numbers)
        self._wanted = wanted
        self._at = 0
        self._since = None
        self._hurries = False

    def _retire(self) -> None:
        if self._leaving is not None and self._wanted is not None and self._at >= len(self._wanted):
            self._leaving.delete()
            self._leaving = None
            self._wanted = None


def without(value: bytes, has: Callable[[str], bool]) -> bytes:
    """Return a value without the links that `has` selects by URL; empty if no link is left."""
    part = _decode_part(value)
    runs = [run for page in part.pages for run in _decode_page(page)]
    kept = [place for place, text in enumerate(text for run in runs for text in run.urls) if not has(text)]
    if len(kept) == len(part.groups):
        return value
    pages = [[msgspec.structs.replace(run, urls=[text])] for run in runs for text in run.urls if not has(text)]
    fingerprints = array_of("Q", part.fingerprints)
    ways = array_of("I", part.ways)
    left = HeldPart(
        bytes_of(array("Q", [fingerprints[place] for place in kept])),
        bytes_of(array("I", [ways[place] for place in kept])),
        bytes(part.groups[place] for place in kept), [1] * len(kept), [msgspec.msgpack.encode(page) for page in pages],
    )  # fmt: skip
    return msgspec.msgpack.encode(left) if kept else b""


def _links(part: HeldPart, places: Sequence[int], name: NameUrl) -> Iterator[Link]:
    at = start = 0
    for links, page in zip(part.counts, part.pages, strict=True):
        first = at
        while at < len(places) and places[at] < start + links:
            at += 1
        if at > first:
            found = [(run, text) for run in _decode_page(page) for text in run.urls]
            for run, text in [found[place - start] for place in places[first:at]]:
                if (url := name(text)) is not None:
                    yield Link(url, run.link_type, run.depth, run.hops, run.referrer, level=run.level)
        start += links
