"""Moving: what the schedule of a shard does for partitions that go to another shard, or come from there.

Memories and rhythms are keys of their partition. Two things are the shard's own. Its sums: those of what travels are
made while it is copied, so that neither side passes over all pages in the commit that gives them. And the numbers of
promises: they travel with their patterns, and are others where they arrive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from gossamer.revisit import rhythm, state
from gossamer.revisit.rhythm import Rhythms, decode_rhythm
from gossamer.revisit.state import (
    Calendar,
    RevisitState,
    begin_like,
    count_memory,
    count_rhythm,
    decode_memory,
    decode_state,
    encode_memory,
    encode_state,
    promise_number,
    spans_of,
    take_in,
    without_pages,
)
from gossamer.state.epoch import Epochs
from gossamer.state.schema import REVISIT_STATE, partition_range

MEMORIES: Final = state.FAMILY
COUNTED: Final = (MEMORIES, rhythm.FAMILY)
"""Families whose records the sums are of."""
Pairs = Iterable[tuple[bytes, bytes]]


class CopiedSums:
    """The sums over those pages and hosts of some partitions that were copied so far. About 4 µs a record."""

    def __init__(self, like: RevisitState) -> None:
        """`like` are the sums of the shard that copies."""
        self._like = like
        self.state = without_pages(like)

    def count(self, family: str, data: bytes | None, sign: int = 1) -> None:
        """Count a record of a counted family, or with -1 no more; None: there is none."""
        if data is None:
            return
        if family == MEMORIES:
            for promise in self._like.promises[len(self.state.promises) :]:
                promise_number(self.state, promise.pattern, promise.age_s_max)
            count_memory(self.state, decode_memory(data), sign)
        else:
            count_rhythm(self.state, decode_rhythm(data), sign)


class RevisitMoves:
    """Takes partitions out of a schedule, and into it."""

    def __init__(self, epochs: Epochs, rhythms: Rhythms, sums: RevisitState) -> None:
        """`sums` are those of the schedule, which it goes on to change."""
        self._epochs = epochs
        self._rhythms = rhythms
        self._state = sums

    def copying(self) -> CopiedSums:
        """Return the sums of nothing, for partitions that are copied from now on."""
        return CopiedSums(self._state)

    @property
    def promises(self) -> list[tuple[str, float]]:
        """Pattern and age of each promise, by the numbers that memories have here."""
        return [(one.pattern, one.age_s_max) for one in self._state.promises]

    def release(self, first: int, end: int, copied: CopiedSums) -> bytes:
        """Forget partitions, after this epoch's `cut`, once all of them is in `copied`; return their sums as they
        travel.
        """
        self._rhythms.forget(first, end)
        is_like_ours = spans_of(copied.state) == spans_of(self._state)
        sums = copied.state if is_like_ours else self._counted(first, end)
        take_in(self._state, sums, -1)
        self._keep()
        return encode_state(sums)

    def renumbered(self, promises: Sequence[tuple[str, float]], memories: Pairs) -> Iterator[tuple[bytes, bytes]]:
        """Yield memories that arrive with the numbers that their promises have here; `promises` are those by the
        numbers that they have where they come from. About 6 µs a page where the numbers differ.
        """
        known = len(self._state.promises)
        numbers = [promise_number(self._state, *one) for one in promises]
        if len(self._state.promises) > known:
            self._keep()
        return renumbered(numbers, memories)

    def admit(self, first: int, end: int, sums: bytes) -> None:
        """Take in partitions whose keys are in the open epoch; `sums` are what travelled."""
        mine, theirs = self._state, decode_state(sums)
        if not (mine.visits or mine.pages or mine.retired):
            begin_like(mine, theirs)
        # Where one of the two began with other options, its calendars are coarser or finer.
        is_like_ours = len(spans_of(mine) | spans_of(theirs)) == 1
        take_in(mine, theirs if is_like_ours else self._counted(first, end))
        self._keep()

    def _counted(self, first: int, end: int) -> RevisitState:
        """Return the sums of partitions that are here, record by record. About 5 µs a page."""
        found = self.copying()
        for family in COUNTED:
            for _, data in self._epochs.scan(family, *partition_range(first, end)):
                found.count(family, data)
        return found.state

    def _keep(self) -> None:
        self._epochs.put("meta", REVISIT_STATE, encode_state(self._state))


def renumbered(numbers: Sequence[int], memories: Pairs) -> Iterator[tuple[bytes, bytes]]:
    """Yield memories with other numbers of their promises: `numbers` has the new ones by the old."""
    if list(numbers) == list(range(len(numbers))):
        yield from memories
        return
    for key, data in memories:
        memory = decode_memory(data)
        if memory.promise >= 0:
            yield key, encode_memory(msgspec.structs.replace(memory, promise=numbers[memory.promise]))
        else:
            yield key, data


def numbers_in(mine: RevisitState, theirs: RevisitState) -> list[int]:
    """Return the numbers that the promises of another shard have here, in their order there."""
    return [promise_number(mine, one.pattern, one.age_s_max) for one in theirs.promises]


# ---- shards that do not run


def absorbed(states: Sequence[RevisitState]) -> RevisitState:
    """Return the first of some sums with what visits saw in all of them; of the others' pages nothing is counted."""
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


def acquainted(states: Sequence[RevisitState | None]) -> list[RevisitState]:
    """Return the sums of shards so that all know all promises; None: a new one, which begins like another. Empty where
    all are new.
    """
    first = next((state for state in states if state is not None), None)
    if first is None:
        return []
    found = []
    for one in states:
        state = one or RevisitState(Calendar(first.due.span_s))
        if one is None:
            begin_like(state, first)
        found.append(state)
    for state in found:
        for other in found:
            numbers_in(state, other)
    return found
