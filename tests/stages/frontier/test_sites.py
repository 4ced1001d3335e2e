"""Sites: all hosts of a registrable domain meet one gate, where there is one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.model.visits import Contact
from gossamer.stages.frontier.host import Lease
from gossamer.stages.frontier.options import PolitenessOptions
from tests.stages.frontier.names import T0, Shard, linked, named

SITE = [f"http://{name}.company.example/" for name in ("www", "shop", "blog", "news", "mail")]
OTHER = "http://www.other.example/"


@pytest.fixture
def shard(tmp_path: Path) -> Iterator[Shard]:
    made = Shard(tmp_path, PolitenessOptions(preset="own", per_site=2, site_delay_s=3.0))
    yield made
    made.crash()


def located(shard: Shard, now: float, *, begin: bool = True) -> list[Lease]:
    """Lend all that may be lent, each host at an address of its own."""
    leases = []
    while (lease := shard.frontier.select(now)) is not None:
        if lease.address:
            assert not begin or shard.frontier.begin(lease, now)
            leases.append(lease)
        else:
            shard.frontier.locate(lease, f"10.0.0.{len(lease.url.host)}.{lease.url.host}", now + 1e6, now)
    return leases


def end(shard: Shard, lease: Lease, now: float) -> None:
    shard.frontier.ended(lease, Contact(0.1, "answered"), now)
    shard.frontier.finish(lease, "fetched", now)


@pytest.mark.promise(
    "Politeness",
    "With a limit for each site, the limit and the delay hold over all hosts of the site, also after a crash.",
)
def test_a_site_has_so_many_requests_at_once_and_others_go_on(shard: Shard) -> None:
    frontier = shard.open(T0)
    for number in range(3):
        for start in (*SITE, OTHER):
            frontier.add(linked(f"{start}{number}"), 1, T0)

    sites = Counter(lease.url.site for lease in located(shard, T0))

    assert sites == {"company.example": 2, "other.example": 2}
    assert frontier.wake_at() is None, "only the end of a visit can bring something"


def test_a_visit_that_is_given_back_shortens_nobodys_rest(shard: Shard) -> None:
    frontier = shard.open(T0)
    for start in SITE:
        frontier.add(linked(start), 1, T0)
    first, second = located(shard, T0, begin=False)
    assert frontier.begin(first, T0)
    end(shard, first, T0 + 1)
    frontier.return_lease(second, T0 + 2)

    assert located(shard, T0 + 3.9) == []
    assert len(located(shard, T0 + 4)) == 2


def test_a_site_rests_after_a_request(shard: Shard) -> None:
    frontier = shard.open(T0)
    for start in SITE:
        frontier.add(linked(start), 1, T0)
    first, second = located(shard, T0)
    end(shard, first, T0 + 1)

    assert located(shard, T0 + 3.9) == []
    assert frontier.wake_at() == T0 + 4
    (third,) = located(shard, T0 + 4)
    end(shard, second, T0 + 5)
    end(shard, third, T0 + 6)
    assert located(shard, T0 + 8.9) == []
    assert len(located(shard, T0 + 9)) == 2


def test_a_site_rests_on_when_all_its_hosts_have_left_the_memory(shard: Shard) -> None:
    frontier = shard.open(T0)
    frontier.add(linked(SITE[0]), 1, T0)
    (lease,) = located(shard, T0)
    end(shard, lease, T0)
    assert frontier.active_hosts == 0
    shard.commit_all(T0 + 1)
    for start in SITE[1:]:
        frontier.add(linked(start), 1, T0 + 1)

    assert located(shard, T0 + 2.9) == []
    assert len(located(shard, T0 + 3)) == 2


def test_all_hosts_of_a_site_come_to_their_turn(shard: Shard) -> None:
    frontier = shard.open(T0)
    for start in SITE * 4:
        frontier.add(linked(f"{start}{frontier.counts.discovered}"), 1, T0)
    now, order = T0, []
    while frontier.counts.pending:
        leases = located(shard, now)
        assert len(leases) <= 2
        for lease in leases:
            order.append(lease.url.host)
            end(shard, lease, now)
        now = frontier.wake_at() or now

    assert Counter(order) == dict.fromkeys(Counter(order), 4)
    assert len(set(order[:6])) > 2, "no host keeps the gate to itself"


@pytest.mark.promise(
    "Politeness",
    "With a limit for each site, the limit and the delay hold over all hosts of the site, also after a crash.",
)
def test_after_a_death_every_site_rests(shard: Shard) -> None:
    frontier = shard.open(T0)
    for start in SITE:
        frontier.add(linked(start), 1, T0)
    shard.commit_all(T0)
    located(shard, T0)
    shard.crash()
    frontier = shard.open(T0 + 1)

    assert located(shard, T0 + 3.9) == []
    assert len(located(shard, T0 + 4)) == 2


def test_people_see_what_a_host_waits_for(shard: Shard) -> None:
    frontier = shard.open(T0)
    for start in SITE:
        frontier.add(linked(start), 1, T0)
    first, second = located(shard, T0)
    waiting = next(url for url in map(named, SITE) if url.host not in {first.url.host, second.url.host})

    assert "company.example" in frontier.facts(waiting).site_gate
    assert "politeness.per_site = 2" in frontier.facts(waiting).site_gate
    end(shard, first, T0 + 1)
    facts = frontier.facts(waiting)
    assert (facts.site_gate, facts.delay_until) == ("", T0 + 4)
    assert facts.reason == "its site company.example waits (politeness.site_delay_s)"
    end(shard, second, T0 + 1)
    turn = frontier.next_turn()
    assert turn is not None
    assert turn[0] == T0 + 4
    assert turn[2] == "its site company.example waits"


def test_without_the_option_there_is_no_gate_and_no_site(tmp_path: Path) -> None:
    shard = Shard(tmp_path, PolitenessOptions(preset="own"))
    frontier = shard.open(T0)
    for start in SITE:
        frontier.add(linked(start), 1, T0)
    leases = located(shard, T0)

    assert len(leases) == len(SITE)
    assert all(lease.site is None for lease in leases)
    shard.crash()


def test_whoever_was_called_and_left_does_not_keep_the_others_waiting(shard: Shard) -> None:
    """A host that got its turn when a request ended is closed before it takes it: the next one must come up."""
    frontier = shard.open(T0)
    for start in SITE:
        frontier.add(linked(start), 1, T0)
    first, second = located(shard, T0)
    out = {first.url.host, second.url.host}
    end(shard, first, T0 + 1)
    end(shard, second, T0 + 1)
    for url in [url for url in map(named, SITE) if url.host not in out][:2]:
        frontier.control.close(url, "its owner asked", T0 + 1)

    assert len(located(shard, T0 + 4)) == 1
