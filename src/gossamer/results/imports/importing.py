"""Importing: archives become the pages of a crawl's directory, once each, however often the import is interrupted."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from gossamer.engine.examine import Examined, dead
from gossamer.model.errors import is_fatal
from gossamer.model.links import SEED_ARGUMENT
from gossamer.model.pages import Archived
from gossamer.results.imports import progress as imported
from gossamer.results.imports.ahead import Ahead, ArchiveStretch, Borders, StretchAnswer, offset_of, ranges_of, together
from gossamer.results.imports.capture import Capture, ImportRequest, Item, Refused, Room, Source
from gossamer.results.imports.conclude import Captures
from gossamer.results.imports.listed import ListedPage, listed_pages
from gossamer.results.imports.reading import captures_of
from gossamer.results.imports.texts import PageTexts
from gossamer.world.spill import Spills

if TYPE_CHECKING:
    from gossamer.assembly.values import Shard

Answers = AsyncGenerator[tuple[ArchiveStretch, StretchAnswer], None]
YIELD_RECORDS = 200
"""Records that are counted before other work may run."""
YIELD_PAGES = 8
"""The same for records that are imported, and whether it is time to commit is looked at: 14 µs, 1 % of a page."""
REFUSED_NAMED_MAX = 1_000
"""Records that cannot be read and are logged by file and offset; further ones are counted."""
AHEAD_BYTES_MIN = 24 << 20
"""Of all archives, for processes that read ahead: a smaller import is done before these have started."""


class ImportStatus(msgspec.Struct, frozen=True):
    """Counts of an import, for people."""

    records: int = 0
    done: int = 0
    captures: int = 0
    refused: int = 0
    left_out: Mapping[str, int] = {}
    file: str = ""
    is_counting: bool = True
    first_refused: str = ""


class Importer:
    """Imports archives into a shard."""

    def __init__(
        self,
        shard: Shard,
        sources: Sequence[Source],
        request: ImportRequest,
        add_seeds: Callable[[list[str], int], object],
        stop: asyncio.Event,
    ) -> None:
        """`add_seeds` queues seeds that are not known. `stop` ends the import after the current record."""
        self._stop = stop
        self._shard = shard
        self._sources = sources
        self._request = request
        self._add_seeds = add_seeds
        self._directory: Path = shard.kept.home.directory
        self._committer = shard.kept.committer
        self._telemetry = shard.controls.telemetry
        self._logs = shard.controls.telemetry.logs
        self._options = shard.controls.settings.config.crawl
        self._captures = Captures(shard, self._refuse, judges_scope=request.judges_scope)
        self._progresses = imported.Progresses(shard.kept.storage.epochs)
        self._committer.join(self._progresses)
        spills = Spills(shard.kept.home.state / "spill", shard.controls.settings.config.archive.digests)
        self._room = Room(spills, store=shard.controls.settings.config.archive)
        self._texts = PageTexts(spills, shard.controls.settings.config.process.text_bytes_max)
        self._table = imported.ImportTable()
        self._sums: dict[str, str] = {}
        self._listed: tuple[str, dict[str, ListedPage]] = ("", {})
        self._borders: dict[int, Borders] = {}
        self._last_commit = 0.0
        self._work: list[tuple[Source, imported.SourceProgress]] = []
        self._file = ""
        self._is_counting = True
        self._refused = 0
        self._first_refused = ""

    def status(self) -> ImportStatus:
        """Return the counts so far, with those of earlier runs; of refused records, those of this run."""
        every = {progress.number: progress for _, progress in self._work}.values()  # Copies of an archive share one.
        left_out: Counter[str] = Counter()
        for progress in every:
            left_out.update(progress.left_out)
        return ImportStatus(
            sum(one.records for one in every), sum(one.done for one in every), sum(one.captures for one in every),
            self._refused, left_out, self._file, self._is_counting, self._first_refused,
        )  # fmt: skip

    async def run(self) -> bool:
        """Import all archives; return whether they are done. Raises OSError: the disk refuses; each commit stays."""
        self._table = imported.ImportTable(files=imported.read_table(self._directory).files)
        self._begin_seeds(self._shard.controls.settings.config.seeds.urls)
        work = self._work
        work += [(source, self._of(source)) for source in self._sources if not source.fault]
        imported.write_table(self._directory, self._table)
        for source in self._sources:
            if source.fault:
                self._refuse(Refused(source.number, source.name, 0, source.fault))
        is_large = sum(source.size for source, progress in work if not progress.is_done) >= AHEAD_BYTES_MIN
        ahead = Ahead(self._shard.controls.settings.config, self._directory, is_on=is_large)
        try:
            return await self._run(work, ahead)
        finally:
            await ahead.close()

    async def _run(self, work: list[tuple[Source, imported.SourceProgress]], ahead: Ahead) -> bool:
        ranges = chain.from_iterable(ranges_of(source) for source, progress in work if not progress.is_done)
        async with aclosing(ahead.answers(ranges, self._request, self._stop)) as answers:
            for source, progress in work:
                await self._count(source, progress, answers)
                if self._stop.is_set():
                    return False
        work.sort(key=lambda pair: (pair[1].first_at, pair[1].number))
        if not self._captures.seeds:
            self._begin_seeds(text for _, progress in work for text in progress.seeds)
        self._is_counting = False
        await self._committer.commit()
        await self._import_all(ahead)
        if self._stop.is_set():
            return False
        await self._finish()
        return True

    def _of(self, source: Source) -> imported.SourceProgress:
        """Return the progress of an archive, which is recognized by its content."""
        digest = self._sums.get(source.place)
        if digest is None:
            digest = imported.sha256_of(source, self._room.store)
            self._sums[source.place] = digest
        within = source.name.rpartition("!")[2] if "!" in source.name else ""
        progress = self._progresses.of(f"{digest}{within}", source.name)
        imported.enter(self._directory, self._table, source, digest, copies=self._request.copies)
        return progress

    async def _counted(self, source: Source, answers: Answers) -> AsyncGenerator[Item, None]:
        """Yield the records of an archive by its ranges; what no process answers, or begins elsewhere, is read here."""
        at = 0
        last = None
        room = replace(self._room, counts=True, heads=bool(self._request.statuses))
        for stretch in ranges_of(source):
            async for _, answer in answers:  # noqa: B007
                break
            else:  # Stopped. Python 3.11 fails at `anext` with another value.
                return
            if at < 0 or (stretch.until is not None and at >= stretch.until[0]):
                continue
            found = [read.item for read in answer.items if offset_of(read.item) >= at]
            is_sound = bool(found) and (not at or offset_of(found[0]) == at)
            for item in found if is_sound else captures_of(source, room, last):
                yield item
                last = last if isinstance(item, Refused) else item.place
            at = answer.next if is_sound else -1

    async def _count(self, source: Source, progress: imported.SourceProgress, answers: Answers) -> None:
        """Count the records of an archive, and note its captures, so that no link to them is queued."""
        if progress.is_done:
            if progress.has_texts and not all(one.is_done for _, one in self._work):
                for item in captures_of(source, replace(self._room, counts=True)):
                    self._texts.note(source, item)
            return
        borders = self._borders[source.number] = Borders()
        progress.records = 0
        progress.seeds = []
        first = ""
        self._file = source.name
        listed = self._pages_of(source)
        async for item in self._counted(source, answers):
            progress.records += 1
            borders.note(item)
            progress.has_texts = self._texts.note(source, item) or progress.has_texts
            if progress.records % YIELD_RECORDS == 0:
                await asyncio.sleep(0)
                await self._shard.ring.loop.commit_if_large()
                if self._stop.is_set():
                    return
            if not isinstance(item, Capture) or self._request.why_unwanted(item):
                continue
            page = listed.get(item.url)
            depth = page.depth if item.depth is None and page is not None else item.depth
            if not self._captures.foresee(item, depth):
                continue
            progress.first_at = min(progress.first_at or item.fetched_at, item.fetched_at)
            if item.url.endswith("/robots.txt") or item.kind != "response":
                continue
            first = first or item.url
            if depth == 0 and not item.via and len(progress.seeds) < imported.SEEDS_MAX:
                progress.seeds.append(item.url)
        self._captures.note_foreseen()
        progress.seeds = list(dict.fromkeys(progress.seeds or filter(None, [first])))
        self._progresses.changed.add(progress.number)

    def _pages_of(self, source: Source) -> dict[str, ListedPage]:
        if self._listed[0] != source.place:
            self._listed = (source.place, listed_pages(source, self._room, self._texts))
        return self._listed[1]

    def _begin_seeds(self, texts: Iterable[str]) -> None:
        """Put seeds into the scope, before anything is judged."""
        ring = self._shard.ring
        for text in texts:
            if (url := ring.urls.namer.name(text)) is not None:
                ring.scope.roots.add_seed(url)
                self._captures.seeds[url.key] = url.text

    async def _import_all(self, ahead: Ahead) -> None:
        """Import the records of all archives that are not done, while processes read ahead."""
        # Copies of an archive have the same progress, and are imported once.
        sources = {progress.number: source for source, progress in self._work if not progress.is_done}
        waiting = {source.number: progress for source, progress in self._work}
        stretches = (
            stretch
            for source in sources.values()
            for stretch in self._borders[source.number].stretches(source, waiting[source.number].last)
        )
        async with aclosing(ahead.answers(stretches, self._request, self._stop)) as answers:
            async for stretch, answer in answers:
                await self._import(stretch, answer, waiting[stretch.source.number])
        if self._stop.is_set():
            await self._committer.commit()

    async def _import(self, stretch: ArchiveStretch, answer: StretchAnswer, progress: imported.SourceProgress) -> None:
        source = stretch.source
        self._file = source.name
        digest = self._sums[source.place]
        linked = next((file.link for file in self._table.files if file.sha256 == digest), "")
        for item, examined in self._items(stretch, answer):
            await self._take(item, examined, source, progress, linked)
            if progress.done % YIELD_PAGES == 0:
                await self._commit_sometimes()
                await asyncio.sleep(0)  # Answers are read.
            if self._stop.is_set():
                return
        if stretch.until is None:
            progress.is_done = True
            self._progresses.changed.add(progress.number)
            await self._commit_sometimes()

    def _items(self, stretch: ArchiveStretch, answer: StretchAnswer) -> Iterator[tuple[Item, Examined | None]]:
        """Yield the items of a stretch with their examinations. Items that processes have not read are read here."""
        for read in answer.items:
            yield read.whole()
        if not answer.is_whole:
            for some in together(islice(stretch.items(self._room), len(answer.items), None)):
                found = [dead() if answer.is_suspect else self._examine(item) for item in some]
                yield from zip(some, found, strict=True)

    def _examine(self, item: Item) -> Examined | None:
        if isinstance(item, Capture) and item.may_be_page and not self._request.why_unwanted(item):
            return self._captures.examine(item)
        return None

    async def _take(
        self, item: Item, examined: Examined | None, source: Source, progress: imported.SourceProgress, linked: str
    ) -> None:
        progress.done += 1
        self._progresses.changed.add(progress.number)
        if isinstance(item, Refused):
            self._refuse(item)
            return
        reason = f"{item.kind} records"
        if isinstance(item, Capture):
            reason = self._request.why_unwanted(item) or await self._conclude(item, examined, source, linked)
        if reason:
            progress.left_out[reason] = progress.left_out.get(reason, 0) + 1
        else:
            progress.captures += 1
        progress.last = item.place

    async def _conclude(self, capture: Capture, examined: Examined | None, source: Source, linked: str) -> str:
        """Import a capture; return why it is left out. An internal error costs this capture alone."""
        place = capture.place
        archived = None
        if linked and place.linkable:
            archived = Archived(linked, place.offset, place.length, capture.record_id, capture.kind)
        try:
            page = self._pages_of(source).get(capture.url, ListedPage())
            shown = page._replace(text=self._texts.find(source, capture.url))
            return await self._captures.conclude(capture, archived, source.name, examined, shown)
        except Exception as error:
            if is_fatal(error):
                raise
            self._logs.critical("internal_error", error, url=capture.url)
            self._telemetry.counters.count_error(error, self._telemetry.clock.now())
            if self._telemetry.counters.fatal_error is not None:
                raise
            return "internal error"

    def _refuse(self, refused: Refused) -> None:
        self._refused += 1
        self._first_refused = self._first_refused or f"{refused.file}, offset {refused.offset}: {refused.reason}"
        if self._refused <= REFUSED_NAMED_MAX:
            self._logs.info("record_refused", url=refused.file, offset=refused.offset, error=refused.reason)

    async def _commit_sometimes(self) -> None:
        now = self._telemetry.clock.now()
        is_full = self._telemetry.counters.in_epoch >= self._options.commit_pages or self._committer.crowding() >= 1
        if is_full or now - self._last_commit >= self._options.commit_s:
            await self._committer.commit()
            self._last_commit = now
            await asyncio.sleep(0)

    async def _finish(self) -> None:
        """Queue what the archives do not hold."""
        pipeline = self._shard.ring.pipeline
        while pipeline.discovery.links_held and pipeline.take_back(idle=True):
            await self._shard.ring.loop.commit_if_large()
        self._add_seeds(list(self._captures.seeds.values()), SEED_ARGUMENT)
        for _, progress in self._work:
            progress.seeds = []  # The crawl has them: `forget` removes them there.
            self._progresses.changed.add(progress.number)
        self._table.is_done = True
        await self._committer.commit()
        imported.write_table(self._directory, self._table)
