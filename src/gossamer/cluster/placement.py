"""Placement: moves partitions from the shard with most requests to the one with fewest. No I/O, no clock.

Balance acts when a shard cannot request all that it could. Placement acts before that: hosts in their delays leave no
shard behind, but their pages cost processor time, memory and traffic where they are. By hash, nine sites on three
shards gave one of them six times another's requests.

Partitions do not move back and forth: the difference must last; what moves is at most half of it, so that the receiver
gets no more than the giver keeps; the next step waits until the effect is measured; steps an hour are bounded; and each
partition moves in this way only once (`MovesRecord.balanced`).
"""

from collections import deque
from collections.abc import Sequence
from typing import Final

from gossamer.cluster.balance import Uneven
from gossamer.cluster.reports import ShardReport

RATIO_MIN: Final = 2.0
"""Requests of the giver, as a multiple of those of the receiver."""
EXCESS_MIN: Final = 1.0
"""Requests a second by which the giver exceeds the receiver: less costs too little to matter."""
LASTS_S: Final = 120.0
"""Time for which the difference must last."""
SETTLES_S: Final = 180.0
"""Time after a step until the rates of both shards show its effect: they are of one to two minutes."""
STEPS_AN_HOUR_MAX: Final = 12
HOUR_S: Final = 3_600.0


class Placement:
    """Compares the rates of the shards in each round. After a restart of the coordinator, measuring begins again."""

    def __init__(self, lasts_s: float = LASTS_S, settles_s: float = SETTLES_S) -> None:
        self._lasts_s = lasts_s
        self._settles_s = settles_s
        self._since: float | None = None
        """Since when shards differ that much."""
        self._weighed: int | None = None
        self._steps: deque[float] = deque(maxlen=STEPS_AN_HOUR_MAX)
        """When the last steps began."""

    def weighs(self, shard: int) -> bool:
        """Return whether a shard should report the requests of each partition."""
        return shard == self._weighed

    def forget(self) -> None:
        """Begin to measure again."""
        self._since = None
        self._weighed = None

    def take_round(self, reports: Sequence[ShardReport], now: float) -> Uneven | None:
        """Process a round's reports. If partitions should move, return between which shards, and reset rates."""
        giver = max(reports, key=lambda one: (one.requests_s, one.shard), default=None)
        # A shard that has no free request, or none to make, is no receiver.
        free = [one for one in reports if one.behind is False and one.hosts_left is not None]
        to = min(free, key=lambda one: (one.requests_s, one.shard), default=None)
        if giver is None or to is None or not _differ(giver, to):
            self.forget()
            return None
        self._since = now if self._since is None else self._since
        is_bounded = len(self._steps) == STEPS_AN_HOUR_MAX and now - self._steps[0] < HOUR_S
        settles = bool(self._steps) and now - self._steps[-1] < self._settles_s
        if now - self._since < self._lasts_s or is_bounded or settles:
            return None
        reports_requests = self.weighs(giver.shard)
        self._weighed = giver.shard
        if not reports_requests or giver.requests is None:
            return None
        self.forget()
        self._steps.append(now)
        total = sum(count for _, count in giver.requests)
        share = (giver.requests_s - to.requests_s) / 2 / giver.requests_s
        return Uneven(giver, to.shard, giver.requests, int(total * share))


def _differ(giver: ShardReport, to: ShardReport) -> bool:
    more_s = giver.requests_s - to.requests_s
    return more_s >= EXCESS_MIN and giver.requests_s >= RATIO_MIN * to.requests_s
