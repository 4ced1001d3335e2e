"""Partitions leave one frontier and come to another: with what waits there and what is left of delays, and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.model.links import RevisitPlan
from gossamer.stages.frontier.index import ON_WORKBENCH
from gossamer.stages.frontier.moving import FrontierMoves
from gossamer.stages.frontier.options import BudgetOptions, PolitenessOptions
from gossamer.state.schema import FAMILIES
from tests.stages.frontier.names import T0, Shard, linked, named
from tests.stages.frontier.test_frontier import add, lend, request, visit

HOST, OTHER = "https://a.example/", "https://b.example/"
AHEAD_S = 5_000.0
"""By which the receiver's clock is ahead."""


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Shard, Shard]]:
    rules = PolitenessOptions(delay_s_min=10.0, delay_factor=0.0)
    shards = [Shard(tmp_path / name, rules) for name in ("giver", "taker")]
    for shard, now in zip(shards, (T0, T0 + AHEAD_S), strict=True):
        shard.directory.mkdir()
        shard.open(now)
    yield shards[0], shards[1]
    for shard in shards:
        shard.crash()


def carry(giver: Shard, taker: Shard, now: float, taken_at: float) -> None:
    """Move the partition of `HOST` as `assembly.moving` does, in one step."""
    partition = named(HOST).partition
    first, end, moves = partition, partition + 1, FrontierMoves(giver.frontier, giver.epochs)
    moves.freeze(first, end)
    assert moves.is_drained(first, end)
    giver.frontier.cut(now)
    moves.release(first, end)
    for family in FAMILIES:
        bounds = first.to_bytes(2), end.to_bytes(2)
        for key, value in list(giver.epochs.scan(family, *bounds)):
            taker.epochs.put(family, key, moves.record_to_move(value, now) if family == "host" else value)
        giver.epochs.delete_range(family, *bounds)
    FrontierMoves(taker.frontier, taker.epochs).admit(first, end, moves.round, moves.remaining_delays(now), taken_at)
    giver.epochs.close_at_once()
    taker.commit_all(taken_at)


def test_what_is_left_of_a_delay_counts_in_full_where_the_host_arrives(pair: tuple[Shard, Shard]) -> None:
    giver, taker = pair
    add(giver, HOST, f"{HOST}1")
    ended = visit(giver.frontier, T0)
    carry(giver, taker, ended + 4.0, T0 + AHEAD_S + 30.0)
    due = T0 + AHEAD_S + 30.0 + 6.0
    assert taker.frontier.select(due - 0.01) is None
    lease = lend(taker.frontier, due)
    assert lease is not None
    assert lease.url.text == f"{HOST}1"


def test_a_delay_that_an_earlier_process_left_travels_though_nothing_was_loaded(pair: tuple[Shard, Shard]) -> None:
    giver, taker = pair
    add(giver, HOST, f"{HOST}1")
    giver.commit_all(T0)
    lease = lend(giver.frontier, T0)
    assert lease is not None
    request(giver.frontier, lease, T0)  # Its end is in the file of contacts alone.
    giver.crash()
    giver.open(T0 + 1.0)
    carry(giver, taker, T0 + 1.05, T0 + AHEAD_S)
    assert taker.frontier.select(T0 + AHEAD_S + 8.9) is None
    assert lend(taker.frontier, T0 + AHEAD_S + 9.1) is not None


def test_a_delay_that_a_power_cut_left_unknown_travels_with_a_host_without_urls(pair: tuple[Shard, Shard]) -> None:
    """It is not in memory; the last contact may have been for a page that is lost with its epoch."""
    giver, taker = pair
    add(giver, HOST)
    visit(giver.frontier, T0)
    giver.commit_all(T0)
    giver.crash()
    giver.open(T0 + 100.0, boot=b"c" * 16)
    carry(giver, taker, T0 + 101.0, T0 + AHEAD_S)
    add(taker, f"{HOST}1")
    assert taker.frontier.select(T0 + AHEAD_S + 8.9) is None


def test_all_that_waits_moves_and_both_sides_count_right(pair: tuple[Shard, Shard]) -> None:
    giver, taker = pair
    for number in range(200):
        giver.frontier.add(linked(f"{HOST}{number}"), number % 8, T0)
    add(giver, f"{OTHER}1", f"{OTHER}2")
    lease = lend(giver.frontier, T0)
    while lease is not None and lease.url.host != "a.example":
        request(giver.frontier, lease, T0)
        giver.frontier.finish(lease, "fetched", T0)
        lease = lend(giver.frontier, T0, "10.0.0.2")
    assert lease is not None
    request(giver.frontier, lease, T0)
    giver.frontier.retry(lease, RevisitPlan(lease.url, T0 + 100.0, 2, 0, "timeout"), T0 + 1.0)
    before = giver.frontier.counts.pending
    carry(giver, taker, T0 + 2.0, T0 + AHEAD_S)
    here, there = giver.frontier.counts, taker.frontier.counts
    assert (here.pending + there.pending, there.pending) == (before, 200)
    for counts in (here, there):
        assert counts.discovered == counts.pending + sum(counts.terminal.values())
    assert (there.hosts, there.working, sum(there.levels)) == (1, 1, 199)
    assert (here.hosts, here.working, sum(here.levels)) == (1, int(here.pending > 0), here.pending)
    seen, now = set(), T0 + AHEAD_S
    while taker.frontier.counts.pending:
        now += 10.1
        lease = lend(taker.frontier, now)
        assert lease is not None
        request(taker.frontier, lease, now)
        taker.frontier.finish(lease, "fetched", now)
        seen.add(lease.url.text)
    assert seen == {f"{HOST}{number}" for number in range(200)}
    assert taker.frontier.wake_at() is None


def test_what_came_goes_back_as_it_is_then(pair: tuple[Shard, Shard]) -> None:
    giver, taker = pair
    add(giver, HOST, f"{HOST}1", f"{HOST}2")
    carry(giver, taker, T0, T0 + AHEAD_S)
    assert giver.frontier.wake_at() is None
    visit(taker.frontier, T0 + AHEAD_S)
    carry(taker, giver, T0 + AHEAD_S + 20.0, T0 + 30.0)
    assert (giver.frontier.counts.pending, taker.frontier.counts.pending) == (2, 0)
    lease = lend(giver.frontier, T0 + 30.0)
    assert lease is not None
    assert lease.url.text == f"{HOST}1"


def test_a_survey_counts_hosts_on_the_workbench_and_ready_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = PolitenessOptions(delay_s_min=10.0, delay_factor=0.0)
    shard = Shard(tmp_path, rules, active_hosts_first=3, active_hosts_max=3)
    frontier = shard.open(T0)
    hosts = [f"https://h{number}.{site}.example/" for site in ("a", "b", "c", "d") for number in range(5)]
    add(shard, *hosts)
    expected = sorted(Counter(named(host).partition for host in hosts).items())
    assert frontier.active_hosts == 3
    moves = FrontierMoves(frontier, shard.epochs)
    assert moves.survey(0) == expected
    begin = expected[2][0]
    assert moves.survey(begin) == [*expected[2:], *expected[:2]]
    monkeypatch.setattr("gossamer.stages.frontier.moving.SURVEYED_MAX", 7)
    assert len(moves.survey(begin)) == 2, "seven entries, of which the last partition has a part"
    moves.freeze(begin, begin + 1)
    assert begin not in dict(moves.survey(0))
    shard.crash()


def test_frozen_partitions_are_not_leased_and_others_are(pair: tuple[Shard, Shard]) -> None:
    giver, _ = pair
    add(giver, HOST)
    partition = named(HOST).partition
    FrontierMoves(giver.frontier, giver.epochs).freeze(partition, partition + 1)
    assert lend(giver.frontier, T0) is None
    add(giver, OTHER, now=T0 + 1.0)
    lease = lend(giver.frontier, T0 + 1.0)
    assert lease is not None
    assert lease.url.text == OTHER
    assert lend(giver.frontier, T0 + 2.0) is None


def test_what_a_host_spent_counts_in_the_round_where_it_arrives(tmp_path: Path) -> None:
    """The rounds of two shards differ in number: a host that used up its budget waits for the next round here."""
    shards = []
    for name in ("giver", "taker"):
        (tmp_path / name).mkdir()
        rules = PolitenessOptions(delay_s_min=0.1, delay_factor=0.0)
        shard = Shard(tmp_path / name, rules, budget=BudgetOptions(host_pages=1))
        shard.open(T0)
        shards.append(shard)
    giver, taker = shards
    for _ in range(3):
        assert giver.frontier._budgets is not None
        giver.frontier._budgets.begin_round(T0)
    add(giver, HOST, f"{HOST}1")
    visit(giver.frontier, T0)
    add(taker, OTHER)
    carry(giver, taker, T0 + 2.0, T0 + 2.0)
    assert taker.frontier.ledger.round == 1
    lease = lend(taker.frontier, T0 + 3.0)
    assert lease is not None
    assert lease.url.text == OTHER
    request(taker.frontier, lease, T0 + 3.0)
    taker.frontier.finish(lease, "fetched", T0 + 3.1)
    lease = lend(taker.frontier, T0 + 4.0)
    assert lease is not None
    assert (lease.url.text, taker.frontier.ledger.round) == (f"{HOST}1", 2)
    for shard in shards:
        shard.crash()


@pytest.mark.parametrize("is_deferred", [False, True])
def test_partitions_that_are_half_here_are_not_crawled_after_a_restart(tmp_path: Path, is_deferred: bool) -> None:
    """The giver has some of their keys still, the receiver some already: its hosts wait in each part of the index."""
    rules = PolitenessOptions(delay_s_min=10.0, delay_factor=0.0)
    shard = Shard(tmp_path, rules, budget=BudgetOptions(host_pages=1) if is_deferred else None)
    shard.open(T0)
    add(shard, HOST, f"{HOST}1", f"{HOST}2")
    visit(shard.frontier, T0)
    add(shard, OTHER, f"{OTHER}1")
    shard.commit_all(T0 + 1.0)
    shard.crash()
    partition = named(HOST).partition
    frontier = shard.open(T0 + 2.0, travelling=[(partition, partition + 1)])
    lent, now = set(), T0 + 3.0
    for _ in range(10):
        if (lease := lend(frontier, now)) is not None:
            lent.add(lease.url.text)
            request(frontier, lease, now)
            frontier.finish(lease, "fetched", now)
        now += 20.0
    assert lent == {OTHER, f"{OTHER}1"}
    shard.crash()
    assert lend(shard.open(now), now + 20.0) is not None, "of the host, which the store has as before"
    shard.crash()


def test_a_partition_that_goes_is_not_crawled_while_its_keys_are_given(tmp_path: Path) -> None:
    """From the commit that begins the move on, though the index is given in a later one."""
    rules = PolitenessOptions(delay_s_min=10.0, delay_factor=0.0)
    giver = Shard(tmp_path, rules, active_hosts_first=1, active_hosts_max=1)
    giver.open(T0)
    add(giver, OTHER, f"{OTHER}1", HOST, f"{HOST}1")
    partition = named(HOST).partition
    keys = giver.epochs.scan("ready", partition.to_bytes(2), (partition + 1).to_bytes(2))
    assert [key[2] == ON_WORKBENCH for key, _ in keys] == [False], "it waits on disk: there is room for one host"
    moves = FrontierMoves(giver.frontier, giver.epochs)
    moves.freeze(partition, partition + 1)
    giver.frontier.cut(T0 + 1.0)
    moves.release(partition, partition + 1)
    lent, now = set(), T0 + 2.0
    for _ in range(5):
        if (lease := lend(giver.frontier, now)) is not None:
            lent.add(lease.url.text)
            request(giver.frontier, lease, now)
            giver.frontier.finish(lease, "fetched", now)
        now += 20.0
    assert lent == {OTHER, f"{OTHER}1"}
    giver.crash()
