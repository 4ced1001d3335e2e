"""Home: the directories of a shard, their lock, and the values with which components are built. A single shard uses the
whole directory of the crawl. Several shards share the output folders (`warc/`, `pages/`, `links/`), with their numbers
in the file names, and each has its own state.
"""

import os
import shutil
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import NoReturn

import msgspec

from gossamer.config import Config
from gossamer.config.live import FILE
from gossamer.model.errors import ConfigError
from gossamer.model.product import LOCK
from gossamer.model.words import says_in_use, shell_word
from gossamer.state.journals import Journals
from gossamer.world.clock import Clock
from gossamer.world.dice import Dice
from gossamer.world.files import make_directory, owner_of_new, require_writable, write_refusal
from gossamer.world.process import MAINTENANCE, NOT_OURS, DirectoryLock

OWNED = ("warc", "state/tables", "state/search")
"""Folders of journals: files in them that are not in the manifest belong to an epoch that was not committed."""
CHECKPOINTS = "checkpoints"
"""Folder of a crawl's checkpoints, each of which is a crawl's directory; an incomplete checkpoint has a hidden name."""
SCALING_PLAN = "state/scaling.json"
IMPORTS = "imports.json"
"""Table of the archives of others that were imported; missing in other crawls."""
LOCK_S_MAX = 5.0
"""Longest wait for a directory's lock: a child whose supervisor was killed frees it sooner."""


class ScalingPlan(msgspec.Struct, frozen=True):
    """A change of the number of shards."""

    before: int
    after: int
    version: int
    """Version of the map that applies until the end."""
    copied: bool = False
    """Whether everything that moves is committed in its new shard."""


class Home(msgspec.Struct, frozen=True):
    """The directories of one shard."""

    directory: Path
    shard: int = 0
    shards: int = 1

    @property
    def state(self) -> Path:
        """Folder of its state: store, slots, contacts, and logs that are not tables yet."""
        whole = self.directory / "state"
        return whole if self.shards == 1 else whole / f"shard-{self.shard}"

    @property
    def store(self) -> Path:
        """Its store."""
        return self.state / "store"

    @property
    def snapshot(self) -> Path:
        """Hard links to its files while a checkpoint is uploaded; they are left over if the process is killed."""
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

    def require_here(self) -> None:
        """Raise ConfigError when the shard's state is not in the crawl's directory."""
        if not self.is_there:
            raise ConfigError(
                f"the state of shard {self.shard} is not in {self.directory} but on the machine it ran on, or in its "
                f"checkpoints; `gossamer resume {shell_word(self.directory)}` goes on from them"
            )

    def require_state(self) -> None:
        """Raise ConfigError if the shard's store is missing but its output files exist: a new store would give new
        files the same names. Do not call it for shards that restore from a checkpoint: their file names differ.
        """
        if self.is_there:
            return
        refuse_half_scaled(self.directory)
        left = self.files("warc", "pages")
        if any(file.suffix != ".open" or file.stat().st_size for file in left):
            self.refuse_without_state()

    def files(self, *folders: str) -> list[Path]:
        """Return its files in folders (patterns) of the crawl's directory."""
        return [path for folder in folders for path in self.directory.glob(f"{folder}/*-{self.shard:03d}-[0-9]*")]

    def refuse_without_state(self) -> NoReturn:
        """Raise ConfigError for a shard that has crawled and lost its store."""
        whose = "its state" if self.shards == 1 else f"the state of shard {self.shard}"
        raise ConfigError(
            f"{self.directory} holds what was crawled but not {whose} ({self.store}): put that back, "
            "or restore a checkpoint with `gossamer restore` (docs/how-to/checkpoints.md); report, search and export "
            "work without it, -o DIR starts another crawl"
        )

    def journals(self) -> Journals:
        """Return its journals, before recovery."""
        return Journals(self.directory) if self.shards == 1 else Journals(self.directory, self.state, self.shard)


class Setup(msgspec.Struct, frozen=True):
    """The values with which the components of a shard are built."""

    config: Config
    home: Home
    clock: Clock
    dice: Dice
    undo: ExitStack
    """Closes everything in reverse order, when assembling fails and at the end of a crawl."""
    closing: AsyncExitStack
    """Closes parts that need the event loop, and then `undo`."""


def remove_unfinished_checkpoints(directory: Path, *shards: str) -> None:
    """Remove incomplete checkpoints from a crawl's directory; `shards` are the prefixes of their names."""
    for shard in shards:
        for begun in (directory / CHECKPOINTS).glob(f".{shard}{'[0-9]' * 8}"):
            shutil.rmtree(begun)


def shards_to_be(directory: Path) -> int | None:
    """Return the target number of shards of an unfinished scaling; None if there is none."""
    path = directory / SCALING_PLAN
    return msgspec.json.decode(path.read_bytes(), type=ScalingPlan).after if path.exists() else None


def refuse_half_scaled(directory: Path) -> None:
    """Raise ConfigError if there is an unfinished scaling."""
    after = shards_to_be(directory)
    if after is not None:
        raise ConfigError(
            f"{directory} is being divided among {after} shards; "
            f"`gossamer scale {shell_word(directory)} --workers {after}` goes on"
        )


def homes(directory: Path, shards: int) -> list[Home]:
    """Return the directories of all shards of a crawl."""
    return [Home(directory, shard, shards) for shard in range(shards)]


def last_incarnation(directory: Path, shard: int) -> int:
    """Return the last incarnation, by names of files, of an earlier shard with this number: no name is used twice."""
    named = [path.name.split("-") for path in directory.glob(f"*/*-{shard:03d}-[0-9]*")]
    return max((int(parts[-2]) for parts in named if parts[-2].isdigit()), default=0)


def lock_directory(
    directory: Path, wait_s: float = LOCK_S_MAX, state: Path | None = None, *, reading: bool = False
) -> DirectoryLock:
    """Lock a crawl's directory, or one shard's `state`, for this process. Blocks for at most `wait_s`.

    With `reading`, a read-only directory is accepted. Raises ConfigError: it is in use, or cannot be written, or is of
    another user whom files of root would shut out.
    """
    try:
        if not reading:
            refuse_root(directory)
        if state is not None and not reading:
            make_directory(state)
        lock = DirectoryLock(directory / LOCK if state is None else state / "lock", reading=reading)
        if not reading:
            require_writable(directory)
    except OSError as error:
        if error.errno not in NOT_OURS:
            raise
        raise ConfigError(write_refusal(error, directory)) from error
    if not lock.acquire(wait_s):
        lock.release()
        raise ConfigError(says_in_use(directory))
    return lock


def refuse_root(directory: Path, name: str = FILE) -> None:
    """Raise ConfigError if this is root, whose files would shut out the owner of a crawl, or of `name`, in there."""
    owned = directory / name
    if os.geteuid() or not owned.exists() or not (owner := owned.stat().st_uid):
        return
    if not owner_of_new(directory):
        whose = f"{directory} belongs to user {owner}"
        raise ConfigError(f"{whose}, and files of root would shut out its owner; run this as that user")


def refuse_maintained(directory: Path) -> None:
    """Raise ConfigError while a command such as `gossamer forget` works on a crawl."""
    if DirectoryLock.is_held(directory / MAINTENANCE):
        raise ConfigError(f"another command works on {directory}; repeat this one when it is done")


def store_sizes(config: Config) -> tuple[int, int, int]:
    """Return a store's block cache and write buffer in bytes, and its bytes per second in the background."""
    return config.state.cache_bytes, config.state.write_buffer_bytes, config.state.background_bytes_s
