"""The epoch: whatever the order of changes, cuts and commits, reads give what a plain dictionary would."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gossamer.state.epoch import Cleared, Epochs
from gossamer.state.store import Store

FAMILIES = ("queue", "ready")
"""One that is scanned while an epoch grows, and one that is not."""
KEYS = [partition.to_bytes(2) + bytes((letter,)) for partition in (0, 1, 300) for letter in b"ab"]
BOUNDS = sorted([*KEYS, *(key + b"\0" for key in KEYS), b"\0\0", b"\xff\xff"])

families = st.sampled_from(FAMILIES)
keys = st.sampled_from(KEYS)
bounds = st.tuples(st.sampled_from(BOUNDS), st.sampled_from(BOUNDS)).map(sorted)

Model = dict[tuple[str, bytes], bytes]


class EpochMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.value = self.value_at_start = 0
        self.now: Model = {}
        """What reads must give."""
        self.at_cut: Model = {}
        self.durable: Model = {}
        """What a crash leaves."""
        self.phase = "open"
        self.number = 0

    @initialize()
    def start(self) -> None:
        self.store = Store(self.directory / "store", 1 << 20, 1 << 20)
        self.epochs = Epochs(self.store)
        self.value_at_start = self.value

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.directory)

    @rule(family=families, key=keys)
    def put(self, family: str, key: bytes) -> None:
        self.value += 1
        self.now[family, key] = str(self.value).encode()
        self.epochs.put(family, key, str(self.value).encode())

    @rule(family=families, key=keys)
    def delete(self, family: str, key: bytes) -> None:
        self.now.pop((family, key), None)
        self.epochs.delete(family, key)

    @rule(family=families, bounds=bounds)
    def delete_range(self, family: str, bounds: list[bytes]) -> None:
        begin, end = bounds
        self.now = {
            (name, key): value for (name, key), value in self.now.items() if name != family or not begin <= key < end
        }
        self.epochs.delete_range(family, begin, end)

    @rule(family=families, key=keys)
    def get(self, family: str, key: bytes) -> None:
        assert self.epochs.get(family, key) == self.now.get((family, key))

    @rule(family=families, asked=st.lists(keys, max_size=8))
    def get_many(self, family: str, asked: list[bytes]) -> None:
        assert self.epochs.get_many(family, asked) == [self.now.get((family, key)) for key in asked]

    @rule(family=families, bounds=bounds)
    def scan(self, family: str, bounds: list[bytes]) -> None:
        begin, end = bounds
        expected = [(key, value) for (name, key), value in self.now.items() if name == family and begin <= key < end]
        assert list(self.epochs.scan(family, begin, end)) == sorted(expected)

    @rule(family=families, bounds=bounds)
    def changes(self, family: str, bounds: list[bytes]) -> None:
        """What was there at the last cut, with the changes since, is what is there now."""
        begin, end = bounds
        before, now = (
            {key: value for (name, key), value in model.items() if name == family and begin <= key < end}
            for model in (self.at_cut, self.now)
        )
        cleared, changed = self.epochs.changes(family, begin, end)
        assert all(begin <= first < last <= end for first, last in cleared)
        before = {key: value for key, value in before.items() if not any(a <= key < b for a, b in cleared)}
        before |= dict(changed)
        assert {key: value for key, value in before.items() if value is not None} == now

    @precondition(lambda self: self.phase == "open")
    @rule()
    def cut(self) -> None:
        self.number = self.epochs.cut()
        assert self.number == self.store.epoch + 1
        self.at_cut, self.phase = dict(self.now), "closing"

    @precondition(lambda self: self.phase == "closing")
    @rule()
    def commit(self) -> None:
        self.epochs.commit(self.number)
        self.durable, self.phase = self.at_cut, "committed"

    @precondition(lambda self: self.phase == "committed")
    @rule()
    def apply(self) -> None:
        self.epochs.apply(self.number)
        self.phase = "applied"

    @precondition(lambda self: self.phase == "applied")
    @rule()
    def settle(self) -> None:
        self.epochs.settle()
        self.phase = "open"

    @precondition(lambda self: self.value - self.value_at_start > 5)
    @rule()
    def crash(self) -> None:
        committed = self.store.epoch
        self.store.close()
        self.start()
        self.now, self.at_cut, self.phase = dict(self.durable), dict(self.durable), "open"
        assert self.store.epoch == committed
        for family in FAMILIES:
            self.scan(family, [b"\0\0", b"\xff\xff"])

    @invariant()
    def counts_its_operations(self) -> None:
        assert self.epochs.size >= 0


@pytest.mark.heavy
class TestEpochs(EpochMachine.TestCase):  # type: ignore[name-defined,misc]
    settings = settings(
        settings.get_profile("deep" if "GOSSAMER_EXAMPLES" in os.environ else "quick"),
        **({} if "GOSSAMER_EXAMPLES" in os.environ else {"max_examples": 30}),
        stateful_step_count=60,
    )


def settle(epochs: Epochs) -> None:
    epochs.close_at_once()


def test_a_scan_costs_its_own_partition_not_the_epoch(opened: Callable[[Path], Store], tmp_path: Path) -> None:
    """A host is activated by a scan; with a walk through the epoch, filling the bench would cost its square."""

    class Counting(bytes):
        compared = 0

        def __lt__(self, other: bytes) -> bool:
            Counting.compared += 1
            return bytes.__lt__(self, other)

        def __le__(self, other: bytes) -> bool:
            Counting.compared += 1
            return bytes.__le__(self, other)

        __gt__, __ge__ = __lt__, __le__
        __hash__ = bytes.__hash__

    epochs = Epochs(opened(tmp_path / "store"))
    for number in range(4000):
        epochs.put("ready", Counting((number % 4000).to_bytes(2) + b"x"), b"")
    Counting.compared = 0
    assert len(list(epochs.scan("ready", b"\0\1", b"\0\2"))) == 1
    assert Counting.compared < 100


def test_a_range_of_one_family_does_not_slow_the_reads_of_another(
    opened: Callable[[Path], Store], tmp_path: Path
) -> None:
    epochs = Epochs(opened(tmp_path / "store"))
    epochs.put("seen", b"\0\0a", b"1")
    settle(epochs)
    epochs.delete_range("queue", b"\0\0", b"\xff\xff")
    epochs.delete_range("seen", b"\0\1", b"\0\2")

    assert epochs.get("seen", b"\0\0a") == b"1"
    assert epochs.get_many("seen", [b"\0\0a", b"\0\1a"]) == [b"1", None]


@pytest.mark.parametrize("family", ["queue", "ready"])
def test_a_range_of_the_open_epoch_clears_what_the_closing_one_put(
    opened: Callable[[Path], Store], tmp_path: Path, family: str
) -> None:
    epochs = Epochs(opened(tmp_path / "store"))
    for key in (b"\0\0a", b"\0\0b", b"\0\0c"):
        epochs.put(family, key, b"1")
    number = epochs.cut()
    epochs.delete_range(family, b"\0\0a", b"\0\0c")
    epochs.put(family, b"\0\0b", b"2")
    left = [(b"\0\0b", b"2"), (b"\0\0c", b"1")]

    for step in (lambda: None, lambda: epochs.commit(number), lambda: epochs.apply(number), epochs.settle):
        step()
        assert list(epochs.scan(family, b"\0\0", b"\0\1")) == left
        assert epochs.get_many(family, [b"\0\0a", b"\0\0b", b"\0\0c"]) == [None, b"2", b"1"]
        assert epochs.get(family, b"\0\0a") is None


def test_a_range_of_the_closing_epoch_clears_what_the_store_holds(
    opened: Callable[[Path], Store], tmp_path: Path
) -> None:
    epochs = Epochs(opened(tmp_path / "store"))
    for key in (b"\0\0a", b"\0\0b"):
        epochs.put("queue", key, b"1")
    settle(epochs)
    epochs.delete_range("queue", b"\0\0a", b"\0\0b")
    epochs.cut()

    assert epochs.get_many("queue", [b"\0\0a", b"\0\0b"]) == [None, b"1"]


def test_a_range_that_touches_several_others_takes_them_in() -> None:
    cleared = Cleared()
    for begin, end in ((b"a", b"c"), (b"e", b"g"), (b"i", b"p"), (b"x", b"z"), (b"b", b"j")):
        cleared.add(begin, end)
    assert (cleared.begins, cleared.ends) == ([b"a", b"x"], [b"p", b"z"])
    assert [cleared.covers(key) for key in (b"a", b"o", b"p", b"w", b"y")] == [True, True, False, False, True]


def test_many_values_that_are_put_at_once_count_as_if_they_came_one_by_one(
    opened: Callable[[Path], Store], tmp_path: Path
) -> None:
    pairs = {number.to_bytes(8): bytes(number) for number in range(100)}
    at_once, one_by_one = Epochs(opened(tmp_path / "1")), Epochs(opened(tmp_path / "2"))
    at_once.put_many("seen", pairs)
    for name, value in pairs.items():
        one_by_one.put("seen", name, value)
    assert at_once.memory_bytes == one_by_one.memory_bytes > 0
    assert at_once.size == one_by_one.size == 100


def test_numbers_go_on_after_reopening(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    epochs = Epochs(store)
    assert epochs.number == 1
    settle(epochs)
    assert epochs.number == 2
    store.close()
    store = Store(tmp_path / "store")
    assert Epochs(store).number == 2
    store.close()
