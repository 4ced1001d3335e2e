"""Spreading: moves shards to machines that have fewer of them: one that joined, or came back. No I/O, no clock.

A shard moves only where the machine that it leaves has at least two more, so the numbers of the two never change
places, and the moves end. The difference must last for some time, and shards move one after the other.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

LASTS_S: Final = 10.0
"""Time for which the same shard should move before it does: longer than a machine that is lost still counts."""


class ShardMove(NamedTuple):
    """A shard that should go to another machine."""

    shard: int
    sender: str
    to: str


class Spreading:
    """Compares the machines in each round. After a restart of the coordinator, the time begins again."""

    def __init__(self) -> None:
        self._since = 0.0
        self._found: ShardMove | None = None

    def forget(self) -> None:
        """Have the time begin again."""
        self._found = None

    def take_round(self, machines: Mapping[int, str], room: Mapping[str, int], now: float) -> ShardMove | None:
        """Return the shard that should move now. `machines` are those of the shards, by shard; `room` says for how many
        shards each machine has room.
        """
        found = _move(machines, room)
        if found != self._found:
            self._found = found
            self._since = now
        if found is None or now - self._since < LASTS_S:
            return None
        self.forget()
        return found


def _move(machines: Mapping[int, str], room: Mapping[str, int]) -> ShardMove | None:
    held = Counter(dict.fromkeys(room, 0))
    held.update(machines.values())
    free = [machine for machine in room if held[machine] < room[machine]]
    if not free or not machines:
        return None
    to = min(free, key=lambda one: (held[one], one))
    sender = max(machines.values(), key=lambda one: (held[one], one))
    if held[sender] - held[to] < 2:
        return None
    return ShardMove(max(shard for shard, machine in machines.items() if machine == sender), sender, to)


def machines_for(count: int, machines: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the machine on which each of `count` new shards begins, that with fewest, from the status of the machines;
    an empty name, for any, where none is known.
    """
    held = {str(one["machine"]): len(one["shards"]) for one in machines if one["address"]}
    found = []
    for _ in range(count):
        found.append(min(held, key=lambda machine: held[machine], default=""))
        if held:
            held[found[-1]] += 1
    return found


def room_on(nodes: Iterable[Mapping[str, Any]], needs: Mapping[str, float], most: int) -> dict[str, int]:
    """Return for how many shards, at most `most`, each living machine has room, by Ray's list of machines."""
    shares = [(name, need) for name, need in needs.items() if need]
    return {
        str(node["NodeID"]): min([most, *(int(node["Resources"].get(name, 0.0) / need) for name, need in shares)])
        for node in nodes
        if node["Alive"]
    }
