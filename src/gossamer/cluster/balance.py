"""Balance: moves partitions from shards that are overloaded to shards with free requests. No I/O, no clock.

A shard is behind while hosts have their turn but all its requests are in flight. A shard is free while it could send
more requests. Only waiting work counts, not the amount of work: a shard with one huge host, or with a thousand hosts
that wait for their delays, is not behind and would gain nothing.

Partitions do not move back and forth, for four reasons: the imbalance must last for several rounds; each step is
complete before the rounds of the next are counted; a step gives no shard more than the giver keeps; and each partition
moves in this way only once, until the number of shards changes.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from gossamer.cluster.reports import ShardReport
from gossamer.url.site import PARTITIONS

ROUNDS_MIN: Final = 10
"""Consecutive rounds in which one shard is behind and another is free before partitions move: 5 s."""
RUNS_A_STEP_MAX: Final = 2


class Uneven(NamedTuple):
    """A shard with too much work, and one with room."""

    giver: ShardReport
    to: int
    weights: list[tuple[int, int]]
    """Partitions of the giver, and how much work each is."""
    most: int
    """How much of it moves at most."""


class Balance:
    """Compares the shards' reports in each round. After a restart of the coordinator, counting begins again."""

    def __init__(self, rounds_min: int = ROUNDS_MIN) -> None:
        self._rounds_min = rounds_min
        self._rounds: dict[bool, Counter[int]] = {True: Counter(), False: Counter()}
        """Consecutive rounds in which each shard was behind (True), and free (False)."""
        self._asked: int | None = None
        self._begin = 0

    def survey(self, shard: int) -> int | None:
        """Return the partition from which a shard should report its waiting work; None: it need not."""
        return self._begin if shard == self._asked else None

    def forget(self) -> None:
        """Begin to count again."""
        self._rounds = {True: Counter(), False: Counter()}
        self._asked = None

    def take_round(self, reports: Sequence[ShardReport]) -> Uneven | None:
        """Process a round's reports. If partitions should move, return between which shards, and reset counts."""
        for is_behind, rounds in self._rounds.items():
            those = [report.shard for report in reports if report.behind is is_behind and report.hosts_left is not None]
            self._rounds[is_behind] = Counter({shard: rounds[shard] + 1 for shard in those})
        givers = [one for one in reports if self._rounds[True][one.shard] >= self._rounds_min]
        free = [one for one in reports if self._rounds[False][one.shard] >= self._rounds_min]
        if not givers or not free:
            self._asked = None
            return None
        giver = max(givers, key=lambda one: (one.hosts_left or 0, one.shard))
        was_asked = self._asked == giver.shard
        self._asked = giver.shard
        if not was_asked or giver.waiting is None:
            return None
        if giver.waiting:  # The next survey continues after this one, which may not have covered all partitions.
            self._begin = (giver.waiting[-1][0] + 1) % PARTITIONS
        self.forget()
        to = min(free, key=lambda one: (one.hosts_left or 0, one.shard)).shard
        most = sum(hosts for _, hosts in giver.waiting) // (len(free) + 1)
        return Uneven(giver, to, giver.waiting, most)


def runs_to_give(
    weights: Sequence[tuple[int, int]], most: int, length_max: int, may_go: Callable[[int], bool]
) -> list[tuple[int, int]]:
    """Return runs of partitions, as [first, end), with as much of a shard's work as possible, but at most `most`.

    `weights` has partitions and the work of each; `may_go` says whether a partition may be given.
    """
    left = most
    large = {partition for partition, weight in weights if weight > left}
    runs: list[tuple[int, int, int]] = []
    first = end = total = 0
    for partition, weight in sorted(weights):
        if not weight or partition in large or not may_go(partition):
            continue
        joins = runs and partition - first < length_max and total + weight <= left
        if joins and all(one not in large and may_go(one) for one in range(end, partition)):
            runs.pop()
        else:
            first = partition
            total = 0
        end = partition + 1
        total = total + weight
        runs.append((total, first, end))
    chosen: list[tuple[int, int]] = []
    for weight, begin, stop in sorted(runs, key=lambda run: (-run[0], run[1])):
        if weight <= left and len(chosen) < RUNS_A_STEP_MAX:
            left -= weight
            chosen.append((begin, stop))
    return chosen
