"""The store: what was committed is there, all of it, whenever the process or the machine stopped."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from gossamer.state.redo import SLICE_BYTES_MAX, SLICE_OPERATIONS_MAX, Range
from gossamer.state.schema import FAMILIES, META_PARTITION, REDO
from gossamer.state.store import Store
from gossamer.world.files import GoneError

Open = Callable[[Path], Store]
Changed = dict[int, dict[bytes, bytes | None]]


def key(number: int) -> bytes:
    return (number % 4096).to_bytes(2) + number.to_bytes(4)


def content(store: Store) -> dict[tuple[str, bytes], bytes]:
    """All that the store holds, but for its own notes."""
    return {
        (family, key): value
        for family in FAMILIES
        for key, value in store.scan(family, b"", b"\xff\xff\xff")
        if not (family == "meta" and key.startswith(META_PARTITION))
    }


def notes(store: Store) -> list[bytes]:
    return [key for key, _ in store.scan("meta", REDO, REDO + b"\xff")]


def commit(store: Store, changed: Changed, ranges: list[Range] | None = None) -> None:
    epoch = store.epoch + 1
    store.commit(epoch, ranges or [], changed)
    store.apply(epoch)


EVERY_FAMILY: Changed = {number: {key(number): b"one", b"\0\0": b"", key(99): None} for number in range(len(FAMILIES))}


def test_a_new_store_is_empty_and_has_committed_nothing(opened: Open, tmp_path: Path) -> None:
    store = opened(tmp_path / "store")

    assert store.epoch == 0
    assert content(store) == {}


def test_every_family_keeps_what_was_committed_over_close_and_reopening(opened: Open, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    commit(store, EVERY_FAMILY)
    whole = content(store)
    store.close()
    again = opened(tmp_path / "store")

    assert again.epoch == 1
    assert content(again) == whole
    assert len(whole) == 2 * len(FAMILIES)


@pytest.mark.parametrize("moved", [True, False])
def test_a_store_that_is_moved_or_removed_fails_the_commit(tmp_path: Path, *, moved: bool) -> None:
    store = Store(tmp_path / "store")
    commit(store, EVERY_FAMILY)
    if moved:
        (tmp_path / "store").rename(tmp_path / "elsewhere")
    else:
        shutil.rmtree(tmp_path / "store")
    with pytest.raises(GoneError, match="CURRENT is gone"):
        store.commit(2, [], EVERY_FAMILY)
    store.close()


def test_a_commit_that_was_not_applied_is_applied_at_reopening(opened: Open, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    commit(store, {0: {b"\0\0kept": b"old", b"\0\0gone": b"old"}})
    store.commit(2, [], {0: {b"\0\0gone": None, b"\0\0new": b"new"}, 5: {b"\0\0": b"x"}})
    store.close()
    again = opened(tmp_path / "store")

    assert again.epoch == 2
    assert content(again) == {("queue", b"\0\0kept"): b"old", ("queue", b"\0\0new"): b"new", ("seen", b"\0\0"): b"x"}
    assert notes(again) == []


def test_reading_before_it_is_applied_gives_the_epoch_before(opened: Open, tmp_path: Path) -> None:
    store = opened(tmp_path / "store")
    store.commit(1, [], {0: {b"\0\0a": b"1"}})

    assert store.get("queue", b"\0\0a") is None


def test_ranges_go_before_puts(opened: Open, tmp_path: Path) -> None:
    store = opened(tmp_path / "store")
    commit(store, {0: {b"\0\0a": b"1", b"\0\0b": b"1", b"\0\0c": b"1"}})
    commit(store, {0: {b"\0\0b": b"2"}}, [(0, b"\0\0a", b"\0\0c")])

    assert content(store) == {("queue", b"\0\0b"): b"2", ("queue", b"\0\0c"): b"1"}


def test_a_range_clears_its_own_family_alone(opened: Open, tmp_path: Path) -> None:
    store = opened(tmp_path / "store")
    commit(store, {0: {b"\0\0a": b"1"}, 1: {b"\0\0a": b"1"}})
    commit(store, {}, [(0, b"\0\0", b"\0\1")])

    assert content(store) == {("host", b"\0\0a"): b"1"}


@pytest.mark.parametrize("applied", [True, False])
def test_an_epoch_of_many_slices(opened: Open, tmp_path: Path, applied: bool) -> None:
    count = 3 * SLICE_OPERATIONS_MAX + 1
    store = Store(tmp_path / "store")
    commit(store, {0: {key(number): b"old" for number in range(0, count, 2)}})
    changes: Changed = {
        0: {key(number): b"new" for number in range(count)},
        4: {key(number): None for number in range(9)},
    }
    cleared: list[Range] = [(0, b"\0\0", b"\xff\xff")]
    chunks = store.commit(2, cleared, changes)
    if applied:
        store.apply(2)
    store.close()
    again = opened(tmp_path / "store")

    assert chunks == 4
    assert content(again) == {("queue", key(number)): b"new" for number in range(count)}
    assert notes(again) == []


def test_slices_are_bounded_in_bytes_too(opened: Open, tmp_path: Path) -> None:
    store = opened(tmp_path / "store")
    large = bytes(SLICE_BYTES_MAX // 4)
    changed: Changed = {0: {key(number): large for number in range(40)}}

    assert store.commit(1, [], changed) >= 10
    store.apply(1)
    assert len(content(store)) == 40


def test_a_slice_never_holds_two_values_that_are_too_large_together(opened: Open, tmp_path: Path) -> None:
    store = opened(tmp_path / "store")
    large = bytes(SLICE_BYTES_MAX * 3 // 4)
    assert store.commit(1, [], {0: {key(number): large for number in range(6)}}) == 6


def test_an_empty_epoch_counts(opened: Open, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    store.commit(1, [], {})
    store.close()

    assert opened(tmp_path / "store").epoch == 1


@pytest.mark.promise(
    "Crash safety", "After a crash of the process or the machine, each commit is there whole or not at all."
)
@pytest.mark.parametrize("applied", [True, False])
def test_a_log_that_ends_anywhere_gives_one_epoch_or_the_next_and_nothing_between(
    opened: Open, tmp_path: Path, applied: bool
) -> None:
    """A power cut keeps some first part of the write-ahead log: here it is cut at many lengths."""
    store = opened(tmp_path / "store")
    commit(store, {0: {key(number): b"one" for number in range(20)}})
    before, log_bytes = content(store), _log(tmp_path / "store").stat().st_size
    changes: Changed = {0: {key(number): b"two" for number in range(10, 30)}, 1: {key(1): b"two"}}
    cleared: list[Range] = [(0, key(0), key(5))]
    store.commit(2, cleared, changes)
    committed_bytes = _log(tmp_path / "store").stat().st_size
    if applied:
        store.apply(2)
    whole = _log(tmp_path / "store").stat().st_size
    after = {(family, name): value for (family, name), value in before.items() if not key(0) <= name < key(5)}
    after |= {("queue", key(number)): b"two" for number in range(10, 30)} | {("host", key(1)): b"two"}

    seen = set()
    for length in {*range(log_bytes, whole, max(1, (whole - log_bytes) // 25)), committed_bytes, whole}:
        copy = tmp_path / f"cut-{length}"
        shutil.copytree(tmp_path / "store", copy)
        with _log(copy).open("r+b") as log:
            log.truncate(length)
        reopened = Store(copy)
        seen.add(reopened.epoch)
        assert content(reopened) == (before if reopened.epoch == 1 else after)
        assert (reopened.epoch == 2) == (length >= committed_bytes)
        assert notes(reopened) == []
        reopened.close()
    assert seen == {1, 2}


def test_after_half_a_redo_record_was_found_the_next_epoch_is_what_it_says(opened: Open, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    commit(store, {0: {b"\0\0a": b"1"}})
    log_bytes = _log(tmp_path / "store").stat().st_size
    many: Changed = {0: {key(number): b"lost" for number in range(3 * SLICE_OPERATIONS_MAX)}}
    store.commit(2, [], many)
    shutil.copytree(tmp_path / "store", tmp_path / "copy")
    store.close()
    with _log(tmp_path / "copy").open("r+b") as log:
        log.truncate((log_bytes + log.seek(0, 2)) // 2)
    second = Store(tmp_path / "copy")
    assert second.epoch == 1
    assert notes(second) == [], "what will never be applied is cleared away"
    second.commit(2, [], {0: {b"\0\0b": b"2"}})
    second.close()
    third = opened(tmp_path / "copy")

    assert content(third) == {("queue", b"\0\0a"): b"1", ("queue", b"\0\0b"): b"2"}


def copied_at_rest(source: Path, target: Path) -> None:
    """Copy a store as a power cut would leave it, at one instant: no flush or compaction has changed it meanwhile."""
    for _ in range(100):
        with suppress(shutil.Error, FileNotFoundError):  # A file went away.
            before = files_of(source)
            shutil.copytree(source, target)
            if files_of(source) == before:
                return
        shutil.rmtree(target, ignore_errors=True)
    raise AssertionError("the store never rests")


def files_of(folder: Path) -> set[tuple[str, int, int]]:
    return {(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in folder.iterdir()}


@pytest.mark.promise(
    "Crash safety", "After a crash of the process or the machine, each commit is there whole or not at all."
)
def test_a_copy_taken_at_any_moment_of_a_commit_is_whole(opened: Open, tmp_path: Path) -> None:
    store = opened(tmp_path / "store")
    states = [content(store)]
    copies = 0
    for epoch in range(1, 6):
        changed: Changed = {epoch % 3: {key(number): str(epoch).encode() for number in range(0, 3000, epoch)}}
        copied_at_rest(tmp_path / "store", tmp_path / f"{epoch}-open")
        store.commit(epoch, [], changed)
        copied_at_rest(tmp_path / "store", tmp_path / f"{epoch}-committed")
        store.apply(epoch)
        copied_at_rest(tmp_path / "store", tmp_path / f"{epoch}-applied")
        states.append(content(store))
        for name, number in (("open", epoch - 1), ("committed", epoch), ("applied", epoch)):
            copy = Store(tmp_path / f"{epoch}-{name}")
            assert copy.epoch == number
            assert content(copy) == states[number]
            copy.close()
            copies += 1
    assert copies == 15


def test_a_checkpoint_is_a_store(opened: Open, tmp_path: Path) -> None:
    store = opened(tmp_path / "store")
    commit(store, EVERY_FAMILY)
    store.checkpoint(tmp_path / "copy")
    commit(store, {0: {b"\0\0later": b""}})

    copy = opened(tmp_path / "copy")
    assert copy.epoch == 1
    assert len(content(copy)) == 2 * len(FAMILIES)


def test_a_commit_may_run_in_another_thread_while_the_loop_reads(opened: Open, tmp_path: Path) -> None:
    store = opened(tmp_path / "store")
    failures: list[BaseException] = []

    def commits() -> None:
        try:
            for _ in range(5):
                commit(store, {0: {key(number): b"x" for number in range(100)}})
        except BaseException as error:  # noqa: BLE001 - told to the test's own thread
            failures.append(error)

    thread = threading.Thread(target=commits)
    thread.start()
    while thread.is_alive():
        assert store.get("queue", key(1)) in (None, b"x")
        assert store.get_many("queue", [key(1), b"\0\0none"])[1] is None
        assert sum(1 for _ in store.scan("queue", b"\0\0", b"\xff\xff")) <= 100
    thread.join()
    assert not failures
    assert store.epoch == 5


def test_reads(opened: Open, tmp_path: Path) -> None:
    store = opened(tmp_path / "store")
    commit(store, {0: {b"\0\0a": b"1", b"\0\0c": b"3", b"\0\1a": b"4"}})

    assert store.get_many("queue", [b"\0\0c", b"\0\0b", b"\0\0a", b"\0\0a"]) == [b"3", None, b"1", b"1"]
    assert store.get_many("queue", []) == []
    assert list(store.scan("queue", b"\0\0b", b"\0\1")) == [(b"\0\0c", b"3")]
    assert list(store.scan("queue", b"\0\0a", b"\0\0c")) == [(b"\0\0a", b"1")]


def test_two_at_once_are_refused(opened: Open, tmp_path: Path) -> None:
    opened(tmp_path / "store")

    with pytest.raises(OSError, match="cannot open the store"):
        Store(tmp_path / "store")


def _log(path: Path) -> Path:
    """The write-ahead log that is being written."""
    return max(path.glob("*.log"))


def held_back(store: Store) -> int:
    """Return how often RocksDB has delayed or stopped a write by itself."""
    counts = [str(family.property_value("rocksdb.cf-write-stall-stats")) for family in store._families.values()]
    return sum(int(number) for text in counts for number in re.findall(r"total-(?:delays|stops): (\d+)", text))


@pytest.mark.promise("Bounds", "Compaction that lags delays a commit, never the event loop.")
@pytest.mark.parametrize("waits", [True, False])
def test_compaction_that_lags_holds_up_the_commit_and_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, waits: bool
) -> None:
    """RocksDB holds the interpreter lock while it holds back a write: here its background work is made very slow, and
    it would do so if the store did not wait by itself.
    """
    pauses: list[float] = []

    def wait(seconds: float) -> None:
        pauses.append(seconds)
        time.sleep(seconds)

    monkeypatch.setattr("gossamer.state.store.pause", wait)
    if not waits:
        monkeypatch.setattr(Store, "_wait_for_background", lambda _: None)
    store = Store(tmp_path / "store", 1 << 20, 1 << 20, 2 << 20)
    value = random.Random(1).randbytes(2_000)
    for epoch in range(1, 9):  # 16 MB through 2 MB a second.
        changes: Changed = {0: {key(number) + bytes((epoch,)): value for number in range(1_000)}}
        chunks = store.commit(epoch, [], changes)
        assert chunks
        store.apply(epoch)
    found = (bool(pauses), bool(held_back(store)))
    store.close()
    assert found == (waits, not waits)


def test_a_fork_of_a_process_that_opened_a_store_is_refused(tmp_path: Path) -> None:
    """Its store could not be closed: the threads that this waits for are in the other process."""
    opening = (
        "import os, sys; from pathlib import Path; from gossamer.state.store import Store\n"
        "Store(Path('a')).close()\n"
        "if not os.fork():\n"
        "    Store(Path('b')).close()\n"
        "    os._exit(0)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))\n"
    )
    done = subprocess.run([sys.executable, "-c", opening], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "RuntimeError: this process was forked from one that has opened a crawl" in done.stderr
