"""Home: where a shard keeps its things. The only shard of a crawl has the crawl's directory to itself; several share
what others read (`warc/`, `pages/`, `links/`, by names that carry the shard's number) and have each their own state.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from gossamer.model.errors import ConfigError
from gossamer.state.journals import Journals

OWNED = ("warc", "state/tables", "state/search")
"""Folders of journals: what is in them without being in the manifest belongs to an epoch that never was."""
CHECKPOINTS = "checkpoints"
"""Folder of the checkpoints of a crawl, each a crawl's directory; what a kill left of one has a name that is hidden."""


@dataclass(frozen=True, slots=True)
class Home:
    """The places of one shard."""

    directory: Path
    shard: int = 0
    shards: int = 1

    @property
    def state(self) -> Path:
        """Its store, its slots, its contacts, its logs that still become tables."""
        whole = self.directory / "state"
        return whole if self.shards == 1 else whole / f"shard-{self.shard}"

    @property
    def store(self) -> Path:
        """Its store."""
        return self.state / "store"

    @property
    def snapshot(self) -> Path:
        """Links to its files, while a checkpoint of them is sent elsewhere; a kill leaves them."""
        return self.state / "checkpoint"

    @property
    def logs(self) -> Path:
        """Its error logs."""
        whole = self.directory / "logs"
        return whole if self.shards == 1 else whole / f"shard-{self.shard}"

    @property
    def is_there(self) -> bool:
        """Whether its store is here: the shard has started, and on this machine."""
        return (self.store / "CURRENT").exists()

    def require_state(self) -> None:
        """Raise ConfigError if the shard's store is missing but its output files exist: a new store would give new
        files the same names. Do not call it for shards that restore from a checkpoint: their file names differ.
        """
        if self.is_there:
            return
        own = f"*-{self.shard:03d}-[0-9]*"
        left = [*self.directory.glob(f"warc/{own}"), *self.directory.glob(f"pages/{own}")]
        if any(file.suffix != ".open" or file.stat().st_size for file in left):
            self.refuse_without_state()

    def refuse_without_state(self) -> NoReturn:
        """Raise ConfigError for a shard that has crawled and lost its store."""
        whose = "its state" if self.shards == 1 else f"the state of shard {self.shard}"
        raise ConfigError(
            f"{self.directory} holds what was crawled but not {whose} ({self.store}): put that back, "
            "or restore a checkpoint with `gossamer restore` (docs/how-to/checkpoints.md); report, search and export "
            "work without it, -o DIR starts another crawl"
        )

    def journals(self) -> Journals:
        """Return its journals, yet to be recovered."""
        return Journals(self.directory) if self.shards == 1 else Journals(self.directory, self.state, self.shard)


def remove_unfinished_checkpoints(directory: Path, *shards: str) -> None:
    """Remove what a kill left of checkpoints in a crawl's directory; `shards` are the beginnings of their names."""
    for shard in shards:
        for begun in (directory / CHECKPOINTS).glob(f".{shard}{'[0-9]' * 8}"):
            shutil.rmtree(begun)


def homes(directory: Path, shards: int) -> list[Home]:
    """Return the places of all shards of a crawl."""
    return [Home(directory, shard, shards) for shard in range(shards)]
