"""Tokens of a split site: shards together have as many requests out as it permits, and each gets what it needs."""

from __future__ import annotations

from gossamer.cluster.addresses import Addresses
from gossamer.cluster.lease_server import Terms
from gossamer.stages.frontier.tokens import WANTED_MAX, SiteLimits, SiteTokens, site_of_key
from tests.cluster.arrived import leased_by

NOW = 100.0
TERMS = Terms(15.0, 2.0, 5.0, 0.5)
SITE = "example.org"


class Side:
    """One shard: its leases, and its tokens of the site."""

    def __init__(self, shard: int, shards: int, rules: SiteLimits) -> None:
        self.shard = shard
        self.waits = False
        """Hosts wait for a token."""
        self.addresses = Addresses(shard, shards, TERMS, NOW, is_new=True)
        self.tokens = SiteTokens(SITE, rules, self.addresses)
        self.addresses.listen(self._opened, self._closed, lambda: None)

    def _opened(self, key: str, _: float) -> None:
        self.tokens.on_open(key)

    def _closed(self, key: str) -> None:
        self.tokens.on_close(key, needed=self.waits)

    @property
    def room(self) -> int:
        most = self.tokens.most
        assert most is not None
        return most


def sides(per_site: int, shards: int = 2, *, has_delay: bool = False) -> list[Side]:
    made = [Side(number, shards, SiteLimits(per_site, has_delay, number / shards)) for number in range(shards)]
    for side in made:
        for other in made:
            if other is not side:
                side.addresses.on_restart(other.shard, 0, NOW)
    return made


def talk(pair: list[Side], now: float) -> None:
    for _ in range(4):
        for side in pair:
            side.addresses.tick(now)
            for other in pair:
                if other is not side and (data := side.addresses.outgoing(other.shard, now)):
                    other.addresses.take(side.shard, data, now, 0)


def test_a_token_is_known_by_its_site_and_shards_begin_with_different_ones() -> None:
    keys = [SiteLimits(8, has_delay=False, first=first).keys(SITE) for first in (0.0, 0.5)]
    assert {site_of_key(key) for key in keys[0]} == {SITE}
    assert set(keys[0]) == set(keys[1])
    assert set(keys[0][:4]).isdisjoint(keys[1][:4])
    assert site_of_key("192.0.2.1") == ""
    assert len(SiteLimits(8, has_delay=True).keys(SITE)) == 1


def test_a_shard_gets_a_token_for_each_host_that_needs_one_and_no_more_than_there_are() -> None:
    one, other = pair = sides(6)
    now = NOW
    for asked in range(1, 9):
        one.tokens.ask(now)
        talk(pair, now)
        assert one.room == min(asked, 6)
    begun = [one.tokens.begin(now) for _ in range(6)]
    assert len(set(begun)) == 6
    assert one.tokens.begin(now) == "", "all are out"
    one.tokens.end(begun[0], now)
    assert one.tokens.begin(now) == begun[0]
    for _ in range(9):
        other.tokens.ask(now)
    talk(pair, now)
    assert other.room == 0, "the others have turns first"


def test_what_others_need_goes_to_them_after_a_turn_and_comes_back_when_it_is_needed() -> None:
    one, other = pair = sides(6)
    for _ in range(6):
        one.tokens.ask(NOW)
        talk(pair, NOW)
    begun = [one.tokens.begin(NOW) for _ in range(6)]
    for _ in range(WANTED_MAX + 3):
        other.tokens.ask(NOW)
    now = NOW + TERMS.turn_s + 1.1
    talk(pair, now)
    assert (one.room, other.room) == (6, 0), "what is out counts until it has ended"
    assert one.tokens.begin(now) == ""
    for key in begun:
        one.tokens.end(key, now)
    talk(pair, now + 1.1)
    assert (one.room, other.room) == (6 - WANTED_MAX, WANTED_MAX), "it requests that number at once"
    later = now + TERMS.turn_s + 3.0
    one.tokens.ask(later)
    talk(pair, later)
    assert (one.room, other.room) == (6 - WANTED_MAX + 1, WANTED_MAX - 1)


def test_what_is_recalled_while_hosts_wait_is_asked_for_again() -> None:
    one, other = pair = sides(1)
    one.waits = other.waits = True
    one.tokens.ask(NOW)
    talk(pair, NOW)
    other.tokens.ask(NOW)
    rooms = []
    for turn in range(1, 7):
        talk(pair, NOW + turn * (TERMS.turn_s + 1.1))
        rooms.append((one.room, other.room))
    assert {sum(room) for room in rooms} == {1}
    assert len(set(rooms)) == 2, "each has turns"


def test_a_shard_that_waits_for_many_tokens_asks_for_no_more() -> None:
    one, other = pair = sides(8)
    for _ in range(WANTED_MAX + 1):
        one.tokens.ask(NOW)
        talk(pair, NOW)
    one.waits = True
    for key in SiteLimits(8, has_delay=False).keys(SITE)[: WANTED_MAX + 1]:
        one.tokens.on_close(key, needed=True)
    one.tokens.ask(NOW)
    talk(pair, NOW)
    assert one.room == 0, "those that were taken from it come back without asking, and no other does"
    assert other.room == 0


def test_the_delay_of_a_site_travels_with_its_token() -> None:
    one, other = pair = sides(0, has_delay=True)
    opened: list[float] = []
    other.addresses.client.on_opened = lambda key, at: (opened.append(at), other.tokens.on_open(key))[0]
    assert one.tokens.most == 0
    one.tokens.ask(NOW)
    talk(pair, NOW)
    assert one.tokens.most is None, "no limit but the delay"
    key = one.tokens.begin(NOW)
    one.tokens.end(key, NOW + 30.0)
    one.tokens.leave()
    other.tokens.ask(NOW + 1.0)
    talk(pair, NOW + 1.0)
    talk(pair, NOW + 2.1)
    assert other.tokens.most is None
    assert one.tokens.most == 0
    [at] = opened
    assert at >= NOW + 30.0


def test_a_shard_that_no_host_needs_keeps_nothing() -> None:
    one, other = pair = sides(4)
    for _ in range(4):
        one.tokens.ask(NOW)
        talk(pair, NOW)
    one.tokens.leave()
    talk(pair, NOW + 1.1)
    talk(pair, NOW + 2.2)
    assert sum(leased_by(side.addresses) for side in pair) == 0
    assert one.room == 0
    for _ in range(4):
        other.tokens.ask(NOW + 3.0)
        talk(pair, NOW + 3.0)
    assert other.room == 4


def test_a_turn_begins_when_the_delay_is_over() -> None:
    """With a delay that is longer than a turn the token would else go back and forth unused."""
    one, other = pair = sides(1, has_delay=True)
    one.tokens.ask(NOW)
    talk(pair, NOW)
    one.tokens.end(one.tokens.begin(NOW), NOW + 30.0)
    one.tokens.leave()
    other.tokens.ask(NOW + 1.0)
    talk(pair, NOW + 1.0)
    talk(pair, NOW + 2.1)
    assert (one.room, other.room) == (0, 1)
    other.waits = True
    one.tokens.ask(NOW + 3.0)
    for second in range(3, 31):
        talk(pair, NOW + second)
        assert (one.room, other.room) == (0, 1), second
    rooms = []
    for second in range(31, 35):
        talk(pair, NOW + second)
        rooms.append((one.room, other.room))
    assert (1, 0) in rooms
