"""The duplicate URL eliminator: new once, whatever happens between; the least way is remembered."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from gossamer.model.counters import Counters
from gossamer.ports import KNOWN, NEW, SHORTER
from gossamer.stages.seen import urls as urls_seen
from gossamer.stages.seen.offers import DEPTH_MAX, HOPS_MAX
from gossamer.stages.seen.urls import RocksUrlSeen
from gossamer.state.epoch import Epochs
from gossamer.state.store import Store
from gossamer.url.name import Namer
from gossamer.url.url import Url

DEEP = "GOSSAMER_EXAMPLES" in os.environ


def named(text: str) -> Url:
    url = Namer().name(text)
    assert url is not None
    return url


URLS = [named(f"https://{host}.example/{path}") for host in "abc" for path in "123"]


def commit(epochs: Epochs) -> None:
    epochs.close_at_once()


@pytest.fixture
def epochs(tmp_path: Path) -> Iterator[Epochs]:
    store = Store(tmp_path / "store")
    yield Epochs(store)
    store.close()


def test_submissions_that_reach_the_disk_are_counted(epochs: Epochs) -> None:
    def counted(seen: RocksUrlSeen) -> tuple[int, int, int]:
        counters = Counters()
        seen.count(counters)
        return counters.urls_hits, counters.urls_misses, counters.urls_on_disk

    seen = RocksUrlSeen(epochs, 1)
    two = URLS[:2]
    seen.offer(two, [0, 0], [0, 0])
    assert counted(seen) == (0, 2, 2), "new URLs are looked for in the store"
    seen.offer(two, [0, 0], [0, 0])
    hits, misses, on_disk = counted(seen)
    assert (hits + misses, on_disk) == (4, 2), "the open epoch and the popular URLs are in memory"
    commit(epochs)
    again = RocksUrlSeen(Epochs(epochs._store), 1)
    again.offer(two, [0, 0], [0, 0])
    assert counted(again) == (0, 2, 2)


def one(seen: RocksUrlSeen, url: Url, depth: int = 0, hops: int = 0) -> int:
    return seen.offer([url], [depth], [hops])[0]


def test_a_url_is_new_once(epochs: Epochs) -> None:
    seen = RocksUrlSeen(epochs, 100)

    assert [one(seen, URLS[0]) for _ in range(3)] == [NEW, KNOWN, KNOWN]


@pytest.mark.parametrize("popular_urls_max", [0, 1, 100])
def test_a_url_is_new_once_across_commits_and_restarts(tmp_path: Path, popular_urls_max: int) -> None:
    store = Store(tmp_path / "store")
    epochs = Epochs(store)
    seen = RocksUrlSeen(epochs, popular_urls_max)
    assert one(seen, URLS[0], 3) == NEW
    commit(epochs)
    assert one(seen, URLS[0], 3) == KNOWN
    assert one(seen, URLS[1], 3) == NEW
    store.close()
    store = Store(tmp_path / "store")
    seen = RocksUrlSeen(Epochs(store), popular_urls_max)
    assert one(seen, URLS[0], 3) == KNOWN
    assert seen.way(URLS[0]) == (3, 0)
    assert one(seen, URLS[1], 3) == NEW, "its epoch was lost, and with it the queue that held it"
    store.close()


def test_depth_and_hops_are_each_the_least_of_all_ways(epochs: Epochs) -> None:
    seen = RocksUrlSeen(epochs, 100)
    ways = [(5, 3), (5, 4), (6, 3), (5, 2), (4, 200), (4, 199), (6, 0), (4, 0), (0, 7), (0, 0)]

    answers = [one(seen, URLS[0], depth, hops) for depth, hops in ways]
    assert answers == [NEW, KNOWN, KNOWN, SHORTER, SHORTER, KNOWN, SHORTER, KNOWN, SHORTER, KNOWN]
    assert seen.way(URLS[0]) == (0, 0)


def test_of_equal_keys_in_one_call_the_first_is_new(epochs: Epochs) -> None:
    seen = RocksUrlSeen(epochs, 100)
    plain, escaped = named("https://a.example/~u"), named("https://a.example/%7Eu")
    assert plain.key == escaped.key

    assert list(seen.offer([plain, escaped, plain, URLS[0]], [4, 3, 3, 0], [0] * 4)) == [NEW, SHORTER, KNOWN, NEW]
    assert seen.way(escaped) == (3, 0)


def test_a_way_that_is_too_long_to_count_stays_known(epochs: Epochs) -> None:
    seen = RocksUrlSeen(epochs, 100)

    assert one(seen, URLS[0], DEPTH_MAX + 5, HOPS_MAX + 5) == NEW
    assert one(seen, URLS[0], DEPTH_MAX, HOPS_MAX) == KNOWN
    assert seen.way(URLS[0]) == (DEPTH_MAX, HOPS_MAX)


def test_nobody_knows_the_way_to_what_was_never_offered(epochs: Epochs) -> None:
    assert RocksUrlSeen(epochs, 100).way(URLS[0]) is None


def test_nothing_offered_nothing_answered(epochs: Epochs) -> None:
    assert list(RocksUrlSeen(epochs, 100).offer([], [], [])) == []


def test_memory_is_bounded_and_forgets_nothing(epochs: Epochs) -> None:
    seen = RocksUrlSeen(epochs, 50)
    urls = [named(f"https://a.example/{number}") for number in range(500)]
    for start in range(0, 500, 10):
        assert set(seen.offer(urls[start : start + 10], [1] * 10, [0] * 10)) == {NEW}
        assert len(seen._popular) <= 50
    assert set(seen.offer(urls, [1] * 500, [0] * 500)) == {KNOWN}


def test_origins_in_memory_are_bounded_and_none_is_forgotten(epochs: Epochs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(urls_seen, "STARTS_MAX", 10)
    seen = RocksUrlSeen(epochs, 0)
    urls = [named(f"https://host{number}.example/") for number in range(100)]
    for url in urls:
        assert list(seen.offer([url], [1], [0])) == [NEW]
        assert len(seen._starts) <= 10
    assert list(seen.offer(urls, [1] * 100, [0] * 100)) == [KNOWN] * 100


ways = st.tuples(st.integers(0, 3), st.integers(0, 2))
offers = st.lists(st.tuples(st.sampled_from(URLS), ways), max_size=6)


class SeenMachine(RuleBasedStateMachine):
    """Against a dictionary: any offers, commits and crashes."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.ways: dict[str, tuple[int, int]] = {}
        self.durable: dict[str, tuple[int, int]] = {}
        self.offers = 0
        self.open()

    def open(self) -> None:
        self.store = Store(self.directory / "store", 1 << 20, 1 << 20)
        self.epochs = Epochs(self.store)
        self.seen = RocksUrlSeen(self.epochs, 4)

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.directory)

    @rule(offered=offers)
    def offer_some(self, offered: Sequence[tuple[Url, tuple[int, int]]]) -> None:
        self.offer(offered)

    def offer(self, offered: Sequence[tuple[Url, tuple[int, int]]]) -> None:
        expected = []
        for url, way in offered:
            known = self.ways.get(url.key)
            least = way if known is None else (min(way[0], known[0]), min(way[1], known[1]))
            expected.append(NEW if known is None else SHORTER if least != known else KNOWN)
            self.ways[url.key] = least
        urls, depths, hops = [url for url, _ in offered], [way[0] for _, way in offered], [way[1] for _, way in offered]
        assert list(self.seen.offer(urls, depths, hops)) == expected
        self.offers += 1

    @rule(page=st.lists(st.sampled_from(URLS), min_size=20, max_size=40), way=ways)
    def offer_page(self, page: Sequence[Url], way: tuple[int, int]) -> None:
        """A page's links have one way, and many of them are looked for together."""
        self.offer([(url, way) for url in page])

    @rule(url=st.sampled_from(URLS))
    def way(self, url: Url) -> None:
        assert self.seen.way(url) == self.ways.get(url.key)

    @rule()
    def commit(self) -> None:
        commit(self.epochs)
        self.durable = dict(self.ways)

    @precondition(lambda self: self.offers > 3)
    @rule()
    def crash(self) -> None:
        self.store.close()
        self.open()
        self.ways, self.offers = dict(self.durable), 0


@pytest.mark.heavy
class TestSeen(SeenMachine.TestCase):  # type: ignore[name-defined,misc]
    settings = settings(
        deadline=None,
        derandomize=not DEEP,
        max_examples=int(os.environ.get("GOSSAMER_EXAMPLES", "20")),
        stateful_step_count=40,
    )
