"""Disk merge: a duplicate URL eliminator with fingerprints in sorted files, which are updated and searched in batches.

Mercator's eliminator (Heydon and Najork 1999, figure 4), IRLbot's DRUM (Lee et al. 2008) and BUbiNG's sieve collect
lookups and compare a batch of them with the files in one pass. Here only lookups that memory cannot answer are
collected. A filter of all URLs is in memory: a URL that is not in it is certainly new. A URL that may be in it, and is
in no table in memory, is held (`held`). New URLs are collected in a front buffer, which becomes sorted runs when it is
full. See docs/decisions/0006-url-eliminators.md.
"""

from array import array
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gossamer.model.counters import Counters
from gossamer.model.links import Link
from gossamer.ports import HELD, KNOWN, NEW, SHORTER
from gossamer.stages.seen import runs as sorted_runs
from gossamer.stages.seen.held import HeldBatch, HeldLinks
from gossamer.stages.seen.moved import MovedUrls
from gossamer.stages.seen.offers import FOLDER, GROUP_SHIFT, GROUPS, Offers, depth_and_hops, least_of, shortest, ways_of
from gossamer.stages.seen.options import SeenOptions
from gossamer.stages.seen.popular import WAITS, Popular
from gossamer.state.epoch import Epochs
from gossamer.state.journals import Journals
from gossamer.state.sums import Sums, crc_of
from gossamer.url.url import NameUrl, Url

RATIO = 4
"""Each run is at least this many times larger than the next newer one: few runs, and URLs are rarely rewritten."""
FRONT_SPAN_MAX = 2
"""Front buffers that may fill while one is merged; after that, or with a full batch held, the crawl awaits the disk."""

Front = list[dict[int, int]]
"""Per group: fingerprint to path (`offers.way_of`)."""


class Merged(NamedTuple):
    """Result of a merge for one group: a run that replaces others."""

    group: int
    run: sorted_runs.FingerprintRun
    crc: int
    replaced: int
    """How many of the newest runs it replaces."""


class Compared(NamedTuple):
    """Result of a comparison of a batch of held links with the files."""

    fingerprints: sorted_runs.Fingerprints
    ways: sorted_runs.Ways
    """The shortest known path to each; `NOWHERE` for a new URL."""
    wanted: list[int]
    """Places in the batch of links that are new, or have a shorter path."""
    known: dict[int, int]
    """For the wanted links: fingerprint to known path."""


class Work(NamedTuple):
    """Result of one task of the thread."""

    made: list[Merged]
    compared: Compared | None


class DiskMergeUrlSeen:
    """Promises the same as `RocksUrlSeen`: exact to 64 bits. `offer` answers at once; `offer_or_hold` answers if memory
    is enough, and holds other links, so that no link costs a separate read of the disk.

    Memory: the popular table; at most `FRONT_SPAN_MAX` + 1 front buffers and the new URLs of one epoch (about 110 bytes
    a URL); filters and indexes of 1.7 bytes for each URL ever seen, and 0.7 while files are merged; 32 bytes for each
    of `held_urls_max`. Disk: 12.5 bytes a URL, twice that for runs that are being merged; 80 bytes for each held link.
    The files are in the journals' manifest, so a run is in use from the commit after its sync; until then the store's
    log of offers has its content.
    """

    def __init__(self, epochs: Epochs, journals: Journals, options: SeenOptions) -> None:
        """Open the committed runs; remove the files of merges that were not committed. Raises OSError: a file is
        missing or damaged.
        """
        self._epochs = epochs
        self._journals = journals
        self._options = options
        self._offers = Offers(epochs)
        self._popular = Popular(options.popular_urls_max)
        self._on_disk = 0
        self._runs: list[list[sorted_runs.FingerprintRun]] = [[] for _ in range(GROUPS)]
        """Per group, oldest and largest first."""
        self._front: Front = [{} for _ in range(GROUPS)]
        self._frozen: Front = [{} for _ in range(GROUPS)]
        """The front buffer that a merge is writing: still read, no longer changed."""
        self._frozen_through = 0
        self._held = HeldLinks(epochs, options.held_urls_max)
        self._filter: sorted_runs.UrlFilter | None = None
        """Has all URLs. Built at the first offer, so that queries of a stopped crawl do not need it."""
        self._compared: dict[int, int] = {}
        """Known paths from the last comparison, for links that are returned, as long as the runs do not change."""
        self._working: Future[Work] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="seen")
        self._serial = 0
        self.moved = MovedUrls(epochs, self._find)
        self._open_runs()
        for group, fingerprints, ways in self._offers.replay():
            self._front[group].update(zip(fingerprints, ways, strict=True))

    def offer(self, urls: Sequence[Url], depths: Sequence[int], hops: Sequence[int]) -> Sequence[int]:
        """Return `KNOWN`, `NEW` or `SHORTER` for each URL. docs/explanation/duplicates.md has the cost. Raises OSError:
        a file cannot be read, or is damaged.
        """
        answers = [KNOWN] * len(urls)
        if not urls:
            return answers
        ways, asked = self._unknown(urls, depths, hops)
        for index, may_be_known in asked:
            url = urls[index]
            known = self._popular.way(url.fingerprint) if may_be_known else None
            if known is None or known >= WAITS:
                group = url.partition >> GROUP_SHIFT
                if may_be_known:
                    known = self._find_here(group, url.fingerprint)
                else:
                    known = self._front[group].get(url.fingerprint)  # Added after the lookup in the filter.
                known = shortest(known, self.moved.way(url.partition, url.fingerprint))
            answers[index] = self._note(url, ways[index], known)
        return answers

    def offer_or_hold(self, links: Sequence[Link]) -> Sequence[int]:
        """Return `KNOWN`, `NEW`, `SHORTER` or `HELD` for each link. Reads no file.

        A link is `KNOWN` if another link to its URL is held with a path that is not longer.
        """
        answers = [KNOWN] * len(links)
        if not links:
            return answers
        urls = [link.url for link in links]
        popular = self._popular
        ways, asked = self._unknown(urls, [link.depth for link in links], [link.hops for link in links])
        held = []
        for index, may_be_known in asked:
            url = urls[index]
            fingerprint = url.fingerprint
            way = ways[index]
            known = popular.way(fingerprint) if may_be_known else None
            if known is None or known >= WAITS:
                waits = known
                group = url.partition >> GROUP_SHIFT
                if may_be_known:
                    known = self._in_memory(group, fingerprint)
                    if known is None:
                        least = way if waits is None else least_of(way, waits - WAITS)
                        if waits is None or least != waits - WAITS:
                            held.append(index)
                            answers[index] = HELD
                            popular.note(fingerprint, least + WAITS)
                        continue
                    known = None if known == sorted_runs.NOWHERE else known
                else:
                    known = self._front[group].get(fingerprint)  # Added after the lookup in the filter.
                known = shortest(known, self.moved.way(url.partition, fingerprint))
            answers[index] = self._note(url, way, known)
        if held:
            self._held.hold(
                [links[index] for index in held],
                [ways[index] for index in held],
                [urls[index].partition >> GROUP_SHIFT for index in held],
            )
        return answers

    def forget(self) -> None:
        """Clear the cache, after partitions have arrived whose URLs were in another shard."""
        self._popular.forget()

    @property
    def links_held(self) -> int:
        """Number of held links."""
        return len(self._held)

    def holds(self, url: Url) -> bool:
        """Return whether a link to a URL is held. About 1 ms."""
        return self._held.has(url.fingerprint)

    def release(self, most: int, name: NameUrl, *, idle: bool) -> list[Link]:
        """Return up to `most` held links that have their answer; pass them to `offer` in this epoch. Of a batch that
        was compared these are the new URLs and shorter paths; of a small batch, all links. With `idle` (there is
        nothing else to do) a batch is not full yet. Raises DamagedStoreError: the store is damaged.
        """
        links = self._held.release(most, name, idle=idle)
        if links:
            self._popular.lookups -= len(links)  # They are offered again, and each counts once.
            self._popular.misses -= len(links)
            fingerprints = np.array([link.url.fingerprint for link in links], np.uint64)
            self._popular.settle(fingerprints, np.full(len(links), sorted_runs.NOWHERE, np.uint32))
        return links

    def count(self, into: Counters) -> None:
        """Set the counts of URLs that were found in memory, and that were looked up in files."""
        self._popular.count(into)
        into.urls_on_disk = self._on_disk

    def way(self, url: Url) -> tuple[int, int] | None:
        """Return the least depth and hops, or None if the URL was never offered."""
        way = self._popular.way(url.fingerprint)
        if way is None or way >= WAITS:
            way = self._find(url.partition, url.fingerprint)
        return None if way is None else depth_and_hops(way)

    def cut(self, now: float) -> None:
        """Put the offers and held links of this epoch into the store; adopt the thread's result, and start its next
        task if one is due: merge a full front buffer with the runs, and compare held links with them. Raises OSError: a
        merge failed: the disk is full or damaged.
        """
        self._offers.cut()
        self._held.cut()
        waiting = sum(map(len, self._front))
        is_crowded = waiting >= FRONT_SPAN_MAX * self._options.front_urls_max or self._held.is_full
        if self._working is not None and (self._working.done() or is_crowded):
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

    def close(self) -> None:
        """Wait for a running merge, whose result is dropped, and close the files."""
        self._thread.shutdown(wait=True)
        if self._working is not None and self._working.exception() is None:
            for made in self._working.result().made:
                made.run.close()
        for of_group in self._runs:
            for run in of_group:
                run.close()

    def _unknown(
        self, urls: Sequence[Url], depths: Sequence[int], hops: Sequence[int]
    ) -> tuple[list[int], Iterable[tuple[int, bool]]]:
        """Return every URL's path; and the index of each URL that the popular table does not have with that path or a
        shorter one, and whether it may have been offered before.
        """
        ways = ways_of(depths, hops)
        fingerprints = np.frombuffer(array("Q", [url.fingerprint for url in urls]), np.uint64)
        unknown = self._popular.unknown_among(fingerprints, np.frombuffer(array("I", ways), np.uint32))
        may_have = (self._filter or self._build_filter()).may_have(fingerprints.take(unknown))
        return ways, zip(unknown.tolist(), may_have.tolist(), strict=True)

    def _note(self, url: Url, way: int, known: int | None) -> int:
        """Record an offered path to a URL, and return the answer; `known` is the shortest path before."""
        fingerprint = url.fingerprint
        group = url.partition >> GROUP_SHIFT
        least = way if known is None or known == way else least_of(way, known)
        self._popular.note(fingerprint, least)
        if least == known:
            return KNOWN
        self._front[group][fingerprint] = least
        self._offers.note(group, fingerprint, least)
        if self.moved.leaving:
            self.moved.note(url, least)
        if known is None or url.partition in self.moved.partitions:  # The filter lacks listed URLs.
            assert self._filter is not None
            self._filter.add(fingerprint)
        return NEW if known is None else SHORTER

    def _build_filter(self) -> sorted_runs.UrlFilter:
        """Build the filter of all URLs, and return it: reads all runs, about 0.05 µs a URL."""
        known = sum(run.urls for of_group in self._runs for run in of_group)
        self._filter = filled = sorted_runs.UrlFilter(
            max(self._options.expected_urls, known), self._options.filter_bits
        )
        for of_group in self._runs:
            for run in of_group:
                for fingerprints, _ in run.slices():
                    filled.add_all(fingerprints)
        for added in (*self._front, *self._frozen):
            filled.add_all(np.sort(np.fromiter(added.keys(), np.uint64, len(added))))
        return filled

    def _find(self, partition: int, fingerprint: int) -> int | None:
        here = self._find_here(partition >> GROUP_SHIFT, fingerprint)
        return shortest(here, self.moved.way(partition, fingerprint))

    def _find_here(self, group: int, fingerprint: int) -> int | None:
        """Return the shortest path to a URL in memory and files, or None: that of the newest run which has it."""
        way = self._in_memory(group, fingerprint)
        if way is None:
            mask = sorted_runs.mask_of(fingerprint)
            reads = 0
            for run in reversed(self._runs[group]):
                if run.may_hold(fingerprint, mask):
                    reads = 1
                    way = run.find(fingerprint)
                    if way is not None:
                        break
            self._on_disk += reads
        return None if way == sorted_runs.NOWHERE else way

    def _in_memory(self, group: int, fingerprint: int) -> int | None:
        """Return the shortest path to a URL if it is in memory; `NOWHERE` if a comparison showed that it is new."""
        way = self._front[group].get(fingerprint)
        if way is None:
            way = self._frozen[group].get(fingerprint)
        return way if way is not None or not self._compared else self._compared.get(fingerprint)

    def _work(
        self, front: Front, batch: HeldBatch | None, runs: list[list[sorted_runs.FingerprintRun]], serial: int
    ) -> Work:
        """Merge a front buffer, then compare held links with the resulting runs. Runs in the thread."""
        made = self._merge(front, runs, serial)
        for group, run, _, replaced in made:
            runs[group][len(runs[group]) - replaced :] = [run]
        return Work(made, _compare(batch, runs) if batch is not None else None)

    def _merge(self, front: Front, runs: list[list[sorted_runs.FingerprintRun]], serial: int) -> list[Merged]:
        """Write one new run for each group with new URLs. Reads only immutable data."""
        made = []
        for group, added in enumerate(front):
            if not added:
                continue
            fingerprints = np.fromiter(added.keys(), np.uint64, len(added))
            ways = np.fromiter(added.values(), np.uint32, len(added))
            order = np.argsort(fingerprints)
            taken = 0
            urls = len(added)
            for run in reversed(runs[group]):
                if run.urls >= RATIO * urls:
                    break
                taken += 1
                urls += run.urls
            smaller = runs[group][len(runs[group]) - taken :]
            path = self._folder / f"{group:02}-{serial:08}.run"
            sorted_runs.write_run(path, sorted_runs.merge(smaller, (fingerprints[order], ways[order])), urls)
            made.append(Merged(group, sorted_runs.FingerprintRun(path), crc_of(path), taken))
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
            self._on_disk += len(work.compared.fingerprints)
            self._popular.settle(work.compared.fingerprints, work.compared.ways)
            self._held.set_wanted(work.compared.wanted)
            self._compared = work.compared.known

    def _open_runs(self) -> None:
        committed = [entry.name for entry in self._journals.finals(FOLDER + "/")]
        for name in committed:
            group, serial = Path(name).stem.split("-")
            self._runs[int(group)].append(sorted_runs.FingerprintRun(self._journals.path(name)))
            self._serial = max(self._serial, int(serial))
        if self._folder.exists():
            for path in self._folder.iterdir():
                if _name(path) not in committed:
                    path.unlink()

    @property
    def _folder(self) -> Path:
        return self._journals.path(FOLDER)


def _compare(batch: HeldBatch, runs: Sequence[Sequence[sorted_runs.FingerprintRun]]) -> Compared:
    """Look up a batch of held links in the runs of all groups."""
    fingerprints = np.frombuffer(batch.fingerprints, np.uint64)
    offered = np.frombuffer(batch.ways, np.uint32)
    groups = np.frombuffer(batch.groups, np.uint8)
    ways = np.empty(len(batch), np.uint32)
    for group, of_group in enumerate(runs):
        places = np.flatnonzero(groups == group)
        places = places[np.argsort(fingerprints[places])]
        ways[places] = sorted_runs.least_ways(of_group, fingerprints[places])
    wanted = np.flatnonzero(sorted_runs.is_shorter(offered, ways))
    known = dict(zip(fingerprints[wanted].tolist(), ways[wanted].tolist(), strict=True))
    return Compared(fingerprints, ways, wanted.tolist(), known)


def _name(path: Path) -> str:
    return f"{FOLDER}/{path.name}"
