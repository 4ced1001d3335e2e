"""A partition is copied to another shard while its own crawls it, and is paused for the last changes alone."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from gossamer.assembly.building import assemble
from gossamer.assembly.values import Shard
from gossamer.cluster.partitions import PartitionMap
from gossamer.cluster.places import Move, Places
from gossamer.cluster.reports import Orders
from gossamer.config import Config
from gossamer.features.logins.logins import FormLogins
from gossamer.model.links import Prerequisite
from gossamer.model.visits import Reply
from gossamer.stages.frontier.options import politeness
from gossamer.state.contacts import Delay
from gossamer.state.schema import FAMILIES, partition_range
from gossamer.testing.fakes import FakeClock
from gossamer.url.site import PARTITIONS
from gossamer.url.url import Url
from gossamer.world.clock import WallClock
from tests.cluster.pairs import SITE, carry, config_of_two, discover, partition_of

URLS, STEP = 1_200, 100
ROUNDS_MAX = 200


def assembled(config: Config, folder: Path, number: int) -> Shard:
    shard = assemble(config, folder, shard=number, shards=2)
    assert shard.membership is not None
    shard.membership.moves.step_keys_max = STEP
    return shard


class Pages:
    """Keys of one family that are put, deleted and cleared by chance, and what should be there."""

    def __init__(self, partition: int) -> None:
        self.expected: dict[bytes, bytes] = {}
        self._begin = partition.to_bytes(2)
        self.once = self._begin + b"once"
        """A key that the second change puts, and that is deleted right after a restart."""
        self._changes = 0
        self._dice = random.Random(partition)

    def _key(self) -> bytes:
        return self._begin + self._dice.randrange(500).to_bytes(4)

    def delete_once(self, shard: Shard) -> None:
        shard.kept.storage.epochs.delete("page", self.once)
        self.expected.pop(self.once)

    def change(self, shard: Shard) -> None:
        epochs, dice = shard.kept.storage.epochs, self._dice
        self._changes += 1
        if self._changes == 2:  # Copying has begun, so it is sent at once.
            epochs.put("page", self.once, b"once")
            self.expected[self.once] = b"once"
        for _ in range(30):
            key, value = self._key(), dice.randbytes(4)
            epochs.put("page", key, value)
            self.expected[key] = value
        for _ in range(10):
            key = self._key()
            epochs.delete("page", key)
            self.expected.pop(key, None)
        begin, end = sorted((self._key(), self._key()))
        if dice.random() < 0.5:
            epochs.delete_range("page", begin, end)
            self.expected = {key: value for key, value in self.expected.items() if not begin <= key < end}
            epochs.put("page", begin, b"after")
            self.expected[begin] = b"after"


@pytest.mark.promise("Several shards", "A partition of any size is paused only for its last changes when it moves.")
@pytest.mark.parametrize("killed_after", [0, 5])
def test_what_changes_while_a_partition_is_copied_arrives_as_it_is_at_last(tmp_path: Path, killed_after: int) -> None:
    asyncio.run(copied(tmp_path, killed_after))


async def copied(folder: Path, killed_after: int) -> None:
    """Copy a partition; `killed_after`: commits after which the giver begins again, and the receiver after as many."""
    config = config_of_two(folder)
    shards = [assembled(config, folder, number) for number in range(2)]
    partition = partition_of(shards[0])
    giver = PartitionMap.even(2).owner(partition)
    taker, move, pages = 1 - giver, Move(1, partition, partition + 1, giver, 1 - giver), Pages(partition)
    discover(shards[giver], 0, URLS)
    known, commits, leased, frozen = URLS, 0, 0, 0
    try:
        for shard in shards:
            await shard.kept.committer.commit()
        while not places_of(shards[taker]).has(partition):
            membership, frontier = shards[giver].membership, shards[giver].ring.frontier
            assert membership is not None
            membership.moves.order([move])
            if places_of(shards[giver]).has(partition):
                discover(shards[giver], known, known + 20)
                known += 20
                pages.change(shards[giver])
                is_frozen = partition in frontier.frozen
                frozen += is_frozen
                if not is_frozen:
                    lease = frontier.select(WallClock().now())
                    assert lease is not None, "it is crawled"
                    frontier.return_lease(lease, WallClock().now())
                    leased += 1
            await shards[giver].kept.committer.commit()
            commits += 1
            carry(*shards)
            await shards[taker].kept.committer.commit()
            carry(*shards)
            assert commits < ROUNDS_MAX
            for number, after in ((giver, killed_after), (taker, 2 * killed_after)):
                if after and commits == after:
                    await shards[number].close()
                    shards[number] = assembled(config, folder, number)
                    if number == giver:
                        pages.delete_once(shards[giver])
                    else:
                        await shards[taker].kept.committer.commit()
                    carry(*shards)
        assert commits > 2 * killed_after
        assert frozen == 1, "one commit gives it"
        assert leased == commits - 1 > URLS // STEP
        bounds = partition_range(partition, partition + 1)
        here, there = (shards[number].kept.storage.epochs for number in (giver, taker))
        assert {family: list(here.scan(family, *bounds)) for family in FAMILIES} == {family: [] for family in FAMILIES}
        assert dict(there.scan("page", *bounds)) == pages.expected
        assert shards[taker].ring.frontier.counts.pending == known
        assert shards[giver].ring.frontier.counts.pending == 0
        assert sum(1 for _ in there.scan("seen", *bounds)) == known
    finally:
        for shard in shards:
            await shard.close()


def test_the_cookies_of_a_site_move_with_it(tmp_path: Path) -> None:
    asyncio.run(there_and_back(tmp_path))


async def there_and_back(folder: Path) -> None:
    """Move a site with a cookie to the other shard, which changes it, and back to the first, which must forget."""
    config = config_of_two(folder, "cookies.enabled=true")
    shards = [assembled(config, folder, number) for number in range(2)]
    partition = partition_of(shards[0])
    at = PartitionMap.even(2).owner(partition)
    try:
        for shard in shards:
            await shard.kept.committer.commit()
        for version, value in enumerate(("one", "two", "three"), 1):
            taken(shards[at], value)
            assert cookie_of(shards[at]) == (("Cookie", f"session={value}"),)
            if version < 3:
                await given(shards, Move(version, partition, partition + 1, at, 1 - at))
                assert cookie_of(shards[at]) == ()
                at = 1 - at
                assert cookie_of(shards[at]) == (("Cookie", f"session={value}"),)
    finally:
        for shard in shards:
            await shard.close()


LOGIN = "login.a={url='https://big.example/login', fields={user='u'}, token='t'}"


@pytest.mark.promise("Crash safety", "A crash neither loses a session nor brings back one that had ended.")
def test_the_session_of_a_login_moves_with_its_site_and_one_under_way_begins_again(tmp_path: Path) -> None:
    asyncio.run(logged_in(tmp_path))


def wait_for_login(logins: FormLogins, url: Url, now: float) -> Prerequisite:
    verdict = logins.judge(url, now)
    assert verdict.prerequisite is not None
    logins.wait(url, verdict, now)
    return verdict.prerequisite


async def logged_in(folder: Path) -> None:
    """Move a site whose login worked, and then back while it logs in once more."""
    config = config_of_two(folder, LOGIN)
    shards = [assembled(config, folder, number) for number in range(2)]
    at, now = PartitionMap.even(2).owner(partition_of(shards[0])), WallClock().now()
    url = shards[0].ring.urls.namer.name(f"https://{SITE}/page")
    assert url is not None
    logins = []
    for shard in shards:
        assert shard.ring.features.sessions is not None
        assert shard.ring.features.sessions.logins is not None
        logins.append(shard.ring.features.sessions.logins)
    try:
        begun = wait_for_login(logins[at], url, now)
        answer = Reply(begun.url.text, 200, (), b"", "192.0.2.1", now, 0.1, 0)
        assert logins[at].answered(begun, answer, b'{"t": "first"}', now) is None
        await given(shards, Move(1, url.partition, url.partition + 1, at, 1 - at))
        assert [one.token(url) for one in (logins[at], logins[1 - at])] == ["", "first"]
        assert logins[1 - at].judge(url, now).allowed
        logins[1 - at].reserve(url, now)
        assert logins[1 - at].why_logged_out(url, Reply(url.text, 401, (), b"", "192.0.2.1", now, 0.1, 0), now)
        logins[1 - at].release(url)
        again = wait_for_login(logins[1 - at], url, now)
        await given(shards, Move(2, url.partition, url.partition + 1, 1 - at, at))
        assert logins[1 - at].answered(again, answer, b'{"t": "late"}', now) is None
        assert [one.token(url) for one in logins] == ["", ""]
        assert logins[at].judge(url, now).prerequisite is not None
    finally:
        for shard in shards:
            await shard.close()


def taken(shard: Shard, value: str) -> None:
    """Have a shard take a cookie of the site."""
    url, sessions = shard.ring.urls.namer.name(f"https://{SITE}/"), shard.ring.features.sessions
    assert url is not None
    assert sessions is not None
    headers = (("Set-Cookie", f"session={value}; Path=/"),)
    sessions.received(url, Reply(url.text, 200, headers, b"", "192.0.2.1", 0.0, 0.0, 0), WallClock().now())


def cookie_of(shard: Shard) -> tuple[tuple[str, str], ...]:
    """Return the headers that the shard's session adds to a request to the site."""
    url, sessions = shard.ring.urls.namer.name(f"https://{SITE}/"), shard.ring.features.sessions
    assert url is not None
    assert sessions is not None
    return sessions.headers(url, None, WallClock().now())


async def given(shards: list[Shard], move: Move) -> None:
    """Order a move until the receiver has the partition."""
    giver, taker = shards[move.sender], shards[move.to]
    for _ in range(ROUNDS_MAX):
        assert giver.membership is not None
        giver.membership.moves.order([move])
        await giver.kept.committer.commit()
        carry(*shards)
        await taker.kept.committer.commit()
        carry(*shards)
        if places_of(taker).has(move.first):
            return
    raise AssertionError("it does not move")


def places_of(shard: Shard) -> Places:
    assert shard.membership is not None
    return shard.membership.exchange.places


@pytest.mark.promise("Several shards", "The delay of a host moves with it, also where a crash left no record of it.")
def test_a_host_that_a_lost_epoch_found_and_requested_waits_where_it_moves(tmp_path: Path) -> None:
    config, clock = config_of_two(tmp_path), FakeClock(WallClock().now())

    def opened(number: int) -> Shard:
        return assemble(config, tmp_path, clock, shard=number, shards=2)

    async def moved() -> None:
        shards = [opened(number) for number in range(2)]
        partition = partition_of(shards[0])
        giver = PartitionMap.even(2).owner(partition)
        taker = 1 - giver
        discover(shards[giver], 0, 1)
        lease = shards[giver].ring.frontier.select(clock.now())
        assert lease is not None
        shards[giver].kept.storage.contacts.begin(lease.host.fingerprint, 8, clock.now(), Delay(40.0, 0.0, 60.0))
        await shards[giver].close()  # Its request goes on, and nothing was committed.
        shards[giver] = opened(giver)
        clock.advance(10.0)
        for _ in range(ROUNDS_MAX):
            membership = shards[giver].membership
            assert membership is not None
            membership.obey(Orders(shards=2, moves=[Move(1, partition, partition + 1, giver, taker)]))
            for number in (giver, taker):
                await shards[number].kept.committer.commit()
                carry(*shards)
            if places_of(shards[taker]).has(partition):
                break
        discover(shards[taker], 0, 1)
        clock.advance(29.0)
        assert shards[taker].ring.frontier.select(clock.now()) is None
        clock.advance(1.1)
        assert shards[taker].ring.frontier.select(clock.now()) is not None
        for shard in shards:
            await shard.close()

    asyncio.run(moved())


@pytest.mark.promise("Several shards", "No partition moves before unknown delays of its hosts are over.")
def test_partitions_stay_while_a_host_may_wait_of_which_nothing_is_known(tmp_path: Path) -> None:
    config, clock = config_of_two(tmp_path), FakeClock()
    owner = PartitionMap.even(2).owner

    async def stayed() -> None:
        shard = assemble(config, tmp_path, clock, shard=0, shards=2)
        await shard.kept.committer.commit()
        await shard.close()
        (shard.kept.home.state / "contacts").write_bytes(b"")
        shard = assemble(config, tmp_path, clock, shard=0, shards=2)
        assert shard.membership is not None
        partition = next(one for one in range(PARTITIONS) if owner(one) == 0)
        orders = Orders(shards=2, moves=[Move(1, partition, partition + 1, 0, 1)])
        longest_s = politeness(config.politeness).longest_delay_s(None)
        for wait_s, is_given in ((0.0, False), (longest_s - 1.0, False), (1.0, True)):
            clock.advance(wait_s)
            shard.membership.obey(orders)
            assert shard.membership.moves.is_copying == is_given
        await shard.close()

    asyncio.run(stayed())
