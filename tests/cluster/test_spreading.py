"""Shards move to machines that have fewer of them, one after the other, and then stay."""

from __future__ import annotations

from collections import Counter

import pytest
from msgspec import UNSET

from gossamer.api.metrics import metrics_of
from gossamer.cli.status_view import status_text
from gossamer.cluster.coordination import (
    ARRIVE_S_MAX,
    AVOID_S_FIRST,
    AVOID_S_MAX,
    FAILING_S,
    SILENT_S,
    Coordination,
    CoordinatorRecord,
    Limits,
    ShardAnswer,
)
from gossamer.cluster.coordinator import QUICK_ROUND_S
from gossamer.cluster.partitions import PartitionMap
from gossamer.cluster.reports import ShardReport
from gossamer.cluster.spreading import LASTS_S, ShardMove, Spreading, machines_for, room_on
from gossamer.model.status import Status, read_status

TENURE_S = 20.0
ROUND_S = 0.5
ROUNDS_MIN = int(LASTS_S / ROUND_S) + 1


def moved(spreading: Spreading, machines: dict[int, str], room: dict[str, int], rounds: int) -> list[ShardMove]:
    """Move shards for a number of rounds; return the moves."""
    found = []
    for number in range(rounds):
        if (move := spreading.take_round(machines, room, number * ROUND_S)) is not None:
            found.append(move)
            machines[move.shard] = move.to
    return found


@pytest.mark.parametrize("lost", [1, 2])
def test_shards_return_to_machines_that_came_back_and_stay(lost: int) -> None:
    machines = {shard: f"m{shard % (4 - lost)}" for shard in range(8)}
    room = {f"m{number}": 1_000 for number in range(4)}
    found = moved(Spreading(), machines, room, 40 * ROUNDS_MIN)
    assert set(Counter(machines.values()).values()) == {2}
    assert len(found) == 2 * lost  # As few as possible, and none again.


def test_new_shards_begin_where_fewest_are() -> None:
    """A machine that joined for them gets one at once, and none has to move there."""
    there = {"m0": [0, 2], "m1": [1], "m2": []}
    machines = [{"machine": name, "address": "10.0.0.1", "shards": held} for name, held in there.items()]
    lost = {"machine": "m3", "address": "", "shards": []}
    assert machines_for(4, [*machines, lost]) == ["m2", "m1", "m2", "m0"]
    assert machines_for(2, [lost]) == ["", ""]


def test_a_difference_of_one_or_a_brief_one_moves_nothing() -> None:
    room = {"a": 9, "b": 9}
    assert not moved(Spreading(), {0: "a", 1: "a", 2: "b"}, room, 100)
    spreading = Spreading()
    machines = {0: "a", 1: "a"}
    for _ in range(10):
        assert not moved(spreading, machines, room, ROUNDS_MIN - 1)
        assert spreading.take_round(machines, {"a": 9}, LASTS_S) is None  # The other one is away again.


def test_a_machine_gets_no_more_shards_than_it_has_room_for() -> None:
    machines = dict.fromkeys(range(6), "a")
    assert len(moved(Spreading(), machines, {"a": 6, "b": 1, "c": 0}, 100)) == 1
    needs = {"CPU": 1.0, "memory": 4e9}
    nodes = [
        {"NodeID": "head", "Alive": True, "Resources": {"memory": 8e9}},
        {"NodeID": "gone", "Alive": False, "Resources": {"CPU": 4.0, "memory": 32e9}},
        {"NodeID": "here", "Alive": True, "Resources": {"CPU": 4.0, "memory": 9e9}},
    ]
    assert room_on(nodes, needs, 8) == {"head": 0, "here": 2}
    assert room_on(nodes, needs, 1) == {"head": 0, "here": 1}
    assert room_on(nodes, needs | {"crawler": 0.0}, 8) == room_on(nodes, needs, 8)  # None of it is needed.
    assert set(room_on(nodes, {"CPU": 0.0}, 8).values()) == {8}  # Only its own bound holds.


class Crawl:
    """A coordinator with two shards, both on machine `a`, and an empty machine `b`."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.round_s = ROUND_S
        self.saves = True
        even = PartitionMap.even(2)
        self.coordination = Coordination(even, Limits(), TENURE_S, self.now, CoordinatorRecord(), lambda _: None)
        self.coordination.spreading = Spreading()
        self.coordination.room = {"a": 9, "b": 9}

    def take(self, **states: str) -> None:
        """Take a round of answers, `s0="running@a/1"`: state, machine and process of each shard."""
        self.now += self.round_s
        answers = []
        for name, said in states.items():
            shard = int(name[1:])
            state, _, holder = said.partition("@")
            holder, _, activity = holder.partition(" ")
            report = ShardReport(shard, 1, passive=False, activity=int(activity or 1)) if state == "running" else None
            node = holder.partition("/")[0]
            held = {"holder": holder, "renews": state == "running", "saves": self.saves}
            if state == "failing":
                held |= {"holder": "", "failure": "the disk fails"}
            answers.append(ShardAnswer(shard=shard, state=state, node=node, report=report, **held))  # type: ignore[arg-type]
        self.coordination.process_round(answers, self.now)

    def until_it_leaves(self) -> None:
        for _ in range(ROUNDS_MIN):
            assert self.coordination.look(1).orders.end == ""
            self.take(s0="running@a/0", s1="running@a/1")


def test_a_shard_ends_where_it_is_and_begins_elsewhere_without_waiting_for_its_lease() -> None:
    crawl = Crawl()
    crawl.until_it_leaves()
    coordination = crawl.coordination
    assert [coordination.look(shard).orders.end for shard in (0, 1)] == ["", "stopped"]
    assert "shard 1 moves from machine a" in coordination.take_notes()[-1]
    assert coordination.departed == []
    crawl.take(s0="running@a/0", s1="done@a/1")
    assert coordination.departed == [(1, "b")]
    assert coordination.kept.end == ""
    coordination.arrive(1)
    assert coordination.departed == []
    crawl.take(s0="running@a/0", s1="starting@b/2")
    look = coordination.look(1)
    assert (look.orders.end, look.granted is not None) == ("", True)
    for _ in range(5 * ROUNDS_MIN):
        crawl.take(s0="running@a/0", s1="running@b/2")
    assert not coordination.leaving
    assert not coordination.departed


def test_a_shard_whose_machine_is_lost_while_it_should_leave_is_not_ended_where_it_goes_on() -> None:
    """Its next process would end as soon as it has begun."""
    crawl = Crawl()
    crawl.until_it_leaves()
    assert crawl.coordination.look(1).orders.end == "stopped"
    for _ in range(ROUNDS_MIN):
        crawl.take()
    crawl.take(s0="starting@b/5", s1="starting@c/6")
    assert crawl.coordination.look(1).orders.end == ""
    crawl.take(s0="running@b/5", s1="running@c/6")
    assert crawl.coordination.departed == []


def test_no_shard_is_ordered_to_leave_a_machine_that_does_not_answer() -> None:
    crawl = Crawl()
    for _ in range(ROUNDS_MIN - 1):
        crawl.take(s0="running@a/0", s1="running@a/1")
    for _ in range(ROUNDS_MIN):
        crawl.take()
    assert not crawl.coordination.leaving


def test_a_shard_that_cannot_write_its_last_checkpoint_goes_on_where_it_moves_to() -> None:
    """The crawl would end, since a shard of it has failed."""
    crawl = Crawl()
    crawl.until_it_leaves()
    for _ in range(3):
        crawl.take(s0="running@a/0", s1="failed@a/1")
    assert crawl.coordination.departed == [(1, "b")]
    assert not crawl.coordination.is_over
    assert (crawl.coordination.kept.end, crawl.coordination.failure) == ("", ("", False))
    assert " ".join(crawl.coordination.take_notes()).count("it goes on elsewhere from its last checkpoint") == 1
    crawl.coordination.arrive(1)
    crawl.take(s0="running@a/0", s1="running@b/2")
    crawl.take(s0="running@a/0", s1="failed@b/2")
    assert crawl.coordination.kept.end == "stopped"


@pytest.mark.parametrize("state", ["failed", "refused"])
def test_a_machine_on_which_a_shard_that_came_there_fails_is_avoided(state: str) -> None:
    """It may have another version, or no credentials: the shard ran before, and the crawl need not end."""
    crawl = Crawl()
    coordination = crawl.coordination
    crawl.take(s0="running@a/0", s1="running@a/1")
    coordination.room = {"a": 9, "b": 9, "c": 9}
    crawl.take(s0="running@a/0", s1=f"{state}@b/2")
    assert (coordination.departed, coordination.kept.end, coordination.failure[0]) == ([(1, "c")], "", "")
    assert "it goes on elsewhere from its last checkpoint" in coordination.take_notes()[-1]
    coordination.arrive(1)
    crawl.take(s0="running@a/0", s1=f"{state}@c/3")
    assert coordination.departed == [(1, "a")]
    coordination.arrive(1)
    crawl.take(s0="running@a/0", s1="running@a/4")
    for _ in range(3 * ROUNDS_MIN):
        crawl.take(s0="running@a/0", s1="running@a/4")
    assert not coordination.leaving
    crawl.take(s0="running@a/0", s1=f"{state}@a/4")
    assert coordination.kept.end == "stopped"


def test_a_shard_that_fails_where_it_ran_or_began_or_on_all_machines_ends_the_crawl() -> None:
    for before in ("running@a/1", "starting@a/1"):
        crawl = Crawl()
        crawl.take(s0="running@a/0", s1=before)
        crawl.take(s0="running@a/0", s1="failed@a/1")
        assert crawl.coordination.kept.end == "stopped"
    crawl = Crawl()
    crawl.take(s0="running@a/0", s1="running@a/1")
    crawl.coordination.room = {"b": 9}
    crawl.take(s0="running@b/0", s1="failed@b/2")
    assert crawl.coordination.kept.end == "stopped"


def test_a_crawl_on_one_machine_gives_up_when_only_a_failing_shard_has_work() -> None:
    """Not sooner: what others can fetch is fetched. With other machines it waits for them."""
    crawl = Crawl()
    coordination = crawl.coordination
    coordination.spreading = None
    coordination.room = {}
    for number in range(3 * int(FAILING_S / ROUND_S)):
        crawl.take(s0=f"running@a/0 {number}", s1="failing@a/2")
    for still in range(int(FAILING_S / ROUND_S)):
        assert (still, coordination.look(1).gives_up) == (still, False)
        crawl.take(s0="running@a/0", s1="failing@a/2")
    crawl.take(s0="running@a/0", s1="failing@a/2")
    assert [coordination.look(shard).gives_up for shard in (0, 1)] == [False, True]
    coordination.room = {"a": 9}
    crawl.take(s0="running@a/0", s1="failing@a/2")
    assert not coordination.look(1).gives_up


@pytest.mark.parametrize("spreads", [True, False])
def test_a_shard_that_fails_for_some_time_goes_on_elsewhere_and_its_machine_is_avoided(spreads: bool) -> None:
    crawl = Crawl()
    coordination = crawl.coordination
    if not spreads:  # Another placement, or `cluster.rebalance = false`.
        coordination.spreading = None
    crawl.take(s0="running@a/0", s1="running@a/1")
    rounds = int(FAILING_S / ROUND_S)
    for number in range(rounds):
        state = "starting" if number % 20 == 19 else "failing"  # It is started again every 10 s.
        crawl.take(s0="running@a/0", s1=f"{state}@a/2")
        assert (coordination.departed, coordination.kept.end) == ([], "")
    crawl.take(s0="running@a/0", s1="failing@a/2")
    assert coordination.departed == [(1, "b")]
    assert coordination.take_notes()[-1] == "shard 1: the disk fails; it goes on elsewhere from its last checkpoint"
    coordination.arrive(1)
    crawl.take(s0="running@a/0", s1="starting@b/3")
    assert coordination.look(1).granted is not None  # Its former process had ended.
    for _ in range(3 * ROUNDS_MIN):
        crawl.take(s0="running@b/0", s1="running@b/3")
    assert not coordination.leaving
    crawl.now += AVOID_S_FIRST
    for _ in range(ROUNDS_MIN):
        crawl.take(s0="running@b/0", s1="running@b/3")
    assert coordination.leaving == ({1: "a"} if spreads else {})


def test_a_machine_is_avoided_twice_as_long_each_time() -> None:
    crawl = Crawl()
    coordination = crawl.coordination
    avoided_s = []
    for process in range(6):
        while not coordination.departed:
            crawl.take(s0="running@b/0", s1=f"failing@a/{process}")
        assert coordination.departed == [(1, "b")]
        coordination.arrive(1)
        since = crawl.now
        while not coordination.leaving:
            crawl.take(s0="running@b/0", s1=f"running@b/{process}")
        assert coordination.leaving == {1: "a"}
        avoided_s.append(round(crawl.now - since, -2))
        crawl.take(s0="running@b/0", s1=f"done@b/{process}")
        coordination.arrive(1)
    assert avoided_s == [300, 600, 1_200, 2_400, AVOID_S_MAX, AVOID_S_MAX]


def test_a_shard_that_fails_is_shown_with_its_reason_until_it_runs() -> None:
    crawl = Crawl()
    coordination = crawl.coordination
    coordination.room = {"a": 9}
    crawl.take(s0="running@a/0", s1="running@a/1")
    for _ in range(3 * int(FAILING_S / ROUND_S)):
        crawl.take(s0="running@a/0", s1="failing@a/1")
    assert (coordination.departed, coordination.kept.end, coordination.failure) == ([], "", ("", False))
    status = read_status(coordination.status())
    assert status.warnings == ["shard 1 fails: the disk fails"]
    text = status_text(status)
    assert "1: failing, 0 pages, 0 queued, 0.0/s, for 90 s" in text
    assert 'gossamer_failing_seconds{shard="1"} 89.5' in metrics_of(coordination.status()).decode()
    crawl.take(s0="running@a/0", s1="running@a/2")
    status = read_status(coordination.status())
    assert status.warnings == []
    assert status.shards[1].failing_s is UNSET  # type: ignore[index]
    crawl.take(s0="running@a/0", s1="failing@a/2")
    coordination.end("stopped")
    crawl.take(s0="done@a/0", s1="done@a/2")
    assert (coordination.is_over, coordination.failure) == (True, ("", False))


def test_no_shard_moves_while_one_cannot_write_checkpoints() -> None:
    crawl = Crawl()
    crawl.saves = False
    for _ in range(2 * ROUNDS_MIN):
        crawl.take(s0="running@a/0", s1="running@a/1")
    assert not crawl.coordination.leaving


def test_quick_rounds_do_not_shorten_the_time_before_a_shard_moves() -> None:
    crawl = Crawl()
    crawl.round_s = QUICK_ROUND_S
    for _ in range(int(LASTS_S / QUICK_ROUND_S) - 1):
        crawl.take(s0="running@a/0", s1="running@a/1")
    assert not crawl.coordination.leaving


def test_a_shard_that_ended_while_the_coordinator_restarted_is_started_on_any_machine() -> None:
    crawl = Crawl()
    crawl.take(s0="running@a/0", s1="done@a/1")
    assert crawl.coordination.departed == [(1, "")]


def test_a_machine_on_which_a_shard_does_not_start_is_avoided_and_its_lease_is_kept() -> None:
    crawl = Crawl()
    crawl.until_it_leaves()
    coordination = crawl.coordination
    crawl.take(s0="running@a/0", s1="done@a/1")
    coordination.arrive(1)
    for _ in range(int(ARRIVE_S_MAX * 2) + 2):
        crawl.take(s0="running@a/0")
    assert coordination.departed == [(1, "")]
    assert "does not start on machine b" in " ".join(coordination.take_notes())
    coordination.arrive(1)
    assert coordination.departed == []
    for _ in range(3 * ROUNDS_MIN):
        crawl.take(s0="running@a/0", s1="running@a/3")
    assert not coordination.leaving


@pytest.mark.parametrize("how", ["pause", "hold", "end"])
def test_no_shard_moves_while_the_crawl_is_paused_held_or_ends(how: str) -> None:
    crawl = Crawl()
    if how == "pause":
        crawl.coordination.pause(paused=True)
    elif how == "hold":
        crawl.coordination.hold(held=True)
    else:
        crawl.coordination.end("stopped")
    for _ in range(2 * ROUNDS_MIN):
        crawl.take(s0="running@a/0", s1="running@a/1")
    assert not crawl.coordination.leaving
    assert not crawl.coordination.departed


def disk_of(path: str, free_bytes: int) -> dict[str, object]:
    return {"path": path, "free_bytes": free_bytes, "total_bytes": 10}


def test_the_status_lists_machines_with_what_their_shards_use_and_those_without_shards() -> None:
    crawl = Crawl()
    crawl.coordination.addresses = {"a": "10.0.0.2", "b": "10.0.0.3"}
    statuses = [
        {"pages_s": 2.0, "watch": {"memory_bytes": 5, "disks": [disk_of("/a", 9), disk_of("/b", 7)]}},
        {"pages_s": 1.5, "watch": {"memory_bytes": 6, "disks": [disk_of("/a", 8)]}},
    ]
    answers = [
        ShardAnswer(shard=shard, state="running", node="a", holder=f"a/{shard}", renews=True, status=status)
        for shard, status in enumerate(statuses)
    ]
    crawl.coordination.process_round(answers, crawl.now)
    crawl.coordination.process_round(answers[:1], crawl.now + 2 * SILENT_S)
    status = read_status(crawl.coordination.status())
    assert status.machines is not UNSET
    here, empty = status.machines
    assert (here.machine, here.address, here.shards) == ("a", "10.0.0.2", [0, 1])
    assert (here.pages_s, here.memory_bytes, here.disk_free_bytes) == (2.0, 11, 7)  # The silent one fetches nothing.
    assert here.heard_s == 2 * SILENT_S
    assert (empty.machine, empty.address, empty.shards, empty.disk_free_bytes) == ("b", "10.0.0.3", [], None)
    text = status_text(Status(state="running", machines=status.machines))
    assert "machine      10.0.0.2: 2 shards, 2.0/s, 11 B memory, 7 B free, silent for 20 s" in text
    assert "machine      10.0.0.3: 0 shards, 0.0/s, 0 B memory" in text
    exported = metrics_of(crawl.coordination.status()).decode()
    assert 'gossamer_machine_silent_seconds{machine="10.0.0.2"} 20.0' in exported
    assert 'gossamer_machine_disk_free_bytes{machine="10.0.0.2"} 7.0' in exported
    assert 'gossamer_machine_disk_free_bytes{machine="10.0.0.3"}' not in exported
