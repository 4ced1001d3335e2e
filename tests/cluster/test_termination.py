"""The end of a crawl is told when it is there, not before, and always: by random runs of a model."""

from __future__ import annotations

import asyncio
import random
from itertools import islice
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer.assembly.building import assemble
from gossamer.cluster.frames import Batch, Frame, Linking, encode
from gossamer.cluster.reports import ScopeFinal, ShardReport, Termination
from gossamer.config import configure
from gossamer.model.links import Prerequisite
from gossamer.url.site import PARTITIONS
from tests.cluster.arrived import take_arrived


class Shard(msgspec.Struct):
    """A shard of the model: work, numbered batches out, positions in; what is committed survives a death."""

    work: int = 0
    opening: int = 1
    activity: int = 0
    incarnation: int = 1
    outbox: dict[int, int] = msgspec.field(default_factory=dict)
    """Receiver to the last number."""
    taken: dict[int, tuple[int, int]] = msgspec.field(default_factory=dict)


class Model:
    """Work makes batches, batches make work, until there is no fuel left. `copies` are older states of shards."""

    def __init__(self, seed: int, shards: int) -> None:
        self.dice = random.Random(seed)
        self.fuel = 30
        self.shards = [Shard() for _ in range(shards)]
        self.shards[0].work = 3
        self.wire: list[tuple[int, int, int, int]] = []
        self.copies = {number: msgspec.msgpack.encode(shard) for number, shard in enumerate(self.shards)}
        self.openings = [1] * shards
        self.lives = 1

    def step(self) -> None:
        number = self.dice.randrange(len(self.shards))
        shard = self.shards[number]
        match self.dice.choice(("work", "work", "send", "send", "deliver", "deliver", "copy", "die")):
            case "work" if shard.work:
                shard.work -= 1
                shard.activity += 1
                if self.fuel and self.dice.random() < 0.7:
                    self.fuel -= 1
                    to = self.dice.choice([one for one in range(len(self.shards)) if one != number])
                    shard.outbox[to] = shard.outbox.get(to, 0) + 1
            case "send":
                self._send(number)
            case "deliver" if self.wire:
                self._deliver(self.wire.pop(self.dice.randrange(len(self.wire))))
            case "copy":
                self.copies[number] = msgspec.msgpack.encode(shard)
            case "die" if self.dice.random() < 0.1:
                self._die(number, older=self.dice.random() < 0.3)

    def _send(self, number: int) -> None:
        """Send every batch that is not confirmed, one of them for each receiver; sometimes it is lost or doubled."""
        shard = self.shards[number]
        for to, last in shard.outbox.items():
            incarnation, taken = self.shards[to].taken.get(number, (0, 0))
            following = taken + 1 if incarnation == shard.incarnation else 1
            if following <= last:
                for _ in range(self.dice.choice((0, 1, 1, 2))):
                    self.wire.append((number, to, shard.incarnation, following))

    def _deliver(self, frame: tuple[int, int, int, int]) -> None:
        sender, to, incarnation, batch = frame
        shard = self.shards[to]
        known, taken = shard.taken.get(sender, (0, 0))
        if incarnation < known or (incarnation == known and batch != taken + 1) or (incarnation > known and batch != 1):
            return
        shard.taken[sender] = (incarnation, batch)
        shard.activity += 1
        shard.work += 1

    def _die(self, number: int, *, older: bool) -> None:
        # An older copy may make others send again, so there must be an end to it.
        shard = self.shards[number]
        if older and self.fuel:
            self.fuel -= 1
            shard = msgspec.msgpack.decode(self.copies[number], type=Shard)
            self.lives += 1
            shard.incarnation = self.lives
            self.shards[number] = shard
        self.openings[number] += 1
        shard.opening, shard.activity = self.openings[number], 0

    def report(self, number: int) -> ShardReport:
        shard = self.shards[number]
        return ShardReport(
            number, shard.opening, not shard.work, shard.activity, shard.incarnation, dict(shard.outbox),
            dict(shard.taken),
        )  # fmt: skip

    @property
    def over(self) -> bool:
        """Seen by nobody but us: no work, and nothing on its way that anybody would take."""
        return not any(shard.work for shard in self.shards) and all(
            self.shards[to].taken.get(number) == (shard.incarnation, last)
            for number, shard in enumerate(self.shards)
            for to, last in shard.outbox.items()
        )


@pytest.mark.promise("Several shards", "A crawl of several shards ends when it is complete, and not before.")
@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 5))
def test_the_end_is_reported_when_it_is_there_and_not_before(seed: int, shards: int) -> None:
    model = Model(seed, shards)
    termination = Termination(shards)
    told = over_between = False
    for _ in range(400):
        lives = model.lives
        reports = []
        order = list(range(shards))
        model.dice.shuffle(order)
        for number in order:  # Between two answers of a round anything may happen.
            for _ in range(model.dice.randrange(4)):
                model.step()
            if model.dice.random() < 0.98:
                reports.append(model.report(number))
        told = termination.take_round(reports)
        if told:
            assert over_between, "the end was told too early"
            # An older state restored after that is work again, and whoever closes the crawl must see its new opening.
            assert model.over or model.lives > lives
            break
        over_between = model.over
    assert told or model.fuel or not model.over, "the end was there, and nobody was told"


@pytest.mark.promise("Several shards", "A crawl of several shards ends when it is complete, and not before.")
@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 5))
def test_it_always_ends(seed: int, shards: int) -> None:
    """Once the fuel is gone and nobody dies any more."""
    model = Model(seed, max(shards, 2))
    model.fuel = 5
    termination = Termination(len(model.shards))
    for _ in range(3_000):
        model.step()
    model.fuel = 0
    for _ in range(2_000):
        number = model.dice.randrange(len(model.shards))
        shard = model.shards[number]
        shard.activity += bool(shard.work)
        shard.work = max(0, shard.work - 1)
        model._send(number)
        while model.wire:
            model._deliver(model.wire.pop())
        if termination.take_round([model.report(one) for one in range(len(model.shards))]):
            return
    raise AssertionError("nobody was told")


def quiet(shard: int, **changes: object) -> ShardReport:
    return msgspec.structs.replace(ShardReport(shard, 1, True, 5, 1), **changes)  # type: ignore[arg-type]


def test_two_equal_rounds_are_needed() -> None:
    termination = Termination(2)
    round_ = [quiet(0), quiet(1)]
    assert [termination.take_round(round_), termination.take_round(round_)] == [False, True]
    for changed in (quiet(1, activity=6), quiet(1, opening=2), quiet(1, passive=False), quiet(1, sent={0: 1})):
        assert termination.take_round([quiet(0), changed]) is False
        assert termination.take_round(round_) is False
        assert termination.take_round(round_) is True
    assert termination.take_round([quiet(0)]) is False, "one did not answer"
    for others in ([quiet(0), quiet(0)], [quiet(0), quiet(2)]):
        assert [termination.take_round(others) for _ in range(3)] == [False] * 3, "not these shards"
    assert termination.take_round(round_) is False, "what was before it counts no more"


def test_a_batch_of_an_older_incarnation_does_not_empty_a_channel() -> None:
    termination = Termination(2)
    round_ = [quiet(0, incarnation=2, sent={1: 3}), quiet(1, taken={0: (1, 3)})]
    assert [termination.take_round(round_) for _ in range(3)] == [False] * 3
    round_ = [quiet(0, incarnation=2, sent={1: 3}), quiet(1, taken={0: (2, 3)})]
    assert [termination.take_round(round_) for _ in range(2)] == [False, True]


def test_the_scope_is_final_when_no_seed_is_open_or_on_its_way() -> None:
    final = ScopeFinal(2)
    busy = [quiet(0, passive=False, seeds_open=False), quiet(1, passive=False, seeds_open=False)]
    assert [final.take_round(busy), final.take_round(busy)] == [False, True], "no shard needs to be passive"
    on_its_way = [quiet(0, seeds_open=False, seeds_sent={1: 4}), quiet(1, seeds_open=False, taken={0: (1, 3)})]
    assert [final.take_round(on_its_way), final.take_round(on_its_way)] == [False, False]
    there = [on_its_way[0], quiet(1, seeds_open=False, taken={0: (1, 7)})]
    assert [final.take_round(there), final.take_round(there)] == [False, True]
    assert final.take_round([there[0], quiet(1, seeds_open=True, taken={0: (1, 7)})]) is False, "one was added"
    assert final.take_round(there) is False
    between = [there[0], quiet(1, seeds_open=False, seeds_activity=1, taken={0: (1, 7)})]
    assert final.take_round(between) is False, "one came and went between two rounds"


def test_a_shard_is_passive_when_all_that_came_is_taken_and_in_a_commit(tmp_path: Path) -> None:
    asyncio.run(active_and_passive(tmp_path))


async def active_and_passive(directory: Path) -> None:
    config = configure(options={"contact": "a@example.org"}, sets=("cluster.workers=2",), seeds=["https://a.example/"])
    shard = assemble(config, directory, shard=0, shards=2)
    membership, commit = shard.membership, shard.kept.committer.commit
    assert membership is not None
    exchange, now = membership.exchange, 100.0
    try:
        await commit()
        assert membership.report().passive
        batch = encode(Batch(linking=[Linking(1, "b.example", 0)]))
        exchange.take(encode(Frame(1, 1, first=1, batches=[batch])), now)
        await commit()
        assert not membership.report().passive, "it came, and is not taken"
        assert take_arrived(exchange) == 1
        await commit()
        assert membership.report().passive
        exchange.send_cash("b.example", PARTITIONS - 1, 0.5)
        assert not membership.report().passive, "it waits for a commit"
        await commit()
        assert membership.report().passive
        theirs = (url for number in range(100) if (url := shard.ring.urls.namer.name(f"https://b{number}.example/")))
        origin, target = islice((url for url in theirs if not exchange.has(url)), 2)
        prerequisite = Prerequisite(origin, target, 1)
        assert exchange.run_prerequisite(prerequisite)
        assert not membership.report().passive, "another shard fetches for it"
        list(exchange.outgoing(now + 1e10))
        assert not membership.report().passive, "the answer is not in a commit"
        await commit()
        assert membership.report().passive
    finally:
        await shard.close()
