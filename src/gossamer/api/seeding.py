"""Seeding: adds the seeds as the first links, once, even if the crawl is interrupted while it does."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from gossamer.config.seeds import domain_seeds, file_seeds
from gossamer.model.links import SEED_ARGUMENT, SEED_FILE, Link
from gossamer.model.verbs import Added
from gossamer.ports import NEW
from gossamer.stages.scope.roots import seed_url
from gossamer.state.schema import SEEDED
from gossamer.state.sums import crc

if TYPE_CHECKING:
    from gossamer.assembly.values import Shard
    from gossamer.features.requests import Listed, Requests

SEEDS_A_STEP_MAX = 500
KEPT_CHARACTERS_MAX = 4 << 20
"""A file's seeds are kept between the two passes over it if they are no longer than this together: about 9 MB."""


class Seeding:
    """Adds the configuration's seeds. Until all are committed, a restart adds them again: offers are idempotent."""

    def __init__(self, shard: Shard) -> None:
        self._config = shard.controls.settings.config
        self._ring = shard.ring
        self._epochs = shard.kept.storage.epochs
        self._counters = shard.controls.telemetry.counters
        self._exchange = shard.ring.pipeline.stages.exchange
        self._schemes = self._config.scope.schemes
        self._mark = b"urls:%d" % crc("\n".join(self._config.seeds.urls).encode())
        """Checksum of the seeds that the configuration lists: a resume with others adds those, too."""
        self._done = self._epochs.get("meta", SEEDED) in (b"1", self._mark)
        self._requests = shard.ring.features.requests
        self._of_file: list[str] | None = None
        """The seeds of the file, between the two passes over them; None: it is read for each."""

    def busy(self) -> bool:
        """Return whether seeds remain to be added; while they do, the crawl is not over."""
        return not self._done

    async def prepare(self) -> None:
        """Add all seeds to the scope before anything is crawled: links must not be judged by half of them. About 10 µs
        a seed; in a crawl of several shards each shard must know all of them.
        """
        scope = self._config.scope
        seeds = self._config.seeds
        if self._done or scope.scope == "any":
            return
        for _ in self._links(self._arguments(), SEED_ARGUMENT):
            pass
        if self._requests is not None:
            for text, _ in self._read_requests():
                if (url := self._ring.urls.namer.name(text)) is not None:
                    self._ring.scope.roots.add_seed(url)
        if not seeds.file:
            return
        notes: list[str] = []
        lines = file_seeds(Path(seeds.file), self._schemes, notes.append)
        kept: list[str] = []
        characters = 0
        while step := list(islice(lines, SEEDS_A_STEP_MAX)):
            for _ in self._links(step, SEED_FILE):
                pass
            characters += sum(map(len, step))
            if characters <= KEPT_CHARACTERS_MAX:
                kept += step
            await asyncio.sleep(0)
        if characters <= KEPT_CHARACTERS_MAX:
            self._of_file = kept
            for sentence in notes:
                self._counters.note(sentence)

    async def run(self) -> None:
        """Add all seeds, giving way to the crawl between steps; then wait to be cancelled."""
        if not self._done:
            seeds = self._config.seeds
            counted = self._counters.totals.seeds
            counted.count = 0
            counted.first = []
            self.add(self._arguments(), SEED_ARGUMENT)
            if seeds.file:
                await self._add_all(self._seeds_of(Path(seeds.file)))
                self._of_file = None
            if self._requests is not None:
                await self._add_requests(self._requests)
            if seeds.domains_file:
                await self._add_all(domain_seeds(Path(seeds.domains_file)))
            self._epochs.put("meta", SEEDED, self._mark)
            self._done = True
            self._ring.loop.stir()
        await asyncio.Event().wait()

    def _seeds_of(self, file: Path) -> Iterator[str]:
        if self._of_file is not None:
            return iter(self._of_file)
        return file_seeds(file, self._schemes, self._counters.note)

    def _arguments(self) -> Iterator[str]:
        return (seed_url(text, self._schemes) for text in self._config.seeds.urls)

    async def _add_requests(self, requests: Requests) -> None:
        for text, request in self._read_requests():
            url = self._ring.urls.namer.name(text)
            if url is None:
                continue
            self._ring.scope.roots.add_seed(url)
            if self._exchange.seeds_here(url):
                requests.keep(url, request)
                self._counters.count_seeds([url.text])
                self._ring.pipeline.discovery.discover([Link(url, "seed", 0, seed=SEED_FILE)])
                self._ring.loop.stir()
                await self._ring.loop.commit_if_large()

    def _read_requests(self) -> Iterator[tuple[str, Listed]]:
        from gossamer.features.requests import read_requests  # noqa: PLC0415 - other crawls have no use for it

        return read_requests(Path(self._config.seeds.requests_file), self._schemes)

    async def _add_all(self, lines: Iterator[str]) -> None:
        while step := list(islice(lines, SEEDS_A_STEP_MAX)):
            self.add(step, SEED_FILE)
            await self._ring.loop.commit_if_large()
            await asyncio.sleep(0)

    def add(self, addresses: Iterable[str], kind: int) -> Added:
        """Add seeds, as `seed_url` returns them, to the scope and offer them; return how many are new. Each of several
        shards gets all seeds and offers those of its partitions.
        """
        links = list(self._links(addresses, kind))
        self._counters.count_seeds([link.url.text for link in links])
        answers = self._ring.pipeline.discovery.discover(links)
        self._ring.loop.stir()
        new = answers.count(NEW)
        return Added(new, len(answers) - new, len(links) - len(answers))

    def _links(self, addresses: Iterable[str], kind: int) -> Iterator[Link]:
        for address in addresses:
            url = self._ring.urls.namer.name(address)
            if url is not None:
                self._ring.scope.roots.add_seed(url)
                if self._exchange.seeds_here(url):
                    yield Link(url, "seed", 0, seed=kind)
