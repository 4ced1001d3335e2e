"""Agreement: what shards and their coordinator must agree on in each round, wherever partitions are on their way, and
what must hold of the frames that shards send to each other, lost ones too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from gossamer.assembly.values import Shard
from gossamer.cluster.coordination import Coordination
from gossamer.cluster.exchange import Exchange
from gossamer.cluster.frames import decode_frame
from gossamer.cluster.places import Places
from gossamer.cluster.prerequisites import WAIT_S
from gossamer.cluster.reports import ShardReport
from tests.faults.world import exchange_of

ASKED_S_MAX = 60.0
"""Between two requests for a fetch that a shard waits for: `cluster.resend_s`, the next look, and a first commit."""
SLACK_S = 20.0
"""By which a shard looks late at what it waits for."""


def disagreements(coordination: Coordination, shards: Mapping[int, Shard]) -> Iterator[str]:
    """Yield what is wrong with the moves that are under way, and where a shard that knows the coordinator's map has
    another one; `shards` are those that live.
    """
    moves = coordination.moves
    places = {number: exchange_of(shard).places for number, shard in shards.items()}
    for shard in shards.values():
        assert shard.membership is not None
        if shard.membership.report().passive and not exchange_of(shard).idle:
            yield "a shard is passive, and something came, is waited for, or is to be sent"
    for move in moves.kept.under_way:
        if set(moves.owners[move.first : move.end]) != {move.sender}:
            yield f"{move} is ordered, and not all of it is with shard {move.sender}"
    if moves.kept.version and len(places) == coordination.shards:
        yield from _find_double_owners(places)
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


def _find_double_owners(places: Mapping[int, Places]) -> Iterator[str]:
    """Yield the shards of which two have a partition. About 0.2 ms a shard."""
    owned = {
        shard: {one for one, owner in enumerate(known.owners) if owner == shard} for shard, known in places.items()
    }
    for one, other in combinations(owned, 2):
        if both := owned[one] & owned[other]:
            yield f"shards {one} and {other} both have {len(both)} partitions from {min(both)} on"


class Traffic:
    """Notes the frames as they are sent."""

    def __init__(self) -> None:
        self._batches: dict[tuple[int, int, int, int], bytes] = {}
        self._asked: dict[tuple[int, int, int], float] = {}
        """Shard, its start, and the number of a prerequisite fetch, and when another shard was first asked for it."""
        self._heard: dict[tuple[int, int], float] = {}
        """Shard and its start, and when it last asked another one for a fetch, or had none to ask for."""

    def note_frame(self, to: int, data: bytes, now: float) -> Iterator[str]:
        """Note a frame; yield what is wrong with it."""
        frame = decode_frame(data)
        for number, batch in enumerate(frame.batches, frame.first):
            key = frame.sender, to, frame.incarnation, number
            if self._batches.setdefault(key, batch) != batch:
                yield f"shard {frame.sender} sent to shard {to} two batches of one number, {key}"
        for ask in frame.prerequisites:
            self._heard[frame.sender, frame.opening] = now
            since_s = now - self._asked.setdefault((frame.sender, frame.opening, ask.number), now)
            if since_s > WAIT_S + SLACK_S:
                yield f"shard {frame.sender} has waited for {ask.url} for {since_s:.0f} s"

    def waits(self, exchange: Exchange, now: float, *, is_suspended: bool) -> Iterator[str]:
        """Look at a shard; yield what it waits for in vain, if it is not suspended."""
        key = exchange.shard, exchange.opening
        if is_suspended or not exchange.prerequisites.waits:
            self._heard[key] = now
        elif (since_s := now - self._heard.setdefault(key, now)) > ASKED_S_MAX:
            yield f"shard {key[0]} waits for another one's fetch, which it asked for {since_s:.0f} s ago"
