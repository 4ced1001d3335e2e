"""An address is one shard's at a time, whatever is lost, doubled or late and whoever dies; and each has his turn."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer.cluster.addresses import Addresses
from gossamer.cluster.lease_server import AGAIN_S, LEFT_S, LeaseServer, Message, Terms, decode_message
from tests.cluster.arrived import leased_by

TERM_S, TURN_S, REQUEST_S_MAX, DELAY_S = 3.0, 1.0, 2.0, 0.1
STEP_S = 0.05
ADDRESSES = tuple(f"192.0.2.{number}" for number in range(6))


class Node:
    """One shard that asks each address whenever it may, for as long as the dice say."""

    def __init__(
        self, shard: int, shards: int, opening: int, now: float, *, is_new: bool, delay_s: float = DELAY_S
    ) -> None:
        self.opening = opening
        self.asking: dict[str, float] = {}
        self.requests = 0
        terms = Terms(TERM_S, TURN_S, REQUEST_S_MAX, delay_s)
        self.addresses = Addresses(shard, shards, terms, now, is_new=is_new)
        self.heard: dict[int, int] = {}


class World:
    """Shards, a wire and a clock. `busy` is who is at an address: a dead shard's request goes on at the server."""

    def __init__(
        self, seed: int, shards: int, *, lost: float, doubled: float, late_s: float, leaving: float = 0.0,
        delay_s: float = DELAY_S,
    ) -> None:  # fmt: skip
        """`leaving`: how likely a shard at each step gives up an address that it waits for. `delay_s`: the delay."""
        self.dice = random.Random(seed)
        self.leaving = leaving
        self.delay_s = delay_s
        self.now = 100.0
        self.shards = shards
        self.lost, self.doubled, self.late_s = lost, doubled, late_s
        self.nodes: dict[int, Node] = {}
        self.opening = 0
        self.wire: list[tuple[float, int, int, int, bytes]] = []
        self.busy: dict[str, tuple[int, int, float]] = {}
        self.rests: dict[str, float] = {}
        self.last: dict[str, tuple[int, int]] = {}
        """Shard and start that requested an address last."""
        self.cut: frozenset[int] = frozenset()
        """Two shards that do not reach each other."""
        self.asked: dict[tuple[int, str], int] = {}
        for shard in range(shards):
            self.start(shard, is_new=True)

    messages = 0
    grants = 0
    """Sent so far."""

    def start(self, shard: int, *, is_new: bool = False) -> None:
        self.opening += 1
        self.nodes[shard] = Node(shard, self.shards, self.opening, self.now, is_new=is_new, delay_s=self.delay_s)

    def kill(self, shard: int) -> None:
        """A server notices at once that a process is gone."""
        node = self.nodes.pop(shard)
        for address, (who, _, _) in list(self.busy.items()):
            if who == shard:
                self._is_over(address, shard, node)

    def step(self, *, asking: bool = True) -> None:
        self.now += STEP_S
        for shard, node in self.nodes.items():
            node.addresses.tick(self.now)
            if asking:
                self._ask(shard, node)
            self._end(shard, node)
        self._carry()

    def _ask(self, shard: int, node: Node) -> None:
        for address in ADDRESSES:
            if address in node.asking:
                continue
            delay_until = node.addresses.want(address, self.now)
            if delay_until is None and self.dice.random() < self.leaving:
                node.addresses.leave(address)
            if delay_until is None or delay_until > self.now or not node.addresses.may_ask(address, self.now):
                continue
            if self.rests.get(address, 0.0) > self.now and self.last[address] in self._before(shard, node):
                continue  # What the process before requested last, it finds noted.
            assert address not in self.busy, f"{address} is asked by {self.busy[address]} and by {shard} at {self.now}"
            assert self.rests.get(address, 0.0) <= self.now + 1e-6, f"{address} had not rested"
            node.addresses.began(address)
            until = self.now + self.dice.uniform(0.0, REQUEST_S_MAX / 2)
            node.asking[address] = until
            self.busy[address] = (shard, node.opening, until)
            self.asked[shard, address] = self.asked.get((shard, address), 0) + 1

    def _end(self, shard: int, node: Node) -> None:
        for address, until in list(node.asking.items()):
            if until <= self.now:
                del node.asking[address]
                self._is_over(address, shard, node)
                node.addresses.end(address, self.now + self.delay_s)
                if self.dice.random() < 0.05:
                    node.addresses.leave(address)

    def _is_over(self, address: str, shard: int, node: Node) -> None:
        del self.busy[address]
        self.rests[address] = self.now + self.delay_s
        self.last[address] = (shard, node.opening)

    def _before(self, shard: int, node: Node) -> set[tuple[int, int]]:
        return {(shard, opening) for opening in range(node.opening)}

    def _carry(self) -> None:
        for shard, node in self.nodes.items():
            for to in range(self.shards):
                data = node.addresses.outgoing(to, self.now) if to != shard else b""
                self.messages += bool(data)
                self.grants += len(decode_message(data).grants) if data else 0
                # A frame comes now and then also without a word about addresses.
                if to == shard or not (data or self.dice.random() < 0.2):
                    continue
                for _ in range(0 if self.dice.random() < self.lost else 2 if self.dice.random() < self.doubled else 1):
                    at = self.now + self.dice.random() * self.late_s
                    self.wire.append((at, shard, node.opening, to, data))
        due = [one for one in self.wire if one[0] <= self.now]
        self.wire = [one for one in self.wire if one[0] > self.now]
        for _, sender, opening, to, data in sorted(due, key=lambda one: one[0]):
            node = self.nodes.get(to)
            if node is None or {sender, to} == self.cut or opening < node.heard.get(sender, -1):
                continue
            if opening > node.heard.get(sender, -1):
                node.heard[sender] = opening
                node.addresses.on_restart(sender, opening, self.now)
            if data:
                node.addresses.take(sender, data, self.now, node.opening)


@pytest.mark.heavy
@pytest.mark.promise(
    "Several shards", "One shard at a time sends requests to an address, and its delays hold for all shards."
)
@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**32), st.integers(2, 4), st.sampled_from([0.0, 0.3]), st.sampled_from([0.0, 0.3]),
    st.sampled_from([0.0, 0.5, 4.0]), st.sampled_from([0.0, 0.05]),
    st.sampled_from([DELAY_S, 2 * REQUEST_S_MAX]),
)  # fmt: skip
def test_nobody_asks_an_address_while_another_does(
    seed: int, shards: int, lost: float, doubled: float, late_s: float, leaving: float, delay_s: float
) -> None:
    world = World(seed, shards, lost=lost, doubled=doubled, late_s=late_s, leaving=leaving, delay_s=delay_s)
    for _ in range(600):
        if world.dice.random() < 0.01 and len(world.nodes) == shards:
            world.kill(world.dice.randrange(shards))
        gone = [shard for shard in range(shards) if shard not in world.nodes]
        if gone and world.dice.random() < 0.05:
            world.start(gone[0])
        if world.dice.random() < 0.01:
            world.cut = frozenset(() if world.cut else world.dice.sample(range(shards), 2))
        world.step()


@pytest.mark.parametrize("shards", [2, 5])
def test_everybody_has_turns_at_a_shared_address(shards: int) -> None:
    world = World(3, shards, lost=0.1, doubled=0.1, late_s=0.1)
    for _ in range(2_000):
        world.step()
    for address in ADDRESSES:
        counts = [world.asked.get((shard, address), 0) for shard in range(shards)]
        assert min(counts) * 3 > max(counts), counts


def test_an_address_that_one_shard_uses_is_lent_once() -> None:
    """And nearly nothing more is said about it."""
    world = World(1, 3, lost=0.0, doubled=0.0, late_s=0.05)
    user = world.nodes[0]
    for _ in range(2_000):
        world.step(asking=False)
        world._ask(0, user)
    assert world.grants <= len(ADDRESSES) * (1 + 2_000 * STEP_S)  # `leave` by the dice, and lease again.
    assert world.messages < 2_000 * STEP_S * 20


def test_after_an_owners_restart_who_had_an_address_goes_on_and_others_wait() -> None:
    world = World(2, 2, lost=0.0, doubled=0.0, late_s=0.0)
    owner = world.nodes[0].addresses.client.owner_of(ADDRESSES[0])
    user = 1 - owner
    mine = [one for one in ADDRESSES if world.nodes[0].addresses.client.owner_of(one) == owner]
    for _ in range(40):
        world.step(asking=False)
        world._ask(user, world.nodes[user])
    world.kill(owner)
    world.start(owner)
    before = sum(world.asked.get((user, address), 0) for address in mine)
    waited = 0
    for _ in range(200):
        world.step()
        waited += not any(world.asked.get((owner, address), 0) for address in mine)
    assert sum(world.asked.get((user, address), 0) for address in mine) > before
    assert waited * STEP_S < TERM_S + REQUEST_S_MAX, "all have said what they hold: nobody waits for the term"


def wanted_of(now: float, *, owner_is_new: bool = True, delay_s: float = DELAY_S) -> tuple[Addresses, Addresses, str]:
    """A shard that wants an address, its owner, which heard of that, and the address."""
    terms = Terms(TERM_S, TURN_S, REQUEST_S_MAX, delay_s)
    user, owner = Addresses(0, 2, terms, now, is_new=True), Addresses(1, 2, terms, now, is_new=owner_is_new)
    address = next(one for one in ADDRESSES if user.client.owner_of(one) == 1)
    user.on_restart(1, 1, now)
    owner.on_restart(0, 0, now)
    user.want(address, now)
    owner.take(0, user.outgoing(1, now), now, 1)
    return user, owner, address


def states_of(user: Addresses) -> set[str]:
    return {one.state for one in user.client._borrowed.values()}


def test_a_grant_that_is_given_back_before_it_was_sent_is_forgotten() -> None:
    """A borrower that no host needs any more returns what it wants; its owner may not have answered yet."""
    now = 100.0
    user, owner, address = wanted_of(now)
    user.leave(address)
    owner.take(0, user.outgoing(1, now), now, 1)
    assert leased_by(owner) == 0
    user.take(1, owner.outgoing(0, now), now, 0)
    assert not {"held", "wanted"} & states_of(user)


@pytest.mark.parametrize("restarts", [False, True])
def test_a_process_that_is_gone_gets_nothing_that_it_waited_for(restarts: bool) -> None:
    now = 100.0
    terms = Terms(TERM_S, TURN_S, REQUEST_S_MAX, DELAY_S)
    sides = [Addresses(shard, 3, terms, now, is_new=True) for shard in range(3)]
    address = next(one for one in ADDRESSES if sides[0].client.owner_of(one) == 1)
    user, owner, waiting = sides
    for shard in (0, 2):
        sides[shard].on_restart(1, 1, now)
        owner.on_restart(shard, 0, now)
    user.want(address, now)
    owner.take(0, user.outgoing(1, now), now, 1)
    user.take(1, owner.outgoing(0, now), now, 0)
    waiting.want(address, now)
    owner.take(2, waiting.outgoing(1, now), now, 1)
    if restarts:
        owner.on_restart(2, 1, now)
    assert leased_by(owner) == 1
    user.leave(address)
    owner.take(0, user.outgoing(1, now), now, 1)
    assert leased_by(owner) == (0 if restarts else 1)


@pytest.mark.parametrize("is_new", [True, False])
def test_an_owner_that_forgot_delays_lets_an_address_wait_first(is_new: bool) -> None:
    now = 100.0
    user, owner, address = wanted_of(now, owner_is_new=is_new)
    user.take(1, owner.outgoing(0, now), now, 0)
    free_at = user.want(address, now)
    assert free_at is not None
    assert (free_at <= now) == is_new
    assert is_new or free_at >= now + DELAY_S


def test_an_address_whose_lease_was_not_renewed_must_be_leased_again() -> None:
    now = 100.0
    user, owner, address = wanted_of(now)
    user.take(1, owner.outgoing(0, now), now, 0)
    assert user.may_ask(address, now)
    assert not user.may_ask(address, now + TERM_S + 1)
    assert user.want(address, now + TERM_S + 1) is None


def test_the_lease_of_a_process_that_is_gone_ends_with_the_delay_after_its_last_request() -> None:
    now = 100.0
    user, owner, address = wanted_of(now)
    user.take(1, owner.outgoing(0, now), now, 0)
    assert user.may_ask(address, now)
    owner.on_restart(0, 1, now)
    free_at = owner.want(address, now)
    assert free_at is not None
    assert free_at >= now + LEFT_S + DELAY_S


@pytest.mark.parametrize("is_reached", [False, True])
def test_a_restarted_owner_waits_for_the_delay_of_a_lease_that_ran_out_meanwhile(is_reached: bool) -> None:
    """Whether the other shard can say then that it has no lease, or not even that."""
    now = 100.0
    delay_s = 2 * REQUEST_S_MAX
    user, owner, address = wanted_of(now, delay_s=delay_s)
    user.take(1, owner.outgoing(0, now), now, 0)
    started = now + 1.0
    owner = Addresses(1, 2, Terms(TERM_S, TURN_S, REQUEST_S_MAX, delay_s), started, is_new=False)
    began = now + TERM_S - STEP_S
    assert user.may_ask(address, began)
    user.began(address)
    ended = began + REQUEST_S_MAX
    user.end(address, ended + delay_s)
    at = ended + 2 * STEP_S
    if is_reached:
        user.on_restart(1, 2, at)
        owner.on_restart(0, 0, at)
        owner.take(0, user.outgoing(1, at), at, 2)
        assert "held" not in states_of(user)
    leased_at = owner.want(address, at)
    assert is_reached or leased_at is None, "the user may still have it"
    over = started + TERM_S + REQUEST_S_MAX
    owner.tick(over)
    free_at = owner.want(address, over)
    assert free_at is not None
    assert free_at >= ended + delay_s


def test_a_grant_that_comes_after_its_lease_was_taken_back_opens_nothing() -> None:
    now = 100.0
    user, owner, address = wanted_of(now)
    late = owner.outgoing(0, now)
    at = now + TERM_S + REQUEST_S_MAX
    owner.tick(at)
    owner.want(address, at)
    owner.take(0, user.outgoing(1, at), at, 1)
    user.take(1, owner.outgoing(0, at), at, 0)
    user.take(1, late, at, 0)
    assert not user.may_ask(address, at)


class Declared:
    """A lease that its user declares to a restarted owner just before it ends; the frame comes when the owner has
    leased the address to another shard.
    """

    def __init__(self) -> None:
        self.terms = Terms(10.0, TURN_S, REQUEST_S_MAX, DELAY_S)
        self.user, self.other = (Addresses(shard, 3, self.terms, 100.0, is_new=True) for shard in (0, 2))
        owner = Addresses(1, 3, self.terms, 100.0, is_new=True)
        mine = [one for one in (f"192.0.2.{number}" for number in range(40)) if self.user.client.owner_of(one) == 1]
        self.address, self.second = mine[:2]
        self.introduce(owner, 1, 100.0)
        self.user.want(self.address, 100.0)
        owner.take(0, self.user.outgoing(1, 100.0), 100.0, 1)
        self.user.take(1, owner.outgoing(0, 100.0), 100.0, 0)
        assert self.user.may_ask(self.address, 100.0)
        self.owner = Addresses(1, 3, self.terms, 100.0, is_new=False)
        self.free_at = 100.0 + 10.0 + REQUEST_S_MAX
        """The owner leases from this instant on."""
        self.introduce(self.owner, 2, self.free_at - 0.5)
        self.user.want(self.second, self.free_at - 0.5)
        self.late = self.user.outgoing(1, self.free_at - 0.5)
        self.other.want(self.address, self.free_at)
        self.other.want(self.second, self.free_at)
        self.owner.take(2, self.other.outgoing(1, self.free_at), self.free_at, 2)
        self.other.take(1, self.owner.outgoing(2, self.free_at), self.free_at, 0)
        found = self.other.want(self.address, self.free_at)
        assert found is not None
        self.other_at = found
        assert self.other.may_ask(self.address, self.other_at)

    def introduce(self, owner: Addresses, opening: int, now: float) -> None:
        for number, shard in ((0, self.user), (2, self.other)):
            shard.on_restart(1, opening, now)
            owner.on_restart(number, 0, now)


def test_a_lease_that_is_declared_after_another_shard_used_the_address_is_refused() -> None:
    """Its user, a process that stood still meanwhile, would not wait the delay of the other one."""
    case = Declared()
    case.other.began(case.address)
    ended = case.other_at + STEP_S
    case.other.end(case.address, ended + DELAY_S)
    case.other.leave(case.address)
    case.owner.take(2, case.other.outgoing(1, ended), ended, 2)
    case.owner.take(0, case.late, ended, 2)
    case.user.take(1, case.owner.outgoing(0, ended), ended, 0)
    assert not case.user.may_ask(case.address, ended)
    case.owner.take(0, case.user.outgoing(1, ended), ended, 2)
    case.user.take(1, case.owner.outgoing(0, ended), ended, 0)
    case.owner.take(0, case.user.outgoing(1, ended), ended, 2)
    case.user.take(1, case.owner.outgoing(0, ended), ended, 0)
    at = case.user.want(case.address, ended)
    assert at is not None
    assert at >= ended + DELAY_S


def test_a_refused_lease_is_refused_in_every_message_that_confirms_its_declaration() -> None:
    """The first of them is lost here, and the next one, which grants another address, renews the lease of all."""
    case = Declared()
    now = case.free_at + STEP_S
    case.owner.take(0, case.late, now, 2)
    assert case.owner.outgoing(0, now), "this one is lost"
    case.other.leave(case.second)
    case.owner.take(2, case.other.outgoing(1, now), now, 2)
    case.user.take(1, case.owner.outgoing(0, now), now, 0)
    assert case.user.want(case.second, now) is not None
    assert not case.user.may_ask(case.address, now)
    case.owner.take(0, case.user.outgoing(1, now), now, 2)
    case.user.take(1, case.owner.outgoing(0, now), now, 0)
    case.owner.take(0, case.user.outgoing(1, now + TERM_S), now + TERM_S, 2)
    assert decode_message(case.owner.outgoing(0, now + TERM_S)).recalls == [], "what was returned is not recalled"


def test_a_refused_lease_that_its_user_lost_meanwhile_is_not_recalled_again() -> None:
    case = Declared()
    now = case.free_at + AGAIN_S
    case.owner.take(0, case.late, now, 2)
    case.user.outgoing(1, now)  # Its own lease ran out before it heard an answer.
    wants = case.user.outgoing(1, now)
    assert case.address in dict(decode_message(wants).wants)
    case.owner.take(0, wants, now, 2)
    assert decode_message(case.owner.outgoing(0, now)).recalls == []


@pytest.mark.parametrize("holder", [0, 2])
def test_a_declared_lease_takes_no_address_from_the_shard_that_has_it(holder: int) -> None:
    declares = 2 - holder
    owner = LeaseServer(1, 3, Terms(10.0, TURN_S, REQUEST_S_MAX, DELAY_S), 100.0, is_new=True)
    for shard in (0, 2):
        owner.on_restart(shard, 0, 100.0)
    owner.hear(holder, Message(serial=1, wants=[("192.0.2.1", 5)]), 100.0)
    granted, answered = Message(), Message()
    owner.say(holder, granted, 100.0)
    assert [address for address, _, _ in granted.grants] == ["192.0.2.1"]
    owner.hear(declares, Message(serial=1, holds=[("192.0.2.1", 7)]), 101.0)
    owner.say(declares, answered, 101.0)
    assert answered.recalls == [("192.0.2.1", 7)]
