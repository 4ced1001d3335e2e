"""The commit: whole or not at all, whatever happens to whoever waits for it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gossamer.archive.archive import Archives
from gossamer.crawl.commit import Committer
from gossamer.crawl.logs import Logs
from gossamer.crawl.options import CrawlOptions
from gossamer.crawl.tally import Tally, Totals
from gossamer.state.contacts import Contacts
from gossamer.state.epoch import Epochs
from gossamer.state.journals import Journals
from gossamer.state.store import Store
from gossamer.world.clock import WallClock

KEY = b"\xff\xffkey"


class HeldDisk(Journals):
    """Journals whose sync takes as long as the test says."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.begun = threading.Event()
        self.released = threading.Event()
        self.refuses = False

    def sync(self) -> None:
        self.begun.set()
        assert self.released.wait(30)
        if self.refuses:
            raise OSError(28, "No space left on device")
        super().sync()


@dataclass
class Parts:
    store: Store
    epochs: Epochs
    journals: HeldDisk
    tally: Tally
    committer: Committer


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[Parts]:
    clock = WallClock()
    store = Store(tmp_path / "store")
    epochs, journals = Epochs(store), HeldDisk(tmp_path)
    contacts = Contacts(tmp_path, bytes(16), clock.now())
    tally, logs = Tally(Totals(), CrawlOptions()), Logs(tmp_path / "logs", clock)
    committer = Committer(epochs, journals, contacts, Archives([]), [], tally, logs, clock)
    yield Parts(store, epochs, journals, tally, committer)
    journals.released.set()
    committer.close()
    logs.close()
    store.close()
    contacts.close()


async def begun(parts: Parts) -> asyncio.Task[None]:
    task = asyncio.create_task(parts.committer.commit())
    assert await asyncio.to_thread(parts.journals.begun.wait, 30)
    return task


def test_a_cancelled_commit_is_finished_before_the_next(parts: Parts) -> None:
    async def cancelled() -> None:
        task = await begun(parts)
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
        parts.journals.released.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert parts.store.get("meta", KEY) == b"first"
        parts.epochs.put("meta", KEY, b"second")
        await parts.committer.commit()

    parts.epochs.put("meta", KEY, b"first")
    asyncio.run(cancelled())
    assert parts.store.get("meta", KEY) == b"second"


def test_nothing_is_committed_after_the_disk_refused(parts: Parts) -> None:
    parts.epochs.put("meta", KEY, b"lost")
    parts.journals.refuses = True
    parts.journals.released.set()
    for _ in range(2):
        with pytest.raises(OSError, match="No space left"):
            asyncio.run(parts.committer.commit())
        parts.journals.refuses = False
    assert isinstance(parts.tally.fatal_error, OSError)
    assert parts.store.get("meta", KEY) is None


def test_half_a_visit_is_not_committed(parts: Parts) -> None:
    """What a visit had given to the epoch before the disk refused the rest of it must not become durable."""
    parts.epochs.put("meta", KEY, b"half")
    parts.tally.fatal(OSError(28, "No space left on device"))
    with pytest.raises(OSError, match="No space left"):
        asyncio.run(parts.committer.commit())
    assert parts.store.get("meta", KEY) is None
