"""The frontier's promises one by one; `test_frontier_model` takes them all together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gossamer.model.errors import ConfigError
from gossamer.model.links import Prerequisite, RevisitPlan
from gossamer.model.visits import Contact
from gossamer.stages.frontier.frontier import Frontier
from gossamer.stages.frontier.host import Lease, PrerequisiteLease
from gossamer.stages.frontier.limits import TURNS_MAX
from gossamer.stages.frontier.options import FrontierOptions, PolitenessOptions
from gossamer.stages.frontier.record import RECORD_VERSION
from gossamer.state.contacts import FILE
from gossamer.state.schema import PARTITIONED
from tests.stages.frontier.disk import check_disk
from tests.stages.frontier.names import T0, Shard, linked, named

Open = Callable[..., Shard]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    shards = []

    def open_shard(rules: PolitenessOptions | None = None, **options: Any) -> Shard:
        shard = Shard(tmp_path, rules or PolitenessOptions(), **options)
        shard.open(T0)
        shards.append(shard)
        return shard

    yield open_shard
    for shard in shards:
        shard.crash()


def add(shard: Shard, *texts: str, now: float = T0, level: int = 0) -> None:
    for text in texts:
        shard.frontier.add(linked(text), level, now)


def lend(frontier: Frontier, now: float, address: str = "10.0.0.1") -> Lease | None:
    """Select, and look addresses up at once."""
    while (lease := frontier.select(now)) is not None and not (lease.address or lease.refusal):
        frontier.locate(lease, address, now + 1e6, now)
    return lease


def request(frontier: Frontier, lease: Lease, now: float, fetch_s: float = 0.05, kind: Any = "answered") -> float:
    frontier.begin(lease, now)
    frontier.ended(lease, Contact(fetch_s, kind), now + fetch_s)
    return now + fetch_s


def visit(frontier: Frontier, now: float, **contact: Any) -> float:
    """Make one whole visit now; return when it ended."""
    lease = lend(frontier, now)
    assert lease is not None, "nobody may be asked now"
    now = request(frontier, lease, now, **contact)
    frontier.finish(lease, "fetched", now)
    return now


def fail_all(frontier: Frontier, now: float) -> tuple[float, int]:
    """Visit until nothing is left, and let every request fail; return when, and how many requests there were."""
    requests = 0
    while (wake_at := frontier.wake_at()) is not None:
        now = max(now, wake_at)
        while (lease := lend(frontier, now)) is not None:
            if lease.refusal:
                frontier.ended(lease, None, now)
                frontier.finish(lease, "host_closed", now)
                continue
            assert frontier.begin(lease, now)
            now += 0.05
            frontier.ended(lease, Contact(0.05, "failed", error="refused"), now)
            frontier.retry(lease, RevisitPlan(lease.url, now + 30, 2, 0, "refused"), now)
            requests += 1
    return now, requests


def drain(
    frontier: Frontier, now: float, address_of: Callable[[str], str] = lambda host: host
) -> list[tuple[float, str]]:
    """Visit until nothing is left; return when and what."""
    visits = []
    for _ in range(100_000):
        lease = frontier.select(now)
        if lease is None:
            wake_at = frontier.wake_at()
            if wake_at is None:
                return visits
            assert wake_at > now
            now = wake_at
        elif not lease.address:
            frontier.locate(lease, address_of(lease.url.host), now + 1e9, now)
        else:
            visits.append((now, lease.url.text))
            frontier.begin(lease, now)
            frontier.ended(lease, Contact(0.0, "answered"), now)
            frontier.finish(lease, "fetched", now)
    raise AssertionError("no end")


# ---- a lease's life


def test_a_host_is_looked_up_first_and_then_lent_with_its_address(opened: Open) -> None:
    frontier = opened().frontier
    frontier.add(linked("http://a.test/1"), 0, T0)
    lease = frontier.select(T0)
    assert lease is not None
    assert lease.address == ""
    assert frontier.select(T0) is None, "one is enough to look it up"
    frontier.locate(lease, "10.0.0.1", T0 + 60, T0)
    lease = frontier.select(T0)
    assert lease is not None
    assert lease.address == "10.0.0.1"
    assert (lease.visit.url.text, lease.visit.attempt, lease.visit.depth) == ("http://a.test/1", 1, 1)
    place = lease.place
    assert place is not None
    assert place.out == 1
    assert frontier.is_leased(lease.url)
    now = request(frontier, lease, T0)
    assert lease.is_ended
    assert not lease.is_finished
    frontier.finish(lease, "fetched", now)
    assert lease.is_finished
    assert place.out == 0
    assert not frontier.is_leased(lease.url)
    assert frontier.counts.terminal == {"fetched": 1}
    assert frontier.wake_at() is None


def test_an_address_that_expired_is_looked_up_again(opened: Open) -> None:
    frontier = opened().frontier
    for number in range(2):
        frontier.add(linked(f"http://a.test/{number}"), 0, T0)
    lease = frontier.select(T0)
    assert lease is not None
    frontier.locate(lease, "10.0.0.1", T0 + 0.5, T0)
    visit(frontier, T0)
    lease = frontier.select(T0 + 10)
    assert lease is not None
    assert lease.address == ""


def test_giving_back_twice_is_our_own_mistake(opened: Open) -> None:
    frontier = opened().frontier
    frontier.add(linked("http://a.test/1"), 0, T0)
    lease = lend(frontier, T0)
    assert lease is not None
    frontier.ended(lease, None, T0)
    with pytest.raises(AssertionError, match="returned twice"):
        frontier.ended(lease, None, T0)
    frontier.finish(lease, "robots_denied", T0)
    with pytest.raises(AssertionError, match="returned twice"):
        frontier.finish(lease, "robots_denied", T0)


def test_what_is_given_back_unasked_is_next_again_and_rests_nobody(opened: Open) -> None:
    frontier = opened().frontier
    for number in range(3):
        frontier.add(linked(f"http://a.test/{number}"), 0, T0)
    lease = lend(frontier, T0)
    assert lease is not None
    frontier.return_lease(lease, T0)
    again = lend(frontier, T0)
    assert again is not None
    assert again.url == lease.url


def test_a_retry_waits_for_its_time_and_knows_its_attempt(opened: Open) -> None:
    frontier = opened().frontier
    frontier.add(linked("http://a.test/1"), 3, T0)
    lease = lend(frontier, T0)
    assert lease is not None
    now = request(frontier, lease, T0)
    frontier.retry(lease, RevisitPlan(named("http://a.test/1"), T0 + 40, 2, 1, "HTTP 500"), now)
    facts = frontier.facts(lease.url)
    assert (facts.due_at, facts.attempt, facts.error, facts.queued) == (T0 + 40, 2, "HTTP 500", 1)
    assert frontier.wake_at() == T0 + 40
    assert frontier.select(T0 + 39.999) is None
    lease = lend(frontier, T0 + 40)
    assert lease is not None
    assert (lease.visit.attempt, lease.visit.hops) == (2, 1)


# ---- politeness


def test_due_urls_that_nobody_asked_for_before_their_host_went_to_sleep_come_when_it_wakes(opened: Open) -> None:
    """They were in its window, which is let go: two retries are due, the first is answered with a long rest."""
    shard = opened(sleep_s_min=10.0)
    add(shard, "http://a.test/1", "http://a.test/2", "http://a.test/3")
    now = T0
    for _ in range(3):
        lease = lend(shard.frontier, now)
        assert lease is not None
        now = request(shard.frontier, lease, now)
        shard.frontier.retry(lease, RevisitPlan(lease.url, T0 + 8, 2, 0), now)
        now += 1.0
    now = T0 + 8
    lease = lend(shard.frontier, now)
    assert lease is not None
    assert lease.host.window is not None
    assert len(lease.host.window) == 2
    shard.frontier.begin(lease, now)
    shard.frontier.ended(lease, Contact(0.05, "busy", 100.0), now)
    shard.frontier.finish(lease, "fetched", now)
    assert shard.frontier.active_hosts == 0
    assert sorted(text for _, text in drain(shard.frontier, now)) == sorted(
        {f"http://a.test/{number}" for number in (1, 2, 3)} - {lease.url.text}
    )


def test_who_has_slept_comes_before_those_who_are_ready(opened: Open) -> None:
    """Where there are always some of those, whoever rests for long would else never come back."""
    shard = opened(active_hosts_max=1, sleep_s_min=5.0)
    add(shard, "http://a.test/1", "http://a.test/2")
    now = visit(shard.frontier, T0)
    shard.frontier.control.hold(named("http://a.test/"), now + 30, "a test", now)
    for number in range(40):
        add(shard, f"http://ready{number}.test/")
    order = [named(text).host for _, text in drain(shard.frontier, now + 31)]
    assert len(order) == 41
    assert order.index("a.test") <= 1


def test_a_rest_counts_from_the_end_of_a_request(opened: Open) -> None:
    frontier = opened(PolitenessOptions(delay_s_min=7.0)).frontier
    for number in range(3):
        frontier.add(linked(f"http://a.test/{number}"), 0, T0)
    ended = visit(frontier, T0, fetch_s=0.5)
    assert frontier.wake_at() == ended + 7
    assert lend(frontier, ended + 6.999) is None
    visit(frontier, ended + 7)


def test_two_hosts_at_one_address_take_turns(opened: Open) -> None:
    frontier = opened(PolitenessOptions(address_delay_s=0.25)).frontier
    for host in "ab":
        frontier.add(linked(f"http://{host}.test/"), 0, T0)
    first = lend(frontier, T0)
    assert first is not None
    assert lend(frontier, T0 + 60) is None, "their address is in use"
    assert frontier.wake_at() is None
    ended = request(frontier, first, T0, fetch_s=3.0)
    assert lend(frontier, ended + 0.2) is None
    assert frontier.wake_at() == ended + 0.25
    second = lend(frontier, ended + 0.25)
    assert second is not None
    assert second.url.host != first.url.host


def test_a_crawl_delay_counts_from_the_robots_txt_that_has_it(opened: Open) -> None:
    frontier = opened().frontier
    url = named("http://a.test/1")
    frontier.add(linked(url.text), 0, T0)
    frontier.control.park(url, T0)
    frontier.control.run_prerequisite(Prerequisite(url, named("http://a.test/robots.txt")), T0)
    lease = lend(frontier, T0)
    assert lease is not None
    assert isinstance(lease, PrerequisiteLease)
    ended = request(frontier, lease, T0)
    frontier.control.set_crawl_delay(url, 20.0, ended)
    frontier.control.unpark(url, ended)

    assert frontier.wake_at() == ended + 20


def test_a_crawl_delay_that_is_too_long_closes_the_origin_that_has_it_alone(opened: Open) -> None:
    shard = opened(PolitenessOptions(crawl_delay_s_max=100.0))
    add(shard, "http://a.test:8080/1", "http://a.test/1")
    shard.frontier.control.set_crawl_delay(named("http://a.test:8080/"), 101.0, T0)
    shard.frontier.control.set_crawl_delay(named("http://a.test/"), None, T0)
    assert shard.frontier.wake_at() == T0, "what ends without a request waits for nothing"
    now, refused = T0, {}
    while (wake_at := shard.frontier.wake_at()) is not None:
        lease = lend(shard.frontier, now := max(now, wake_at))
        assert lease is not None
        refused[lease.url.text] = "101 s" in lease.refusal
        if lease.refusal:
            shard.frontier.ended(lease, None, now)
        else:
            request(shard.frontier, lease, now)
        shard.frontier.finish(lease, "host_closed" if lease.refusal else "fetched", now)
    assert refused == {"http://a.test:8080/1": True, "http://a.test/1": False}


def test_the_longest_crawl_delay_of_a_hosts_origins_holds(opened: Open) -> None:
    shard = opened()
    add(shard, "http://a.test/1", "http://a.test/2")
    shard.frontier.control.set_crawl_delay(named("http://a.test:8080/"), 20.0, T0)
    shard.frontier.control.set_crawl_delay(named("http://a.test/"), None, T0)
    ended = visit(shard.frontier, T0 + 20)
    assert shard.frontier.wake_at() == ended + 20


def test_a_crawl_delay_is_between_any_two_requests_also_where_several_are_permitted_at_once(opened: Open) -> None:
    frontier = (shard := opened(PolitenessOptions(preset="own"))).frontier
    add(shard, *(f"http://a.test/{number}" for number in range(3)))
    frontier.control.set_crawl_delay(named("http://a.test/"), 20.0, T0)
    first = lend(frontier, T0 + 20)
    assert first is not None
    assert lend(frontier, T0 + 20) is None
    ended = request(frontier, first, T0 + 20)
    assert frontier.wake_at() == ended + 20
    frontier.control.set_crawl_delay(named("http://a.test/"), None, ended)
    assert lend(frontier, ended + 20) is not None
    assert lend(frontier, ended + 20) is not None


def test_a_crawl_delay_that_is_too_long_closes_the_host(opened: Open) -> None:
    shard = opened(PolitenessOptions(crawl_delay_s_max=100.0))
    add(shard, "http://a.test/1", "http://a.test/2")
    shard.frontier.control.set_crawl_delay(named("http://a.test/1"), 101.0, T0)

    assert shard.frontier.counts.terminal == {"host_closed": 2}
    assert shard.frontier.wake_at() is None
    assert "101 s" in shard.frontier.facts(named("http://a.test/1")).closed


def test_a_closing_that_is_lost_with_its_epoch_leaves_the_host_in_peace_as_long_as_we_wait_at_the_most(
    opened: Open,
) -> None:
    shard = opened(PolitenessOptions(crawl_delay_s_max=100.0))
    add(shard, "http://a.test/1", "http://a.test/2")
    shard.commit_all(T0)
    visit(shard.frontier, T0)
    shard.frontier.control.set_crawl_delay(named("http://a.test/1"), 101.0, T0 + 1)
    shard.crash()
    shard.open(T0 + 2)
    assert [at >= T0 + 101 for at, _ in drain(shard.frontier, T0 + 2)] == [True, True]


@pytest.mark.parametrize(("nth", "delay_s"), [(1, 30.0), (2, 60.0), (4, 240.0), (20, 3_600.0)])
def test_a_host_whose_wall_answered_is_left_alone_as_after_a_429_also_after_a_crash(
    opened: Open, nth: int, delay_s: float
) -> None:
    shard = opened()
    add(shard, "http://a.test/1", "http://a.test/2", "http://b.test/1")
    shard.commit_all(T0)
    now = visit(shard.frontier, T0)
    shard.frontier.control.back_off(named("http://a.test/1"), nth, "its wall answered", now)
    assert shard.frontier.facts(named("http://a.test/2")).reason == "its wall answered"
    shard.crash()
    shard.open(now)
    times = drain(shard.frontier, now)
    assert {at >= now + delay_s for at, url in times if "a.test" in str(url)} == {True}
    assert {at < now + delay_s for at, url in times if "b.test" in str(url)} == {True}


def test_a_shorter_rest_takes_nothing_from_a_longer_one(opened: Open) -> None:
    shard = opened()
    add(shard, "http://a.test/1", "http://a.test/2")
    now = visit(shard.frontier, T0)
    url = named("http://a.test/1")
    shard.frontier.control.hold(url, now + 50, "a test", now)
    shard.frontier.control.hold(url, now + 5, "another", now)
    shard.frontier.control.set_crawl_delay(url, 7.0, now)
    assert [at for at, _ in drain(shard.frontier, now)] == [now + 50]


@pytest.mark.parametrize(("preset", "delay_s"), [("polite", 1.0), ("gentle", 15.0), ("broad", 70.0), ("weak", 0.0)])
def test_a_backlog_is_visited_as_quickly_as_politeness_allows(opened: Open, preset: Any, delay_s: float) -> None:
    """A slow crawler is not a polite one: hosts apart do not wait for each other."""
    shard = opened(PolitenessOptions(preset=preset))
    add(shard, *(f"http://h{host}.test/{number}" for number in range(20) for host in range(10)))
    visits = drain(shard.frontier, T0)

    assert len(visits) == 200
    assert visits[-1][0] - T0 == pytest.approx(19 * delay_s, abs=0.01)


def test_hosts_beyond_the_bench_have_their_turn_when_others_are_done(opened: Open) -> None:
    shard = opened(active_hosts_max=4, records_cached_max=5)
    add(shard, *(f"http://h{host}.test/{number}" for number in range(3) for host in range(40)))
    visits = drain(shard.frontier, T0)

    assert len(set(visits)) == 120
    assert visits[-1][0] - T0 < 40 / 4 * 3 * 1.0
    assert shard.frontier.active_hosts == 0


def test_own_asks_several_at_once(opened: Open) -> None:
    frontier = opened(PolitenessOptions(preset="own")).frontier
    for number in range(20):
        frontier.add(linked(f"http://a.test/{number}"), 0, T0)
    leases = [lend(frontier, T0) for _ in range(9)]

    assert [lease is not None for lease in leases] == [True] * 8 + [False]
    assert len({lease.url.text for lease in leases if lease is not None}) == 8


# ---- deaths


def test_after_a_death_a_host_under_way_rests_and_its_url_comes_again(opened: Open) -> None:
    shard = opened(PolitenessOptions(delay_s_min=7.0, delay_factor=0.0))
    add(shard, "http://a.test/1")
    shard.commit_all(T0)
    lease = lend(shard.frontier, T0)
    assert lease is not None
    shard.frontier.begin(lease, T0)
    shard.crash()
    frontier = shard.open(T0 + 1)

    assert lend(frontier, T0 + 7.9) is None
    again = lend(frontier, T0 + 8)
    assert again is not None
    assert again.url.text == "http://a.test/1"


def test_after_a_death_overlapping_requests_leave_the_longest_rest(opened: Open) -> None:
    """Each one's end changes the mean that the other's rest is reckoned from."""
    shard = opened(PolitenessOptions(per_host=2, per_address=0))
    add(shard, *(f"http://a.test/{number}" for number in range(9)))
    now = T0
    for _ in range(5):
        now = visit(shard.frontier, now + 60, fetch_s=0.1)
    shard.commit_all(now)
    leases = [lend(shard.frontier, now + 60) for _ in range(2)]
    for lease in leases:
        assert lease is not None
        assert shard.frontier.begin(lease, now + 60)
    assert leases[0] is not None
    shard.frontier.ended(leases[0], Contact(20.0, "answered"), now + 80)
    shard.crash()
    frontier = shard.open(now + 80)

    assert lend(frontier, now + 139) is None
    assert lend(frontier, now + 140) is not None


def test_a_request_may_not_begin_when_its_hosts_gate_has_closed_since(opened: Open) -> None:
    shard = opened(PolitenessOptions(preset="own"))
    add(shard, *(f"http://a.test/{number}" for number in range(3)))
    first, second = lend(shard.frontier, T0), lend(shard.frontier, T0)
    assert first is not None
    assert second is not None
    shard.frontier.begin(first, T0)
    shard.frontier.ended(first, Contact(0.1, "busy", 60.0), T0 + 0.1)
    assert not shard.frontier.begin(second, T0 + 0.1)
    shard.frontier.return_lease(second, T0 + 0.1)

    assert lend(shard.frontier, T0 + 60) is None
    again = lend(shard.frontier, T0 + 60.1)
    assert again is not None
    assert again.url == second.url
    assert shard.frontier.begin(again, T0 + 60.1)


def test_a_host_that_failed_is_looked_up_again(opened: Open) -> None:
    """Another of its addresses may answer."""
    shard = opened()
    add(shard, "http://a.test/1", "http://a.test/2")
    visit(shard.frontier, T0, kind="failed")
    lease = shard.frontier.select(T0 + 60)
    assert lease is not None
    assert lease.address == ""


def test_after_a_death_in_the_first_epoch_nobody_is_early(opened: Open) -> None:
    """Nothing was ever committed: the seeds are handed in anew, but their hosts and addresses were asked."""
    shard = opened(PolitenessOptions(delay_s_min=7.0, address_delay_s=3.0))
    add(shard, "http://a.test/1")
    lease = lend(shard.frontier, T0)
    assert lease is not None
    shard.frontier.begin(lease, T0)
    shard.crash()
    frontier = shard.open(T0 + 1)
    add(shard, "http://a.test/1", "http://b.test/1", now=T0 + 1)

    assert lend(frontier, T0 + 3.9) is None, "the address rests, too"
    lease = lend(frontier, T0 + 4)
    assert lease is not None
    assert lease.url.host == "b.test"


@pytest.mark.parametrize("lost", ["boot", "file"])
def test_when_nobody_knows_every_host_waits_its_longest_over_two_deaths(opened: Open, lost: str) -> None:
    shard = opened()
    add(shard, "http://a.test/1")
    shard.commit_all(T0)
    shard.crash()
    if lost == "file":
        (shard.directory / FILE).unlink()
    boot = b"x" * 16 if lost == "boot" else b"b" * 16
    shard.open(T0 + 10, boot)
    shard.crash()
    frontier = shard.open(T0 + 11, boot)

    assert lend(frontier, T0 + 69) is None
    assert lend(frontier, T0 + 70) is not None


def test_a_new_crawl_waits_for_nobody(opened: Open) -> None:
    shard = opened()
    add(shard, "http://a.test/1")

    assert lend(shard.frontier, T0) is not None


def test_a_death_between_commit_and_apply_loses_nothing(opened: Open) -> None:
    shard = opened()
    add(shard, *(f"http://h{host}.test/{number}" for number in range(5) for host in range(3)))
    shard.cut(T0)
    shard.commit()
    shard.crash()
    frontier = shard.open(T0 + 1)
    check_disk(shard.store, frontier)

    assert len({text for _, text in drain(frontier, T0 + 1)}) == 15


def test_finished_urls_do_not_come_again_after_a_death(opened: Open) -> None:
    shard = opened()
    add(shard, *(f"http://a.test/{number}" for number in range(5)))
    now = visit(shard.frontier, T0)
    now = visit(shard.frontier, now + 1)
    shard.commit_all(now)
    visit(shard.frontier, now + 1)
    shard.crash()
    frontier = shard.open(now + 5)

    assert [text for _, text in drain(frontier, now + 5)] == [f"http://a.test/{number}" for number in (2, 3, 4)]
    assert frontier.counts.terminal == {"fetched": 5}


def test_a_crawl_delay_survives_a_death_before_its_commit(opened: Open) -> None:
    shard = opened()
    add(shard, "http://a.test/1")
    shard.commit_all(T0)
    shard.frontier.control.set_crawl_delay(named("http://a.test/"), 30.0, T0)
    shard.crash()
    frontier = shard.open(T0 + 1)

    assert lend(frontier, T0 + 29) is None
    assert lend(frontier, T0 + 30) is not None


def test_a_resume_with_a_smaller_bench_keeps_to_it(opened: Open) -> None:
    shard = opened(active_hosts_max=20)
    add(shard, *(f"http://h{host}.test/" for host in range(20)))
    shard.commit_all(T0)
    shard.crash()
    shard.options = FrontierOptions(active_hosts_max=3)
    frontier = shard.open(T0 + 1)
    assert frontier.active_hosts == 3
    shard.commit_all(T0 + 1)
    check_disk(shard.store, frontier)

    assert len(drain(frontier, T0 + 1)) == 20


# ---- closing


def test_urls_of_a_closed_host_end_as_host_closed_those_to_come_included(opened: Open) -> None:
    shard = opened()
    add(shard, "http://a.test/1", "http://a.test/2", "http://b.test/")
    shard.frontier.control.close(named("http://a.test/"), "its owner asked", T0)
    add(shard, "http://a.test/3")

    assert shard.frontier.counts.terminal == {"host_closed": 3}
    assert [text for _, text in drain(shard.frontier, T0)] == ["http://b.test/"]
    assert shard.frontier.counts.pending == 0


def test_a_url_under_way_when_its_host_closes_ends_as_it_ends(opened: Open) -> None:
    shard = opened()
    add(shard, "http://a.test/1", "http://a.test/2")
    lease = lend(shard.frontier, T0)
    assert lease is not None
    shard.frontier.control.close(named("http://a.test/"), "its owner asked", T0)
    shard.frontier.control.close(named("http://a.test/"), "again", T0)
    shard.commit_all(T0)
    check_disk(shard.store, shard.frontier)
    now = request(shard.frontier, lease, T0)
    shard.frontier.finish(lease, "fetched", now)

    assert shard.frontier.counts.terminal == {"host_closed": 1, "fetched": 1}
    assert shard.frontier.counts.pending == 0


def test_a_url_under_way_when_its_host_closed_and_the_process_died_is_not_lost(opened: Open) -> None:
    shard = opened()
    add(shard, "http://a.test/1", "http://a.test/2")
    assert lend(shard.frontier, T0) is not None
    shard.frontier.control.close(named("http://a.test/"), "its owner asked", T0)
    shard.commit_all(T0)
    shard.crash()
    frontier = shard.open(T0 + 1)

    assert frontier.counts.pending == 0
    assert frontier.counts.terminal == {"host_closed": 2}
    assert frontier.wake_at() is None


@pytest.mark.parametrize("how", ["return_lease", "retry"])
def test_a_url_given_back_to_a_closed_host_ends_too(opened: Open, how: str) -> None:
    shard = opened()
    add(shard, "http://a.test/1")
    lease = lend(shard.frontier, T0)
    assert lease is not None
    shard.frontier.control.close(named("http://a.test/"), "its owner asked", T0)
    if how == "return_lease":
        shard.frontier.return_lease(lease, T0)
    else:
        request(shard.frontier, lease, T0)
        shard.frontier.retry(lease, RevisitPlan(lease.url, T0 + 1, 2, 0), T0)
    shard.commit_all(T0)
    check_disk(shard.store, shard.frontier)

    assert shard.frontier.counts.terminal == {"host_closed": 1}


def test_a_host_that_fails_for_long_ends_the_crawl(opened: Open) -> None:
    """One that answered before is given more time than one that never did."""
    shard = opened(unanswered_failures_max=0)
    add(shard, *(f"http://a.test/{number}" for number in range(100)))
    now = visit(shard.frontier, T0)
    now, requests = fail_all(shard.frontier, now)

    assert requests == 6 * 5
    assert shard.frontier.counts.terminal == {"fetched": 1, "host_closed": 99}
    assert now - T0 == pytest.approx(60 + 120 + 240 + 480 + 960, rel=0.1)


def test_an_origin_that_never_answered_is_given_up_within_ten_minutes_after_a_handful_of_requests(opened: Open) -> None:
    shard = opened(unanswered_failures_max=0)
    add(shard, *(f"http://a.test/{number}" for number in range(100)))
    now, requests = fail_all(shard.frontier, T0)

    assert requests == 6
    assert shard.frontier.counts.terminal == {"host_closed": 100}
    assert now - T0 == pytest.approx(600, rel=0.06)
    assert shard.frontier.closings == [("http://a.test", "it never answered: refused (6 attempts within 600 s)")]


# ---- prerequisites


def test_only_prerequisites_are_lent_of_a_parked_host(opened: Open) -> None:
    shard = opened()
    url = named("http://a.test/1")
    add(shard, url.text)
    shard.frontier.control.park(url, T0)
    assert lend(shard.frontier, T0) is None
    assert shard.frontier.wake_at() is None
    assert shard.frontier.control.run_prerequisite(Prerequisite(url, named("http://a.test/robots.txt")), T0)
    lease = lend(shard.frontier, T0)
    assert lease is not None
    assert isinstance(lease, PrerequisiteLease)
    now = request(shard.frontier, lease, T0)
    assert lend(shard.frontier, now + 5) is None
    shard.frontier.control.unpark(url, now + 5)
    assert lend(shard.frontier, now + 5) is not None


def test_a_prerequisite_goes_through_the_gates_of_its_own_host(opened: Open) -> None:
    shard = opened(PolitenessOptions(delay_s_min=7.0))
    add(shard, "http://b.test/1")
    ended = visit(shard.frontier, T0)
    shard.frontier.control.run_prerequisite(
        Prerequisite(named("http://a.test/"), named("http://b.test/robots.txt")), ended
    )

    assert lend(shard.frontier, ended + 6.9) is None
    lease = lend(shard.frontier, ended + 7)
    assert lease is not None
    assert isinstance(lease, PrerequisiteLease)


def test_a_host_that_closes_sends_no_prerequisite_and_frees_who_waits_for_it(opened: Open) -> None:
    shard = opened()
    origin = named("http://a.test/1")
    add(shard, origin.text)
    shard.frontier.control.park(origin, T0)
    shard.frontier.control.run_prerequisite(Prerequisite(origin, named("http://b.test/robots.txt")), T0)
    shard.frontier.control.close(named("http://b.test/"), "its owner asked", T0)
    assert not shard.frontier.control.run_prerequisite(Prerequisite(origin, named("http://b.test/robots.txt")), T0)
    lease = lend(shard.frontier, T0)
    assert lease is not None
    assert lease.url == origin


# ---- what wakes whom


def test_a_sleeper_with_nothing_due_makes_room_for_others(opened: Open) -> None:
    shard = opened(active_hosts_max=1, sleep_s_min=5.0)
    add(shard, "http://a.test/1")
    lease = lend(shard.frontier, T0)
    assert lease is not None
    now = request(shard.frontier, lease, T0)
    shard.frontier.control.hold(lease.url, now + 50, "because", now)
    shard.frontier.retry(lease, RevisitPlan(lease.url, now + 500, 2, 0), now)
    add(shard, "http://b.test/1", "http://c.test/1", now=now)
    shard.commit_all(now)
    lease = lend(shard.frontier, now + 51)
    assert lease is not None

    assert lease.url.host in ("b.test", "c.test")


def test_blocks_that_an_earlier_process_finished_out_of_order_are_deleted(opened: Open) -> None:
    shard = opened(PolitenessOptions(preset="own", delay_s_min=0.0, delay_factor=0.0, per_host=5, per_address=5))
    frontier, now = shard.frontier, T0
    for numbers in ((0, 1, 2), (3, 4)):
        add(shard, *(f"http://a.test/{number}" for number in numbers))
        shard.commit_all(now)
    leases: list[Lease] = []
    while len(leases) < 5:
        lease = lend(frontier, now)
        assert lease is not None
        now = request(frontier, lease, now, fetch_s=0.0)
        leases.append(lease)
    for lease in leases:
        if lease.url.text != "http://a.test/2":
            frontier.finish(lease, "fetched", now)
    shard.commit_all(now)
    shard.crash()
    now += 100.0
    frontier = shard.open(now)
    visit(frontier, now)
    shard.commit_all(now)

    assert frontier.counts.pending == 0
    assert list(shard.store.scan("queue", *PARTITIONED)) == []


@pytest.mark.promise(
    "Order and fairness", "Hosts whose pages come due again and again do not keep others out of memory for good."
)
def test_a_host_whose_pages_come_again_makes_room_for_others(opened: Open) -> None:
    shard = opened(active_hosts_max=1)
    add(shard, "http://a.test/1")
    now, asked = T0, Counter[str]()
    while not asked["b.test"] and asked["a.test"] < 3 * TURNS_MAX:
        lease = lend(shard.frontier, now)
        if lease is None:
            now = max(now, shard.frontier.wake_at() or now)
            continue
        asked[lease.url.host] += 1
        now = request(shard.frontier, lease, now)
        shard.frontier.retry(lease, RevisitPlan(lease.url, now + 10.0, 2, 0), now)
        if asked["a.test"] == 1:
            add(shard, "http://b.test/1", now=now)

    assert asked["b.test"] == 1
    assert asked["a.test"] <= TURNS_MAX


def test_room_on_the_workbench_is_used_at_once(opened: Open) -> None:
    shard = opened(active_hosts_max=1)
    add(shard, "http://a.test/1", "http://b.test/1")
    now = visit(shard.frontier, T0)

    assert shard.frontier.active_hosts == 0
    wake_at = shard.frontier.wake_at()
    assert wake_at is not None
    assert wake_at <= now


def test_a_new_url_wakes_a_host_that_sleeps_until_a_retry(opened: Open) -> None:
    shard = opened(sleep_s_min=5.0)
    add(shard, "http://a.test/1")
    lease = lend(shard.frontier, T0)
    assert lease is not None
    now = request(shard.frontier, lease, T0)
    shard.frontier.control.hold(lease.url, now + 10, "because", now)
    shard.frontier.retry(lease, RevisitPlan(lease.url, now + 5000, 2, 0), now)
    add(shard, "http://a.test/2", now=now)

    assert shard.frontier.wake_at() == pytest.approx(now + 10)
    lease = lend(shard.frontier, now + 10.001)
    assert lease is not None
    assert lease.url.text == "http://a.test/2"


def test_a_more_urgent_url_takes_a_waiting_host_up(opened: Open) -> None:
    shard = opened(active_hosts_max=1)
    add(shard, "http://bench.test/")
    for number in range(60):
        add(shard, f"http://h{number}.test/", level=7)
    add(shard, "http://h59.test/urgent", level=0)
    order = [text for _, text in drain(shard.frontier, T0)]

    assert order[0] == "http://bench.test/"
    assert named(order[1]).host == "h59.test"


def test_hosts_that_are_known_are_counted(opened: Open) -> None:
    shard = opened()
    add(shard, "http://a.test/1", "http://a.test/2", "http://b.test/")
    shard.commit_all(T0)
    shard.frontier.facts(named("http://never.test/"))
    add(shard, "http://a.test/3", "http://c.test/")
    shard.commit_all(T0)

    assert shard.frontier.counts.hosts == 3
    shard.crash()
    assert shard.open(T0).counts.hosts == 3


def test_next_turn_tells_who_is_waited_for(opened: Open) -> None:
    shard = opened(PolitenessOptions(delay_s_min=7.0), sleep_s_min=20.0)
    assert shard.frontier.next_turn() is None
    add(shard, "http://a.test/1", "http://a.test/2")
    ended = visit(shard.frontier, T0)
    turn = shard.frontier.next_turn()
    assert turn is not None
    assert turn == (ended + 7, "a.test", "politeness")
    shard.frontier.control.hold(named("http://a.test/"), T0 + 500, "it is busy", ended)
    turn = shard.frontier.next_turn()
    assert turn is not None
    assert (turn.at, turn.reason) == (T0 + 500, "http://a.test waits: it is busy")


def test_a_retry_comes_also_where_a_host_has_one_url_in_memory(opened: Open) -> None:
    frontier = (shard := opened(window_urls_max=1)).frontier
    add(shard, "http://a.test/1")
    lease = lend(frontier, T0)
    assert lease is not None
    frontier.retry(lease, RevisitPlan(lease.url, T0 + 300, 2, 0), request(frontier, lease, T0))
    assert lend(frontier, T0 + 300) is not None


def test_next_turn_names_a_retry_only_where_nothing_else_of_the_host_comes_first(opened: Open) -> None:
    frontier = (shard := opened(PolitenessOptions(delay_s_min=7.0), sleep_s_min=600.0)).frontier
    add(shard, "http://a.test/1", "http://a.test/2")
    lease = lend(frontier, T0)
    assert lease is not None
    ended = request(frontier, lease, T0)
    frontier.retry(lease, RevisitPlan(lease.url, T0 + 300, 2, 0), ended)
    assert frontier.next_turn() == (ended + 7, "a.test", "politeness")
    visit(frontier, ended + 7)
    assert frontier.next_turn() == (T0 + 300, "a.test", "its URLs are tried again then")


def test_the_overview_shows_how_long_requests_took_where_there_were_any(opened: Open) -> None:
    frontier = (shard := opened()).frontier
    add(shard, "http://a.test/1", "http://b.test/1")
    visit(frontier, T0, fetch_s=0.5)
    add(shard, "http://a.test/2")
    assert frontier.select(T0 + 1) is not None
    shown: Any = frontier.overview(T0 + 1, 5)
    assert {one["host"]: one["fetch_s"] for one in shown["active"]} == {"a.test": 0.5, "b.test": None}


def test_the_overview_counts_hosts_whose_address_is_in_use_or_waits(opened: Open) -> None:
    frontier = (shard := opened(PolitenessOptions(delay_s_min=7.0))).frontier
    add(shard, "http://a.test/1", "http://a.test/2", "http://b.test/1")
    first = lend(frontier, T0)
    assert first is not None
    while (other := frontier.select(T0)) is not None:
        frontier.locate(other, "10.0.0.1", T0 + 1e6, T0)
    frontier.begin(first, T0)
    assert frontier.overview(T0, 5)["limits"] == {"fetching": 1, "address": 1}
    frontier.ended(first, Contact(0.05, "answered"), T0 + 0.05)
    frontier.finish(first, "fetched", T0 + 0.05)
    assert frontier.overview(T0 + 0.05, 5)["limits"] == {"politeness": 1, "address": 1}


def test_a_host_that_waits_for_a_retry_of_a_page_is_not_shown_as_failing(opened: Open) -> None:
    """Of an origin with an explicit port there is always a record, whether it fails or not."""
    frontier = (shard := opened()).frontier
    add(shard, "http://a.test:8080/1")
    lease = lend(frontier, T0)
    assert lease is not None
    ended = request(frontier, lease, T0)
    frontier.retry(lease, RevisitPlan(lease.url, T0 + 20, 2, 0), ended)
    shown: Any = frontier.overview(T0 + 10, 5)
    assert (shown["limits"], shown["failing"]) == ({"politeness": 1}, [])


def test_a_crawl_of_another_version_is_refused_when_it_is_opened(opened: Open) -> None:
    shard = opened()
    shard.frontier.add(linked("http://a.test/1"), 1, T0)
    shard.commit_all(T0)
    (key, data), *_ = shard.store.scan("host", b"\0\0", b"\xff\xff")
    shard.epochs.put("host", key, data[:3] + bytes((RECORD_VERSION + 1,)) + data[4:])
    shard.epochs.delete("ready", next(key for key, _ in shard.store.scan("ready", b"\0\0", b"\xff\xff")))
    shard.cut(T0)
    shard.commit()
    shard.settle()
    shard.crash()

    with pytest.raises(ConfigError, match="start a new crawl in another directory"):
        shard.open(T0)
