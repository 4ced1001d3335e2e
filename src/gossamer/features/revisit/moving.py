"""Moving: moves the part of a schedule that belongs to some partitions to or from another shard.

Memories and rhythms are keys of their partition. Two things belong to the shard. First, its sums: those of the moving
pages are computed while these are copied, so that no side passes over all pages in the commit that gives them away.
Second, the numbers of promises: they are sent with their patterns, and differ at the receiver.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from gossamer.features.revisit import rhythm, state
from gossamer.features.revisit.rhythm import Rhythms, decode_rhythm
from gossamer.features.revisit.state import Calendar, RevisitState, decode_memory, decode_state, encode_state
from gossamer.state.epoch import Epochs
from gossamer.state.schema import REVISIT_STATE, partition_range

MEMORIES: Final = state.FAMILY
COUNTED: Final = (MEMORIES, rhythm.FAMILY)
"""Families whose records are summed up."""
Pairs = Iterable[tuple[bytes, bytes]]


class CopiedSums:
    """The sums over the copied pages and hosts of some partitions. About 4 µs a record."""

    def __init__(self, like: RevisitState) -> None:
        """`like` are the sums of the shard that copies."""
        self._like = like
        self.state = like.without_pages()

    def count(self, family: str, data: bytes | None, sign: int = 1) -> None:
        """Add a record of a counted family to the sums, or with -1 subtract it; None: no record."""
        if data is None:
            return
        if family == MEMORIES:
            for promise in self._like.promises[len(self.state.promises) :]:
                self.state.promise_number(promise.pattern, promise.age_s_max)
            self.state.count_memory(decode_memory(data), sign)
        else:
            self.state.count_rhythm(decode_rhythm(data), sign)


class RevisitMoves:
    """Removes partitions from a schedule, and adds partitions to it."""

    def __init__(self, epochs: Epochs, rhythms: Rhythms, sums: RevisitState) -> None:
        """`sums` are those of the schedule, and change with it."""
        self._epochs = epochs
        self._rhythms = rhythms
        self._state = sums

    def copying(self) -> CopiedSums:
        """Return empty sums for partitions that are copied from now on."""
        return CopiedSums(self._state)

    @property
    def promises(self) -> list[tuple[str, float]]:
        """Return pattern and age of each promise, in the order of the numbers in memories here."""
        return [(one.pattern, one.age_s_max) for one in self._state.promises]

    def release(self, first: int, end: int, copied: CopiedSums) -> bytes:
        """Drop partitions, after this epoch's `cut`, when `copied` is complete; return their sums as they are sent."""
        self._rhythms.forget(first, end)
        is_like_ours = copied.state.spans() == self._state.spans()
        sums = copied.state if is_like_ours else self._count_partitions(first, end)
        self._state.take_in(sums, -1)
        self._keep()
        return encode_state(sums)

    def renumber(self, promises: Sequence[tuple[str, float]], memories: Pairs) -> Iterator[tuple[bytes, bytes]]:
        """Yield arriving memories with the numbers of their promises here, in the sender's order. 6 µs a page."""
        known = len(self._state.promises)
        numbers = [self._state.promise_number(*one) for one in promises]
        if len(self._state.promises) > known:
            self._keep()
        return renumber(numbers, memories)

    def admit(self, first: int, end: int, sums: bytes) -> None:
        """Add partitions whose keys are in the open epoch; `sums` are those that were sent."""
        mine = self._state
        theirs = decode_state(sums)
        if not (mine.visits or mine.pages or mine.retired):
            mine.begin_like(theirs)
        # If the two shards began with different options, their calendars have different spans.
        is_like_ours = len(mine.spans() | theirs.spans()) == 1
        mine.take_in(theirs if is_like_ours else self._count_partitions(first, end))
        self._keep()

    def _count_partitions(self, first: int, end: int) -> RevisitState:
        """Compute the sums of partitions from their records. About 5 µs a page."""
        found = self.copying()
        for family in COUNTED:
            for _, data in self._epochs.scan(family, *partition_range(first, end)):
                found.count(family, data)
        return found.state

    def _keep(self) -> None:
        self._epochs.put("meta", REVISIT_STATE, encode_state(self._state))


def renumber(numbers: Sequence[int], memories: Pairs) -> Iterator[tuple[bytes, bytes]]:
    """Yield memories with new numbers of their promises: `numbers` has the new number for each old one."""
    if list(numbers) == list(range(len(numbers))):
        yield from memories
        return
    for key, data in memories:
        memory = decode_memory(data)
        if memory.promise >= 0:
            yield key, state.encode_memory(msgspec.structs.replace(memory, promise=numbers[memory.promise]))
        else:
            yield key, data


def numbers_in(mine: RevisitState, theirs: RevisitState) -> list[int]:
    """Return the numbers here of another shard's promises, in their order there."""
    return [mine.promise_number(one.pattern, one.age_s_max) for one in theirs.promises]


# ---- shards that do not run


def absorb(states: Sequence[RevisitState]) -> RevisitState:
    """Return the first of several sums, with the results of visits of all of them, but without the others' pages."""
    state = states[0]
    for gone in states[1:]:
        state.visits += gone.visits
        state.changes += gone.changes
        state.same += gone.same
        state.not_modified += gone.not_modified
        state.late += gone.late
        for number, other in zip(numbers_in(state, gone), gone.promises, strict=True):
            promise = state.promises[number]
            promise.kept += other.kept
            promise.broken += other.broken
            promise.late_s_worst = max(promise.late_s_worst, other.late_s_worst)
    return state


def align(states: Sequence[RevisitState | None]) -> list[RevisitState]:
    """Return the sums of shards, extended to all promises; None: a new shard, like another's. Empty if all are new."""
    first = next((state for state in states if state is not None), None)
    if first is None:
        return []
    found = []
    for one in states:
        state = one or RevisitState(Calendar(first.due.span_s))
        if one is None:
            state.begin_like(first)
        found.append(state)
    for state in found:
        for other in found:
            numbers_in(state, other)
    return found
