"""Deferred: the hosts that have used up their budget, on disk, by the round in which they did.

One entry a host, however many URLs it has: `partition | round | host`. Whoever was deferred in an earlier round than
the one under way may be drawn; whoever was deferred in this one waits.
"""

from __future__ import annotations

from gossamer.frontier.host import Host
from gossamer.state.epoch import Epochs
from gossamer.state.schema import PARTITIONED
from gossamer.state.store import Store
from gossamer.world.dice import Dice


class Deferred:
    """Finds a host whose time to wait is over. In memory: which partitions may hold some, never which hosts."""

    def __init__(self, epochs: Epochs, dice: Dice) -> None:
        self._epochs = epochs
        self._dice = dice
        self._listed: list[int] = []
        """Partitions that may hold hosts of earlier rounds than `_round`."""
        self._later: set[int] = set()
        """Partitions that may hold some of `_round`."""
        self._round = 0
        self._floor: dict[int, int] = {}
        """Partition to the first round of which it may hold hosts: a seek there passes over all who have gone."""

    def load(self, store: Store) -> None:
        """Look through the index after a start: a seek for each partition that holds something."""
        begin = b"\0\0"
        while (key := next((key for key, _ in store.scan("deferred", begin, PARTITIONED[1])), None)) is not None:
            self._later.add(int.from_bytes(key[:2]))
            begin = (int.from_bytes(key[:2]) + 1).to_bytes(2)

    def key(self, host: Host, number: int) -> bytes:
        """Return where a host goes that is deferred in a round."""
        self._later.add(host.partition)
        return host.partition.to_bytes(2) + number.to_bytes(4) + host.name.encode()

    def has_any(self, number: int) -> bool:
        """Say whether `draw` may find somebody in a round."""
        return bool(self._listed) or (self._round != number and bool(self._later))

    def draw(self, number: int) -> tuple[int, str] | None:
        """Return partition and name of a host deferred before a round: a seek. Move it before drawing again."""
        if self._round != number:
            self._round = number
            self._listed = sorted({*self._listed, *self._later})
            self._later.clear()
        listed = self._listed
        while listed:
            at = self._dice.below(len(listed))
            partition = listed[at]
            prefix = partition.to_bytes(2)
            begin, end = prefix + self._floor.get(partition, 0).to_bytes(4), (partition + 1).to_bytes(2)
            key = next((key for key, _ in self._epochs.scan("deferred", begin, end)), None)
            if key is not None:
                self._floor[partition] = since = round_of(key)
                if since < number:
                    return partition, key[6:].decode()
                self._later.add(partition)
            listed[at] = listed[-1]
            listed.pop()
        return None


def round_of(key: bytes) -> int:
    """Return the round in which a host was deferred, from its entry."""
    return int.from_bytes(key[2:6])
