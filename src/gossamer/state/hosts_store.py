"""Hosts store: facts about hosts, kept from crawl to crawl in a separate store.

The facts are about the web, not about a crawl: they stay true if the epoch in which they were learned is lost. So the
commit's thread writes them before the commit, without a sync: writes survive a killed process, and after a power cut
every host waits its longest delay (`Contacts`). Only one crawl at a time uses the store.
"""

from __future__ import annotations

from pathlib import Path

from rocksdict import AccessType, Rdict, WriteBatch

from gossamer.state.redo import refusals
from gossamer.state.schema import HOSTS_VERSION
from gossamer.state.store import store_options
from gossamer.world.clock import give_way

VERSION = b"1"
WRITE_BUFFER_BYTES = 4 << 20
SLICE_ITEMS_MAX = 500
SLICE_BYTES_MAX = 512 << 10
"""Bytes that are written before the event loop gets the interpreter again."""


class OtherVersionError(Exception):
    """The store was written in another format; the message says which."""


class HostsStore:
    """The store and its pending changes. Keys begin with the partition of their site. Read on the loop; call `write`
    from one thread at a time.
    """

    def __init__(self, directory: Path, cache_bytes: int = 8 << 20) -> None:
        """Open or make the store in `directory`, whose lock the caller holds.

        Raises:
            OSError: the store cannot be opened.
            OtherVersionError: the store has another format.
        """
        path = directory / "store"
        with refusals(f"cannot open the hosts store {directory}"):
            path.mkdir(parents=True, exist_ok=True)
            options = store_options(cache_bytes, WRITE_BUFFER_BYTES)
            self._db = Rdict(str(path), options, access_type=AccessType.read_write())
            found = self._db.get(HOSTS_VERSION)
        self.is_new = found is None
        """Whether no crawl has used the store before."""
        if found is None:
            self._db.put(HOSTS_VERSION, VERSION)
        elif found != VERSION:
            self._db.close()
            raise OtherVersionError(found.decode("ascii", "replace"))
        self._open: dict[bytes, bytes] = {}
        self._closing: dict[bytes, bytes] = {}

    def get(self, key: bytes) -> bytes | None:
        """Return the newest value: 1 to 3 µs."""
        value = self._open.get(key) or self._closing.get(key)
        if value is not None:
            return value
        stored: bytes | None = self._db.get(key)
        return stored

    def put(self, key: bytes, value: bytes) -> None:
        """Put a value; the next `cut` includes it."""
        self._open[key] = value

    def cut(self) -> None:
        """Close the set of pending changes: the next `write` writes them."""
        assert not self._closing, "what was cut before is not settled"
        self._closing, self._open = self._open, {}

    def write(self) -> None:
        """Write the changes that were cut; from then on they survive the death of the process. For the commit's thread.

        Raises:
            OSError: the disk refuses.
        """
        batch, items, size = WriteBatch(raw_mode=True), 0, 0
        with refusals("cannot write to the hosts store"):
            for key, value in self._closing.items():
                batch.put(key, value)
                items, size = items + 1, size + len(value)
                if items >= SLICE_ITEMS_MAX or size >= SLICE_BYTES_MAX:
                    self._db.write(batch)
                    give_way()
                    batch, items, size = WriteBatch(raw_mode=True), 0, 0
            if items:
                self._db.write(batch)

    def settle(self) -> None:
        """Drop the changes that were written: the store has them."""
        self._closing = {}

    def close(self) -> None:
        """Write the remaining changes, sync, and close."""
        try:
            self.write()
            self.settle()
            self.cut()
            self.write()
            with refusals("cannot sync the hosts store"):
                self._db.flush_wal(True)
        finally:
            self._db.close()
