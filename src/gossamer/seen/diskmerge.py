"""Disk merge: fingerprints in sorted files. New URLs become part of them, and known ones are found in them, in batches.

Mercator's eliminator (Heydon and Najork 1999, figure 4), IRLbot's DRUM (Lee et al. 2008) and BUbiNG's sieve gather
questions until a batch of them is compared with the files in one pass. Here that is done for those that memory cannot
answer. A filter of all URLs is in memory: what it has not is new, at once and for certain. What it may have is held
(`held`) if it is in no table. New URLs gather in a front buffer, which becomes sorted runs when it is full. See
docs/decisions/0006-url-eliminators.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gossamer.model.counters import Counters
from gossamer.model.links import Link
from gossamer.ports import HELD, KNOWN, NEW, SHORTER
from gossamer.seen.filter import Fingerprints, UrlFilter, mask_of
from gossamer.seen.held import HeldBatch, HeldLinks, Name
from gossamer.seen.offers import FOLDER, GROUP_SHIFT, GROUPS, Offers, depth_and_hops, least_of
from gossamer.seen.options import SeenOptions
from gossamer.seen.popular import WAITS, Popular
from gossamer.seen.runs import (
    NOWHERE,
    FingerprintRun,
    Ways,
    is_shorter,
    least_ways,
    merged,
    write_run,
)
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


class Compared(NamedTuple):
    """What a comparison found of a batch of held links."""

    fingerprints: Fingerprints
    ways: Ways
    """The least known path to each; `NOWHERE` to a new one."""
    wanted: list[int]
    """Places of those that are new, or have a shorter path."""
    known: dict[int, int]
    """Of these: fingerprint to known path."""


class Work(NamedTuple):
    """What the thread did in one go."""

    made: list[Merged]
    compared: Compared | None


class DiskMergeUrlSeen:
    """Promises what `RocksUrlSeen` promises: exact to 64 bits. `offer` answers at once; `offer_or_hold` answers what
    memory can answer, and holds the others, so that no link costs a read of the disk of its own.

    Memory: popular table, at most `FRONT_SPAN_MAX` + 1 front buffers and what one epoch brings (about 110 bytes a URL),
    filters and indexes of 1.7 bytes for each URL ever seen, 32 bytes for each of `held_urls_max`. Disk: 12.5 bytes a
    URL; while merging, what is merged twice; 80 bytes for each held link. The files are named by the journals'
    manifest, so a run counts from the commit after it was synced; until then the store's log of offers holds its
    content.
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
        self._held = HeldLinks(epochs, options.held_urls_max)
        self._filter: UrlFilter | None = None
        """Has all URLs; made when the first is offered, so that questions about a stopped crawl do without."""
        self._compared: dict[int, int] = {}
        """What the last comparison found of links that are given back, while the runs are as they were then."""
        self._working: Future[Work] | None = None
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
        ways, asked = self._popular.unknown(urls, depths, hops)
        may_have = (self._filter or self._filled()).may_have
        for index in asked:
            fingerprint, group = urls[index].fingerprint, urls[index].partition >> GROUP_SHIFT
            known = self._popular.way(fingerprint)
            if known is None or known >= WAITS:
                known = self._find(group, fingerprint) if may_have(fingerprint) else None
            answers[index] = self._note(group, fingerprint, ways[index], known)
        return answers

    def offer_or_hold(self, links: Sequence[Link]) -> Sequence[int]:
        """Return for each link `KNOWN`, `NEW`, `SHORTER` or `HELD`. Reads no file.

        A link to a URL that is held already, by a path that is not longer, is `KNOWN`.
        """
        answers = [KNOWN] * len(links)
        if not links:
            return answers
        urls, popular = [link.url for link in links], self._popular
        may_have = (self._filter or self._filled()).may_have
        ways, asked = popular.unknown(urls, [link.depth for link in links], [link.hops for link in links])
        held = []
        for index in asked:
            fingerprint, group, way = urls[index].fingerprint, urls[index].partition >> GROUP_SHIFT, ways[index]
            known = popular.way(fingerprint)
            if known is None or known >= WAITS:
                waits = (NOWHERE if known is None else known) - WAITS
                known = NOWHERE
                if may_have(fingerprint):
                    known = self._in_memory(group, fingerprint)
                if known is None:
                    least = least_of(way, waits)
                    if least != waits:
                        held.append(index)
                        answers[index] = HELD
                        popular.note(fingerprint, least + WAITS)
                    continue
                if known == NOWHERE:
                    known = None
            answers[index] = self._note(group, fingerprint, way, known)
        if held:
            self._held.hold(
                [links[index] for index in held],
                [ways[index] for index in held],
                [urls[index].partition >> GROUP_SHIFT for index in held],
            )
        return answers

    @property
    def held(self) -> int:
        """Number of held links."""
        return len(self._held)

    def holds(self, url: Url) -> bool:
        """Say whether a link to a URL is held. About 1 ms."""
        return self._held.has(url.fingerprint)

    def released(self, most: int, name: Name, *, idle: bool) -> list[Link]:
        """Return up to `most` held links, to be given to `offer` in this epoch. Few of them are known: when a batch was
        compared only new ones and those with shorter paths; when there is nothing else to do (`idle`), the others too.

        Raises:
            DamagedStoreError: the store does not give back what was written.
        """
        links = self._held.released(most, name, idle=idle)
        if links:
            fingerprints = np.array([link.url.fingerprint for link in links], np.uint64)
            self._popular.settle(fingerprints, np.full(len(links), NOWHERE, np.uint32))
        return links

    def count(self, into: Counters) -> None:
        """Say how many URLs were found in memory, and how many were looked for in files."""
        self._popular.count(into)
        into.urls_on_disk = self._on_disk

    def way(self, url: Url) -> tuple[int, int] | None:
        """Return the least depth and hops, or None when the URL was never offered."""
        way = self._popular.way(url.fingerprint)
        if way is None or way >= WAITS:
            way = self._find(url.partition >> GROUP_SHIFT, url.fingerprint)
        return None if way is None else depth_and_hops(way)

    def cut(self, now: float) -> None:
        """Give the epoch what was offered and held; take in what the thread did, and begin what is due: a full front
        buffer is merged with the runs, and held links are compared with them.

        Raises:
            OSError: a merge failed: the disk is full or damaged.
        """
        self._offers.cut()
        self._held.cut()
        waiting = sum(map(len, self._front))
        if self._working is not None and (
            self._working.done() or waiting >= FRONT_SPAN_MAX * self._options.front_urls_max
        ):
            self._adopt(self._working.result())
            self._working = None
        if self._working is not None:
            return
        batch = self._held.batch(now)
        is_full = waiting >= self._options.front_urls_max
        if is_full:
            self._frozen, self._front = self._front, [{} for _ in range(GROUPS)]
            self._frozen_through = self._epochs.number
            self._serial += 1
        if is_full or batch is not None:
            runs = [list(of_group) for of_group in self._runs]
            self._working = self._thread.submit(self._work, self._frozen, batch, runs, self._serial)

    @property
    def memory(self) -> dict[str, int]:
        """What is held: `links`, URLs in `popular`, `front` and `frozen`, `runs`, bytes of indexes and filter."""
        return {
            "links": len(self._held),
            "popular": len(self._popular),
            "front": sum(map(len, self._front)),
            "frozen": sum(map(len, self._frozen)),
            "runs": sum(map(len, self._runs)),
            "filter_bytes": self._filter.bytes if self._filter is not None else 0,
            "index_bytes": sum(run.index_bytes for of_group in self._runs for run in of_group),
        }

    def close(self) -> None:
        """Wait for a running merge, whose work is lost, and close the files."""
        self._thread.shutdown(wait=True)
        if self._working is not None and self._working.exception() is None:
            for made in self._working.result().made:
                made.run.close()
        for of_group in self._runs:
            for run in of_group:
                run.close()

    def _note(self, group: int, fingerprint: int, way: int, known: int | None) -> int:
        """Remember a URL by an offered path, and return the answer; `known` is the least path before."""
        least = way if known is None else least_of(way, known)
        self._popular.note(fingerprint, least)
        if least == known:
            return KNOWN
        self._front[group][fingerprint] = least
        self._offers.note(group, fingerprint, least)
        if known is not None:
            return SHORTER
        assert self._filter is not None
        self._filter.add(fingerprint)
        return NEW

    def _filled(self) -> UrlFilter:
        """Return the filter with all URLs in it: reads all runs, about 0.05 µs a URL."""
        known = sum(run.urls for of_group in self._runs for run in of_group)
        self._filter = filled = UrlFilter(max(self._options.expected_urls, known), self._options.filter_bits)
        for of_group in self._runs:
            for run in of_group:
                for fingerprints, _ in run.slices():
                    filled.add_all(fingerprints)
        for added in (*self._front, *self._frozen):
            filled.add_all(np.sort(np.fromiter(added.keys(), np.uint64, len(added))))
        return filled

    def _find(self, group: int, fingerprint: int) -> int | None:
        """Look from the newest to the oldest: the newest way is the least."""
        way = self._in_memory(group, fingerprint)
        if way is None:
            mask, reads = mask_of(fingerprint), 0
            for run in reversed(self._runs[group]):
                if run.may_hold(fingerprint, mask):
                    reads = 1
                    way = run.find(fingerprint)
                    if way is not None:
                        break
            self._on_disk += reads
        return None if way == NOWHERE else way

    def _in_memory(self, group: int, fingerprint: int) -> int | None:
        """Return the least path to a URL, as far as memory has it; `NOWHERE` if a comparison found that it is new."""
        way = self._front[group].get(fingerprint)
        if way is None:
            way = self._frozen[group].get(fingerprint)
        return way if way is not None or not self._compared else self._compared.get(fingerprint)

    def _work(self, front: Front, batch: HeldBatch | None, runs: list[list[FingerprintRun]], serial: int) -> Work:
        """Merge a front buffer, and compare held links with all that is known then. In the thread."""
        made = self._merge(front, runs, serial)
        for group, run, _, replaced in made:
            runs[group][len(runs[group]) - replaced :] = [run]
        return Work(made, _compared(batch, runs) if batch is not None else None)

    def _merge(self, front: Front, runs: list[list[FingerprintRun]], serial: int) -> list[Merged]:
        """Write one new run for each group with new URLs. It reads immutable data."""
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
            write_run(path, slices, urls)
            made.append(Merged(group, FingerprintRun(path), crc_of(path), taken))
        return made

    def _adopt(self, work: Work) -> None:
        for group, run, found_crc, replaced in work.made:
            kept = len(self._runs[group]) - replaced
            for old in self._runs[group][kept:]:
                self._journals.drop(_name(old.path))
                old.close()
            self._runs[group][kept:] = [run]
            self._journals.adopt(_name(run.path), Sums(run.bytes, found_crc))
        if work.made:
            for group in range(GROUPS):
                self._offers.forget(group, self._frozen_through)
            self._frozen = [{} for _ in range(GROUPS)]
            self._compared = {}
        if work.compared is not None:
            self._popular.settle(work.compared.fingerprints, work.compared.ways)
            self._held.compared(work.compared.wanted)
            self._compared = work.compared.known

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


def _compared(batch: HeldBatch, runs: Sequence[Sequence[FingerprintRun]]) -> Compared:
    """Look for a batch of held links in the runs of all groups."""
    fingerprints = np.frombuffer(batch.fingerprints, np.uint64)
    offered = np.frombuffer(batch.ways, np.uint32)
    groups = np.frombuffer(batch.groups, np.uint8)
    ways = np.empty(len(batch), np.uint32)
    for group, of_group in enumerate(runs):
        places = np.flatnonzero(groups == group)
        places = places[np.argsort(fingerprints[places])]
        ways[places] = least_ways(of_group, fingerprints[places])
    wanted = np.flatnonzero(is_shorter(offered, ways))
    known = dict(zip(fingerprints[wanted].tolist(), ways[wanted].tolist(), strict=True))
    return Compared(fingerprints, ways, wanted.tolist(), known)


def _name(path: Path) -> str:
    return f"{FOLDER}/{path.name}"
