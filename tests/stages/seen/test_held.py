"""Held links: each is answered once, exactly, whatever batches, commits and crashes come in between."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from gossamer.model.counters import Counters
from gossamer.model.links import Link
from gossamer.ports import HELD, KNOWN, NEW, SHORTER
from gossamer.stages.seen import held
from gossamer.stages.seen.diskmerge import DiskMergeUrlSeen
from gossamer.stages.seen.held import HELD_S_MAX, without
from gossamer.stages.seen.options import SeenOptions
from gossamer.state.schema import HELD_LINKS, under
from gossamer.url.name import Namer
from gossamer.url.url import Url
from tests.stages.seen.opened import Opened, named, numbered

DEEP = "GOSSAMER_EXAMPLES" in os.environ
SMALL = SeenOptions(popular_urls_max=4, front_urls_max=4, filter_bits=2, expected_urls=4, held_urls_max=3)
"""Every commit merges, every other URL may be in a file, and few links make a batch."""
name = Namer().name


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values of few links, and batches that are too large to be read."""
    monkeypatch.setattr(held, "PART_LINKS_MAX", 2)
    monkeypatch.setattr(held, "READS_MAX", 2)


def seen_of(opened: Opened) -> DiskMergeUrlSeen:
    assert isinstance(opened.seen, DiskMergeUrlSeen)
    return opened.seen


def link_to(url: Url, depth: int = 1, hops: int = 0, referrer: str = "http://a.example/") -> Link:
    return Link(url, "anchor", depth, hops, referrer)


def offered(opened: Opened, links: Sequence[Link]) -> list[int]:
    return list(seen_of(opened).offer(*zip(*[(link.url, link.depth, link.hops) for link in links], strict=True)))


def taken_back(opened: Opened, *, idle: bool = True) -> Iterator[Link]:
    """Yield all that is held and comes back."""
    seen = seen_of(opened)
    while seen.links_held:
        links = seen.release(2, name, idle=idle)
        yield from links
        if not links:
            opened.wait()
            opened.commit()
            opened.wait()


def in_files(directory: Path, options: SeenOptions, depth: int = 5) -> Opened:
    """Return an eliminator whose files have the first 200 URLs."""
    opened = Opened("diskmerge", directory, options)
    for _ in range(2):
        opened.offer(URLS[:200], depth)
        opened.commit()
        opened.wait()
    opened.commit()
    assert not any(seen_of(opened)._front)
    return opened


FEW = SeenOptions(popular_urls_max=0, front_urls_max=100, filter_bits=4, expected_urls=100, held_urls_max=150)
URLS = [numbered(number) for number in range(400)]


def test_what_no_filter_has_is_new_and_what_one_has_is_held_until_its_batch_is_compared(tmp_path: Path) -> None:
    opened = in_files(tmp_path, FEW)
    seen = seen_of(opened)
    answers = list(seen.offer_or_hold([link_to(url) for url in URLS[:100]]))
    assert answers == [HELD] * 100
    assert seen.links_held == 100
    assert all(seen.holds(url) for url in URLS[:100])
    assert not seen.holds(URLS[100])
    opened.commit()
    assert seen.release(10, name, idle=False) == [], "the batch is not full"
    answers = list(seen.offer_or_hold([link_to(url, 9) for url in URLS[100:300]]))
    assert set(answers[:100]) == {HELD}
    assert NEW in answers[100:]
    mistaken = [url for url, answer in zip(URLS[200:300], answers[100:], strict=True) if answer == HELD]
    opened.commit()
    opened.wait()
    opened.commit()
    links = list(taken_back(opened, idle=False))
    assert [link.url for link in links] == [*URLS[:100], *mistaken], "a longer path is not worth an offer"
    assert offered(opened, links) == [SHORTER] * 100 + [NEW] * len(mistaken)
    assert seen.links_held == 0
    assert not seen.holds(URLS[0])
    opened.commit()
    assert not list(opened.store.scan("seen", *under(HELD_LINKS))), "it left the store"
    opened.crash()


def test_a_link_that_is_held_and_comes_back_is_counted_once(tmp_path: Path) -> None:
    opened = in_files(tmp_path, FEW)
    seen = seen_of(opened)

    def counts() -> Counters:
        found = Counters()
        seen.count(found)
        return found

    before = counts()
    seen.offer_or_hold([link_to(url) for url in URLS[:100]])
    opened.commit()
    seen.offer_or_hold([link_to(url, 9) for url in URLS[100:300]])
    opened.commit()
    offered(opened, list(taken_back(opened)))
    after = counts().since(before)
    assert after.urls_hits + after.urls_misses == 300, "each link once, though many are offered again"
    assert 200 <= after.urls_on_disk < 250, "what a filter has was compared with the files"
    opened.crash()


def test_a_link_comes_back_as_it_was_held(tmp_path: Path) -> None:
    opened = in_files(tmp_path, FEW)
    links = [
        Link(URLS[0], "anchor", 1, 0, "http://a.example/"),
        Link(URLS[1], "embed", 2, 3, "http://a.example/"),
        Link(URLS[2], "feed", 0, 0, ""),
        Link(URLS[3], "anchor", 1, 0, "", level=4),
        Link(URLS[4], "redirect", 1, 1, "http://b.example/"),
    ]
    seen_of(opened).offer_or_hold(links[:3])
    opened.commit()
    seen_of(opened).offer_or_hold(links[3:])
    opened.commit()
    for _ in range(2):
        assert list(taken_back(opened)) == links
        opened.crash()
        opened = Opened("diskmerge", tmp_path, FEW)
    opened.crash()


def test_what_is_held_in_the_epoch_in_which_others_are_given_back_stays(tmp_path: Path) -> None:
    opened = in_files(tmp_path, FEW)
    seen = seen_of(opened)
    seen.offer_or_hold([link_to(url) for url in URLS[:2]])
    assert len(seen.release(9, name, idle=True)) == 2
    seen.offer_or_hold([link_to(url) for url in URLS[2:4]])
    opened.commit()
    assert seen.links_held == 2
    for _ in range(2):
        assert [link.url for link in taken_back(opened)] == URLS[2:4]
        opened.crash()
        opened = Opened("diskmerge", tmp_path, FEW)
    opened.crash()


def test_what_is_held_for_long_is_answered_though_the_batch_is_small(tmp_path: Path) -> None:
    opened = in_files(tmp_path, FEW)
    seen = seen_of(opened)
    for at in (0.0, 1.0):
        seen.offer_or_hold([link_to(URLS[int(at)])])
        seen.cut(100.0 + at)
        assert not seen.release(9, name, idle=False)
    seen.cut(100.0 + HELD_S_MAX)
    assert [link.url for link in seen.release(9, name, idle=False)] == URLS[:2]
    opened.crash()


def test_a_url_that_is_held_is_held_once_more_only_by_a_shorter_path(tmp_path: Path) -> None:
    opened = in_files(tmp_path, msgspec.structs.replace(FEW, popular_urls_max=1 << 12))
    opened.crash()
    opened = Opened("diskmerge", tmp_path, msgspec.structs.replace(FEW, popular_urls_max=1 << 12))
    seen = seen_of(opened)
    answers = [
        seen.offer_or_hold([link_to(URLS[0], depth, hops)])[0]
        for depth, hops in [(4, 2), (4, 2), (5, 3), (3, 4), (3, 2), (4, 1), (3, 1)]
    ]
    assert answers == [HELD, KNOWN, KNOWN, HELD, KNOWN, HELD, KNOWN]
    assert seen.way(URLS[0]) == (5, 0), "not the path that awaits its answer"
    assert seen.offer([URLS[0]], [4], [0]) == [SHORTER], "an answer at once is exact meanwhile"
    opened.commit()
    links = list(taken_back(opened))
    assert [(link.depth, link.hops) for link in links] == [(4, 2), (3, 4), (4, 1)]
    assert offered(opened, links) == [KNOWN, SHORTER, KNOWN]
    assert seen.offer_or_hold([link_to(URLS[0], 3, 0)]) == [KNOWN]
    opened.crash()


def test_a_link_that_the_caller_drops_leaves_its_url_to_the_next_one(tmp_path: Path) -> None:
    options = msgspec.structs.replace(FEW, popular_urls_max=1 << 12)
    opened = in_files(tmp_path, options)
    seen = seen_of(opened)
    new = next(url for url in URLS[200:] if seen.offer_or_hold([link_to(url)]) == [HELD])
    assert seen.offer_or_hold([link_to(new)]) == [KNOWN]
    assert [link.url for link in taken_back(opened)] == [new]
    assert seen.offer_or_hold([link_to(new, 7)]) == [HELD]
    assert offered(opened, list(taken_back(opened))) == [NEW]
    opened.crash()


def test_links_to_forgotten_pages_leave_a_value(tmp_path: Path) -> None:
    opened = in_files(tmp_path, FEW)
    seen_of(opened).offer_or_hold([link_to(url) for url in URLS[:3]])
    opened.commit()
    key, value = next(iter(opened.store.scan("seen", *under(HELD_LINKS))))
    assert without(value, lambda _: False) == value
    assert without(value, lambda _: True) == b""
    opened.epochs.put("seen", key, without(value, lambda text: text == URLS[0].text))
    opened.commit()
    opened.crash()
    opened = Opened("diskmerge", tmp_path, FEW)
    assert list(taken_back(opened)) == [link_to(url) for url in URLS[1:3]]
    opened.crash()


def test_a_link_is_held_until_it_is_returned(tmp_path: Path) -> None:
    opened = in_files(tmp_path, FEW)
    links_held = held.HeldLinks(opened.epochs, 3)
    links_held.hold([link_to(url) for url in URLS[:3]], [0] * 3, [0] * 3)
    assert links_held.has(URLS[0].fingerprint)
    assert links_held.batch(0.0) is not None
    assert links_held.has(URLS[0].fingerprint), "its batch is compared"
    links_held.set_wanted(range(3))
    assert len(links_held.release(3, name, idle=False)) == 3
    assert not links_held.has(URLS[0].fingerprint)
    opened.crash()


HOSTS = [named(f"https://{host}.example/{path}") for host in "abc" for path in "12345"]
links = st.lists(
    st.builds(
        link_to, st.sampled_from(HOSTS), st.integers(0, 3), st.integers(0, 2), st.sampled_from(["", "http://r/"])
    ),
    max_size=6,
)
Ways = dict[str, tuple[int, int]]


def least(one: tuple[int, int], other: tuple[int, int] | None) -> tuple[int, int]:
    return one if other is None else (min(one[0], other[0]), min(one[1], other[1]))


class HoldingMachine(RuleBasedStateMachine):
    """Against dictionaries of the paths that were answered, and of those that are awaited."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.ways: Ways = {}
        self.awaited: Ways = {}
        self.durable: tuple[Ways, Ways] = {}, {}
        self.offers = 0
        self.opened = Opened("diskmerge", self.directory, SMALL)

    def teardown(self) -> None:
        for link in taken_back(self.opened):
            self.offer([link])
        for url in HOSTS:
            known, awaited = self.ways.get(url.key), self.awaited.get(url.key)
            assert known is not None or awaited is None, "it was lost"
            assert known is None or known == least(known, awaited)
            assert self.opened.seen.way(url) == known
        self.opened.crash()
        shutil.rmtree(self.directory)

    def note(self, link: Link, answer: int) -> None:
        way, known = (link.depth, link.hops), self.ways.get(link.url.key)
        if answer == HELD:
            self.awaited[link.url.key] = least(way, self.awaited.get(link.url.key))
        elif answer == KNOWN and known != least(way, known):
            awaited = self.awaited.get(link.url.key)
            assert awaited is not None
            assert awaited == least(way, awaited), "what is awaited is at least as near"
        else:
            assert answer == (NEW if known is None else KNOWN if known == least(way, known) else SHORTER)
            self.ways[link.url.key] = least(way, known)

    @rule(offered=links)
    def offer_or_hold(self, offered: list[Link]) -> None:
        self.offers += 1
        for link, answer in zip(offered, seen_of(self.opened).offer_or_hold(offered), strict=True):
            self.note(link, answer)

    @rule(offered=links)
    def offer(self, offered: list[Link]) -> None:
        depths, hops = [link.depth for link in offered], [link.hops for link in offered]
        answers = seen_of(self.opened).offer([link.url for link in offered], depths, hops)
        assert HELD not in answers
        for link, answer in zip(offered, answers, strict=True):
            way, known = (link.depth, link.hops), self.ways.get(link.url.key)
            assert answer == (NEW if known is None else KNOWN if known == least(way, known) else SHORTER)
            self.ways[link.url.key] = least(way, known)

    @rule(most=st.integers(1, 3), idle=st.booleans())
    def take_back(self, most: int, idle: bool) -> None:
        self.offer(seen_of(self.opened).release(most, name, idle=idle))

    @rule(wait=st.booleans())
    def commit(self, wait: bool) -> None:
        if wait:
            self.opened.wait()
        self.opened.commit()
        self.durable = dict(self.ways), dict(self.awaited)

    @precondition(lambda self: self.offers > 3)
    @rule()
    def crash(self) -> None:
        self.opened.crash()
        self.opened = Opened("diskmerge", self.directory, SMALL)
        self.ways, self.awaited, self.offers = dict(self.durable[0]), dict(self.durable[1]), 0


TestHolding = HoldingMachine.TestCase
TestHolding.settings = settings(
    deadline=None,
    derandomize=not DEEP,
    max_examples=int(os.environ.get("GOSSAMER_EXAMPLES", "8")),
    stateful_step_count=60,
)


def test_no_more_links_wait_than_two_batches_while_the_files_are_slow(tmp_path: Path) -> None:
    opened = in_files(tmp_path, FEW)
    seen = seen_of(opened)
    may_go_on = threading.Event()
    seen._thread.submit(may_go_on.wait)  # The comparison waits behind it.
    seen.offer_or_hold([link_to(url, 9) for url in URLS[:150]])
    opened.commit()
    seen.offer_or_hold([link_to(url, 8) for url in URLS[:149]])
    opened.commit()
    assert seen.links_held == 299, "the next batch is not full, and nothing waits"
    seen.offer_or_hold([link_to(URLS[149], 8)])
    threading.Timer(0.1, may_go_on.set).start()
    opened.commit()
    assert may_go_on.is_set()
    assert seen.links_held == 150, "the first is compared: no path in it is shorter than the known one"
    opened.crash()
