"""Importing: makes a crawl's directory of the archives of any crawler."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec.structs import replace

from gossamer.api.life import ShardLife, record_end
from gossamer.assembly.building import assemble
from gossamer.assembly.home import IMPORTS, lock_directory, refuse_maintained
from gossamer.config import Config
from gossamer.config.gather import reopen
from gossamer.config.live import FILE, save
from gossamer.model.errors import ConfigError, StoreError
from gossamer.results.imports.capture import ImportRequest
from gossamer.results.imports.importing import Importer, ImportStatus
from gossamer.results.imports.progress import ImportTable, read_table, write_table
from gossamer.results.imports.sources import find_sources
from gossamer.stages.scope.roots import seed_url
from gossamer.state.schema import SEEDED
from gossamer.world.files import make_directory

SHOW_S = 0.5
Show = Callable[[ImportStatus], None]


async def import_archives(
    names: Sequence[str], directory: Path, config: Config, request: ImportRequest, show: Show, stop: asyncio.Event
) -> tuple[bool, int]:
    """Import archives into a new directory, or go on with an import; return whether all is imported, and how many URLs
    remain to be fetched. `stop` ends it early.

    Raises:
        ConfigError: a name leads to nothing, or the directory holds a crawl.
        OSError: the disk refuses; what was committed stays.
    """
    if (directory / FILE).exists():
        if not (directory / IMPORTS).exists():
            raise ConfigError(f"{directory} already holds a crawl; import into another directory")
        config = reopen(directory / FILE)
    sources = find_sources(names, config.archive)
    for text in config.seeds.urls:
        seed_url(text, config.scope.schemes)
    make_directory(directory)
    refuse_maintained(directory)
    shard = assemble(config, directory, lock=lock_directory(directory))
    try:
        with record_end(shard):
            write_table(directory, ImportTable(files=read_table(directory).files))  # Killed now, it can be repeated.
            save(config, directory)
            life = ShardLife(shard)
            importer = Importer(shard, replace(request, sources=tuple(sources)), life.seeding.add, stop)
            shard.kept.storage.epochs.put("meta", SEEDED, b"1")
            return await _run(importer, life, show)
    except StoreError as error:
        raise ConfigError(f"an archive cannot be read: {error}; repeat the import to go on") from error
    finally:
        await shard.close()


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
