"""Pages that were visited before: lent again when they are due, through the same queues and gates."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from gossamer.model.links import Link, RevisitPlan
from gossamer.model.visits import Contact
from gossamer.options import convert
from gossamer.stages.frontier.frontier import Frontier
from gossamer.stages.frontier.host import Lease
from gossamer.stages.frontier.hosts import HostRecords
from gossamer.stages.frontier.options import FrontierOptions, PolitenessOptions, politeness
from gossamer.stages.frontier.priority import FrontierRules
from gossamer.stages.frontier.record import decode_record
from gossamer.state.contacts import Contacts
from gossamer.state.epoch import Epochs
from gossamer.state.store import Store
from gossamer.url.name import Namer
from gossamer.url.url import Url
from gossamer.world.dice import Dice
from tests.stages.frontier.disk import check_disk

T0 = 1_000_000.0
NAMER = Namer()


def named(text: str) -> Url:
    url = NAMER.name(text)
    assert url is not None
    return url


class Opened:
    """A frontier on a store of its own, which can die."""

    def __init__(
        self,
        directory: Path,
        share_new: float | None = 0.5,
        preset: str = "weak",
        options: FrontierOptions | None = None,
    ) -> None:
        self.directory, self.share_new, self.preset = directory, share_new, preset
        self.options = options or FrontierOptions()
        self.open(T0)

    def open(self, now: float) -> None:
        self.store = Store(self.directory / "store")
        self.epochs = Epochs(self.store)
        self.contacts = Contacts(self.directory, bytes(16), now)
        rules = politeness(convert(PolitenessOptions, {"preset": self.preset}))
        self.frontier = Frontier(
            HostRecords(self.store, self.epochs, self.contacts),
            FrontierRules(rules, self.options, share_new=self.share_new), NAMER.name, Dice(7), now,
        )  # fmt: skip

    def commit(self, now: float) -> None:
        self.frontier.cut(now)
        ended = self.contacts.ended_since_commit
        self.epochs.close_at_once()
        self.contacts.on_commit(ended)
        check_disk(self.store, self.frontier)

    def die(self) -> None:
        self.contacts.close()
        self.store.close()

    def lend(self, now: float) -> Lease | None:
        """Return what may be fetched now, its host looked up."""
        while (lease := self.frontier.select(now)) is not None:
            if lease.address:
                return lease
            self.frontier.locate(lease, "10.0.0.1", now + 1e9, now)
        return None

    def visit(self, lease: Lease, now: float, due_at: float | None) -> None:
        assert self.frontier.begin(lease, now)
        self.frontier.ended(lease, Contact(0.1, "answered"), now)
        if due_at is None:
            self.frontier.finish(lease, "fetched", now)
        else:
            self.frontier.finish_until(lease, "fetched", due_at, now)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    shard = Opened(tmp_path)
    yield shard
    shard.die()


def test_a_page_comes_back_when_it_is_due_and_not_before(opened: Opened) -> None:
    frontier = opened.frontier
    frontier.add(Link(named("http://a.test/1"), "seed", 3, 0, "http://b.test/"), 0, T0)
    lease = opened.lend(T0)
    assert lease is not None
    assert not lease.visit.revisit
    opened.visit(lease, T0, T0 + 50)
    opened.commit(T0)

    assert opened.lend(T0 + 49) is None
    assert frontier.wake_at() == T0 + 50
    lease = opened.lend(T0 + 50)
    assert lease is not None
    assert (lease.url.text, lease.visit.revisit, lease.visit.depth) == ("http://a.test/1", True, 3)
    assert lease.visit.referrer == "http://b.test/"
    opened.visit(lease, T0 + 50, None)
    opened.commit(T0 + 50)
    assert frontier.wake_at() is None


def test_counts_are_of_urls_not_of_visits(opened: Opened) -> None:
    frontier = opened.frontier
    for number in range(5):
        frontier.add(Link(named(f"http://a.test/{number}"), "anchor", 1), 1, T0)
    for visit in range(20):
        now = T0 + visit * 10
        lease = opened.lend(now)
        assert lease is not None
        opened.visit(lease, now, now + 40)
        opened.commit(now)
    assert frontier.counts.discovered == 5
    assert frontier.counts.pending == 0
    assert frontier.counts.terminal == {"fetched": 5}


def test_a_failed_revisit_is_tried_again_and_still_is_one(opened: Opened) -> None:
    frontier = opened.frontier
    frontier.add(Link(named("http://a.test/1"), "anchor", 1), 1, T0)
    lease = opened.lend(T0)
    assert lease is not None
    opened.visit(lease, T0, T0 + 10)
    lease = opened.lend(T0 + 10)
    assert lease is not None
    assert frontier.begin(lease, T0 + 10)
    frontier.ended(lease, Contact(0.1, "answered"), T0 + 10)
    frontier.retry(lease, RevisitPlan(lease.url, T0 + 20, 2, 0, "HTTP 500"), T0 + 10)
    opened.commit(T0 + 10)
    lease = opened.lend(T0 + 20)
    assert lease is not None
    assert (lease.visit.attempt, lease.visit.revisit) == (2, True)
    opened.visit(lease, T0 + 20, T0 + 60)
    opened.commit(T0 + 20)


@pytest.mark.promise("Continuous crawls", "A page that is revisited has one due time, which no crash loses.")
def test_no_due_time_is_lost_by_a_death(tmp_path: Path) -> None:
    opened = Opened(tmp_path)
    due = {}
    for number in range(300):
        url = named(f"http://h{number % 7}.test/{number}")
        opened.frontier.add(Link(url, "anchor", 1), 1, T0)
    now = T0
    while len(due) < 300:
        lease = opened.lend(now)
        if lease is None:
            break
        due[lease.url.text] = T0 + 1_000 + len(due)
        opened.visit(lease, now, due[lease.url.text])
    opened.commit(now)
    # What is under way when it dies, and what was done since the commit, is due as if nothing had happened.
    lease = opened.lend(T0 + 1_005)
    assert lease is not None
    opened.visit(lease, T0 + 1_005, T0 + 9_000)
    assert opened.lend(T0 + 1_006) is not None
    opened.die()
    opened.open(T0 + 1_100)
    found = {}
    now = T0 + 1_400
    while (lease := opened.lend(now)) is not None or opened.frontier.wake_at() is not None:
        if lease is None:
            now = max(now, opened.frontier.wake_at() or now)
            continue
        found[lease.url.text] = int.from_bytes(lease.visit.due_key[-16:-8]) / 1e6
        opened.visit(lease, now, None)
    assert found == pytest.approx(due)
    opened.die()


@pytest.mark.promise(
    "Continuous crawls", "New and old pages share one delay per host, and neither makes the other wait for good."
)
@pytest.mark.parametrize(("share", "low", "high"), [(0.0, 0, 0), (0.5, 120, 280), (0.8, 250, 380), (1.0, 400, 400)])
def test_new_pages_have_their_share_where_old_ones_wait_too(tmp_path: Path, share: float, low: int, high: int) -> None:
    opened = Opened(tmp_path, share)
    for number in range(500):
        opened.frontier.add(Link(named(f"http://a.test/old{number}"), "anchor", 1), 1, T0)
    while (lease := opened.lend(T0)) is not None:
        opened.visit(lease, T0, T0 + 100)
    for number in range(500):
        opened.frontier.add(Link(named(f"http://a.test/new{number}"), "anchor", 1), 1, T0 + 100)
    opened.commit(T0 + 100)
    new = 0
    for _ in range(400):
        lease = opened.lend(T0 + 200)
        assert lease is not None
        new += "new" in lease.url.text
        opened.visit(lease, T0 + 200, T0 + 9_000)
    assert low <= new <= high
    opened.die()


@pytest.mark.parametrize(("share", "comes"), [(0.5, True), (0.0, False)])
def test_hosts_with_new_pages_find_room_beside_hosts_whose_old_ones_are_due(
    tmp_path: Path, share: float, comes: bool
) -> None:
    room_for_one = FrontierOptions(active_hosts_max=1, active_hosts_first=1, sleep_s_min=0.0)
    opened = Opened(tmp_path, share, options=room_for_one)
    for number in range(30):
        opened.frontier.add(Link(named(f"http://old{number}.test/"), "anchor", 1), 1, T0)
    for _ in range(30):
        lease = opened.lend(T0)
        assert lease is not None
        opened.visit(lease, T0, T0 + 1)
    now = T0 + 5
    while (lease := opened.lend(now)) is None:
        now += 1
    opened.frontier.add(Link(named("http://new.test/"), "anchor", 1), 1, now)
    for _ in range(200):
        opened.visit(lease, now, now + 0.5)
        now += 1
        lease = opened.lend(now)
        assert lease is not None
        if "new" in lease.url.host:
            break
    assert ("new" in lease.url.host) is comes
    opened.die()


@pytest.mark.promise(
    "Continuous crawls", "New and old pages share one delay per host, and neither makes the other wait for good."
)
def test_old_and_new_share_one_gate(tmp_path: Path) -> None:
    opened = Opened(tmp_path, preset="polite")
    for number in range(20):
        opened.frontier.add(Link(named(f"http://a.test/{number}"), "anchor", 1), 1, T0)
    now, at = T0, []
    while len(at) < 60:
        lease = opened.lend(now)
        if lease is None:
            wake_at = opened.frontier.wake_at()
            assert wake_at is not None
            now = max(now, wake_at)
            continue
        at.append(now)
        opened.visit(lease, now, now + 3)
    assert min(b - a for a, b in pairwise(at)) >= 1.0
    opened.die()


def test_a_page_is_moved_forward_and_its_host_woken(opened: Opened) -> None:
    frontier = opened.frontier
    url = named("http://a.test/1")
    frontier.add(Link(url, "anchor", 1), 1, T0)
    lease = opened.lend(T0)
    assert lease is not None
    opened.visit(lease, T0, T0 + 100_000)
    opened.commit(T0)  # Its host sleeps on disk until then.
    assert frontier.active_hosts == 0
    assert frontier.move_revisit(url, T0 + 100_000, T0 + 500, T0 + 400)
    assert not frontier.move_revisit(url, T0 + 100_000, T0 + 450, T0 + 400), "it does not wait there any more"
    opened.commit(T0 + 400)
    assert opened.lend(T0 + 499) is None
    assert frontier.move_revisit(url, T0 + 500, T0 + 499, T0 + 499)
    lease = opened.lend(T0 + 499)
    assert lease is not None
    assert not frontier.move_revisit(url, T0 + 499, T0 + 600, T0 + 499), "it is under way"
    opened.visit(lease, T0 + 499, T0 + 700)
    opened.commit(T0 + 499)


def test_a_page_of_a_batch_crawl_is_enlisted(opened: Opened) -> None:
    frontier = opened.frontier
    frontier.add(Link(named("http://a.test/1"), "anchor", 2), 1, T0)
    lease = opened.lend(T0)
    assert lease is not None
    opened.visit(lease, T0, None)
    opened.commit(T0)
    assert frontier.schedule_revisit(named("http://a.test/1"), 2, "", T0 + 5_000, T0)
    opened.commit(T0)
    assert frontier.wake_at() == T0 + 5_000
    lease = opened.lend(T0 + 5_000)
    assert lease is not None
    assert (lease.visit.revisit, lease.visit.depth) == (True, 2)


def test_a_closed_host_has_no_revisits_and_the_counts_hold(opened: Opened) -> None:
    frontier = opened.frontier
    for number in range(6):
        frontier.add(Link(named(f"http://a.test/{number}"), "anchor", 1), 1, T0)
    for number in range(4):
        lease = opened.lend(T0)
        assert lease is not None
        opened.visit(lease, T0, T0 + 100 + number)
    opened.commit(T0)
    lease = opened.lend(T0 + 50)
    again = opened.lend(T0 + 100.5)
    frontier.control.close(named("http://a.test/"), "somebody asked", T0 + 101)
    for one in (lease, again):
        if one is not None:
            frontier.ended(one, None, T0 + 101)
            frontier.finish(one, "host_closed", T0 + 101)
    opened.commit(T0 + 101)
    assert frontier.counts.pending == 0
    assert frontier.counts.terminal == {"fetched": 4, "host_closed": 2}
    assert frontier.wake_at() is None
    assert not frontier.schedule_revisit(named("http://a.test/0"), 1, "", T0 + 200, T0 + 101)


def test_reading_begins_past_those_that_have_gone(opened: Opened) -> None:
    for number in range(50):
        opened.frontier.add(Link(named(f"http://a.test/{number}"), "anchor", 1), 1, T0)
    now = T0
    for _ in range(500):
        lease = opened.lend(now)
        if lease is None:
            wake_at = opened.frontier.wake_at()
            assert wake_at is not None
            now = max(now, wake_at)
        else:
            opened.visit(lease, now, now + 100)
    opened.commit(now)
    ((_, data),) = opened.store.scan("host", b"\0\0", b"\xff\xff")
    first = next(key for key, _ in opened.store.scan("due", b"\0\0", b"\xff\xff"))
    record = decode_record(data)
    assert T0 * 1e6 < record.due_from <= int.from_bytes(first[-16:-8])
    assert int.from_bytes(first[-16:-8]) - record.due_from <= 100e6


def test_capacity_is_what_politeness_leaves(tmp_path: Path) -> None:
    opened = Opened(tmp_path, 0.6, preset="polite")
    url = named("http://a.test/1")
    opened.frontier.add(Link(url, "anchor", 1), 1, T0)
    opened.frontier.add(Link(named("http://a.test/2"), "anchor", 1), 1, T0)
    lease = opened.lend(T0)
    assert lease is not None
    opened.visit(lease, T0, T0 + 100)
    assert opened.frontier.revisits_per_s(url) == pytest.approx(0.4 / 1.1)
    lease = opened.lend(T0 + 10)
    assert lease is not None
    opened.visit(lease, T0 + 10, T0 + 100)
    assert opened.frontier.revisits_per_s(url) == pytest.approx(0.9 / 1.1)
    opened.die()
