"""How an epoch closes: files first, then the store, then everything that may only happen after."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec
import pytest

from gossamer.engine.counters import Totals
from gossamer.engine.delivery import Delivery
from gossamer.model.pages import Visited
from gossamer.state.journals import ManifestEntry
from gossamer.state.schema import MANIFEST, TOTALS
from gossamer.testing import page
from gossamer.world.files import GoneError
from tests.engine.ring import Ring

ROOT = "http://a.example/"


def watch(thing: Any, name: str, order: list[str]) -> None:
    method = getattr(thing, name)

    def watched(*given: Any, **named: Any) -> Any:
        order.append(name)
        return method(*given, **named)

    setattr(thing, name, watched)


def test_files_are_durable_before_the_store_names_their_lengths(tmp_path: Path) -> None:
    with Ring(tmp_path, {ROOT: page()}) as ring:
        journal = ring.journals.create("warc/one")
        journal.append(b"record")
        ring.crawl(ROOT)
        order: list[str] = []
        watch(ring.frontier, "cut", order)
        watch(ring.archive, "cut", order)
        watch(ring.journals, "sync", order)
        watch(ring.epochs, "commit", order)
        watch(ring.epochs, "apply", order)
        watch(ring.epochs, "settle", order)
        watch(ring.journals, "settle", order)
        watch(ring.contacts, "on_commit", order)

        asyncio.run(ring.committer.commit())

        assert order == ["cut", "cut", "sync", "commit", "apply", "settle", "settle", "on_commit"]
        stored = ring.store.get("meta", MANIFEST)
        assert stored is not None
        assert msgspec.msgpack.decode(stored, type=list[ManifestEntry]) == [
            ManifestEntry("warc/one", 0, 6, crc=crc32(b"record"))
        ]
        assert (tmp_path / "warc/one.open").read_bytes() == b"record"


def test_the_disk_is_never_waited_for_on_the_loop(tmp_path: Path) -> None:
    with Ring(tmp_path, {ROOT: page()}) as ring:
        ring.crawl(ROOT)
        threads = []
        sync = ring.journals.sync

        def watched() -> None:
            threads.append(threading.current_thread())
            sync()

        ring.journals.sync = watched  # type: ignore[method-assign]
        asyncio.run(ring.committer.commit())
        assert threads
        assert threading.main_thread() not in threads


def test_counts_and_times_are_in_the_commit(tmp_path: Path) -> None:
    with Ring(tmp_path, {ROOT: page("/a"), ROOT + "a": page()}) as ring:
        ring.crawl(ROOT)
        ring.fake_clock.advance(5)
        asyncio.run(ring.committer.commit())
        stored = ring.store.get("meta", TOTALS)
        assert stored is not None
        totals = msgspec.msgpack.decode(stored, type=Totals)
        assert (totals.pages, totals.attempts, totals.outcomes) == (2, 2, {"fetched": 2})
        assert totals.elapsed_s == pytest.approx(ring.committer.elapsed_s())
        assert totals.elapsed_s >= 5


@pytest.mark.promise("Crash safety", "Nothing is built on a commit that failed or was cancelled.")
@pytest.mark.parametrize("where", ["sync", "commit", "apply"])
def test_a_disk_that_fails_leaves_nothing_counted_and_nothing_built_on(tmp_path: Path, where: str) -> None:
    with Ring(tmp_path, {ROOT: page()}) as ring:
        epoch = ring.store.epoch
        ring.crawl(ROOT)
        said: list[object] = []
        ring.committer.on_epoch = said.append

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        room: Any = ring.journals if where == "sync" else ring.epochs
        setattr(room, where, full)
        for _ in range(2):
            with pytest.raises(OSError, match="No space left"):
                asyncio.run(ring.committer.commit())
        assert said == []
        assert isinstance(ring.counters.fatal_error, OSError)
        if where != "apply":
            assert ring.store.epoch == epoch
    with Ring(tmp_path) as ring:
        assert ring.frontier.counts.terminal == ({"fetched": 1} if where == "apply" else {})


@pytest.mark.parametrize("file", ["contacts", "slots"])
def test_a_file_in_memory_that_was_removed_fails_the_commit_as_any_other_file(tmp_path: Path, file: str) -> None:
    """What is written to it would be lost without an error, and with it when hosts may be contacted again."""
    with Ring(tmp_path, {ROOT: page()}) as ring:
        ring.crawl(ROOT)
        epoch = ring.store.epoch
        (tmp_path / file).unlink()
        with pytest.raises(GoneError, match=f"{file} is gone"):
            asyncio.run(ring.committer.commit())
        assert ring.store.epoch == epoch


def test_a_failing_archive_leaves_the_epoch_open(tmp_path: Path) -> None:
    with Ring(tmp_path, {ROOT: page()}) as ring:
        ring.crawl(ROOT)

        def full() -> None:
            raise OSError(28, "No space left on device")

        ring.archive.cut = full  # type: ignore[method-assign]
        with pytest.raises(OSError, match="No space left"):
            asyncio.run(ring.committer.commit())
        assert ring.store.epoch == 0
        assert isinstance(ring.counters.fatal_error, OSError)


@pytest.mark.promise("Crash safety", "Nothing is built on a commit that failed or was cancelled.")
def test_whoever_is_cancelled_while_committing_leaves_a_whole_commit(tmp_path: Path) -> None:
    with Ring(tmp_path, {ROOT: page()}) as ring:
        ring.crawl(ROOT)
        gate, at_disk = threading.Event(), threading.Event()
        sync = ring.journals.sync

        def slow() -> None:
            at_disk.set()
            assert gate.wait(60)
            sync()

        ring.journals.sync = slow  # type: ignore[method-assign]

        async def cancelled() -> None:
            task = asyncio.create_task(ring.committer.commit())
            await asyncio.to_thread(at_disk.wait, 20)
            task.cancel()
            await asyncio.sleep(0)
            task.cancel()
            gate.set()
            await asyncio.wait([task])
            assert task.cancelled()
            assert ring.store.epoch == 1
            await ring.committer.commit()
            assert ring.store.epoch == 2

        asyncio.run(cancelled())


def test_commits_wait_for_each_other(tmp_path: Path) -> None:
    with Ring(tmp_path, {ROOT: page()}) as ring:
        ring.crawl(ROOT)

        async def many() -> None:
            async with asyncio.TaskGroup() as group:
                for _ in range(5):
                    group.create_task(ring.committer.commit())

        asyncio.run(many())
        assert ring.store.epoch == 5
        assert ring.epochs.size == 0


def test_a_change_between_epochs_is_made_once_and_what_came_before_is_durable(tmp_path: Path) -> None:
    with Ring(tmp_path, {ROOT: page()}) as ring:
        ring.crawl(ROOT)
        found: list[tuple[int, int]] = []
        asyncio.run(ring.committer.between(lambda: found.append((ring.epochs.number, ring.store.epoch))))
        assert [number for number, _ in found] == [2]
        assert ring.committer.lasted_s == ring.committer.last_s, "there was one"
        assert ring.store.epoch == 1
        assert ring.epochs.size == 0


def test_pages_are_given_away_after_their_commit(tmp_path: Path) -> None:
    with Ring(tmp_path, {ROOT: page("/a"), ROOT + "a": page()}) as ring:
        ring.counters.delivery = Delivery()
        given: list[tuple[int, list[str]]] = []

        async def on_committed(visits: list[Visited]) -> None:
            given.append((ring.store.epoch, [visited.row.url for visited in visits]))

        ring.committer.on_committed = on_committed
        ring.crawl(ROOT)
        assert given == []
        asyncio.run(ring.committer.commit())
        asyncio.run(ring.committer.commit())
        assert given == [(1, [ROOT, ROOT + "a"])]


def test_the_supervisor_hears_of_each_commit(tmp_path: Path) -> None:
    with Ring(tmp_path) as ring:
        told: list[int] = []
        ring.committer.on_epoch = told.append
        for _ in range(3):
            asyncio.run(ring.committer.commit())
        assert told == [1, 2, 3]


def test_what_the_scope_learned_is_in_the_commit(tmp_path: Path) -> None:
    with Ring(tmp_path, scope={"scope": "host"}) as ring:
        ring.seed(ROOT)
        ring.exclusions.add("b.example")
        asyncio.run(ring.committer.commit())
    with Ring(tmp_path, scope={"scope": "host"}) as ring:
        assert ring.explainer.why(ROOT + "x")["state"] == "unknown"
        assert ring.explainer.why("http://c.example/")["rule"] == "scope"
        assert ring.exclusions.covers("b.example")
