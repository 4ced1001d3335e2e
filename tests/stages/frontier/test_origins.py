"""Origins: one that does not answer costs its host's others nothing, in time, order, memory or work."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.model.links import Prerequisite, RevisitPlan
from gossamer.model.visits import Contact
from gossamer.stages.frontier.host import Lease
from gossamer.stages.frontier.options import PolitenessOptions
from gossamer.stages.frontier.origins import ORIGINS_MAX, PORTS_MAX, UNANSWERED_MAX, key_of
from gossamer.stages.frontier.record import LEVELS, range_end
from tests.stages.frontier.names import T0, Shard, linked, named

DELAY_S = 1.0


class Crawl:
    """A crawl in simulated time of a host where only some origins answer."""

    def __init__(self, directory: Path, alive: set[str], *, failing_s: float = 0.01, **options: object) -> None:
        self.shard = Shard(directory, PolitenessOptions(delay_s_min=DELAY_S, delay_factor=0.0), **options)
        self.frontier = self.shard.open(T0)
        self.alive = alive
        self.failing_s = failing_s
        self.now = T0
        self.requests: list[tuple[float, str]] = []
        self.ends: dict[str, str] = {}

    def add(self, *texts: str) -> None:
        for text in texts:
            self.frontier.add(linked(text), 0, self.now)

    def visit(self, lease: Lease) -> None:
        """Do what the pipeline does, without robots.txt."""
        if lease.refusal:
            self.frontier.ended(lease, None, self.now)
            self.end(lease, lease.refusal)
        elif not lease.address:
            self.frontier.locate(lease, "10.0.0.1", self.now + 1e9, self.now)
        else:
            assert self.frontier.begin(lease, self.now)
            self.requests.append((self.now, lease.url.text))
            is_alive = key_of(lease.url) in self.alive
            fetch_s = 0.01 if is_alive else self.failing_s
            self.now += fetch_s
            contact = Contact(fetch_s, "answered") if is_alive else Contact(fetch_s, "failed", error="refused")
            self.frontier.ended(lease, contact, self.now)
            self.end(lease, "fetched" if is_alive else "connect_error")

    def end(self, lease: Lease, how: str) -> None:
        self.ends[lease.url.text] = how
        self.frontier.finish(lease, how if how in ("fetched", "connect_error") else "host_closed", self.now)

    def run(self, until: float = 1e12) -> None:
        while self.now < until:
            lease = self.frontier.select(self.now)
            if lease is not None:
                self.visit(lease)
                continue
            wake_at = self.frontier.wake_at()
            if wake_at is None:
                return
            self.now = wake_at

    def requested(self, key: str) -> list[float]:
        return [at for at, text in self.requests if key_of(named(text)) == key]


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "shard").mkdir()
    return tmp_path / "shard"


@pytest.mark.promise(
    "Politeness",
    "An origin that does not answer takes at most a tenth of its host's time from the host's other origins.",
)
def test_the_others_go_on_at_full_pace_while_one_origin_is_dead(directory: Path) -> None:
    crawl = Crawl(directory, {"http"}, unanswered_failures_max=5)
    crawl.add("http://a.test/")
    crawl.run()
    for number in range(300):
        crawl.add(f"https://a.test/{number}", f"http://a.test/{number}")
    start = crawl.now
    crawl.run()
    alive, dead = crawl.requested("http"), crawl.requested("https")
    assert len(alive) == 301
    assert len(dead) == 5
    assert alive[-1] - start <= (300 + 5) * (DELAY_S + 0.02), "five requests of the others' time, and no more"
    assert dead[-1] - dead[0] < 600
    assert {how for url, how in crawl.ends.items() if url.startswith("https")} == {
        "connect_error",
        "https://a.test is closed: it never answered: refused (5 attempts)",
    }
    assert crawl.frontier.counts.pending == 0
    crawl.shard.crash()


@pytest.mark.promise(
    "Politeness",
    "An origin that does not answer takes at most a tenth of its host's time from the host's other origins.",
)
def test_requests_that_time_out_take_a_tenth_of_the_hosts_time(directory: Path) -> None:
    """A port that swallows everything: each attempt costs ten seconds in which the host may not be asked."""
    crawl = Crawl(directory, {"http"}, failing_s=10.0, unanswered_failures_max=0, retry_s_first=1.0, retry_s_max=1.0)
    crawl.add("http://a.test/")
    crawl.run()
    for number in range(550):
        crawl.add(f"http://a.test:81/{number}", f"http://a.test/{number}")
    start = crawl.now
    crawl.run(start + 500)
    lost_s = 10.0 * len(crawl.requested("http:81"))
    assert 20 <= lost_s <= 0.13 * 500
    assert len(crawl.requested("http")) >= 0.85 * 500
    crawl.shard.crash()


def test_work_is_linear_when_two_origins_interleave(directory: Path) -> None:
    """Store operations for each URL are the same for ten times as many of them."""
    each = []
    for urls in (1_000, 10_000):
        (directory / str(urls)).mkdir()
        crawl = Crawl(directory / str(urls), {"http"}, failing_s=0.0, unanswered_failures_max=0)
        crawl.add("http://a.test/")
        crawl.run()
        for number in range(urls // 2):
            crawl.add(f"https://a.test/{number}", f"http://a.test/{number}")
        operations = 0
        epochs = crawl.shard.epochs
        for name in ("put", "get", "delete", "scan"):
            whole = getattr(epochs, name)

            def counted(*given: object, whole: object = whole) -> object:
                nonlocal operations
                operations += 1
                return whole(*given)  # type: ignore[operator]

            setattr(epochs, name, counted)
        ranges = 0
        end = crawl.now + urls
        while crawl.now < end and crawl.frontier.wake_at() is not None:
            crawl.run(crawl.now + 50)
            host = crawl.frontier.hosts.get("a.test", named("http://a.test/").partition)
            ranges = max([ranges, *(len(queue.done) for queue in host.record.levels.values())])
            crawl.shard.commit_all(crawl.now)
        assert len(crawl.requested("http")) == urls // 2 + 1
        assert ranges <= 20, "of the window and what is lent, however long the queue"
        each.append(operations / urls)
        crawl.shard.crash()
    assert each[1] <= 1.2 * each[0]


def test_ten_thousand_dead_ports_cost_a_few_requests_and_little_memory(directory: Path) -> None:
    crawl = Crawl(directory, {"http", "http:8080"})
    crawl.add("http://a.test/", "http://a.test:8080/")
    crawl.run()
    crawl.add(*(f"http://a.test:{port}/" for port in range(20_000, 30_000)))
    crawl.add("http://a.test:8080/more", "https://a.test/", "http://a.test/more")
    crawl.run(crawl.now + 100)
    host = crawl.frontier.hosts.get("a.test", named("http://a.test/").partition)
    assert host.record.origins is not None
    assert len(host.record.origins) <= ORIGINS_MAX
    assert sum(":" in key for key in host.record.origins) <= PORTS_MAX
    crawl.run()
    dead = {text for _, text in crawl.requests if ":2" in text}
    assert len(dead) == UNANSWERED_MAX
    assert len(crawl.requests) <= 5 * (UNANSWERED_MAX + 1) + 4
    assert len(crawl.ends) == 10_000 + 5
    refused = [how for how in crawl.ends.values() if "other ports of a.test have not answered" in how]
    assert len(refused) == 10_000 - UNANSWERED_MAX
    assert crawl.ends["http://a.test:8080/more"] == crawl.ends["http://a.test/more"] == "fetched"
    assert crawl.frontier.counts.pending == 0
    crawl.shard.crash()


def test_of_many_ports_that_fail_slowly_none_takes_the_place_of_one_whose_url_is_set_aside(directory: Path) -> None:
    ports = range(1_000, 1_000 + 3 * PORTS_MAX)
    crawl = Crawl(directory, {f"http:{port}" for port in ports[::3]}, failing_s=2.0)
    crawl.add(*(f"http://a.test:{port}/{page}" for page in range(2) for port in ports))
    crawl.run()
    assert len(crawl.ends) == 2 * len(ports)
    assert "fetched" in crawl.ends.values()
    crawl.shard.crash()


@pytest.mark.parametrize("seed", range(4))
def test_urls_of_ports_that_come_and_go_all_end(directory: Path, seed: int) -> None:
    dice = random.Random(seed)
    keys = [f"{scheme}:{port}" for scheme in ("http", "https") for port in range(8_000, 8_020)]
    crawl = Crawl(directory, set(dice.sample(keys, 20)), failing_s=dice.choice((0.5, 5.0)))
    for _ in range(15):
        for key in dice.choices(keys, k=10):
            scheme, _, port = key.partition(":")
            crawl.add(f"{scheme}://a.test:{port}/{dice.randrange(30)}")
        crawl.run(crawl.now + dice.choice((1.0, 10.0, 100.0)))
        crawl.alive ^= set(dice.sample(keys, 2))
    crawl.run()
    assert crawl.frontier.counts.pending == 0
    crawl.shard.crash()


def test_many_ports_that_answer_all_have_their_turn(directory: Path) -> None:
    ports = range(1_000, 1_000 + 3 * PORTS_MAX)
    crawl = Crawl(directory, {f"http:{port}" for port in ports})
    for page in range(3):
        crawl.add(*(f"http://a.test:{port}/{page}" for port in ports))
    crawl.run()
    assert set(crawl.ends.values()) == {"fetched"}
    assert len(crawl.ends) == 3 * len(ports)
    crawl.shard.crash()


def test_a_host_that_is_one_origin_is_not_moved_about(directory: Path) -> None:
    """Nothing else could be requested: its queue stays where it is, and the host sleeps."""
    crawl = Crawl(directory, set(), unanswered_failures_max=0)
    crawl.add(*(f"https://a.test/{number}" for number in range(1_000)))
    crawl.run(T0 + 300)
    host = crawl.frontier.hosts.get("a.test", named("https://a.test/").partition)
    assert all(level < LEVELS for level in host.record.levels)
    assert host.record.urls_queued > 900
    crawl.shard.crash()


def test_an_origin_that_comes_back_has_its_urls_fetched_in_order(directory: Path) -> None:
    crawl = Crawl(directory, {"http"}, unanswered_failures_max=0)
    crawl.add("http://a.test/")
    crawl.run()
    crawl.add(*(f"https://a.test/{number}" for number in range(50)), "http://a.test/1")
    crawl.run(crawl.now + 40)
    crawl.alive.add("https")
    crawl.run()
    fetched = [text for text, how in crawl.ends.items() if how == "fetched" and text.startswith("https")]
    assert len(fetched) >= 47
    assert fetched == sorted(fetched, key=lambda text: int(text.rpartition("/")[2]))
    record = crawl.frontier.hosts.get("a.test", named("http://a.test/").partition).record
    crawl.shard.commit_all(crawl.now)
    assert record.origins is None, "what is well takes no room"
    assert all(level < LEVELS for level in record.levels)
    crawl.shard.crash()


def test_a_sleeping_host_is_not_woken_by_urls_of_an_origin_that_waits(directory: Path) -> None:
    crawl = Crawl(directory, {"http"}, unanswered_failures_max=0)
    crawl.add("http://a.test/")
    crawl.run()
    crawl.add(*(f"https://a.test/{number}" for number in range(20)))
    crawl.run(crawl.now + 300)
    host = crawl.frontier.hosts.get("a.test", named("http://a.test/").partition)
    assert host.record.index_family == "sleep"
    requested, wake_at = len(crawl.requests), crawl.frontier.wake_at()
    assert wake_at is not None
    crawl.now = wake_at - 200.0
    crawl.add("https://a.test/more")
    assert (host.record.index_family, crawl.frontier.wake_at()) == ("sleep", wake_at)
    crawl.add("http://a.test/more")
    crawl.run(wake_at - 100.0)
    assert [text for _, text in crawl.requests[requested:]] == ["http://a.test/more"]
    crawl.shard.crash()


def test_a_url_that_was_queued_twice_waits_twice_for_its_origin(directory: Path) -> None:
    crawl = Crawl(directory, {"http"}, unanswered_failures_max=0)
    frontier, host = crawl.frontier, crawl.frontier.hosts.get("a.test", named("http://a.test/").partition)
    crawl.add("https://a.test/1", "https://a.test/1", "https://a.test/2")
    answered = 0
    while crawl.now < T0 + 100 and (wake_at := frontier.wake_at()) is not None:
        crawl.now = max(crawl.now, wake_at)
        if (lease := frontier.select(crawl.now)) is not None and not lease.address:
            frontier.locate(lease, "10.0.0.1", crawl.now + 1e9, crawl.now)
        elif lease is not None:
            assert frontier.begin(lease, crawl.now)
            answered += 1
            ended = Contact(0.01, "answered") if answered <= 2 else Contact(0.01, "failed", error="refused")
            frontier.ended(lease, ended, crawl.now)
            frontier.retry(lease, RevisitPlan(lease.url, crawl.now + 10, 2, 0, "it failed"), crawl.now)
    crawl.shard.commit_all(crawl.now)
    due = list(crawl.shard.epochs.scan("due", host.prefix, range_end(host.prefix)))
    assert host.record.due == len(due) == 3
    crawl.shard.crash()


def test_a_robots_txt_elsewhere_is_not_asked_of_an_origin_that_waits(directory: Path) -> None:
    crawl = Crawl(directory, set())
    control = crawl.frontier.control
    target = named("http://b.test:81/robots.txt")
    assert control.run_prerequisite(Prerequisite(named("http://a.test/"), target, 1), T0)
    control.hold(target, T0 + 60, "it does not answer", T0)
    assert not control.run_prerequisite(Prerequisite(named("http://a.test/"), target, 1), T0)
    assert control.run_prerequisite(Prerequisite(named("http://b.test/"), named("http://b.test/robots.txt")), T0)
    crawl.shard.crash()
