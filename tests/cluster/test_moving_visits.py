"""Pages that are visited again move between running shards: their sums, their promises, and what is due."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from gossamer.assembly.building import assemble
from gossamer.assembly.values import Shard
from gossamer.cluster.partitions import PartitionMap
from gossamer.cluster.places import Move
from gossamer.cluster.reports import Orders
from gossamer.engine.history import PageRecord
from gossamer.features.revisit.schedule import Schedule
from gossamer.features.revisit.state import RevisitState, decode_memory, memory_key
from gossamer.model.links import Notice
from gossamer.model.pages import Sight
from gossamer.state.schema import ENROLLED
from gossamer.url.url import Url
from tests.cluster.pairs import SITE, carry, config_of_two, partition_of
from tests.cluster.test_copying import places_of
from tests.faults.recount import wrong_sums

T0 = 1_700_000_000.0
PAGES, STEP, ROUNDS_MAX = 300, 40, 100
SETS = (
    "crawl.mode='continuous'",
    "revisit.max_age_s={'-1' = 3600.0, '-12' = 600.0}",
    "revisit.interval_s_mean=3000.0",
    "revisit.interval_s_min=10.0",
    "revisit.gone_max=1",
)
pytestmark = pytest.mark.promise(
    "Continuous crawls", "The sums that divide the visits equal those of the pages after any sequence of events."
)


class Two:
    """Two shards of a continuous crawl; the site is with `giver` and moves to `taker`."""

    def __init__(self, folder: Path, *sets: str) -> None:
        self.config, self.folder = config_of_two(folder, *SETS, *sets), folder
        self.shards = [self.open(number) for number in range(2)]
        self.partition = partition_of(self.shards[0])
        self.at = PartitionMap.even(2).owner(self.partition)
        self.dice, self.now, self.version = random.Random(3), T0, 0

    def open(self, number: int, *sets: str) -> Shard:
        shard = assemble(config_of_two(self.folder, *SETS, *sets), self.folder, shard=number, shards=2)
        assert shard.membership is not None
        shard.membership.moves.step_keys_max = STEP
        recrawl = shard.ring.features.recrawl
        while schedule_of(shard) and recrawl is not None and recrawl.enrolment.enrol_some():
            pass
        return shard

    async def restart(self, number: int, *sets: str) -> None:
        await self.shards[number].close()
        self.shards[number] = self.open(number, *sets)
        await self.commit(number)

    async def commit(self, number: int) -> None:
        """Have a shard commit, and require that its sums are right then."""
        await self.shards[number].kept.committer.commit()
        carry(*self.shards)
        assert wrong_sums(self.shards[number].kept.storage.store) == []

    def state(self, number: int) -> RevisitState:
        return schedule_of(self.shards[number]).state

    def url(self, page: int) -> Url:
        found = self.shards[0].ring.urls.namer.name(f"https://{SITE}/{page % 3}/page-{page}")
        assert found is not None
        return found

    def visit(self, pages: int) -> None:
        """Have some pages be visited, or heard of."""
        schedule, dice = schedule_of(self.shards[self.at]), self.dice
        for _ in range(pages):
            self.now += dice.expovariate(0.1)
            url, chance = self.url(dice.randrange(PAGES)), dice.random()
            if chance < 0.75:
                digest, permitted = dice.randrange(3), dice.choice([0.0, 0.001, 5.0])
                schedule.note_visit(
                    Sight(url, "fetched", self.now, 200, digest, payload=bytes([digest]), permitted_per_s=permitted)
                )
            elif chance < 0.9:
                schedule.note_visit(Sight(url, "http_error", self.now, dice.choice([404, 500])))
            else:
                schedule.note(Notice(url, "sitemap", importance=dice.uniform(0.1, 3.0)), self.now)

    async def move(self, meddle: Callable[[int], Awaitable[object]] | None = None) -> None:
        """Move the site to the other shard, while it is crawled."""
        self.version += 1
        giver, taker = self.at, 1 - self.at
        move = Move(self.version, self.partition, self.partition + 1, giver, taker)
        for number in range(ROUNDS_MAX):
            membership = self.shards[giver].membership
            assert membership is not None
            membership.moves.order([move])
            if places_of(self.shards[giver]).has(self.partition):
                self.visit(30)
            await self.commit(giver)
            await self.commit(taker)
            if places_of(self.shards[taker]).has(self.partition):
                self.at = taker
                return
            if meddle is not None:
                await meddle(number)
        raise AssertionError("it does not move")

    async def close(self) -> None:
        for shard in self.shards:
            await shard.close()


def schedule_of(shard: Shard) -> Schedule:
    assert shard.ring.features.recrawl is not None
    return shard.ring.features.recrawl.schedule


@pytest.fixture
def two(tmp_path: Path) -> Two:
    return Two(tmp_path)


def run(two: Two, work: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        try:
            for number in range(2):
                await two.commit(number)
            await work()
        finally:
            await two.close()

    asyncio.run(whole())


@pytest.mark.parametrize("killed_after", [None, 3])
def test_the_sums_of_pages_that_change_while_they_are_copied_are_right_in_each_commit(
    two: Two, killed_after: int | None
) -> None:
    async def killed(number: int) -> None:
        if number == killed_after:
            await two.restart(two.at)
            await two.restart(1 - two.at)

    async def there_and_back() -> None:
        two.visit(400)
        for _ in range(2):
            giver = two.at
            await two.move(killed)
            left, arrived = two.state(giver), two.state(two.at)
            assert (left.pages, left.there, left.retired, left.importance, left.fresh) == (0, 0, 0, 0.0, 0.0)
            assert left.census.cells == left.due.spans == {}
            assert arrived.pages > 200
            two.visit(200)
            await two.commit(two.at)

    run(two, there_and_back)


def test_a_promise_has_the_numbers_of_its_shard_and_one_of_an_earlier_run_comes_along(two: Two) -> None:
    """The giver promised other ages in an earlier run, so that its numbers are others."""

    async def moved() -> None:
        giver = two.at
        await two.restart(giver, "revisit.max_age_s={'-2' = 900.0, '-1' = 7200.0}")
        two.visit(300)
        await two.commit(giver)
        await two.restart(giver)
        two.visit(30)
        patterns = {number: two.state(giver).promises[number].pattern for number in range(4)}
        before = promised(two, giver, patterns)
        await two.move()
        mine = two.state(two.at).promises
        assert [(one.pattern, one.age_s_max) for one in mine] == [
            ("-1", 3600.0), ("-12", 600.0), ("-2", 900.0), ("-1", 7200.0)
        ]  # fmt: skip
        assert sum(one.pages for one in mine) > 100
        after = promised(two, two.at, {number: one.pattern for number, one in enumerate(mine)})
        assert {url for url, pattern in before.items() if pattern == "-2"} & set(after)
        two.visit(500)
        await two.commit(two.at)

    run(two, moved)


def promised(two: Two, number: int, patterns: dict[int, str]) -> dict[str, str]:
    found = {}
    for page in range(PAGES):
        data = two.shards[number].kept.storage.epochs.get("revisit", memory_key(two.url(page)))
        if data is not None and (promise := decode_memory(data).promise) >= 0:
            found[two.url(page).text] = patterns[promise]
    return found


def test_sums_are_counted_anew_where_the_calendars_of_two_shards_differ(two: Two) -> None:
    """One of them lost its state and began again after the intervals were changed."""

    async def moved() -> None:
        two.visit(300)
        taker = 1 - two.at
        other = two.shards[taker].ring.urls.namer.name("https://another.example/")
        assert other is not None
        schedule = schedule_of(two.shards[taker])
        schedule.state.due.span_s *= 3.0
        for promise in schedule.state.promises:
            promise.deadlines.span_s *= 3.0
        schedule.is_ours = lambda _: True
        schedule.note_visit(Sight(other, "fetched", T0, 200, 1))
        await two.commit(taker)
        await two.move()
        assert two.state(taker).due.span_s == 3.0 * two.state(1 - taker).due.span_s
        await two.move()

    run(two, moved)


def test_a_new_shard_begins_with_how_often_pages_change_elsewhere(two: Two) -> None:
    async def moved() -> None:
        two.visit(400)
        giver = two.at
        two.state(1 - giver).due.span_s *= 2.0
        await two.move()
        given, taken = two.state(giver), two.state(1 - giver)
        assert taken.due.span_s == given.due.span_s
        assert taken.pool.history.visits > 100
        assert taken.price == pytest.approx(given.price, rel=0.5)

    run(two, moved)


def test_hints_change_no_page_of_which_only_a_part_is_here(two: Two) -> None:
    async def moved() -> None:
        two.visit(400)
        heard = []

        async def hint(_: int) -> None:
            schedule, epochs = schedule_of(two.shards[1 - two.at]), two.shards[1 - two.at].kept.storage.epochs
            url = two.url(1)
            is_here = epochs.get("revisit", memory_key(url)) is not None
            heard.append((is_here, schedule.note(Notice(url, "sitemap", importance=9.0), two.now)))

        await two.move(hint)
        assert (True, False) in heard
        assert not any(was_noted for _, was_noted in heard)

    run(two, moved)


def test_pages_that_a_batch_crawl_gave_get_due_times_where_they_arrive_in_a_continuous_one(tmp_path: Path) -> None:
    """It was stopped with them on their way. The shard that they arrive at went through its own pages before."""

    def opened(mode: str) -> list[Shard]:
        config = config_of_two(tmp_path, *SETS, f"crawl.mode='{mode}'")
        return [assemble(config, tmp_path, shard=number, shards=2) for number in range(2)]

    async def committed(*shards: Shard) -> None:
        for shard in shards:
            await shard.kept.committer.commit()

    async def turned() -> None:
        shards = opened("batch")
        partition = partition_of(shards[0])
        at = PartitionMap.even(2).owner(partition)
        giver, membership = shards[at], shards[at].membership
        named = giver.ring.urls.namer.names([f"https://{SITE}/page-{page}" for page in range(3)])
        urls = [url for url in named if url is not None]
        for url in urls:
            giver.ring.urls.history.put(url, PageRecord(url.text, "fetched", True, 200, T0, 1, 1, ""))
        await committed(*shards)
        assert membership is not None
        membership.moves.order([Move(1, partition, partition + 1, at, 1 - at)])
        await committed(giver, giver)
        assert not places_of(giver).has(partition)
        for shard in shards:
            await shard.close()
        shards = opened("continuous")
        taker = shards[1 - at]
        recrawl = taker.ring.features.recrawl
        assert recrawl is not None
        while recrawl.enrolment.enrol_some():
            pass
        await committed(*shards)
        carry(*shards)
        assert places_of(taker).has(partition)
        assert not recrawl.enrolment.is_over
        while recrawl.enrolment.enrol_some():
            pass
        assert len(urls) == 3
        assert all(taker.kept.storage.epochs.get("revisit", memory_key(url)) is not None for url in urls)
        await committed(taker)
        assert wrong_sums(taker.kept.storage.store) == []
        for shard in shards:
            await shard.close()

    asyncio.run(turned())


def test_partitions_stay_until_pages_of_an_earlier_batch_crawl_have_due_times(two: Two) -> None:
    async def moved() -> None:
        giver = two.at
        epochs, membership = two.shards[giver].kept.storage.epochs, two.shards[giver].membership
        assert membership is not None
        two.visit(20)
        epochs.put("meta", ENROLLED, b"\0\0")
        move = Move(1, two.partition, two.partition + 1, giver, 1 - giver)
        orders = Orders(shards=2, moves=[move])
        membership.obey(orders)
        assert not membership.moves._copies
        recrawl = two.shards[giver].ring.features.recrawl
        assert recrawl is not None
        while recrawl.enrolment.enrol_some():
            pass
        membership.obey(orders)
        assert list(membership.moves._copies) == [1]

    run(two, moved)
