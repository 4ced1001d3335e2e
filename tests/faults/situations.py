"""Situations: states of a crawl of several shards in which a fault does most harm, and the shards that it meets then.

Chance alone brings most of them about in one trial of hundreds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gossamer.assembly.values import Shard
from gossamer.cluster.places import Move
from gossamer.stages.frontier.index import ON_WORKBENCH
from gossamer.stages.frontier.record import HostRecord, decode_record, host_prefix
from gossamer.state.store import Store
from gossamer.url.site import partition_of
from tests.faults.web import ORIGIN
from tests.faults.world import When, World, exchange_of

LEFT_MIN = 2
"""Pages that a host has, so that some are left when it has moved."""
HOST_OF_LOGIN = ORIGIN.split("/")[2]


def shards_in(
    when: When, shards: Mapping[int, Shard], world: World, moves: Sequence[Move]
) -> list[int]:  # fmt: skip
    """Return the shards, of those that live, that are in a situation; `moves` are under way."""
    found = _FOUND.get(when)
    return found(shards, world, moves) if found is not None else []


def _lenders(shards: Mapping[int, Shard], world: World, _moves: Sequence[Move]) -> list[int]:
    """Return the owners of addresses that another shard requests, and a third one, or the owner, waits for."""
    return [owner for owner, _ in _loans(shards, world)]


def _borrowers(shards: Mapping[int, Shard], world: World, _moves: Sequence[Move]) -> list[int]:
    """Return the shards that request an address of another one, while others wait for it."""
    return [holder for _, holder in _loans(shards, world)]


def _loans(shards: Mapping[int, Shard], world: World) -> list[tuple[int, int]]:
    """Return owner and user of each address that is requested, and wanted by others."""
    owners = [(_owner(shards, machine, address), machine) for machine, address in world.running.values()]
    return [(owner, machine) for owner, machine in owners if owner is not None and owner != machine]


def _owners_after_return(shards: Mapping[int, Shard], world: World, _moves: Sequence[Move]) -> list[int]:
    """Return the owners of addresses that wait for their delay after a request of another shard, and are waited for."""
    found = []
    for asked in reversed(world.log):
        if asked.ended < world.elapsed_s - world.address_delay_s / 4:
            break
        owner = _owner(shards, asked.machine, world.address(asked.host))
        if owner not in (None, asked.machine):
            found.append(owner)
    return [one for one in found if one is not None]


def _owner(shards: Mapping[int, Shard], user: int, address: str) -> int | None:
    """Return the owner of an address that a shard uses, if both live and others wait for one of its addresses."""
    addresses = exchange_of(shards[user]).addresses if user in shards else None
    owner = addresses.client.owner_of(address) if addresses is not None else None
    server = exchange_of(shards[owner]).addresses if owner in shards and owner is not None else None
    return owner if server is not None and any(one.waiting for one in server.server._leases.values()) else None


def _copying(shards: Mapping[int, Shard], _world: World, moves: Sequence[Move]) -> list[int]:
    """Return the shards that have copied some keys of partitions to another one, and not all."""
    found = []
    for move in moves:
        taker = shards.get(move.to)
        has_some = taker is not None and (move.first, move.end) in exchange_of(taker).places.travelling
        if has_some and move.sender in shards and exchange_of(shards[move.sender]).places.has(move.first):
            found.append(move.sender)
    return found


def _giving(shards: Mapping[int, Shard], _world: World, moves: Sequence[Move]) -> list[int]:
    """Return the shards that gave partitions, and those are not safe where they go."""
    return [
        move.sender
        for move in moves
        if move.sender in shards and not exchange_of(shards[move.sender]).places.has(move.first)
    ]


def _givers_of_moved(shards: Mapping[int, Shard], _world: World, moves: Sequence[Move]) -> list[int]:
    """Return the shards that gave partitions which have just arrived."""
    return [
        move.sender
        for move in moves
        if move.sender in shards and move.to in shards and exchange_of(shards[move.to]).places.has(move.first)
    ]


def _asking(shards: Mapping[int, Shard], _world: World, _moves: Sequence[Move]) -> list[int]:
    """Return the shards that wait for another one's robots.txt."""
    return [number for number, shard in shards.items() if exchange_of(shard).prerequisites.waits]


def _robots_followers(shards: Mapping[int, Shard], world: World, _moves: Sequence[Move]) -> list[int]:
    """Return the shard that was just sent to another host for a robots.txt, and has not requested that yet."""
    asked = next((one for one in reversed(world.log) if one.path == "/robots.txt"), None)
    is_redirected = asked is not None and f"http://{asked.host}/robots.txt" in world.site.robots
    return [asked.machine] if asked is not None and is_redirected and asked.machine in shards else []


def _resting(shards: Mapping[int, Shard], world: World, _moves: Sequence[Move]) -> list[int]:
    """Return all shards, if none has anything to do any more."""
    if len(shards) < world.shards or len(world.log) < len(world.site.pages):
        return []
    memberships = [shard.membership for shard in shards.values() if shard.membership is not None]
    return list(shards) if all(one.report().passive for one in memberships) else []


def _users_of_first_host(shards: Mapping[int, Shard], world: World, _moves: Sequence[Move]) -> list[int]:
    """Return the shard that requests the host which would move first, of which the last commit has pages on disk."""
    first = min((url.split("/")[2] for url in world.site.pages), key=partition_of)
    users = [machine for asked, (machine, _) in world.running.items() if asked.host == first and machine in shards]
    for user in users:
        record = _record(shards[user].kept.storage.store, first)
        if record is not None and record.index_family == "ready" and record.index_key[2] != ON_WORKBENCH:
            return [user] if record.urls_queued >= LEFT_MIN else []
    return []


def _record(store: Store, host: str) -> HostRecord | None:
    """Return what the last commit has of a host."""
    data = store.get("host", host_prefix(partition_of(host), host))
    return decode_record(data) if data is not None else None


def _in_session(shards: Mapping[int, Shard], world: World, _moves: Sequence[Move]) -> list[int]:
    """Return the shard whose session is good and in a commit, while pages need it."""
    first = world.session.first_use(world.elapsed_s) if world.session is not None else None
    if first is None or first.machine not in shards:
        return []
    record = _record(shards[first.machine].kept.storage.store, HOST_OF_LOGIN)
    return [first.machine] if record is not None and record.urls_queued >= LEFT_MIN else []


def _lonely(shards: Mapping[int, Shard], world: World, moves: Sequence[Move]) -> list[int]:
    """Return the shard that has all pages, at addresses that others lease out, once all were visited."""
    have = [number for number, shard in shards.items() if shard.ring.frontier.hosts_left]
    if moves or len(have) != 1 or len(shards) < world.shards or shards[have[0]].ring.frontier.counts.pending:
        return []
    addresses = exchange_of(shards[have[0]]).addresses
    used = {world.address(url.split("/")[2]) for url in world.site.pages}
    return have if addresses is not None and all(addresses.client.owner_of(one) != have[0] for one in used) else []


_FOUND: Mapping[When, Callable[[Mapping[int, Shard], World, Sequence[Move]], list[int]]] = {
    "lent": _lenders,
    "borrowed": _borrowers,
    "returned": _owners_after_return,
    "copying": _copying,
    "giving": _giving,
    "taken": _givers_of_moved,
    "asking": _asking,
    "redirected": _robots_followers,
    "resting": _resting,
    "requested": _users_of_first_host,
    "session": _in_session,
    "lonely": _lonely,
}
