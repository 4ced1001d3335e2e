"""Disk merge: fingerprints in sorted files, merged in batches in the background, and answers at once.

Mercator's eliminator (Heydon and Najork 1999, figure 4) and IRLbot's DRUM gather questions until a whole batch is
merged with the file, and answer then. Here the batch is what is *new*: a front buffer holds it, every question is
answered from popular table, buffer and files, and a full buffer becomes sorted runs while the crawl goes on. See
docs/decisions/0006-url-eliminators.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gossamer.model.counters import Counters
from gossamer.ports import KNOWN, NEW, SHORTER
from gossamer.seen.offers import FOLDER, GROUP_SHIFT, GROUPS, Offers, depth_and_hops, least_of
from gossamer.seen.options import SeenOptions
from gossamer.seen.popular import Popular
from gossamer.seen.runs import FingerprintRun, mask_of, merged, write_run
from gossamer.state.epoch import Epochs
from gossamer.state.journals import Journals
from gossamer.state.sums import Sums, crc_of
from gossamer.url.url import Url

RATIO = 4
"""Each run is at least so much larger than the next newer one: few runs, and few times that a URL is rewritten."""
FRONT_SPAN_MAX = 2
"""How many front buffers full may gather while one is merged; then the crawl waits for the disk."""

Front = list[dict[int, int]]
"""Per group: fingerprint to way."""


class Merged(NamedTuple):
    """What a merge made of one group: a run in place of some others."""

    group: int
    run: FingerprintRun
    crc: int
    replaced: int
    """How many of the newest runs it holds."""


class DiskMergeUrlSeen:
    """Promises what `RocksUrlSeen` promises: exact to 64 bits, answered at once.

    Memory: popular table, at most `FRONT_SPAN_MAX` + 1 front buffers and what one epoch brings (about 110 bytes a URL),
    and an index of 1.5 bytes for each URL ever seen. Disk: 12.5 bytes a URL; while merging, what is merged twice. The
    files are named by the journals' manifest, so a run counts from the commit after it was synced; until then the
    store's log of offers holds its content.
    """

    def __init__(self, epochs: Epochs, journals: Journals, options: SeenOptions) -> None:
        """Open what is committed; remove files of merges that never were.

        Raises:
            OSError: a file is missing or damaged.
        """
        self._epochs = epochs
        self._journals = journals
        self._options = options
        self._offers = Offers(epochs)
        self._popular = Popular(options.popular_urls_max)
        self._on_disk = 0
        self._runs: list[list[FingerprintRun]] = [[] for _ in range(GROUPS)]
        """Per group, oldest and largest first."""
        self._front: Front = [{} for _ in range(GROUPS)]
        self._frozen: Front = [{} for _ in range(GROUPS)]
        """What a merge is writing: still asked, no longer changed."""
        self._frozen_through = 0
        self._merging: Future[list[Merged]] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="seen")
        self._serial = 0
        self._open_runs()
        for group, fingerprints, ways in self._offers.replay():
            self._front[group].update(zip(fingerprints, ways, strict=True))

    def offer(self, urls: Sequence[Url], depths: Sequence[int], hops: Sequence[int]) -> Sequence[int]:
        """Return for each URL `KNOWN`, `NEW` or `SHORTER`. See docs/explanation/duplicates.md for what it costs.

        Raises:
            OSError: the disk does not give back what was written.
        """
        answers = [KNOWN] * len(urls)
        if not urls:
            return answers
        popular = self._popular
        ways, asked = popular.unknown(urls, depths, hops)
        for index in asked:
            url, way = urls[index], ways[index]
            fingerprint, group = url.fingerprint, url.partition >> GROUP_SHIFT
            known = popular.way(fingerprint)
            if known is None:
                known = self._find(group, fingerprint)
            least = way if known is None else least_of(way, known)
            if least != known:
                answers[index] = NEW if known is None else SHORTER
                self._front[group][fingerprint] = least
                self._offers.note(group, fingerprint, least)
            popular.note(fingerprint, least)
        return answers

    def count(self, into: Counters) -> None:
        """Say how many URLs were found in memory, and how many were looked for in files."""
        self._popular.count(into)
        into.urls_on_disk = self._on_disk

    def way(self, url: Url) -> tuple[int, int] | None:
        """Return the least depth and hops, or None when the URL was never offered."""
        way = self._popular.way(url.fingerprint)
        if way is None:
            way = self._find(url.partition >> GROUP_SHIFT, url.fingerprint)
        return None if way is None else depth_and_hops(way)

    def cut(self, now: float) -> None:  # noqa: ARG002 - the same for every backend
        """Give the epoch what was offered; take in a merge that is ready, and begin one when the buffer is full.

        Raises:
            OSError: a merge failed: the disk is full or damaged.
        """
        self._offers.cut()
        waiting = sum(map(len, self._front))
        if self._merging is not None and (
            self._merging.done() or waiting >= FRONT_SPAN_MAX * self._options.front_urls_max
        ):
            self._adopt(self._merging.result())
            self._merging = None
        if self._merging is None and waiting >= self._options.front_urls_max:
            self._frozen, self._front = self._front, [{} for _ in range(GROUPS)]
            self._frozen_through = self._epochs.number
            self._serial += 1
            runs = [list(of_group) for of_group in self._runs]
            self._merging = self._thread.submit(self._merge, self._frozen, runs, self._serial)

    @property
    def memory(self) -> dict[str, int]:
        """What is held: URLs in `popular`, `front` and `frozen`, `runs`, and `index_bytes` of all runs."""
        return {
            "popular": len(self._popular),
            "front": sum(map(len, self._front)),
            "frozen": sum(map(len, self._frozen)),
            "runs": sum(map(len, self._runs)),
            "index_bytes": sum(run.index_bytes for of_group in self._runs for run in of_group),
        }

    def close(self) -> None:
        """Wait for a running merge, whose work is lost, and close the files."""
        self._thread.shutdown(wait=True)
        if self._merging is not None and self._merging.exception() is None:
            for made in self._merging.result():
                made.run.close()
        for of_group in self._runs:
            for run in of_group:
                run.close()

    def _find(self, group: int, fingerprint: int) -> int | None:
        """Look from the newest to the oldest: the newest way is the least."""
        way = self._front[group].get(fingerprint)
        if way is not None:
            return way
        way = self._frozen[group].get(fingerprint)
        if way is None:
            mask, reads = mask_of(fingerprint), 0
            for run in reversed(self._runs[group]):
                if run.may_hold(fingerprint, mask):
                    reads = 1
                    way = run.find(fingerprint)
                    if way is not None:
                        break
            self._on_disk += reads
        return way

    def _merge(self, front: Front, runs: list[list[FingerprintRun]], serial: int) -> list[Merged]:
        """Write one new run a group. In the merging thread: it reads immutable data."""
        made = []
        for group, added in enumerate(front):
            if not added:
                continue
            fingerprints = np.fromiter(added.keys(), np.uint64, len(added))
            ways = np.fromiter(added.values(), np.uint32, len(added))
            order = np.argsort(fingerprints)
            taken, urls = 0, len(added)
            for run in reversed(runs[group]):
                if run.urls >= RATIO * urls:
                    break
                taken += 1
                urls += run.urls
            smaller = runs[group][len(runs[group]) - taken :]
            path = self._folder / f"{group:02}-{serial:08}.run"
            slices = merged(smaller, (fingerprints[order], ways[order]))
            write_run(path, slices, urls, self._options.filter_bits)
            made.append(Merged(group, FingerprintRun(path), crc_of(path), taken))
        return made

    def _adopt(self, made: Sequence[Merged]) -> None:
        for group, run, found_crc, replaced in made:
            kept = len(self._runs[group]) - replaced
            for old in self._runs[group][kept:]:
                self._journals.drop(_name(old.path))
                old.close()
            self._runs[group][kept:] = [run]
            self._journals.adopt(_name(run.path), Sums(run.bytes, found_crc))
        for group in range(GROUPS):
            self._offers.forget(group, self._frozen_through)
        self._frozen = [{} for _ in range(GROUPS)]

    def _open_runs(self) -> None:
        committed = [entry.name for entry in self._journals.finals(FOLDER + "/")]
        for name in committed:
            group, serial = Path(name).stem.split("-")
            self._runs[int(group)].append(FingerprintRun(self._journals.path(name)))
            self._serial = max(self._serial, int(serial))
        if self._folder.exists():
            for path in self._folder.iterdir():
                if _name(path) not in committed:
                    path.unlink()

    @property
    def _folder(self) -> Path:
        return self._journals.path(FOLDER)


def _name(path: Path) -> str:
    return f"{FOLDER}/{path.name}"
