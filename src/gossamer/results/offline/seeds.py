"""Seeds: where the scope comes from: the seeds of all crawls, and where they redirect."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from gossamer.assembly.modules import Judge
from gossamer.model.links import SEED_ARGUMENT, SEED_FILE
from gossamer.results.export.source import RowSource
from gossamer.results.offline.segment import values_of
from gossamer.url.url import Url

BATCH = 4_096
YOUNG_MAX = 100_000
"""New seeds that are held one by one: about 8 MB."""


class Named(NamedTuple):
    """A seed, and whether it was an argument or stood in a file."""

    url: Url
    kind: int


class SeedFingerprints:
    """The seeds by fingerprint: 8 bytes each. Those that were arguments widen the scope further than the others."""

    def __init__(self, arguments: Iterable[int], others: npt.NDArray[np.uint64]) -> None:
        self.arguments = set(arguments)
        self._others = np.unique(others)
        self._young: set[int] = set()

    @property
    def others(self) -> npt.NDArray[np.uint64]:
        """Those that were no arguments, sorted."""
        self._settle()
        return self._others

    def kind(self, fp: int) -> int:
        """Return the kind of seed that a URL is, 0 for another URL."""
        if fp in self.arguments:
            return SEED_ARGUMENT
        if fp in self._young:
            return SEED_FILE
        at = int(np.searchsorted(self._others, np.uint64(fp)))
        return SEED_FILE if at < len(self._others) and int(self._others[at]) == fp else 0

    def add(self, fp: int, kind: int) -> bool:
        """Count a URL as a seed too; return whether that is new."""
        if self.kind(fp) in (kind, SEED_ARGUMENT):
            return False
        if kind == SEED_ARGUMENT:
            self.arguments.add(fp)
        else:
            self._young.add(fp)
            if len(self._young) >= YOUNG_MAX:
                self._settle()
        return True

    def _settle(self) -> None:
        if self._young:
            self._others = np.union1d(self._others, np.fromiter(self._young, np.uint64, len(self._young)))
            self._young = set()


def bring_in(
    judge: Judge, named: Callable[[], Iterator[Named]], earlier: SeedFingerprints, pages: RowSource
) -> SeedFingerprints:
    """Make the seeds' surroundings roots, and those of where they redirect, as a crawl does; return all seeds.

    Reads the table of pages as often as redirects follow each other. In memory: what the roots and seeds need.
    """
    roots = judge.roots
    arguments: list[int] = list(earlier.arguments)
    parts = [earlier.others]
    held: list[int] = []
    for url, kind in named():
        roots.add_seed(url)
        (arguments if kind == SEED_ARGUMENT else held).append(url.fingerprint)
        if len(held) >= BATCH:
            parts.append(np.array(held, np.uint64))
            held = []
    seeds = SeedFingerprints(arguments, np.concatenate([*parts, np.array(held, np.uint64)]))
    _add_fetched(judge, seeds, pages)
    if roots.mode != "any":
        while _follow(judge, seeds, pages):
            pass
    return seeds


def _add_fetched(judge: Judge, seeds: SeedFingerprints, pages: RowSource) -> None:
    """Count what was fetched as a seed: the file that named it may be gone."""
    for _, batch in pages.batches(columns=["url", "link_type"]):
        fetched = batch.filter(pc.fill_null(pc.equal(batch["link_type"].cast("string"), "seed"), False))
        if fetched.num_rows:
            for url in judge.namer.names(values_of(fetched["url"])):
                if url is not None and not seeds.kind(url.fingerprint):
                    judge.roots.add_seed(url)
                    seeds.add(url.fingerprint, SEED_FILE)


def _follow(judge: Judge, seeds: SeedFingerprints, pages: RowSource) -> bool:
    """Widen the roots by the redirects of seeds; return whether that brought new seeds."""
    found = False
    for _, batch in pages.batches(columns=["url", "key", "outcome", "redirect_to"]):
        redirected = batch.filter(pc.fill_null(pc.equal(batch["outcome"].cast("string"), "redirected"), False))
        if not redirected.num_rows:
            continue
        urls = values_of(redirected["url"])
        targets = values_of(pc.fill_null(redirected["redirect_to"], ""))
        for url, target in zip(judge.namer.names(urls), judge.namer.names(targets), strict=True):
            if url is None or target is None:
                continue
            if kind := seeds.kind(url.fingerprint):
                judge.roots.widen(url, target, kind)
                if target.key != url.key and seeds.add(target.fingerprint, kind):
                    found = True
    return found
