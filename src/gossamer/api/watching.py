"""Watching: the list of hosts whose owners asked us not to come is read again when it changes."""

from __future__ import annotations

import asyncio
from pathlib import Path

from gossamer.assembly import Assembled
from gossamer.config.lists import hosts_of
from gossamer.model.errors import ConfigError

Stamp = tuple[int, int, int]
"""What tells one state of a file from another: time of change, length, inode."""


class Watching:
    """Looks at `scope.exclude_hosts_file` while the crawl runs. A bad list leaves the old one in force.

    A file is read once it has stayed as it is between two looks: one that is being written is not taken for a shorter
    list. Links to hosts that are new in it are rejected from then on, and what is queued for them ends as `excluded`.
    """

    def __init__(self, shard: Assembled) -> None:
        self._shard = shard
        scope = shard.config.scope
        self._path = Path(scope.exclude_hosts_file) if scope.exclude_hosts_file else None
        self._pause_s = scope.exclude_hosts_reread_s
        # Assembling read it a moment ago: reading it once more costs less than missing what changed since.
        self._taken: Stamp | None = None

    async def run(self) -> None:
        """Watch until cancelled."""
        if self._path is None:
            return
        seen: Stamp | None = None
        while True:
            await asyncio.sleep(self._pause_s)
            stamp = _stamp(self._path)
            if stamp == seen and stamp != self._taken:
                await self._read(self._path)
                self._taken = stamp
            seen = stamp

    async def _read(self, path: Path) -> None:
        try:
            hosts = await asyncio.to_thread(hosts_of, path)
        except ConfigError as error:
            self._shard.logs.info("exclusions_refused", error=f"{error}; the list read before stays in force")
            self._shard.tally.note(f"the list of excluded hosts is left as it was: {error}")
            return
        if self._shard.exclusions.set_listed(hosts):
            self._shard.logs.info("exclusions_read", file=str(path), hosts=len(hosts))
            self._shard.shard.stir()


def _stamp(path: Path) -> Stamp | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
