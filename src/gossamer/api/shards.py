"""Shards: a stopped crawl of several shards: which shard has a URL, and whose state is in the directory."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from gossamer.assembly.home import homes, lock_directory
from gossamer.assembly.revisits import may_be_called_back
from gossamer.assembly.schemes import namer_for
from gossamer.cluster.partitions import PartitionMap
from gossamer.config import Config
from gossamer.model.errors import ConfigError
from gossamer.model.extras import require
from gossamer.model.words import shell_word
from gossamer.world.files import write_whole
from gossamer.world.process import DirectoryLock

STANDING = "state/standing.json"
"""The last status of the crawl: the only trace here of shards whose state is elsewhere."""
STILL: Final[Mapping[str, object]] = {"in_flight": 0, "pages_s": 0.0, "bytes_s": 0.0, "eta_s": None}
"""Fields of a crawl that requests nothing."""

REFUSED: Final[Mapping[str, tuple[Callable[[Config], bool], str]]] = {
    "frontier.hosts_min": (
        lambda config: (
            config.frontier.hosts_min > 0 and config.crawl.mode == "offline" and bool(config.state.checkpoint_uri)
        ),
        "offline crawls with state.checkpoint_uri save no remainder; leave out one of the two",
    ),
    "frontier.more_seeds_command": (
        lambda config: bool(config.frontier.more_seeds_command) and config.crawl.mode == "offline",
        "offline crawls of several shards take no more segments; add seeds with `gossamer seed`",
    ),
    "state.hosts_store": (
        lambda config: bool(config.state.hosts_store and not config.cluster.address),
        "one process of a machine keeps it open; leave out --workers, or the hosts store",
    ),
    "websub": (may_be_called_back, "hubs are for one worker; leave out --workers, or set websub.enabled=false"),
    "webmention": (
        lambda config: config.webmention.enabled,
        "notices are for one worker; leave out --workers, or set webmention.enabled=false",
    ),
}
"""Options that do not work with several shards: when, and the remedy. docs/how-to/cluster.md has the reasons."""


def check_several(config: Config) -> None:
    """Check the requirements of a crawl of several shards. Raises ConfigError: one is missing, or an option excludes
    several shards.
    """
    from gossamer.cluster.job import address_of_job  # noqa: PLC0415 - a crawl of one shard has no use for it

    if config.cluster.address or address_of_job(os.environ):
        require("ray", "cluster.address")
    elif config.cluster.runtime_env:
        raise ConfigError("cluster.runtime_env: it is for a Ray cluster; set cluster.address, or leave it out")
    for key, (is_set, remedy) in REFUSED.items():
        if is_set(config):
            raise ConfigError(f"{key}: {remedy}")
    if config.cluster.work_directory and not config.state.checkpoint_uri:
        raise ConfigError("cluster.work_directory: its shards' state must be elsewhere too; set state.checkpoint_uri")


def hold_stopped(directory: Path) -> DirectoryLock:
    """Hold a crawl that does not run, as a context. Raises ConfigError when it does."""
    return lock_directory(directory, reading=True)


def map_of(config: Config, directory: Path) -> PartitionMap:
    """Return the map of partitions to shards. Raises ConfigError: the map has another number of shards."""
    from gossamer.assembly.mapping import map_in  # noqa: PLC0415 - a crawl of one shard has no use for it

    if (found := map_in(directory)) is None:  # Sites known at the start are divided evenly, others by their hash.
        named = map(namer_for(config).name_typed, config.seeds.urls)
        found = PartitionMap.even(config.cluster.workers).share_out({one.partition for one in named if one is not None})
    if found.shards != config.cluster.workers:
        raise ConfigError(
            f"{directory} has {found.shards} shards and not {config.cluster.workers}; "
            f"`gossamer scale {shell_word(directory)} --workers {config.cluster.workers}` changes that"
        )
    return found


def owner_of(config: Config, directory: Path, url: str) -> int:
    """Return the shard that has a URL; 0 for a text that is not a URL."""
    named = namer_for(config).name_typed(url)
    return map_of(config, directory).owner(named.partition) if named is not None else 0


def require_states(config: Config, directory: Path) -> None:
    """Raise ConfigError if a shard's state is gone and no checkpoint can restore it. For before any shard starts."""
    if config.state.checkpoint_uri:
        return
    every = homes(directory, config.cluster.workers)
    for home in every:
        home.require_state()
    gone = [home for home in every if not home.is_there]
    if gone and (directory / STANDING).exists():
        shards = last_status(directory).get("shards")
        stood = shards if isinstance(shards, list) else []
        for home in gone:
            if home.shard < len(stood) and (stood[home.shard].get("pages") or stood[home.shard].get("queued")):
                home.refuse_without_state()


def save_status(directory: Path, status: Mapping[str, object]) -> None:
    """Save the status of the crawl."""
    write_whole(directory / STANDING, json.dumps(status, default=str).encode())


def starting_status(directory: Path) -> dict[str, object]:
    """Return the status of a crawl whose process does not answer yet: earlier figures, and what it waits for."""
    starting: dict[str, object] = {"state": "starting", "waiting_for": "its process, which does not answer yet"}
    if not (saved := _saved_status(directory)):
        return starting
    waits = saved.get("waiting_for") if saved.get("state") == "starting" else ""
    return {**saved, **starting, "waiting_for": waits or starting["waiting_for"], **STILL}


def last_status(directory: Path) -> dict[str, object]:
    """Return the last saved status of the crawl. Raises ConfigError: none was saved."""
    then = f"`gossamer resume {shell_word(directory)}` continues"
    if not (status := _saved_status(directory)):
        raise ConfigError(f"{directory} has shards whose state is not here, and nothing is known of them; {then}")
    if status.get("state") != "finished":
        status |= {"state": "stopped", "waiting_for": f"nothing runs; {then}"}
    return {**status, **STILL}


def _saved_status(directory: Path) -> dict[str, object]:
    """Return the status that `save_status` saved; empty if it cannot be read."""
    try:
        saved: dict[str, object] = json.loads((directory / STANDING).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return saved
