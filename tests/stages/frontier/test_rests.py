"""How long hosts rest, and that a death of the process never makes it shorter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.model.links import Link
from gossamer.model.visits import Contact
from gossamer.stages.frontier.frontier import Frontier
from gossamer.stages.frontier.host import Lease
from gossamer.stages.frontier.hosts import HostRecords
from gossamer.stages.frontier.options import FrontierOptions, PolitenessOptions, politeness
from gossamer.stages.frontier.politeness import Politeness
from gossamer.stages.frontier.priority import FrontierRules
from gossamer.state.contacts import Contacts
from gossamer.state.epoch import Epochs
from gossamer.state.store import Store
from gossamer.url.canonical import Canonicalizer
from gossamer.url.name import Namer
from gossamer.url.url import Url
from gossamer.world.dice import Dice

NAMER = Namer(Canonicalizer())
POLITE = politeness(PolitenessOptions())


def named(text: str) -> Url:
    url = NAMER.name(text)
    assert url is not None
    return url


class Crawl:
    """A frontier on disk that can die: `reopen` without a commit."""

    def __init__(self, directory: Path, gate: Politeness = POLITE) -> None:
        self.directory = directory
        self.gate = gate
        self.open(0.0)

    def open(self, now: float) -> None:
        self.store = Store(self.directory / "store")
        self.epochs = Epochs(self.store)
        self.contacts = Contacts(self.directory, b"0123456789abcdef", now)
        self.frontier = Frontier(
            HostRecords(self.store, self.epochs, self.contacts),
            FrontierRules(self.gate, FrontierOptions()),
            Namer(Canonicalizer()).name,
            Dice(),
            now,
        )

    def close(self) -> None:
        self.contacts.close()
        self.store.close()

    def commit(self, now: float) -> None:
        self.frontier.cut(now)
        self.epochs.close_at_once()

    def lease(self, now: float) -> Lease | None:
        lease = self.frontier.select(now)
        if lease is not None and not lease.address:
            self.frontier.locate(lease, "127.0.0.1", 1e9, now)
            lease = self.frontier.select(now)
        return lease

    def fetch(self, now: float, fetch_s: float) -> float:
        """Make one request and return when it ended."""
        lease = self.lease(now)
        assert lease is not None
        assert self.frontier.begin(lease, now)
        self.frontier.ended(lease, Contact(fetch_s, "answered"), now + fetch_s)
        self.frontier.finish(lease, "fetched", now + fetch_s)
        return now + fetch_s


@pytest.fixture
def crawl(tmp_path: Path) -> Iterator[Crawl]:
    crawl = Crawl(tmp_path)
    for number in range(20):
        crawl.frontier.add(Link(named(f"http://h.test/{number}"), "anchor", 0), 0, 0.0)
    crawl.commit(0.0)
    yield crawl
    crawl.close()


@pytest.mark.parametrize(
    ("fetches_s", "delay_s"),
    [([], 1.0), ([0.3], 3.0), ([4.0] * 4, 40.0), ([0.2] * 5, 2.0), ([0.01] * 5, 1.0), ([9.0] * 5, 60.0)],
)
def test_the_delay_is_ten_times_the_mean_of_what_is_known_within_bounds(fetches_s: list[float], delay_s: float) -> None:
    assert POLITE.delay_s(fetches_s, None) == pytest.approx(delay_s)
    assert POLITE.delay_s(fetches_s, 5.0) == pytest.approx(max(delay_s, 5.0)), "a longer Crawl-delay wins"


def test_a_host_rests_from_the_end_of_its_request(crawl: Crawl) -> None:
    ended = crawl.fetch(0.0, 0.05)
    assert crawl.lease(ended + 0.999) is None
    assert crawl.lease(ended + 1.0) is not None


def test_a_request_cut_off_by_death_counts_as_its_end_would_have(crawl: Crawl) -> None:
    """Four slow answers, then death during the fifth: the rest is that of a mean over all five."""
    now = 0.0
    for _ in range(4):
        now = crawl.fetch(now + 30.0, 3.0)
    crawl.commit(now)
    lease = crawl.lease(now + 30.0)
    assert lease is not None
    assert crawl.frontier.begin(lease, now + 30.0)
    died = now + 31.0
    crawl.close()
    crawl.open(died)
    whole = 10 * (4 * 3.0 + 1.0) / 5
    assert crawl.lease(died + whole - 0.1) is None
    assert crawl.lease(died + whole + 1.0) is not None


def test_the_first_request_cut_off_by_death_counts_as_its_end_would_have(crawl: Crawl) -> None:
    """Death during the first request, which no epoch knows of: the least delay and ten times what it had lasted."""
    lease = crawl.lease(0.0)
    assert lease is not None
    assert crawl.frontier.begin(lease, 0.0)
    crawl.close()
    crawl.open(3.0)
    assert crawl.lease(3.0 + 30.9) is None
    assert crawl.lease(3.0 + 31.1) is not None


def test_the_first_answer_alone_decides_the_delay(crawl: Crawl) -> None:
    ended = crawl.fetch(0.0, 3.0)
    assert crawl.lease(ended + 29.9) is None
    assert crawl.lease(ended + 30.0) is not None


def test_a_crawl_delay_holds_from_the_request_that_brought_it(crawl: Crawl) -> None:
    ended = crawl.fetch(0.0, 0.1)
    crawl.frontier.control.set_crawl_delay(named("http://h.test/"), 7.0, ended)
    assert crawl.lease(ended + 6.9) is None
    assert crawl.lease(ended + 7.0) is not None


def test_a_crawl_delay_survives_death_without_a_commit(crawl: Crawl) -> None:
    ended = crawl.fetch(0.0, 0.1)
    crawl.frontier.control.set_crawl_delay(named("http://h.test/"), 7.0, ended)
    crawl.close()
    crawl.open(ended + 0.5)
    assert crawl.lease(ended + 6.9) is None
    assert crawl.lease(ended + 8.0) is not None


def test_a_visit_that_is_lent_already_waits_too_when_its_host_asks_for_a_pause(tmp_path: Path) -> None:
    """Several requests at once: what has not gone out when one of them brings Retry-After stays at home."""
    crawl = Crawl(tmp_path, politeness(PolitenessOptions(preset="own")))
    for number in range(3):
        crawl.frontier.add(Link(named(f"http://h.test/{number}"), "anchor", 0), 0, 0.0)
    first, second = crawl.lease(0.0), crawl.lease(0.0)
    assert first is not None
    assert second is not None
    assert crawl.frontier.begin(first, 0.0)
    crawl.frontier.ended(first, Contact(0.1, "busy", 5.0), 0.1)
    crawl.frontier.finish(first, "http_error", 0.1)
    assert not crawl.frontier.begin(second, 0.1)
    crawl.frontier.return_lease(second, 0.1)
    assert crawl.lease(5.0) is None
    assert crawl.lease(5.1) is not None
    crawl.close()
