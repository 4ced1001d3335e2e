"""The workbench: a host has its turn when its own gate and its address's are open, the longest free first."""

from __future__ import annotations

import random

import pytest

from gossamer.stages.frontier.host import Host
from gossamer.stages.frontier.options import PolitenessOptions, politeness
from gossamer.stages.frontier.record import RECORD_VERSION, HostRecord
from gossamer.stages.frontier.workbench import AddressPlace, Workbench
from tests.stages.frontier.names import T0

POLITE = politeness(PolitenessOptions())


def host(name: str) -> Host:
    return Host(HostRecord(RECORD_VERSION, name), 1, name.encode(), 1, POLITE)


def placed(workbench: Workbench, name: str, address: str, at: float, delay_until: float = 0.0) -> Host:
    made = host(name)
    workbench.settle(made, workbench.place(address, 1, delay_until))
    workbench.offer(made, at)
    return made


def taken(workbench: Workbench, now: float) -> str | None:
    found = workbench.take(now)
    return found.name if found is not None else None


def test_nobody_is_taken_before_his_time() -> None:
    workbench = Workbench(1)
    placed(workbench, "a", "10.0.0.1", T0 + 1)

    assert taken(workbench, T0) is None
    assert workbench.next_at() == T0 + 1
    assert taken(workbench, T0 + 1) == "a"
    assert taken(workbench, T0 + 1) is None
    assert workbench.next_at() is None


def test_who_has_been_free_for_longest_comes_first_then_who_came_first() -> None:
    workbench = Workbench(0)
    for name, at in (("c", 3), ("a", 1), ("b2", 2), ("b1", 2)):
        placed(workbench, name, f"10.0.0.{name}", T0 + at)

    assert [taken(workbench, T0 + 9) for _ in range(5)] == ["a", "b2", "b1", "c", None]


def test_hosts_that_must_be_looked_up_have_their_turn_too() -> None:
    workbench = Workbench(1)
    lost = host("lost")
    workbench.offer(lost, T0 + 1)

    assert taken(workbench, T0) is None
    assert workbench.next_at() == T0 + 1
    assert taken(workbench, T0 + 1) == "lost"


def test_an_address_in_use_holds_back_its_hosts_and_nobody_elses() -> None:
    workbench = Workbench(1)
    first = placed(workbench, "a", "10.0.0.1", T0)
    placed(workbench, "b", "10.0.0.1", T0)
    placed(workbench, "c", "10.0.0.2", T0)
    assert taken(workbench, T0) == "a"
    assert first.place is not None
    workbench.occupy(first.place)
    assert taken(workbench, T0) == "c"
    assert taken(workbench, T0 + 99) is None
    assert workbench.next_at() is None
    workbench.release(first.place, T0 + 105)
    assert workbench.next_at() == T0 + 105
    assert taken(workbench, T0 + 104) is None
    assert taken(workbench, T0 + 105) == "b"


@pytest.mark.parametrize(("per_address", "at_once"), [(1, 1), (2, 2), (0, 5)])
def test_so_many_at_once_to_an_address(per_address: int, at_once: int) -> None:
    workbench = Workbench(per_address)
    for number in range(5):
        placed(workbench, str(number), "10.0.0.1", T0)
    count = 0
    while (found := workbench.take(T0)) is not None:
        assert found.place is not None
        workbench.occupy(found.place)
        count += 1

    assert count == at_once


def test_a_later_offer_or_a_withdrawal_undoes_the_earlier() -> None:
    workbench = Workbench(1)
    one = placed(workbench, "a", "10.0.0.1", T0)
    workbench.offer(one, T0 + 5)
    assert taken(workbench, T0 + 4) is None
    workbench.offer(one, T0 + 2)
    assert taken(workbench, T0 + 2) == "a"
    workbench.offer(one, T0 + 3)
    workbench.withdraw(one)
    assert taken(workbench, T0 + 9) is None
    assert one.turn_at is None


def test_a_host_that_moves_is_offered_at_its_new_address_alone() -> None:
    workbench = Workbench(1)
    one = placed(workbench, "a", "10.0.0.1", T0)
    workbench.settle(one, workbench.place("10.0.0.2", 2, T0 + 7))
    assert taken(workbench, T0 + 9) is None
    workbench.offer(one, T0)
    assert taken(workbench, T0 + 6) is None
    assert taken(workbench, T0 + 7) == "a"


def test_an_address_is_remembered_while_it_rests_or_is_used_and_then_forgotten() -> None:
    workbench = Workbench(1)
    one = placed(workbench, "a", "10.0.0.1", T0)
    place = one.place
    assert place is not None
    workbench.forget_undelayed(T0 + 100)
    assert workbench.place("10.0.0.1", 1, 0.0) is place, "a host is there"
    workbench.settle(one, None)
    workbench.occupy(place)
    workbench.forget_undelayed(T0 + 100)
    assert workbench.place("10.0.0.1", 1, 0.0) is place, "a request is under way"
    workbench.release(place, T0 + 200)
    workbench.forget_undelayed(T0 + 100)
    assert workbench.place("10.0.0.1", 1, 0.0) is place, "it rests"
    workbench.forget_undelayed(T0 + 200)
    assert workbench.place("10.0.0.1", 1, 0.0) is not place


def test_an_address_that_was_left_and_found_again_is_kept_and_forgotten_when_it_is_left_for_good() -> None:
    workbench = Workbench(1)
    one = placed(workbench, "a", "10.0.0.1", T0)
    place = one.place
    workbench.settle(one, None)
    workbench.settle(one, place)
    workbench.forget_undelayed(T0)
    assert workbench.at("10.0.0.1") is place
    workbench.settle(one, None)
    assert workbench.forget_undelayed(T0) == [place]
    assert workbench.at("10.0.0.1") is None
    assert workbench.forget_undelayed(T0) == []


@pytest.mark.parametrize("span_s", [0.01, 1.0, 300.0])
def test_turns_come_in_the_order_of_their_times_however_far_ahead_they_lie(span_s: float) -> None:
    """Against a list that is sorted anew each time; at each step turns are given, taken or changed, or time goes on."""
    workbench, dice, now = Workbench(1), random.Random(1), T0
    expected: dict[str, tuple[float, int]] = {}
    hosts = {str(number): host(str(number)) for number in range(40)}
    for name, one in hosts.items():
        workbench.settle(one, workbench.place(f"10.0.0.{name}", 1, 0.0))
    for step in range(6_000):
        match dice.randrange(4):
            case 0 | 1:
                one = hosts[dice.choice(list(hosts))]
                at = now + dice.choice((0.0, -span_s, span_s, 100 * span_s)) * dice.random()
                workbench.offer(one, at)
                expected[one.name] = at, step
            case 2:
                due = [(at, came, name) for name, (at, came) in expected.items() if at <= now]
                first = min(due)[2] if due else None
                assert taken(workbench, now) == first
                expected.pop(first or "", None)
            case _:
                assert workbench.next_at() == min((at for at, _ in expected.values()), default=None)
                now += span_s * dice.random() / 10


def test_a_rest_is_never_shortened() -> None:
    workbench = Workbench(2)
    one = placed(workbench, "a", "10.0.0.1", T0)
    assert isinstance(one.place, AddressPlace)
    workbench.occupy(one.place)
    workbench.occupy(one.place)
    workbench.release(one.place, T0 + 10)
    workbench.release(one.place, 0.0)
    assert workbench.next_at() == T0 + 10


def test_heaps_stay_as_small_as_what_is_on_the_bench() -> None:
    """Entries that count no more are left behind at each change of a turn: they must not pile up."""
    workbench, dice = Workbench(1), random.Random(1)
    hosts = [placed(workbench, str(number), f"10.0.0.{number % 3}", T0 + number) for number in range(30)]
    now = T0
    for _ in range(3000):
        now += 0.5
        found = workbench.take(now)
        if found is not None:
            assert found.place is not None
            workbench.occupy(found.place)
            workbench.release(found.place, now + 0.1)
            workbench.offer(found, now + dice.uniform(1, 60))
    places = {one.place for one in hosts if one.place is not None}
    turns = len(workbench._turns) + sum(map(len, workbench._days.values()))
    entries = turns + len(workbench._unplaced) + sum(len(place.hosts) for place in places)
    assert entries < 10 * 30
