"""Seeding: seeds become the first links, once, however often the crawl is interrupted on the way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

from gossamer.assembly import Assembled
from gossamer.config.seeds import domain_seeds, file_seeds
from gossamer.model.links import SEED_ARGUMENT, SEED_FILE, Link
from gossamer.scope.roots import seed_url
from gossamer.state.schema import SEEDED
from gossamer.url.url import Url

SEEDS_A_STEP_MAX = 500


class Seeding:
    """Adds the configuration's seeds. Until all are in a commit, a restart begins anew: offers are idempotent."""

    def __init__(self, shard: Assembled) -> None:
        self._shard = shard
        self._schemes = shard.config.scope.schemes
        self._done = shard.epochs.get("meta", SEEDED) is not None
        membership = shard.membership
        self._has: Callable[[Url], bool] | None = membership.exchange.has if membership is not None else None
        if membership is not None:
            membership.seeding = self.busy

    def busy(self) -> bool:
        """Say whether seeds are still to come: the crawl is not over while there are."""
        return not self._done

    async def prepare(self) -> None:
        """Take all seeds into the scope, before anything is crawled: what a page links to must not be judged by half of
        them. About 4 µs a seed; in a crawl of several shards each has to know them all.
        """
        scope = self._shard.config.scope
        seeds = self._shard.config.seeds
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
            seeds, counted = self._shard.config.seeds, self._shard.tally.totals.seeds
            counted.count, counted.first = 0, []
            self.add(seeds.urls, SEED_ARGUMENT)
            if seeds.file:
                await self._add_all(file_seeds(Path(seeds.file), self._schemes))
            if seeds.domains_file:
                await self._add_all(domain_seeds(Path(seeds.domains_file)))
            self._shard.epochs.put("meta", SEEDED, b"1")
            self._done = True
            self._shard.shard.stir()
        await asyncio.Event().wait()

    async def _add_all(self, lines: Iterator[str]) -> None:
        while step := list(islice(lines, SEEDS_A_STEP_MAX)):
            self.add(step, SEED_FILE)
            await self._shard.shard.relieve()
            await asyncio.sleep(0)

    def add(self, texts: Iterable[str], kind: int) -> int:
        """Take seeds into the scope and offer them; return how many. Of several shards each is told all, and offers its
        own.

        Raises:
            ConfigError: one of them is no address; those before it were taken.
        """
        links = list(self._links(texts, kind))
        self._shard.tally.seeded([link.url.text for link in links])
        self._shard.pipeline.discover(links)
        self._shard.shard.stir()
        return len(links)

    def _links(self, texts: Iterable[str], kind: int) -> Iterator[Link]:
        for text in texts:
            url = self._shard.namer.name(seed_url(text, self._schemes))
            if url is not None:
                self._shard.roots.add_seed(url)
                if self._has is None or self._has(url):
                    yield Link(url, "seed", 0, seed=kind)
