"""Which shard has which partition: what a shard knows survives its restart, and older words change nothing."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from itertools import islice
from pathlib import Path

import msgspec
import pytest

from gossamer.assembly.building import assemble
from gossamer.assembly.values import Shard
from gossamer.cluster.coordination import Coordination, CoordinatorRecord, Limits, ShardAnswer
from gossamer.cluster.frames import MoveEnd, MovePart, decode_batch, decode_frame
from gossamer.cluster.moves import Moves, MovesRecord, map_now
from gossamer.cluster.partitions import PartitionMap
from gossamer.cluster.places import Move, MovedRun, Places
from gossamer.cluster.reports import ShardReport
from gossamer.config import configure
from gossamer.model.links import Link, Prerequisite
from gossamer.model.visits import Failure
from gossamer.state.epoch import Epochs
from gossamer.state.schema import FAMILIES, partition_range
from gossamer.state.store import Store
from tests.cluster.test_exchange import PARTITIONS, THEIRS, Member, carry, texts, url

LAST = MoveEnd(0, 0.0)


class StoredPlaces:
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
        self.places.on_commit(self.epochs.close_at_once())

    def restart(self) -> Places:
        self.store.close()
        return self.open()


@pytest.fixture
def shard(tmp_path: Path) -> StoredPlaces:
    return StoredPlaces(1, tmp_path / "store")


def part(version: int, number: int, last: MoveEnd | None = None) -> MovePart:
    return MovePart(version, 10, 20, number, 0, [], last)


def test_a_newer_move_of_some_partitions_is_not_undone_by_an_older_one_of_all(shard: StoredPlaces) -> None:
    """The coordinator says what is complete: shard 0 got partitions 0 to 39; 10 to 19 have gone on since."""
    shard.places.took(part(9, 1, LAST))
    shard.commit()
    places = shard.restart()
    assert places.learn([MovedRun(3, 0, 40, 0)], 0, 1)
    assert [places.owners[number] for number in (9, 10, 19, 20)] == [0, 1, 1, 0]


def test_moves_that_the_process_before_had_learned_come_again(shard: StoredPlaces) -> None:
    assert shard.places.learn([MovedRun(1, 0, 5, 1)], 0, 1)
    places = shard.restart()
    assert not places.learn([MovedRun(2, 5, 9, 1)], 1, 2), "these orders are for the process before"
    assert places.serial == 0
    assert places.learn([MovedRun(1, 0, 5, 1), MovedRun(2, 5, 9, 1)], 0, 2)
    assert [places.owners[number] for number in (4, 8)] == [1, 1]


def test_a_move_that_is_half_taken_is_known_after_a_restart(shard: StoredPlaces) -> None:
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


def test_a_move_that_is_ordered_late_is_not_begun_again_though_its_partitions_are_back(shard: StoredPlaces) -> None:
    move = Move(1, 3_000, 3_010, 1, 0)
    assert shard.places.is_new(move)
    shard.places.give(move)
    assert not shard.places.is_new(move)
    shard.places.took(MovePart(2, 3_000, 3_010, 0, 0, [], LAST))
    assert not shard.places.is_new(move)
    assert shard.places.is_new(Move(3, 3_000, 3_010, 1, 0))


def test_a_move_is_settled_with_the_commit_of_its_last_part(shard: StoredPlaces) -> None:
    moves = [Move(9, 10, 20, 0, 1), Move(8, 10, 20, 1, 0)]
    shard.places.took(part(9, 1, LAST))
    assert shard.places.safe_versions(moves) == []
    shard.commit()
    assert shard.places.safe_versions(moves) == [9]


def test_new_shards_are_welcomed_with_a_commit_and_once(shard: StoredPlaces) -> None:
    assert list(shard.places.to_welcome(2)) == []
    assert list(shard.places.to_welcome(4)) == [2, 3]
    assert list(shard.places.to_welcome(4)) == []
    shard.shards = 4  # The whole crawl starts again, before anything was committed: with four shards.
    assert list(shard.restart().to_welcome(4)) == []


def test_a_welcome_that_was_not_committed_is_made_again_also_when_the_crawl_starts_with_more(tmp_path: Path) -> None:
    shard = StoredPlaces(0, tmp_path / "store")
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


def test_what_is_given_is_sent_when_a_checkpoint_holds_that(tmp_path: Path) -> None:
    """An older state of the giver has these keys, and would give them, or use them, once more."""
    giver = Member(1, tmp_path / "1", needs_cover=True)
    partition = THEIRS[0].partition
    giver.exchange.places.give(Move(1, partition, partition + 1, 1, 0))
    giver.exchange.send(0, MovePart(1, partition, partition + 1, 0, 0, [], LAST))
    giver.commit()
    assert not any(decode_frame(data).batches for _, data in giver.exchange.outgoing(100.0))
    giver.exchange.on_checkpoint(giver.store.epoch)
    assert any(decode_frame(data).batches for _, data in giver.exchange.outgoing(100.0))
    giver.store.close()


MOVED = 1_000
"""A partition of shard 0, of two."""


def moving(directory: Path, test: Callable[[Shard], Awaitable[None]], shard: int = 0) -> None:
    async def run() -> None:
        options = {"contact": "a@example.org"}
        config = configure(options=options, sets=("cluster.workers=2",), seeds=["https://a.example/"])
        assembled = assemble(config, directory, shard=shard, shards=2)
        try:
            await test(assembled)
        finally:
            await assembled.close()

    asyncio.run(run())


def pages_of(assembled: Shard) -> list[tuple[bytes, bytes]]:
    return list(assembled.kept.storage.epochs.scan("page", *partition_range(MOVED, MOVED + 1)))


def page_key(number: int) -> bytes:
    return MOVED.to_bytes(2) + number.to_bytes(1)


def test_parts_of_an_earlier_try_of_the_giver_leave_nothing(tmp_path: Path) -> None:
    family = FAMILIES.index("page")

    async def taken(assembled: Shard) -> None:
        def take(number: int, *pairs: tuple[bytes, bytes], last: MoveEnd | None = None) -> None:
            assert assembled.membership is not None
            assembled.membership.take_part(MovePart(1, MOVED, MOVED + 1, number, family, list(pairs), last))

        take(0, (page_key(1), b"older"), (page_key(2), b"older"))
        await assembled.kept.committer.commit()
        take(0, (page_key(1), b"new"))
        take(1, last=LAST)
        assert pages_of(assembled) == [(page_key(1), b"new")]
        take(0, (page_key(3), b"late"))
        assert pages_of(assembled) == [(page_key(1), b"new")], "the move was taken before"

    moving(tmp_path, taken, shard=1)


def test_keys_are_given_and_deleted_and_prerequisites_go_to_the_new_owner(tmp_path: Path) -> None:
    async def given(assembled: Shard) -> None:
        membership, frontier, epochs = assembled.membership, assembled.ring.frontier, assembled.kept.storage.epochs
        assert membership is not None
        exchange = membership.exchange
        pages = [(page_key(number), b"page") for number in range(3)]
        epochs.put_many("page", dict(pages))
        names = (assembled.ring.urls.namer.name(f"https://site{number}.example/") for number in range(50))
        origin, target = islice((one for one in names if one is not None and exchange.has(one)), 2)
        assert frontier.control.run_prerequisite(Prerequisite(origin, target, 1), 100.0)
        moves = [Move(1, one, one + 1, 0, 1) for one in (MOVED, target.partition)]
        moves[1] = msgspec.structs.replace(moves[1], version=2)
        await assembled.kept.committer.commit()
        membership.moves.order(moves)
        await assembled.kept.committer.commit()
        assert not exchange.places.has(MOVED)
        assert pages_of(assembled) == []
        batches = [decode_batch(data) for data in exchange._outbox.read(1, 1, exchange.last_sent()[1])]
        parts = [part for batch in batches for part in batch.parts if part.first == MOVED]
        assert [pair for part in parts for pair in part.pairs] == pages
        asked = [ask.url for _, data in exchange.outgoing(100.0) for ask in decode_frame(data).prerequisites]
        assert asked == [target.text]

    moving(tmp_path, given)


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
        coordination.process_round([report(0), report(1)], float(number))
        look = coordination.look(0).orders
        assert (look.end, look.scope_final, bool(look.moves)) == ("", False, True)
    rounds = 0
    while coordination.moves.is_moving:
        settled = [move.version for move in coordination.look(0).orders.moves]
        coordination.process_round([report(0, settled=settled), report(1)], 10.0)
        rounds += 1
        assert rounds < 40
    for _ in range(2):
        coordination.process_round([report(0), report(1)], 20.0)
    assert coordination.kept.end == "finished"
    assert set(coordination.moves.owners) == {0}


def test_a_coordinator_that_comes_back_goes_on_with_each_move() -> None:
    saved: list[bytes] = []

    def save(record: CoordinatorRecord) -> None:
        saved.append(msgspec.json.encode(record))

    coordination = Coordination(PARTITIONS, Limits(), 10.0, 0.0, None, save)
    coordination.scale(3)
    coordination.process_round([report(0), report(1), report(2)], 1.0)
    ordered = coordination.look(0).orders.moves
    assert ordered, "of the first two some go to the third"
    kept = msgspec.json.decode(saved[-1], type=CoordinatorRecord)
    again = Coordination(PARTITIONS, Limits(), 10.0, 2.0, kept, save)
    assert again.shards == 3
    assert again.look(0).orders.moves == ordered
    again.process_round([report(2, settled=[ordered[0].version])], 3.0)
    assert [place.owner for place in again.look(1).orders.places] == [2], "all hear of it"
    kept = msgspec.json.decode(saved[-1], type=CoordinatorRecord)
    assert map_now(PARTITIONS, kept.moves).owner(ordered[0].first) == 2


def test_partitions_that_are_on_their_way_are_not_passed_on() -> None:
    coordination = Coordination(PARTITIONS, Limits(), 10.0, 0.0, None, lambda _: None)
    coordination.scale(3)
    reports = [report(0), report(1), report(2)]
    coordination.process_round(reports, 1.0)
    first, second = coordination.look(2).orders.moves
    coordination.scale(2)
    coordination.process_round([*reports[:2], report(2, settled=[second.version])], 2.0)
    under_way = coordination.kept.moves.under_way
    assert first in under_way
    assert [move for move in under_way if move.sender == 2 and first.first <= move.first < first.end] == []


@pytest.mark.heavy
@pytest.mark.long
def test_a_run_that_goes_on_has_no_partition_that_is_still_on_its_way() -> None:
    """Orders at random times, and moves that complete in any order: each move has partitions of its sender alone."""
    dice, moves = random.Random(4), Moves(MovesRecord(), PARTITIONS)
    reports = [ShardReport(number, 1, True, 1, urls=dice.randrange(1, 60_000)) for number in range(5)]
    ordered = 0
    for _ in range(2_000):
        before = {move.version for move in moves.kept.under_way}
        if dice.random() < 0.1:
            moves.scale(dice.randrange(1, 6))
        settled = [move for move in moves.kept.under_way if dice.random() < 0.3]
        answers = [
            msgspec.structs.replace(one, settled=[move.version for move in settled if move.to == one.shard])
            for one in reports
        ]
        moves.take_round(answers, begins=True)
        for move in moves.kept.under_way:
            if move.version not in before:
                ordered += 1
                assert set(moves.owners[move.first : move.end]) == {move.sender}
    assert ordered > 100
