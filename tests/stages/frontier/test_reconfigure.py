"""Reconfigure: other rules while the crawl runs: stricter ones at once, gentler ones from the next request on."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from gossamer.model.visits import Contact
from gossamer.stages.frontier.frontier import Frontier
from gossamer.stages.frontier.host import Lease
from gossamer.stages.frontier.options import BudgetOptions, FrontierOptions, HostOverride, PolitenessOptions, politeness
from tests.stages.frontier.names import T0, Shard, linked

RULES = PolitenessOptions(delay_s_min=2.0, delay_factor=0.0)
ADDRESS = "10.0.0.1"


def opened(tmp_path: Path, *hosts: str, urls: int = 9) -> Frontier:
    frontier = Shard(tmp_path, RULES).open(T0)
    for host in hosts:
        for number in range(urls):
            frontier.add(linked(f"http://{host}/{number}"), 0, T0)
    return frontier


def lent(frontier: Frontier, now: float) -> list[Lease]:
    """Return all that may be fetched now, each begun."""
    found = []
    while (lease := frontier.select(now)) is not None:
        if not lease.address:
            frontier.locate(lease, ADDRESS, T0 + 1e6, now)
            continue
        assert frontier.begin(lease, now)
        found.append(lease)
    return found


def fetched(frontier: Frontier, lease: Lease, now: float) -> None:
    frontier.ended(lease, Contact(0.1, "answered"), now)
    frontier.finish(lease, "fetched", now)


def changed(frontier: Frontier, now: float, rules: PolitenessOptions = RULES, **hosts: HostOverride) -> None:
    names = {name.replace("_", "."): one for name, one in hosts.items()}
    frontier.reconfigure(politeness(rules, names), FrontierOptions(), BudgetOptions(), now)


@pytest.mark.promise("Politeness", "Settings that change during a crawl make no request to a waiting host early.")
def test_a_longer_delay_holds_for_who_rests_already(tmp_path: Path) -> None:
    frontier = opened(tmp_path, "a.test")
    fetched(frontier, lent(frontier, T0)[0], T0)
    changed(frontier, T0 + 1, replace(RULES, delay_s_min=10.0))

    assert lent(frontier, T0 + 9.9) == []
    assert len(lent(frontier, T0 + 10.1)) == 1


@pytest.mark.promise("Politeness", "Settings that change during a crawl make no request to a waiting host early.")
@pytest.mark.parametrize("before_s", [0.0, 5.0])
def test_a_longer_delay_of_sites_holds_for_hosts_in_memory(tmp_path: Path, before_s: float) -> None:
    rules = replace(RULES, delay_s_min=0.0, per_address=0, address_delay_s=0.0, site_delay_s=before_s)
    frontier = opened(tmp_path, "a.site.test", "b.site.test")
    changed(frontier, T0 - 100, rules)
    for lease in lent(frontier, T0):
        fetched(frontier, lease, T0)
    changed(frontier, T0 + 1, replace(rules, site_delay_s=20.0))
    begin = T0 + 20 if before_s else T0 + 21

    assert lent(frontier, begin - 0.1) == []
    assert lent(frontier, begin + 0.1)


@pytest.mark.promise("Politeness", "Settings that change during a crawl make no request to a waiting host early.")
def test_a_shorter_delay_holds_from_the_next_request_on(tmp_path: Path) -> None:
    frontier = opened(tmp_path, "a.test")
    fetched(frontier, lent(frontier, T0)[0], T0)
    changed(frontier, T0, replace(RULES, delay_s_min=0.5))

    assert lent(frontier, T0 + 1.9) == []
    fetched(frontier, lent(frontier, T0 + 2.1)[0], T0 + 2.1)
    assert len(lent(frontier, T0 + 2.7)) == 1


def test_a_host_of_its_own_rules_has_its_address_for_itself(tmp_path: Path) -> None:
    frontier = opened(tmp_path, "a.test", "b.test", "c.test")
    changed(frontier, T0, a_test=HostOverride(per_host=3, delay_s=0.0))
    hosts = sorted(lease.url.host for lease in lent(frontier, T0))

    assert hosts.count("a.test") == 3
    assert len(hosts) == 4, "of the two others at the address one may be asked"


def test_an_own_delay_stands_for_the_presets_and_a_crawl_delay_wins(tmp_path: Path) -> None:
    frontier = opened(tmp_path, "a.test")
    changed(frontier, T0, a_test=HostOverride(delay_s=0.25))
    lease = lent(frontier, T0)[0]
    fetched(frontier, lease, T0)
    assert lent(frontier, T0 + 0.2) == []
    lease = lent(frontier, T0 + 0.3)[0]
    fetched(frontier, lease, T0 + 0.3)
    frontier.control.set_crawl_delay(lease.url, 5.0, T0 + 0.3)
    assert lent(frontier, T0 + 5) == []
    assert len(lent(frontier, T0 + 5.4)) == 1


def test_an_own_gate_comes_and_goes_with_requests_out(tmp_path: Path) -> None:
    frontier = opened(tmp_path, "a.test", "b.test")
    first = lent(frontier, T0)
    assert len(first) == 1
    changed(frontier, T0, a_test=HostOverride(per_host=2, delay_s=0.0))
    out = [*first, *lent(frontier, T0)]
    for lease in out:
        fetched(frontier, lease, T0 + 1)
    more = lent(frontier, T0 + 4)
    assert sum(lease.url.host == "a.test" for lease in more) == 2
    changed(frontier, T0 + 4)
    for lease in more:
        fetched(frontier, lease, T0 + 5)
    left = {"a.test": 0, "b.test": 0}
    for step in range(200):
        now = T0 + 6 + step
        got = lent(frontier, now)
        assert len(got) <= 1, "one request at once to an address again"
        for lease in got:
            left[lease.url.host] += 1
            fetched(frontier, lease, now)
    assert frontier.counts.pending == 0
    assert frontier.wake_at() is None


def test_more_requests_to_an_address_may_be_allowed_and_taken_back(tmp_path: Path) -> None:
    frontier = opened(tmp_path, *(f"{n}.test" for n in range(6)))
    assert len(lent(frontier, T0)) == 1
    changed(frontier, T0, replace(RULES, per_address=4))
    out = lent(frontier, T0)
    assert len(out) == 3
    changed(frontier, T0, replace(RULES, per_address=2))
    fetched(frontier, out[0], T0)
    assert lent(frontier, T0 + 0.2) == [], "three of two are out"


def test_budgets_come_while_urls_are_lent(tmp_path: Path) -> None:
    frontier = opened(tmp_path, "a.test", urls=6)
    lease = lent(frontier, T0)[0]
    frontier.reconfigure(politeness(RULES), FrontierOptions(), BudgetOptions(host_pages=2), T0)
    rounds = {frontier.ledger.round}
    fetched(frontier, lease, T0)
    for step in range(20):
        for lease in lent(frontier, T0 + 3 * (step + 1)):
            fetched(frontier, lease, T0 + 3 * (step + 1))
        rounds.add(frontier.ledger.round)
    assert frontier.counts.pending == 0
    assert len(rounds) >= 3


def test_what_is_lent_when_budgets_come_is_counted(tmp_path: Path) -> None:
    frontier = opened(tmp_path, "a.test")
    many = PolitenessOptions(preset="own", per_host=4)
    changed(frontier, T0, many)
    out = lent(frontier, T0)
    assert len(out) == 4
    frontier.reconfigure(politeness(many), FrontierOptions(), BudgetOptions(host_pages=6), T0)
    for lease in out:
        fetched(frontier, lease, T0)
    assert len(lent(frontier, T0 + 1)) == 2, "six in all"


def test_budgets_of_sites_that_change_while_urls_are_lent_count_them_once(tmp_path: Path) -> None:
    """Counted twice, a URL stayed lent for ever: its site could neither take what was left nor wait for a round."""
    frontier = opened(tmp_path, "x.a.test", "y.a.test", urls=3)
    for number, pages in enumerate((5, 4, 1)):
        now = T0 + 5 * number
        (lease,) = lent(frontier, now)
        frontier.reconfigure(politeness(RULES), FrontierOptions(), BudgetOptions(site_pages=pages), now)
        fetched(frontier, lease, now)
    for step in range(60):
        now = T0 + 20 + 3 * step
        for lease in lent(frontier, now):
            fetched(frontier, lease, now)
    assert frontier.counts.pending == 0
