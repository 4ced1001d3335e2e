"""Agreement: what shards and their coordinator must agree on in each round, wherever partitions are on their way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from gossamer.assembly.values import Assembled
from gossamer.cluster.coordination import Coordination
from gossamer.cluster.exchange import Exchange
from gossamer.cluster.places import Places
from gossamer.cluster.reports import ShardReport


def exchange_of(shard: Assembled) -> Exchange:
    """Return the exchange of a shard of several."""
    assert shard.membership is not None
    return shard.membership.exchange


def disagreements(coordination: Coordination, shards: Mapping[int, Assembled]) -> Iterator[str]:
    """Yield what is wrong with the moves that are under way, and where a shard that knows the coordinator's map has
    another one; `shards` are those that live.
    """
    moves, places = coordination.moves, {number: exchange_of(shard).places for number, shard in shards.items()}
    for shard in shards.values():
        assert shard.membership is not None
        if shard.membership.report().passive and not exchange_of(shard).idle:
            yield "a shard is passive, and something came, is waited for, or is to be sent"
    for move in moves.kept.under_way:
        if set(moves.owners[move.first : move.end]) != {move.sender}:
            yield f"{move} is ordered, and not all of it is with shard {move.sender}"
    if moves.kept.version and len(places) == coordination.shards:
        yield from _owned_twice(places)
    if moves.kept.under_way:
        return
    for number, known in places.items():
        if known.serial == moves.kept.serial and known.owners != moves.owners:
            wrong = [one for one, owner in enumerate(moves.owners) if known.owners[one] != owner]
            yield f"shard {number} knows {len(wrong)} partitions from {wrong[0]} on where they are not"


def untaken(reports: Sequence[ShardReport]) -> Iterator[str]:
    """Yield the batches that were sent, and are in no commit of their receiver: of a crawl that is over."""
    taken = {report.shard: report.taken for report in reports}
    for report in reports:
        for to, number in report.sent.items():
            if number and to in taken and taken[to].get(report.shard) != (report.incarnation, number):
                yield f"it was over before shard {to} had batch {number} of shard {report.shard}"


def _owned_twice(places: Mapping[int, Places]) -> Iterator[str]:
    """Yield the shards of which two have a partition. About 0.2 ms a shard."""
    owned = {
        shard: {one for one, owner in enumerate(known.owners) if owner == shard} for shard, known in places.items()
    }
    for one, other in combinations(owned, 2):
        if both := owned[one] & owned[other]:
            yield f"shards {one} and {other} both have {len(both)} partitions from {min(both)} on"
