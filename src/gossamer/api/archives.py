"""Archives: the archives of any crawler become the tables of a crawl, for Python programs."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Unpack

from msgspec.structs import replace

from gossamer.api import given
from gossamer.api.iterating import Tables
from gossamer.api.life import ShardLife, record_end
from gossamer.assembly.building import assemble
from gossamer.assembly.home import IMPORTS, lock_directory, refuse_maintained
from gossamer.config import Config, configure
from gossamer.config.flags import Options
from gossamer.config.footprint import ORIGIN, fit_budget, fixed_bytes, least_bytes
from gossamer.config.gather import reopen
from gossamer.config.live import FILE, save
from gossamer.model.errors import ConfigError, StoreError
from gossamer.results.imports.capture import ImportRequest, Source
from gossamer.results.imports.importing import Importer, ImportStatus
from gossamer.results.imports.progress import WARCS, ImportTable, read_table, write_table
from gossamer.results.imports.sources import find_sources
from gossamer.stages.archive.options import ArchiveOptions
from gossamer.stages.scope.roots import seed_url
from gossamer.state.schema import SEEDED
from gossamer.world.files import make_directory

SHOW_S = 0.5
Show = Callable[[ImportStatus], None]


class Import(Tables):
    """An import that is done: the tables of its directory, and what was found in the archives."""

    def __init__(self, directory: Path, status: ImportStatus, pending: int) -> None:
        super().__init__(directory)
        self.status = status
        """Counts: `captures`, `left_out` by reason, `refused` records and `first_refused`."""
        self.pending = pending
        """URLs that pages link to and the archives do not hold: `Crawler.resume` fetches them."""


@given.with_options
def import_archives(
    sources: Iterable[str | Path] | str | Path,
    *,
    output: str | Path = "crawl",
    seeds: Iterable[str] | str = (),
    copy: bool = False,
    statuses: Collection[int] = (),
    since: datetime | str | None = None,
    until: datetime | str | None = None,
    on_progress: Callable[[ImportStatus], object] | None = None,
    config: Config | None = None,
    settings: Mapping[str, object] | None = None,
    **options: Unpack[Options],
) -> Import:
    """Import WARC, WACZ, ARC and HAR files into the directory `output`. Blocks, also where a loop runs.

    An interrupted import is finished by the same call; each record is imported once. With `copy`, no archive is read in
    place later. `statuses`, `since` and `until` choose captures by HTTP status and time. `on_progress` is called about
    twice a second, in another thread. Raises ConfigError: an argument is wrong, a source leads to nothing, or the
    directory holds a crawl; OSError: the disk refuses; what was committed stays.
    """
    directory = given.directory_of(output, "output")
    given.require_config(config)
    given.require_callable(on_progress, "on_progress")
    names = given.seeds_of(sources, "sources", "site.warc.gz")
    if not names:
        raise ConfigError('no sources: give archives, folders or addresses, such as ["site.warc.gz"]')
    if not isinstance(statuses, Collection) or not all(type(status) is int for status in statuses):
        raise ConfigError(f"statuses is {statuses!r}: give HTTP statuses, such as [200]")
    request = ImportRequest(
        copies=copy, judges_scope=options.get("scope") is not None, statuses=frozenset(statuses),
        since=seconds_of(since, "since", 0.0), until=seconds_of(until, "until", float("inf")),
    )  # fmt: skip
    stop = asyncio.Event()
    counts = [ImportStatus()]

    def note(status: ImportStatus) -> None:
        counts[0] = status
        if on_progress is not None:
            on_progress(status)

    with given.check_keywords(options):
        if config is None:
            every = {**options, "output": str(directory)}
            config = configure(options=every, sets=given.sets_of(settings), seeds=given.seeds_of(seeds))
        with ThreadPoolExecutor(1, "gossamer-import") as thread:
            running = thread.submit(asyncio.run, run_import(names, directory, config, request, note, stop))
            try:
                pending = running.result()[1]
            except KeyboardInterrupt:
                stop.set()  # It ends after the current record.
                raise
    return Import(directory, counts[0], pending)


def seconds_of(moment: datetime | str | None, name: str, default: float) -> float:
    """Return seconds since 1970 of a date, or of a date and a time; in UTC if it names no zone."""
    if moment is None:
        return default
    try:
        at = moment if isinstance(moment, datetime) else datetime.fromisoformat(moment)
    except (TypeError, ValueError):
        raise ConfigError(f"{name} {moment}: expected a date such as 2026-01-31 or 2026-01-31T12:00:00") from None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


async def run_import(
    names: Sequence[str], directory: Path, config: Config, request: ImportRequest, show: Show, stop: asyncio.Event
) -> tuple[bool, int]:
    """Import archives into a new directory, or go on with an import; return whether all is imported, and how many URLs
    remain to be fetched. `stop` ends it early. Raises ConfigError: a name leads to nothing, or the directory holds a
    crawl; OSError: the disk refuses; what was committed stays.
    """
    if (directory / FILE).exists():
        if not (directory / IMPORTS).exists():
            raise ConfigError(f"{directory} already holds a crawl; import into another directory")
        config = reopen(directory / FILE)
    sources = _sources_of(names, directory, config.archive)
    for text in config.seeds.urls:
        seed_url(text, config.scope.schemes)
    make_directory(directory)
    refuse_maintained(directory)
    shard = assemble(_with_small_caches(config), directory, lock=lock_directory(directory))
    try:
        with record_end(shard):
            write_table(directory, ImportTable(files=read_table(directory).files))  # Killed now, it can be repeated.
            save(config, directory)
            life = ShardLife(shard)
            importer = Importer(shard, sources, request, life.seeding.add, stop)
            shard.kept.storage.epochs.put("meta", SEEDED, b"1")
            return await _run(importer, life, show)
    except (StoreError, OSError) as error:
        if isinstance(error, OSError) and error.filename not in {source.place for source in sources}:
            raise
        raise ConfigError(f"an archive cannot be read: {error}; repeat the import to go on") from error
    finally:
        await shard.close()


def _sources_of(names: Sequence[str], directory: Path, store: ArchiveOptions) -> list[Source]:
    """Return the archives, without those of the directory itself, which may be in a folder that is imported again."""
    own = directory.absolute() / WARCS
    sources = [source for source in find_sources(names, store) if not Path(source.place).is_relative_to(own)]
    if not sources:
        raise ConfigError(f"{names[0]} is of {directory} itself; name other archives, or another directory with -o")
    return sources


def _with_small_caches(config: Config) -> Config:
    """Return the configuration with caches for a quarter of its memory budget: half of it is for processes that read
    ahead, and larger caches save an import no processor time. No cache gets less than the least budget gives it.
    """
    memory = config.memory
    least = sum(fixed_bytes(config).values()) + least_bytes(config)
    quarter = replace(memory, budget_bytes=max(memory.budget_bytes // 4, least))
    shared = replace(config, memory=quarter).with_origins({**config.origins, ORIGIN: "import"})
    return replace(fit_budget(shared), memory=memory)


async def _run(importer: Importer, life: ShardLife, show: Show) -> tuple[bool, int]:
    shard = life.shard

    async def watch() -> None:
        while True:
            show(importer.status())
            await asyncio.sleep(SHOW_S)

    async with asyncio.TaskGroup() as group:
        beside = [group.create_task(watch()), group.create_task(shard.outputs.followers.run(bool))]
        is_done = await importer.run()
        for task in beside:
            task.cancel()
    pending = shard.ring.frontier.counts.pending
    ended = "imported" if pending else "finished"
    shard.controls.telemetry.counters.totals.ended = ended if is_done else "stopped"
    await shard.outputs.followers.wait()
    await life.finish_files()
    show(importer.status())
    return is_done, pending
