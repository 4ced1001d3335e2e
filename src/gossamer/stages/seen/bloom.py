"""Bloom: a duplicate URL eliminator with a few bytes per URL, which takes a configured share of new URLs for seen ones.

Fingerprints divide URLs evenly among 16 groups, so that a file has a sixteenth of them. Each group has a chain of Bloom
filters (Almeida et al. 2007, "Scalable Bloom Filters"): each is twice as large as the previous one and has half its
false-positive rate, so the sum of all rates stays below the configured one for any number of URLs.
"""

import struct
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from math import sqrt
from pathlib import Path

import msgspec
from rbloom import Bloom
from xxhash import xxh3_64_intdigest

from gossamer.ports import KNOWN, NEW
from gossamer.stages.seen.moved import MovedUrls
from gossamer.stages.seen.offers import FOLDER, GROUPS, Offers
from gossamer.stages.seen.options import SeenOptions
from gossamer.state.epoch import Epochs
from gossamer.state.journals import Journals
from gossamer.state.sums import Sums, crc
from gossamer.url.url import Url
from gossamer.world.files import make_directory, publish

_TAIL = struct.Struct("<QQQ")
"""URLs in the filter, its capacity, checksum of everything before this."""
_GROUP_AT = 64 - (GROUPS - 1).bit_length()
"""A URL's group is its fingerprint shifted right by this."""
_DEVIATIONS = 4.0
"""The first filter of a group has room for this many standard deviations above the mean number of URLs in a group, so
that a second filter is rarely started too early."""


class _Filter(msgspec.Struct, eq=False):
    """One filter of a chain."""

    bits: Bloom
    urls: int
    urls_max: int
    file: str = ""
    """The file to which it was last saved."""
    saved_urls: int = 0


class _Saving(msgspec.Struct, eq=False):
    """Filters of one group that are being saved."""

    group: int
    through: int
    files: list[tuple[_Filter, str, int]] = []
    """Filter, name of its new file, number of its URLs."""
    written: Future[list[Sums]] | None = None


class BloomUrlSeen:
    """Promises: an offered URL counts as seen from then on. A new URL is taken for seen, and lost, at a rate of at most
    `false_positive_rate`.

    Paths are not stored: `way` returns None, and a shorter path changes nothing, so with a limit on depth the crawled
    pages depend on the order of found links. About 3 bytes a URL at a rate of 1 in 10,000, in memory and in files.
    """

    def __init__(self, epochs: Epochs, journals: Journals, options: SeenOptions) -> None:
        """Load the committed filters. Raises OSError: a file is missing or damaged."""
        self._epochs = epochs
        self._journals = journals
        self._options = options
        self._offers = Offers(epochs)
        self._logged = [0] * GROUPS
        self._chains: list[list[_Filter]] = [[] for _ in range(GROUPS)]
        self._saving: _Saving | None = None
        self._serial = 0
        self.moved = MovedUrls(epochs, lambda *_: None)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="seen")
        self._open_filters()
        for group, fingerprints, _ in self._offers.replay():
            for fingerprint in fingerprints:
                self._add(group, fingerprint)
            self._logged[group] += len(fingerprints)

    def offer(self, urls: Sequence[Url], depths: Sequence[int], hops: Sequence[int]) -> Sequence[int]:
        """Return `KNOWN` or `NEW` for each URL; paths are ignored. About 0.4 µs each."""
        answers = [KNOWN] * len(urls)
        for index, url in enumerate(urls):
            fingerprint = url.fingerprint
            group = fingerprint >> _GROUP_AT
            for one in self._chains[group]:
                if fingerprint in one.bits:
                    break
            else:
                if self.moved.way(url.partition, fingerprint) is not None:
                    continue
                answers[index] = NEW
                self._add(group, fingerprint)
                self._offers.note(group, fingerprint, 0)
                self.moved.note(url, 0)
                self._logged[group] += 1
        return answers

    def way(self, url: Url) -> None:
        """Return None: paths are not stored."""
        return

    def knows(self, url: Url) -> bool:
        """Return whether a URL was offered. Also True for the configured share of other URLs."""
        if self.moved.way(url.partition, url.fingerprint) is not None:
            return True
        return any(url.fingerprint in one.bits for one in self._chains[url.fingerprint >> _GROUP_AT])

    def cut(self, now: float) -> None:
        """Put the offers of this epoch into the store; save the filters of one group if its log is long.

        The loop copies a filter's bytes, about 0.3 ms a MiB; a thread writes them to disk. Raises OSError: the disk is
        full.
        """
        self._offers.cut()
        if self._saving is not None and self._saving.written is not None and self._saving.written.done():
            self._adopt(self._saving, self._saving.written.result())
            self._saving = None
        longest = max(range(GROUPS), key=lambda group: self._logged[group])
        if self._saving is None and self._logged[longest] * GROUPS >= self._options.log_urls_max:
            self._save(longest)

    def close(self) -> None:
        """Wait for files that are being written, which are not used."""
        self._thread.shutdown(wait=True)

    def _add(self, group: int, fingerprint: int) -> None:
        chain = self._chains[group]
        if not chain or chain[-1].urls >= chain[-1].urls_max:
            share = self._options.expected_urls / GROUPS
            urls_max = 2 * chain[-1].urls_max if chain else int(share + _DEVIATIONS * sqrt(share)) + 1
            rate = self._options.false_positive_rate / 2 ** (len(chain) + 1)
            # A fingerprint is a hash already; `int` returns it unchanged.
            chain.append(_Filter(Bloom(urls_max, rate, int), 0, urls_max))
        last = chain[-1]
        last.bits.add(fingerprint)
        last.urls += 1

    def _save(self, group: int) -> None:
        self._serial += 1
        self._logged[group] = 0
        saving = _Saving(group, self._epochs.number)
        contents = []
        for place, one in enumerate(self._chains[group]):
            if one.urls > one.saved_urls:
                name = f"{FOLDER}/{group:02}-{place:02}-{self._serial:08}.bloom"
                saving.files.append((one, name, one.urls))
                contents.append((self._journals.path(name), one.bits.save_bytes(), one.urls, one.urls_max))
        saving.written = self._thread.submit(lambda: [_write(*content) for content in contents])
        self._saving = saving

    def _adopt(self, saving: _Saving, written: Sequence[Sums]) -> None:
        for (one, name, urls), sums in zip(saving.files, written, strict=True):
            if one.file:
                self._journals.drop(one.file)
            self._journals.adopt(name, sums)
            one.file = name
            one.saved_urls = urls
        self._offers.forget(saving.group, saving.through)

    def _open_filters(self) -> None:
        committed = [entry.name for entry in self._journals.finals(FOLDER + "/")]
        for name in committed:  # Sorted, so in the order of each chain.
            group, _, serial = Path(name).stem.split("-")
            one = _read(self._journals.path(name))
            one.file, one.saved_urls = name, one.urls
            self._chains[int(group)].append(one)
            self._serial = max(self._serial, int(serial))
        folder = self._journals.path(FOLDER)
        if folder.exists():
            for path in folder.iterdir():
                if f"{FOLDER}/{path.name}" not in committed:
                    path.unlink()


def _write(path: Path, bits: bytes, urls: int, urls_max: int) -> Sums:
    make_directory(path.parent)
    aside = path.with_name(path.name + ".new")
    tail = _TAIL.pack(urls, urls_max, xxh3_64_intdigest(bits))
    with aside.open("wb") as file:
        file.write(bits)
        file.write(tail)
    publish(aside, path)
    return Sums(len(bits) + len(tail), crc(tail, crc(bits)))


def _read(path: Path) -> _Filter:
    data = memoryview(path.read_bytes())
    bits = bytes(data[: -_TAIL.size])
    urls, urls_max, check = _TAIL.unpack(data[-_TAIL.size :])
    if xxh3_64_intdigest(bits) != check:
        raise OSError(f"{path} is damaged: restore the crawl from a checkpoint")
    return _Filter(Bloom.load_bytes(bits, int), urls, urls_max)
