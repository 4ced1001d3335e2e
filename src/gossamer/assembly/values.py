"""Values: the parts of a shard: its durable state, its ring, its outputs, and its controls."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gossamer.archive.archive import Archives, Followers
from gossamer.archive.cdxj import INDEX, entries_of_tables, write_index
from gossamer.archive.uploads import Uploads
from gossamer.assembly.exchanging import Membership
from gossamer.assembly.home import CHECKPOINTS, Home, remove_unfinished_checkpoints
from gossamer.assembly.integrity import changed, lost, require_sound
from gossamer.assembly.permits import CrawlScope
from gossamer.config import Config
from gossamer.crawl.commit import Committer
from gossamer.crawl.counters import Telemetry
from gossamer.crawl.explain import Explainer
from gossamer.crawl.history import UrlMemory
from gossamer.crawl.permit import Permit
from gossamer.crawl.pipeline import Pipeline
from gossamer.crawl.revisiting import Enrolment, Revisiting
from gossamer.crawl.shard import Shard
from gossamer.crawl.watchdogs import Watchdogs
from gossamer.frontier.frontier import Frontier
from gossamer.frontier.wrapping import WrappedFrontier
from gossamer.model.product import FORGOTTEN
from gossamer.revisit.schedule import Schedule
from gossamer.revisit.websub import Subscriptions
from gossamer.state.journals import Journals
from gossamer.state.storage import Storage

if TYPE_CHECKING:
    from gossamer.crawl.requests import Requests
    from gossamer.crawl.sessions import Sessions


class DurableState(msgspec.Struct, frozen=True):
    """The state of a shard on disk, and the commits that make it durable."""

    home: Home
    storage: Storage
    committer: Committer

    async def checkpoint(self) -> Path:
        """Make a consistent copy of the last commit by hard links, and return its directory.

        Files that still grow are shared with the crawl: copy the checkpoint (`cp -r`) before resuming it.
        """
        await self.committer.commit()
        home, storage = self.home, self.storage
        folder = home.directory / CHECKPOINTS
        shard = f"shard-{home.shard}-" if home.shards > 1 else ""  # Each shard numbers its own epochs.
        name = f"{shard}{storage.store.epoch:08d}"
        remove_unfinished_checkpoints(home.directory, shard)
        begun = folder / f".{name}"  # An incomplete checkpoint must not have the final name.
        copy = Home(begun, home.shard, home.shards)
        copy.state.mkdir(parents=True)
        copy.state.chmod(home.state.stat().st_mode & 0o777)  # The state may hold cookies.
        storage.store.checkpoint(copy.store)
        journals = copy.journals()
        lists = [FORGOTTEN] if (home.directory / FORGOTTEN).exists() else []
        for file in [*storage.journals.files(), "crawl.toml", *lists]:
            journals.path(file).parent.mkdir(parents=True, exist_ok=True)
            journals.path(file).hardlink_to(storage.journals.path(file))
        if home.shards > 1:
            from gossamer.assembly.mapping import map_in  # noqa: PLC0415 - of several shards alone

            # As it is now: nothing moves while a checkpoint is made. A machine of a cluster may have none.
            if (partitions := map_in(home.directory)) is not None:
                partitions.save(begun)
        return begun.rename(folder / name)


class Recrawl(msgspec.Struct, frozen=True):
    """The revisits of a continuous crawl."""

    schedule: Schedule
    revisiting: Revisiting
    enrolment: Enrolment
    """Schedules the pages of an earlier batch crawl."""
    hubs: Subscriptions | None
    """WebSub; None if hubs cannot call back."""


class CrawlRing(msgspec.Struct, frozen=True):
    """The crawl itself: URLs wait in the frontier, and the loop sends them through the pipeline."""

    loop: Shard
    pipeline: Pipeline
    frontier: Frontier | WrappedFrontier
    scope: CrawlScope
    urls: UrlMemory
    recrawl: Recrawl | None
    """None in a batch crawl."""
    permit: Permit
    requests: Requests | None = None
    """None without a list of requests."""
    sessions: Sessions | None = None
    """None without cookies and logins."""


class Outputs(msgspec.Struct, frozen=True):
    """The writers of a crawl's output files."""

    config: Config
    home: Home
    journals: Journals
    archives: Archives
    followers: Followers
    """Convert finished logs to tables and to the search index."""
    uploads: Uploads | None
    """None without an object store."""

    def require_tables(self) -> None:
        """Raise DamagedError if a finished file of `pages` is missing or has another length than was written."""
        require_sound(self.home.directory, lost(self.config, self.home, self.journals.finals("pages/")))

    def write_index(self) -> int:
        """Write `index.cdxj` from the finished tables. Blocks; for a thread.

        Raises:
            DamagedError: a file of a table is missing or damaged; the index is left as it is.
        """
        self.require_tables()
        require_sound(self.home.directory, changed(self.home, self.journals.finals("pages/")))
        directory = self.home.directory
        entries = entries_of_tables(sorted((directory / "pages").glob("*.parquet")))
        return write_index(directory / INDEX, entries, self.config.archive.index_sort_bytes_max)


class Settings:
    """The configuration in force. Its live keys change while the crawl runs."""

    def __init__(self, config: Config, apply: Callable[[Config, Config], None]) -> None:
        """`apply` is called with the configurations before and after a change."""
        self.config = config
        self._apply = apply

    def change(self, config: Config) -> None:
        """Adopt a configuration that differs only in live keys. Call this between two epochs."""
        before, self.config = self.config, config
        self._apply(before, config)


class Controls(msgspec.Struct, frozen=True):
    """The means to observe and change a running crawl."""

    settings: Settings
    telemetry: Telemetry
    watchdogs: Watchdogs
    explainer: Explainer
    """Explains the state of a URL."""


class Assembled(msgspec.Struct, frozen=True):
    """A complete shard, for its owner, which closes it. Other code gets only the parts that it needs."""

    kept: DurableState
    ring: CrawlRing
    outputs: Outputs
    controls: Controls
    membership: Membership | None
    """Its membership in a crawl of several shards; None in a crawl of one shard."""
    closing: AsyncExitStack

    async def close(self) -> None:
        """Close every component, even if one raises. Committed data is safe whether this is called or not."""
        await self.closing.aclose()
