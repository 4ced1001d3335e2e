"""Which shard has which partition: what a shard knows survives its restart, and older words change nothing."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from gossamer.cluster.coordination import Coordination, CoordinatorRecord, Limits, ShardAnswer
from gossamer.cluster.frames import MoveEnd, MovePart
from gossamer.cluster.moves import map_now
from gossamer.cluster.partitions import PartitionMap
from gossamer.cluster.places import Move, MovedRun, Places
from gossamer.cluster.reports import ShardReport
from gossamer.model.links import Link
from gossamer.model.visits import Failure, Prerequisite
from gossamer.state.epoch import Epochs
from gossamer.state.store import Store
from tests.cluster.test_exchange import PARTITIONS, THEIRS, Member, carry, texts, url

LAST = MoveEnd(0, 0.0)


class Shard:
    """A shard's places, with a store that survives."""

    def __init__(self, number: int, directory: Path, shards: int = 2) -> None:
        self.number, self.directory, self.shards = number, directory, shards
        self.open()

    def open(self) -> Places:
        self.store = Store(self.directory, 1 << 20, 1 << 20)
        self.epochs = Epochs(self.store)
        self.places = Places(
            self.number, PartitionMap.even(self.shards), self.epochs, needs_cover=False, fresh=False
        )  # fmt: skip
        return self.places

    def commit(self) -> None:
        self.places.cut()
        self.places.committed(self.epochs.close_at_once())

    def restart(self) -> Places:
        self.store.close()
        return self.open()


@pytest.fixture
def shard(tmp_path: Path) -> Shard:
    return Shard(1, tmp_path / "store")


def part(version: int, number: int, last: MoveEnd | None = None) -> MovePart:
    return MovePart(version, 10, 20, number, 0, [], last)


def test_a_newer_move_of_some_partitions_is_not_undone_by_an_older_one_of_all(shard: Shard) -> None:
    """The coordinator says what is complete: shard 0 got partitions 0 to 39; 10 to 19 have gone on since."""
    shard.places.took(part(9, 1, LAST))
    shard.commit()
    places = shard.restart()
    assert places.learn([MovedRun(3, 0, 40, 0)], 0, 1)
    assert [places.owners[number] for number in (9, 10, 19, 20)] == [0, 1, 1, 0]


def test_moves_that_the_process_before_had_learned_come_again(shard: Shard) -> None:
    assert shard.places.learn([MovedRun(1, 0, 5, 1)], 0, 1)
    places = shard.restart()
    assert not places.learn([MovedRun(2, 5, 9, 1)], 1, 2), "these orders are for the process before"
    assert places.serial == 0
    assert places.learn([MovedRun(1, 0, 5, 1), MovedRun(2, 5, 9, 1)], 0, 2)
    assert [places.owners[number] for number in (4, 8)] == [1, 1]


def test_a_move_that_is_half_taken_is_known_after_a_restart(shard: Shard) -> None:
    shard.places.give(Move(4, 3_000, 3_010, 1, 0))
    shard.places.takes(part(5, 0))
    shard.places.takes(part(5, 1))
    shard.commit()
    assert shard.restart().travelling == [(10, 20)]
    shard.places.took(part(5, 2, LAST))
    shard.commit()
    assert shard.restart().travelling == []
    assert shard.places.has(10)
    assert not shard.places.has(3_000)


def test_new_shards_are_welcomed_with_a_commit_and_once(shard: Shard) -> None:
    assert list(shard.places.to_welcome(2)) == []
    assert list(shard.places.to_welcome(4)) == [2, 3]
    assert list(shard.places.to_welcome(4)) == []
    shard.shards = 4  # The whole crawl starts again, before anything was committed: with four shards.
    assert list(shard.restart().to_welcome(4)) == []


def test_a_welcome_that_was_not_committed_is_made_again_also_when_the_crawl_starts_with_more(tmp_path: Path) -> None:
    shard = Shard(0, tmp_path / "store")
    shard.commit()
    shard.places.to_welcome(4)
    shard.shards = 4
    assert list(shard.restart().to_welcome(4)) == [2, 3]
    shard.commit()
    shard.shards = 2  # Only its process starts again: the map's file is as it was.
    places = shard.restart()
    assert places.shards == 4, "roots that are found before the first orders go to all"
    assert list(places.to_welcome(4)) == []


# ---- what arrives early or late


def test_what_comes_before_its_partition_goes_back_and_comes_again(tmp_path: Path) -> None:
    """The giver sends links of a partition from the commit on that begins its move; the receiver has it with the last
    part. Both remember what they sent, and still no link is dropped.
    """
    giver, taker = Member(1, tmp_path / "1"), Member(0, tmp_path / "0")
    partition = THEIRS[0].partition
    giver.exchange.places.give(Move(1, partition, partition + 1, 1, 0))
    assert giver.exchange.own([Link(THEIRS[0], "anchor", 1, referrer="https://a.example/")]) == []
    giver.commit()
    carry(giver, taker)
    assert taker.taken == giver.taken == []
    taker.exchange.places.took(MovePart(1, partition, partition + 1, 0, 0, [], LAST))
    carry(giver, taker)
    assert (taker.taken, giver.taken) == (texts(0, 1), [])
    giver.store.close()
    taker.store.close()


def test_an_answer_for_a_site_that_moved_meanwhile_is_not_taken(tmp_path: Path) -> None:
    member = Member(0, tmp_path / "0")
    origin = url(0, 0)
    assert member.exchange.run_prerequisite(Prerequisite(origin, THEIRS[0], 1))
    member.exchange.places.give(Move(1, origin.partition, origin.partition + 1, 0, 1))
    member.exchange._answer(Prerequisite(origin, THEIRS[0], 1), Failure("timeout", "late"))
    assert member.ring.answered == []
    member.store.close()


# ---- the coordinator


def report(shard: int, **more: object) -> ShardAnswer:
    found = ShardReport(shard, 1, True, 5, seeds_open=False, **more)  # type: ignore[arg-type]
    return ShardAnswer(shard=shard, state="running", holder=f"node/{shard}", report=found)


def test_a_crawl_is_not_over_and_its_scope_not_final_while_partitions_move() -> None:
    coordination = Coordination(PARTITIONS, Limits(), 10.0, 0.0, None, lambda _: None)
    coordination.scale(1)
    for number in range(3):
        coordination.took([report(0), report(1)], float(number))
        look = coordination.look(0).orders
        assert (look.end, look.scope_final, bool(look.moves)) == ("", False, True)
    rounds = 0
    while coordination.moves.is_moving:
        settled = [move.version for move in coordination.look(0).orders.moves]
        coordination.took([report(0, settled=settled), report(1)], 10.0)
        rounds += 1
        assert rounds < 40
    for _ in range(2):
        coordination.took([report(0), report(1)], 20.0)
    assert coordination.kept.end == "finished"
    assert set(coordination.moves.owners) == {0}


def test_a_coordinator_that_comes_back_goes_on_with_each_move() -> None:
    saved: list[bytes] = []

    def save(record: CoordinatorRecord) -> None:
        saved.append(msgspec.json.encode(record))

    coordination = Coordination(PARTITIONS, Limits(), 10.0, 0.0, None, save)
    coordination.scale(3)
    coordination.took([report(0), report(1), report(2)], 1.0)
    ordered = coordination.look(0).orders.moves
    assert ordered, "of the first two some go to the third"
    kept = msgspec.json.decode(saved[-1], type=CoordinatorRecord)
    again = Coordination(PARTITIONS, Limits(), 10.0, 2.0, kept, save)
    assert again.shards == 3
    assert again.look(0).orders.moves == ordered
    again.took([report(2, settled=[ordered[0].version])], 3.0)
    kept = msgspec.json.decode(saved[-1], type=CoordinatorRecord)
    assert map_now(PARTITIONS, kept.moves).owner(ordered[0].first) == 2
