"""Growing: changes the number of shards of a crawl, running or not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from gossamer.api.given import directory_of
from gossamer.api.restoring import copy_map
from gossamer.api.shards import check_several
from gossamer.assembly.home import shards_to_be
from gossamer.assembly.mapping import begin_shard, map_in, moves_in
from gossamer.assembly.scaling import Scaled, refuse_indivisible, scale
from gossamer.cluster.options import ClusterOptions
from gossamer.config import Config
from gossamer.config.confinement import own_components
from gossamer.config.gather import reopen
from gossamer.config.live import FILE, save, with_workers
from gossamer.model.errors import ConfigError, StoreError
from gossamer.model.verbs import ConflictError
from gossamer.model.words import shell_word

if TYPE_CHECKING:
    from gossamer.api.engine import Engine

ARRIVE_S = 30.0
LOOK_S = 0.25
"""Longest wait for partitions that move to balance the shards, mostly seconds, and the interval of its checks."""
SETTLE_S_MAX = 5.0
"""The same before a stop."""
RESERVATIONS = ("placement", "cpus", "memory_bytes", "resources")
"""Keys of the resources that Ray reserves for all shards together when the crawl starts."""


def with_added_shards(config: Config, directory: Path) -> Config:
    """Return the configuration with the shards that were added while the crawl ran; the file may not have them yet."""
    found = map_in(directory)
    return with_workers(config, found.shards) if found is not None and found.shards > config.cluster.workers else config


def stops_to_scale(config: Config) -> str:
    """Return the key because of which a running crawl must stop to get another number of shards; empty: none."""
    plain = ClusterOptions()
    reserved = [key for key in RESERVATIONS if getattr(config.cluster, key) != getattr(plain, key)]
    return keeps_partitions(config) or next((f"cluster.{key}" for key in reserved), "")


def keeps_partitions(config: Config) -> str:
    """Return the setting because of which partitions of a running crawl cannot move; empty: they can."""
    found = {
        "crawl.mode": config.crawl.mode == "offline",
        "frontier.strategy": config.frontier.strategy == "walk",  # Hosts to restart at are numbered in each shard.
        "a component of your own": any(own_components(config)),  # A new shard would not get what it keeps.
    }
    return next((key for key, stays in found.items() if stays), "")


async def settle(engine: Engine, directory: Path, waits: Callable[[], bool]) -> None:
    """Begin no more moves of partitions that balance the shards, and wait for those under way, for a limited time and
    while `waits` is true: `scale` refuses a stopped crawl with unfinished moves. Raises ConnectionError.
    """
    await engine.call("hold", held=True)
    await _none_moves(directory, SETTLE_S_MAX, waits)


async def wait_for_moves(directory: Path) -> None:
    """Return when no partitions move. Raises ConflictError when some move for long."""
    await _none_moves(directory, ARRIVE_S, lambda: True)
    require_arrived(directory)


async def _none_moves(directory: Path, within_s: float, waits: Callable[[], bool]) -> None:
    """Wait until no partitions move to balance the shards, at most `within_s`, and while `waits` is true."""
    with suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            while waits() and moves_in(directory).is_balancing:  # noqa: ASYNC110 - the coordinator's record says so
                await asyncio.sleep(LOOK_S)


def require_arrived(directory: Path, *, ordered: bool = False) -> None:
    """Raise ConflictError while partitions move; with `ordered`, while they do for another number of shards."""
    kept = moves_in(directory)
    if kept.wanted or (kept.is_moving and not ordered):
        raise ConflictError(
            "partitions move between shards; a checkpoint is made when all have arrived: try again in a minute"
        )


async def keep_copies(
    engine: Engine, config: Config, directory: Path, is_copied: Callable[[], bool], tell: Callable[[str], None]
) -> None:
    """Copy planned moves of partitions to the place of the shards' checkpoints before their order, until cancelled."""
    is_told = False
    while True:
        await asyncio.sleep(LOOK_S)
        if is_copied():
            continue
        try:
            moves = await copy_map(config, directory)
        except (StoreError, ConfigError) as error:  # A directory that is not there is a mistake only at the start.
            if not is_told:
                tell(f"partitions wait to move: that cannot be recorded at {config.state.checkpoint_uri}: {error}")
            is_told = True
            continue
        is_told = False
        with suppress(ConnectionError):  # The coordinator is restarting, and will ask again.
            await engine.call("note_copy", version=moves.version, shards=moves.shards)


def begin_shards(directory: Path, numbers: range) -> Config:
    """Make the state of shards that are added to a running crawl; return the present configuration."""
    present = reopen(directory / FILE)
    if present.state.checkpoint_uri:
        return present  # Each is on its machine, and says in a claim which names it gives to files.
    for number in numbers:
        begin_shard(present, directory, number)
    return present


def write_number(directory: Path, shards: int) -> None:
    """Write the number of shards to the crawl's configuration; its other keys may have changed meanwhile."""
    present = reopen(directory / FILE)
    if present.cluster.workers != shards:
        save(with_workers(present, shards), directory)


def leave_idle(directory: Path, config: Config) -> Config:
    """Remove the shards of an ended crawl that gave all partitions away; return the configuration of the others."""
    write_number(directory, config.cluster.workers)
    partitions = map_in(directory)
    if partitions is None or (wanted := max(partitions.owners) + 1) == partitions.shards:
        return config
    with suppress(ConfigError):  # Partitions are on their way, or states elsewhere: they stay, with nothing to do.
        scale_crawl(directory, wanted)
        return with_workers(config, wanted)
    return config


def check_scalable(directory: str | Path, workers: int) -> None:
    """Check whether `scale_crawl` may divide a crawl, which may run; changes nothing. A change that was interrupted may
    go on. Raises ConfigError: there is no crawl, or it cannot be divided so; one line says why.
    """
    directory = directory_of(directory)
    config = _local(directory)
    if shards_to_be(directory) is None:
        refuse_indivisible(config, directory, workers)
        if workers > 1:
            check_several(with_workers(config, workers))


def scale_crawl(directory: str | Path, workers: int, note: Callable[[str], None] = lambda _: None) -> Scaled:
    """Divide a stopped crawl among `workers` shards, by moving partitions with all that is known of their sites.

    After an interruption, by a kill too, call it again with the same number to finish. Costs about 3 µs for each URL
    that moves. Raises ConfigError: there is no crawl, it runs, or it cannot be divided; one line says why.
    """
    directory = directory_of(directory)
    config = _local(directory)
    check_scalable(directory, workers)
    return scale(config, directory, workers, note, lambda shards: save(with_workers(config, shards), directory))


def finish_scaling(directory: str | Path) -> bool:
    """Finish a change of the number of shards whose command died; False if there is none. Raises ConfigError: as
    `scale_crawl`.
    """
    directory = directory_of(directory)
    shards = shards_to_be(directory)
    if shards is not None:
        scale_crawl(directory, shards)
    return shards is not None


def _local(directory: Path) -> Config:
    config = reopen(directory / FILE)
    if config.state.checkpoint_uri:
        raise ConfigError(
            "state.checkpoint_uri: a crawl with checkpoints elsewhere is scaled while it runs "
            f"(`gossamer resume {shell_word(directory)}`), and neither from nor to one shard"
        )
    return config
