"""Watching: the list of hosts whose owners asked us not to come is read again when it changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from gossamer.config.lists import hosts_of
from gossamer.crawl.counters import Telemetry
from gossamer.model.errors import ConfigError
from gossamer.scope.lists import ExcludedHost
from gossamer.scope.options import ScopeOptions

Stamp = tuple[int, int, int]
"""Identifies a state of a file: time of change, length, inode."""


class Watching:
    """Looks at `scope.exclude_hosts_file` while the crawl runs. A bad list leaves the old one in force.

    A file is read once it has stayed as it is between two looks: one that is being written is not taken for a shorter
    list. Links to hosts that are new in it are rejected from then on, and what is queued for them ends as `excluded`.
    """

    def __init__(
        self, options: ScopeOptions, exclusions: ExcludedHost, telemetry: Telemetry, stir: Callable[[], None]
    ) -> None:
        """`stir` has the crawl loop look for work again."""
        self._exclusions = exclusions
        self._logs, self._counters = telemetry.logs, telemetry.counters
        self._stir = stir
        self._path = Path(options.exclude_hosts_file) if options.exclude_hosts_file else None
        self._pause_s = options.exclude_hosts_reread_s
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
            self._logs.info("exclusions_refused", error=f"{error}; the list read before stays in force")
            self._counters.note(f"the list of excluded hosts is left as it was: {error}")
            return
        if self._exclusions.set_listed(hosts):
            self._logs.info("exclusions_read", file=str(path), hosts=len(hosts))
            self._stir()


def _stamp(path: Path) -> Stamp | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
