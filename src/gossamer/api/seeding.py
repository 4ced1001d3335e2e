"""Seeding: seeds become the first links, once, however often the crawl is interrupted on the way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

from gossamer.assembly import Assembled, Ring
from gossamer.config import Config
from gossamer.config.seeds import domain_seeds, file_seeds
from gossamer.crawl.tally import Tally
from gossamer.model.links import SEED_ARGUMENT, SEED_FILE, Link
from gossamer.scope.roots import seed_url
from gossamer.state.epoch import Epochs
from gossamer.state.schema import SEEDED
from gossamer.url.url import Url

SEEDS_A_STEP_MAX = 500


def seeding_of(shard: Assembled) -> Seeding:
    """Return what adds a shard's seeds; of several shards, the coordinator hears when all are added."""
    membership = shard.membership
    has = membership.exchange.has if membership is not None else None
    controls = shard.controls
    seeding = Seeding(controls.settings.config, shard.ring, shard.kept.storage.epochs, controls.telemetry.tally, has)
    if membership is not None:
        membership.seeding = seeding.busy
    return seeding


class Seeding:
    """Adds the configuration's seeds. Until all are in a commit, a restart begins anew: offers are idempotent."""

    def __init__(
        self, config: Config, ring: Ring, epochs: Epochs, tally: Tally, has: Callable[[Url], bool] | None
    ) -> None:
        """`has` says whether a URL is this shard's; None: all are."""
        self._config = config
        self._ring = ring
        self._epochs = epochs
        self._tally = tally
        self._has = has
        self._schemes = config.scope.schemes
        self._done = epochs.get("meta", SEEDED) is not None

    def busy(self) -> bool:
        """Say whether seeds are still to come: the crawl is not over while there are."""
        return not self._done

    async def prepare(self) -> None:
        """Take all seeds into the scope, before anything is crawled: what a page links to must not be judged by half of
        them. About 4 µs a seed; in a crawl of several shards each has to know them all.
        """
        scope = self._config.scope
        seeds = self._config.seeds
        if self._done or scope.scope == "any":
            return
        for _ in self._links(seeds.urls, SEED_ARGUMENT):
            pass
        if not seeds.file:
            return
        lines = file_seeds(Path(seeds.file), self._schemes)
        while step := list(islice(lines, SEEDS_A_STEP_MAX)):
            for _ in self._links(step, SEED_FILE):
                pass
            await asyncio.sleep(0)

    async def run(self) -> None:
        """Add all seeds, giving way to the crawl between steps; then wait to be cancelled."""
        if not self._done:
            seeds, counted = self._config.seeds, self._tally.totals.seeds
            counted.count, counted.first = 0, []
            self.add(seeds.urls, SEED_ARGUMENT)
            if seeds.file:
                await self._add_all(file_seeds(Path(seeds.file), self._schemes))
            if seeds.domains_file:
                await self._add_all(domain_seeds(Path(seeds.domains_file)))
            self._epochs.put("meta", SEEDED, b"1")
            self._done = True
            self._ring.loop.stir()
        await asyncio.Event().wait()

    async def _add_all(self, lines: Iterator[str]) -> None:
        while step := list(islice(lines, SEEDS_A_STEP_MAX)):
            self.add(step, SEED_FILE)
            await self._ring.loop.relieve()
            await asyncio.sleep(0)

    def add(self, texts: Iterable[str], kind: int) -> int:
        """Take seeds into the scope and offer them; return how many. Of several shards each is told all, and offers its
        own.

        Raises:
            ConfigError: one of them is no address; those before it were taken.
        """
        links = list(self._links(texts, kind))
        self._tally.seeded([link.url.text for link in links])
        self._ring.pipeline.discover(links)
        self._ring.loop.stir()
        return len(links)

    def _links(self, texts: Iterable[str], kind: int) -> Iterator[Link]:
        for text in texts:
            url = self._ring.urls.namer.name(seed_url(text, self._schemes))
            if url is not None:
                self._ring.scope.roots.add_seed(url)
                if self._has is None or self._has(url):
                    yield Link(url, "seed", 0, seed=kind)
