"""Budgets: nobody takes more than his share of a round, nobody is dropped, and no death lets anybody cheat."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gossamer.model.links import Link, Prerequisite, RevisitPlan
from gossamer.model.visits import Contact
from gossamer.options import convert
from gossamer.stages.frontier.budgets import Budget, growth, host_budget, site_budget
from gossamer.stages.frontier.frontier import Frontier
from gossamer.stages.frontier.host import Lease, PrerequisiteLease, VisitLease
from gossamer.stages.frontier.options import BudgetOptions, BudgetOverride, PolitenessOptions
from gossamer.stages.frontier.overview import facts_of
from tests.stages.frontier.disk import check_disk
from tests.stages.frontier.names import T0, Shard, linked, named

Open = Callable[..., Shard]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    shards = []

    def open_shard(
        per_host: int = 1,
        preset: Any = "own",
        active_hosts_max: int = 100,
        active_hosts_first: int = 1_000,
        **budget: Any,
    ) -> Shard:
        options = {"window_urls_max": 4, "active_hosts_max": active_hosts_max, "active_hosts_first": active_hosts_first}
        rules = PolitenessOptions(preset=preset, per_host=per_host)
        shard = Shard(tmp_path, rules, budget=BudgetOptions(**budget), **options)
        shard.open(T0)
        shards.append(shard)
        return shard

    yield open_shard
    for shard in shards:
        shard.crash()


def add(shard: Shard, host: str, count: int, start: int = 0) -> None:
    for number in range(start, start + count):
        shard.frontier.add(linked(f"http://{host}/{number}"), 0, T0)


def visits(
    frontier: Frontier, now: float, most: int = 100_000, fetch_s: float = 0.01, wire_bytes: int = 1000
) -> tuple[list[str], float]:
    """Visit until nothing is left; return the URLs in order, and when it was."""
    made: list[str] = []
    in_vain = 0
    while len(made) < most:
        lease = frontier.select(now)
        if lease is None:
            wake_at = frontier.wake_at()
            if wake_at is None:
                break
            in_vain = in_vain + 1 if wake_at <= now else 0
            assert in_vain < 100, "it asks again and again at an instant that is over"
            now = max(now, wake_at)
        elif not lease.address:
            frontier.locate(lease, lease.url.host, now + 1e9, now)
        else:
            assert frontier.begin(lease, now)
            now += fetch_s
            frontier.ended(lease, Contact(fetch_s, "answered", wire_bytes=wire_bytes), now)
            frontier.finish(lease, "fetched", now)
            made.append(lease.url.text)
    return made, now


def hosts_of(urls: list[str]) -> list[str]:
    return [named(url).host for url in urls]


def test_a_budget_grows_with_the_sites_that_link_in() -> None:
    assert growth(0, 0, 1000) == growth(0, 50, 1000) == 1
    assert growth(50, 50, 1000) == growth(70, 50, 1000) == 1000
    assert growth(25, 50, 1001) == 501
    grown = Budget(pages=10, time_s=2.5).grown(3)
    assert grown == Budget(pages=30, time_s=7.5)
    assert grown.limit_reached(29, 10**12, 7.0) == ""
    assert grown.limit_reached(30, 0, 0.0) == "30 pages"
    assert grown.limit_reached(0, 0, 7.5) == "7.5 s"
    assert Budget(wire_bytes=50).limit_reached(0, 50, 0.0) == "50 bytes"
    assert Budget(wire_bytes=50).limit_reached(0, 49, 0.0) == ""
    assert not Budget().is_set


def test_own_budgets_stand_before_those_of_all() -> None:
    options = BudgetOptions(
        host_pages=10, site_bytes=5, overrides={"a.test": BudgetOverride(pages=3), ".b.test": BudgetOverride(time_s=2)}
    )
    assert host_budget(options, "a.test") == Budget(pages=3)
    assert host_budget(options, "b.test") == Budget(pages=10)
    assert site_budget(options, "b.test") == Budget(wire_bytes=5, time_s=2)
    assert site_budget(options, "a.test") == Budget(wire_bytes=5)


def test_who_has_used_up_its_budget_waits_until_all_others_are_through_and_then_gets_more(opened: Open) -> None:
    shard = opened(host_pages=10)
    add(shard, "large.test", 35)
    for number in range(6):
        add(shard, f"small{number}.test", 10)
    made, _ = visits(shard.frontier, T0)
    hosts = hosts_of(made)
    assert Counter(hosts)["large.test"] == 35
    assert len(made) == len(set(made)) == 95
    assert Counter(hosts[:70])["large.test"] == 10, "the others' sixty come first"
    assert set(hosts[70:]) == {"large.test"}
    assert [int(url.rpartition("/")[2]) for url in made if "large" in url] == list(range(35)), "and in order"
    assert shard.frontier.ledger.round == 4
    shard.commit_all(T0 + 1e6)
    check_disk(shard.store, shard.frontier)


@pytest.mark.parametrize(
    ("budget", "pages"), [({"host_bytes": 4_500}, 5), ({"host_time_s": 0.055}, 6), ({"host_pages": 3}, 3)]
)
def test_pages_bytes_and_time_are_all_counted(opened: Open, budget: dict[str, Any], pages: int) -> None:
    shard = opened(**budget)
    add(shard, "large.test", 20)
    add(shard, "small.test", 8)
    made, _ = visits(shard.frontier, T0)
    hosts = hosts_of(made)
    after_small = len(hosts) - 1 - hosts[::-1].index("small.test")
    rounds = -(-8 // pages)
    assert Counter(hosts[:after_small])["large.test"] <= rounds * pages
    assert Counter(hosts) == {"large.test": 20, "small.test": 8}
    assert shard.frontier.ledger.round == -(-20 // pages), "each round had its pages, and no more"


def test_the_hosts_of_a_site_share_its_budget(opened: Open) -> None:
    shard = opened(site_pages=6)
    for name in ("a", "b", "c"):
        add(shard, f"{name}.farm.test", 10)
    add(shard, "www.other.test", 6)
    made, _ = visits(shard.frontier, T0)
    first = hosts_of(made[:12])
    assert Counter(name.partition(".")[2] for name in first) == {"farm.test": 6, "other.test": 6}
    assert len(made) == 36


@pytest.mark.promise("Order and fairness", "No host or site takes more than its budget in a round, also after a crash.")
@pytest.mark.parametrize("of", ["host", "site"])
def test_a_budget_is_never_passed_by_requests_at_once(opened: Open, of: str) -> None:
    """Eight at once to a host, of which three are left: three are lent, and what ends without a page is given anew."""
    shard = opened(per_host=8, **{f"{of}_pages": 3})
    names = ["a.test"] if of == "host" else ["x.a.test", "y.a.test"]
    for name in names:
        add(shard, name, 10)
    frontier, out = shard.frontier, []
    now = T0
    for _ in range(50):
        lease = frontier.select(now)
        if lease is not None and not lease.address:
            frontier.locate(lease, lease.url.host, now + 1e9, now)
        elif lease is not None:
            out.append(lease)
    assert len(out) == 3
    # robots.txt did not allow one: it was no page, so another may go.
    frontier.ended(out[0], None, now)
    frontier.finish(out[0], "robots_denied", now)
    now += 2
    lease = frontier.select(now)
    while lease is not None and not lease.address:
        frontier.locate(lease, lease.url.host, now + 1e9, now)
        lease = frontier.select(now)
    assert lease is not None
    assert frontier.select(now) is None
    assert frontier.ledger.round == 1


def test_robots_txt_is_bytes_and_time_but_no_page(opened: Open) -> None:
    shard = opened(host_pages=2, host_bytes=10_000)
    frontier = shard.frontier
    add(shard, "a.test", 4)
    robots = Prerequisite(named("http://a.test/"), named("http://a.test/robots.txt"))
    told = []
    for wire_bytes in (3_000, 8_000):
        assert frontier.control.run_prerequisite(robots, T0)
        while (lease := frontier.select(T0)) is not None and not lease.address:
            frontier.locate(lease, lease.url.host, T0 + 1e9, T0)
        assert lease is not None
        assert isinstance(lease, PrerequisiteLease)
        assert frontier.begin(lease, T0)
        frontier.ended(lease, Contact(0.01, "answered", wire_bytes=wire_bytes), T0)
        stands = frontier.facts(lease.url).budget
        assert stands is not None
        told.append(stands.host)
    assert told[0] == {"pages": {"spent": 0, "of": 2}, "bytes": {"spent": 3_000, "of": 10_000}}
    assert told[1]["used_up"] == "10000 bytes"


def test_what_one_host_of_a_site_left_of_its_budget_comes_to_another_within_seconds(opened: Open) -> None:
    """The site's last page was lent to one host and no request came of it: nobody calls the other, it looks again."""
    shard = opened(site_pages=1)
    frontier = shard.frontier
    for name in ("x.a.test", "y.a.test"):
        add(shard, name, 1)
    lent: list[Lease] = []
    for _ in range(6):
        lease = frontier.select(T0)
        if lease is not None and not lease.address:
            frontier.locate(lease, lease.url.host, T0 + 1e9, T0)
        elif lease is not None:
            lent.append(lease)
    (lease,) = lent
    frontier.ended(lease, None, T0 + 0.5)
    frontier.finish(lease, "robots_denied", T0 + 0.5)
    wake_at = frontier.wake_at()
    assert wake_at is not None
    assert wake_at <= T0 + 2.0
    made, _ = visits(frontier, T0 + 0.5)
    assert {lease.url.host, *hosts_of(made)} == {"x.a.test", "y.a.test"}
    assert frontier.ledger.round == 1


def test_a_host_whose_last_url_takes_the_last_of_its_budget_waits_for_no_round(opened: Open) -> None:
    shard = opened(host_pages=2, overrides={"b.test": BudgetOverride(pages=100)})
    add(shard, "a.test", 2)
    add(shard, "b.test", 9)
    made, now = visits(shard.frontier, T0, most=7)
    assert Counter(hosts_of(made))["a.test"] == 2
    shard.commit_all(now)
    assert shard.frontier.counts.deferred == 0
    assert shard.frontier.hosts_left == 1
    check_disk(shard.store, shard.frontier)


def test_deferring_a_host_costs_the_same_however_many_urls_it_has(tmp_path: Path) -> None:
    """What an epoch writes of a host that used up its budget: one entry, whether 100 URLs wait or 20,000."""
    sizes = []
    budget = BudgetOptions(host_pages=2, overrides={"other.test": BudgetOverride(pages=100)})
    for count, host in ((100, "few.test"), (20_000, "many.test")):
        (tmp_path / host).mkdir()
        shard = Shard(tmp_path / host, PolitenessOptions(preset="own", per_host=1), budget=budget)
        shard.open(T0)
        add(shard, "other.test", 50)
        add(shard, host, count)
        shard.commit_all(T0)
        visits(shard.frontier, T0, most=10)
        shard.frontier.cut(T0 + 100)
        sizes.append(shard.epochs.size)
        assert shard.frontier.counts.deferred == 1
        shard.crash()
    assert abs(sizes[0] - sizes[1]) <= 2


def test_what_is_found_of_a_deferred_host_waits_with_the_rest_and_prerequisites_do_not(opened: Open) -> None:
    shard = opened(host_pages=2, overrides={"b.test": BudgetOverride(pages=100)})
    frontier = shard.frontier
    add(shard, "a.test", 4)
    add(shard, "b.test", 20)
    made, now = visits(frontier, T0, most=8)
    assert Counter(hosts_of(made))["a.test"] == 2
    add(shard, "a.test", 2, start=100)
    assert frontier.control.run_prerequisite(
        Prerequisite(named("http://a.test/"), named("http://a.test/robots.txt")), now
    )
    order = []
    while (lease := frontier.select(now)) is not None:
        if not lease.address:
            frontier.locate(lease, lease.url.host, now + 1e9, now)
            continue
        frontier.begin(lease, now)
        frontier.ended(lease, Contact(0.01, "answered"), now)
        order.append(lease.url.text)
        if isinstance(lease, VisitLease):
            frontier.finish(lease, "fetched", now)
    assert "http://a.test/robots.txt" in order[:3], "a prerequisite goes out for a host whose URLs must wait"
    assert [url for url in order if "a.test" in url][1:] == [f"http://a.test/{number}" for number in (2, 3, 100, 101)]
    assert set(hosts_of(order[:15])) - {"b.test"} == {"a.test"}
    assert [named(url).host for url in order[15:]] == ["a.test"] * 4, "what is new waits as the rest does"


def test_a_url_to_be_tried_again_waits_for_the_budget_as_well(opened: Open) -> None:
    shard = opened(host_pages=1)
    frontier = shard.frontier
    add(shard, "a.test", 1)
    add(shard, "b.test", 3)
    lease, order, now = None, [], T0
    while len(order) < 6 and (lease := frontier.select(now)) is not None:
        if not lease.address:
            frontier.locate(lease, lease.url.host, now + 1e9, now)
            continue
        frontier.begin(lease, now)
        frontier.ended(lease, Contact(0.01, "answered"), now)
        order.append((lease.url.host, frontier.ledger.round))
        visit = lease.visit
        assert visit is not None
        if lease.url.host == "a.test" and visit.attempt == 1:
            frontier.retry(lease, RevisitPlan(lease.url, now, 2, 0, "HTTP 500"), now)
        else:
            frontier.finish(lease, "fetched", now)
    assert sorted(order) == [("a.test", 1), ("a.test", 2), ("b.test", 1), ("b.test", 2), ("b.test", 3)]
    assert frontier.wake_at() is None


def test_a_round_may_end_by_the_clock(opened: Open) -> None:
    shard = opened(host_pages=1, round_s=100.0, preset="polite")
    frontier = shard.frontier
    add(shard, "a.test", 3)
    # Somebody is always there: without the clock the round would go on.
    add(shard, "slow.test", 1)
    frontier.control.hold(named("http://slow.test/"), T0 + 110.0, "a test", T0)
    made, now = visits(frontier, T0, most=2)
    assert hosts_of(made) == ["a.test", "a.test"]
    assert T0 + 100 <= now < T0 + 102
    made, _ = visits(frontier, now)
    assert sorted(hosts_of(made)) == ["a.test", "slow.test"]


def test_a_round_ends_by_the_clock_while_the_bench_is_full(opened: Open) -> None:
    """It once did not, and whoever waited asked again and again at an instant that was over."""
    shard = opened(host_pages=1, round_s=30.0, preset="polite", active_hosts_first=1)
    frontier, now = shard.frontier, T0
    for number in range(20):
        if number and frontier.active_hosts == frontier.scheduler.size.hosts:
            break
        add(shard, f"slow{number}.test", 1)
        frontier.control.hold(named(f"http://slow{number}.test/"), T0 + 100, "a test", now)
        if number == 0:
            add(shard, "a.test", 2)
            made, now = visits(frontier, T0, most=1)
            assert hosts_of(made) == ["a.test"]
            assert frontier.select(now) is None
    else:
        raise AssertionError("the bench is never full")
    assert frontier.ledger.round == 1
    wake_at = frontier.wake_at()
    assert wake_at == T0 + 30
    made, now = visits(frontier, wake_at, most=1)
    assert hosts_of(made) == ["a.test"]
    assert now < T0 + 31
    assert frontier.ledger.round == 2


def test_when_the_clock_ends_a_round_those_who_are_ready_keep_nobody_waiting(opened: Open) -> None:
    """More hosts than find place, all day long: who was deferred the day before comes as often as they do."""
    shard = opened(host_pages=2, round_s=1.0, active_hosts_max=1)
    frontier = shard.frontier
    add(shard, "a.test", 4)
    _, now = visits(frontier, T0, most=2)
    for number in range(200):
        add(shard, f"h{number}.test", 2)
    assert now < T0 + 1
    more, now = visits(frontier, now, most=60)
    assert now < T0 + 1
    assert "a.test" not in hosts_of(more), "it has had what there was for it in this round"
    more, now = visits(frontier, T0 + 1, most=12)
    assert hosts_of(more).count("a.test") == 2
    assert len(set(hosts_of(more))) > 3, "and keeps nobody waiting either"


def test_who_has_not_come_when_the_next_round_begins_is_not_forgotten(opened: Open) -> None:
    shard = opened(host_pages=1, round_s=0.025, active_hosts_max=2)
    for number in range(40):
        add(shard, f"h{number}.test", 3)
    made, now = visits(shard.frontier, T0)
    assert len(set(made)) == len(made) == 120
    assert shard.frontier.ledger.round > 10
    shard.commit_all(now)
    check_disk(shard.store, shard.frontier)


def test_a_site_that_others_link_to_gets_more(opened: Open) -> None:
    shard = opened(host_pages=2, growth_max=10.0)
    frontier = shard.frontier
    assert frontier.watches_links
    liked = Link(named("http://www.liked.com/"), "anchor", 1)
    for number in range(5):
        frontier.linked(
            named(f"http://s{number}.com/"), [liked, Link(named("http://known.com/"), "anchor", 1)][: 2 - (number > 0)]
        )
    add(shard, "www.liked.com", 40)
    add(shard, "known.com", 40)
    add(shard, "nobody.com", 40)
    made, _ = visits(frontier, T0, most=2 * 1 + 20 + 5)
    assert Counter(hosts_of(made)) == {"www.liked.com": 20, "known.com": 5, "nobody.com": 2}
    shard.commit_all(T0 + 10)
    facts = facts_of(shard.epochs, named("http://www.liked.com/x"), budget=shard.budget)
    assert facts.budget is not None
    assert facts.budget.linking_sites == 5
    assert facts.budget.growth == 10.0
    assert facts.budget.host == {"pages": {"spent": 20, "of": 20}, "used_up": "20 pages"}


@pytest.mark.promise("Order and fairness", "No host or site takes more than its budget in a round, also after a crash.")
@pytest.mark.parametrize("commit_every", [3, 7])
def test_a_crash_neither_loses_a_url_nor_lets_anybody_take_more(opened: Open, commit_every: int) -> None:
    """Killed again and again, epochs lost each time: what is committed of a round keeps to the budgets."""
    shard = opened(host_pages=5)
    for name, count in (("large.test", 23), ("mid.test", 9), ("s1.test", 4), ("s2.test", 5)):
        add(shard, name, count)
    shard.commit_all(T0)
    durable: list[tuple[int, str]] = []
    now = T0
    for attempt in itertools.count():
        assert attempt < 200
        made, now = visits_with_rounds(shard.frontier, now, commit_every)
        if not made:
            break
        shard.commit_all(now)
        check_disk(shard.store, shard.frontier)
        durable += made
        # Two more that no commit will ever hold.
        visits_with_rounds(shard.frontier, now, 2)
        shard.crash()
        now += 1.0
        shard.open(now)
    assert Counter(named(url).host for _, url in durable) == {
        "large.test": 23,
        "mid.test": 9,
        "s1.test": 4,
        "s2.test": 5,
    }
    assert len({url for _, url in durable}) == len(durable)
    by_round = Counter((number, named(url).host) for number, url in durable)
    assert max(by_round.values()) == 5
    assert {host for number, host in by_round if number == 1} == {"large.test", "mid.test", "s1.test", "s2.test"}
    assert by_round[1, "mid.test"] == by_round[1, "large.test"] == 5


def visits_with_rounds(frontier: Frontier, now: float, most: int) -> tuple[list[tuple[int, str]], float]:
    made = []
    for _ in range(most):
        urls, now = visits(frontier, now, most=1)
        made += [(frontier.ledger.round, url) for url in urls]
    return made, now


@pytest.mark.promise("Order and fairness", "No URL is lost when budgets are used up, change or are removed.")
def test_the_end_of_the_crawl_comes_with_nobody_deferred(opened: Open) -> None:
    shard = opened(host_pages=1, site_pages=2, active_hosts_max=2)
    for number in range(30):
        add(shard, f"h{number % 5}.s{number % 3}.test", 1 + number % 4, start=100 * number)
    made, now = visits(shard.frontier, T0)
    assert len(made) == sum(1 + number % 4 for number in range(30))
    shard.commit_all(now)
    check_disk(shard.store, shard.frontier)
    assert shard.frontier.counts.deferred == shard.frontier.hosts_left == 0


@pytest.mark.promise("Order and fairness", "No URL is lost when budgets are used up, change or are removed.")
@pytest.mark.parametrize("settle", ["crash", "commit"])
def test_who_was_deferred_comes_when_budgets_are_taken_away_between_two_runs(opened: Open, settle: str) -> None:
    """They once stayed where they were: the crawl ended with their URLs in its queues."""
    shard = opened(host_pages=2, overrides={"b.test": BudgetOverride(pages=100)})
    add(shard, "a.test", 6)
    add(shard, "b.test", 20)
    made, now = visits(shard.frontier, T0, most=8)
    shard.commit_all(now)
    assert shard.frontier.counts.deferred == 1
    assert shard.frontier.facts(named("http://a.test/3")).deferred
    shard.crash()
    shard.budget = BudgetOptions()
    shard.open(now)
    assert not shard.frontier.facts(named("http://a.test/3")).deferred
    later, now = visits(shard.frontier, now, most=8)
    assert "a.test" in hosts_of(later), "it does not wait for the others"
    if settle == "crash":
        shard.crash()
        shard.open(now)
        later = []
    rest, now = visits(shard.frontier, now)
    assert sorted(made + later + rest) == sorted(
        [f"http://a.test/{number}" for number in range(6)] + [f"http://b.test/{number}" for number in range(20)]
    )
    assert shard.frontier.wake_at() is None
    shard.commit_all(now)
    check_disk(shard.store, shard.frontier)
    assert shard.frontier.counts.deferred == shard.frontier.counts.pending == 0


def test_other_budgets_after_a_stop_begin_a_round_and_the_same_ones_do_not(opened: Open) -> None:
    shard = opened(host_pages=2, overrides={"b.test": BudgetOverride(pages=100)})
    add(shard, "a.test", 6)
    add(shard, "b.test", 60)
    _, now = visits(shard.frontier, T0, most=8)
    shard.commit_all(now)
    for _ in range(2):
        shard.crash()
        shard.open(now)
        made, now = visits(shard.frontier, now, most=8)
        assert set(hosts_of(made)) == {"b.test"}
        assert shard.frontier.ledger.round == 1
        shard.commit_all(now)
    shard.crash()
    shard.budget = BudgetOptions(host_pages=3, overrides={"b.test": BudgetOverride(pages=100)})
    shard.open(now)
    made, now = visits(shard.frontier, now, most=10)
    assert Counter(hosts_of(made))["a.test"] == 3
    assert shard.frontier.ledger.round == 2


def test_what_is_reported_of_budgets_is_as_of_now_and_what_is_counted(opened: Open) -> None:
    """Without a commit; and a limit that growth makes 2.8 pages ends after two: `of` says two, not three."""
    shard = opened(host_pages=2, host_time_s=0.5, growth_max=1.4, overrides={"b.test": BudgetOverride(pages=100)})
    shard.frontier.linked(named("http://s.com/"), [linked("http://a.test/")])
    add(shard, "a.test", 4)
    add(shard, "b.test", 9)
    visits(shard.frontier, T0, most=8, fetch_s=0.0625)
    facts = shard.frontier.facts(named("http://a.test/3"))
    assert facts.deferred
    assert facts.budget is not None
    assert facts.budget.growth == 1.4
    assert facts.budget.host == {
        "pages": {"spent": 2, "of": 2},
        "time_s": {"spent": 0.125, "of": 0.7},
        "used_up": "2 pages",
    }


def test_who_is_left_from_an_earlier_round_is_not_said_to_wait_for_the_next(opened: Open) -> None:
    shard = opened(host_pages=1, active_hosts_max=1)
    for name in ("a.test", "b.test", "c.test"):
        add(shard, name, 3)
    visits(shard.frontier, T0, most=4)
    assert shard.frontier.ledger.round == 2
    told = [shard.frontier.facts(named(f"http://{name}.test/")).deferred for name in "abc"]
    assert sorted(told) == [False, False, True]


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("http://a.test/", "no host's name"),
        ("A.test", "no host's name"),
        ("a.test:8080", "no host's name"),
        (".", "no host's name"),
        (".www.a.com", "the site of www.a.com is .a.com"),
    ],
)
def test_a_budget_for_what_is_no_host_is_refused(key: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        convert(BudgetOptions, {"overrides": {key: {"pages": 3}}})


def test_without_budgets_nothing_is_kept(opened: Open) -> None:
    shard = opened()
    add(shard, "a.test", 3)
    visits(shard.frontier, T0)
    shard.commit_all(T0 + 1)
    assert not list(shard.store.scan("account", b"\0\0", b"\xff\xff"))
    assert not list(shard.store.scan("deferred", b"\0\0", b"\xff\xff"))
    assert facts_of(shard.epochs, named("http://a.test/"), budget=shard.budget).budget is None


def test_a_host_over_its_budget_stays_until_its_pages_are_read(opened: Open) -> None:
    shard = opened(per_host=2, host_time_s=5.0)
    add(shard, "a.test", 4)
    frontier = shard.frontier
    lease = frontier.select(T0)
    assert lease is not None
    frontier.locate(lease, "a.test", T0 + 1e9, T0)
    both = [frontier.select(T0), frontier.select(T0)]
    for one in both:
        assert isinstance(one, VisitLease)
        assert frontier.begin(one, T0)
    for one in both:
        assert isinstance(one, VisitLease)
        frontier.ended(one, Contact(9.0, "answered", wire_bytes=1), T0 + 9)
        assert one.host.on_workbench, "its page is being read"
    for one, is_on_bench in zip(both, (True, False), strict=True):
        assert isinstance(one, VisitLease)
        frontier.finish(one, "fetched", T0 + 9)
        assert one.host.on_workbench is is_on_bench
