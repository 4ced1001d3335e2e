"""Values: the parts of a shard: its durable state, its ring, its outputs, and its controls, for its owner."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import msgspec

from gossamer.assembly.home import Home
from gossamer.assembly.integrity import changes, losses, require_sound
from gossamer.assembly.kept import DurableState
from gossamer.assembly.ring import CrawlRing
from gossamer.config import Config
from gossamer.config.live import Settings
from gossamer.engine.counters import Telemetry
from gossamer.engine.explain import Explainer
from gossamer.engine.watchdogs import Watchdogs
from gossamer.stages.archive.archive import Archives, Followers
from gossamer.stages.archive.cdxj import write_index_of
from gossamer.stages.archive.uploads import Uploads
from gossamer.state.journals import Journals

if TYPE_CHECKING:
    from gossamer.assembly.exchanging import Membership


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
        require_sound(self.home.directory, losses(self.config, self.home, self.journals.finals("pages/")))

    def write_index(self) -> int:
        """Write `index.cdxj` from the finished tables. Blocks; for a thread. Raises DamagedError: a file of a table is
        missing or damaged; the index is left as it is.
        """
        self.require_tables()
        require_sound(self.home.directory, changes(self.home, self.journals.finals("pages/")))
        return write_index_of(self.home.directory, self.config.archive.index_sort_bytes_max)


class Controls(msgspec.Struct, frozen=True):
    """The means to observe and change a running crawl."""

    settings: Settings
    telemetry: Telemetry
    watchdogs: Watchdogs
    explainer: Explainer
    """Explains the state of a URL."""


class Shard(msgspec.Struct, frozen=True):
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
