"""Termination: when a crawl of several shards is over. Pure.

Counting in two waves after Mattern ("Algorithms for distributed termination detection", Distributed Computing 2, 1987,
sections 4 and 5), with a counter for each channel in place of one sum: a sum can be right by chance when a shard goes
back to an older checkpoint, a channel cannot. Why two rounds suffice: let every shard have answered the first round
before any is asked in the second. A shard that answers `passive` twice with the same start and the same activity was
passive throughout, for whatever ends passivity raises the activity and whatever ends a process begins a new start.
So at any instant between the rounds all were passive at once; and each channel's last batch, unchanged throughout,
was taken in a commit, so what still travels is a duplicate, which changes nothing. That state is stable, but for a
machine that is lost after it and whose shard goes back to an older checkpoint: whoever closes the crawl waits until all
shards have closed, and begins anew with one that closes under another opening than it reported.
"""

from __future__ import annotations

from collections.abc import Sequence

from gossamer.cluster.reports import Report


class Termination:
    """Tells when all shards are done, from complete rounds of reports."""

    def __init__(self, shards: int) -> None:
        self._shards = shards
        self._before: dict[int, tuple[object, ...]] | None = None

    def told(self, reports: Sequence[Report]) -> bool:
        """Take a round's reports; return whether the crawl is over.

        A round begins after the one before it was answered by all. One in which not all answered is to be told as far
        as it went: it counts for nothing, and the next one is the first again.
        """
        before, self._before = self._before, None
        if {report.shard for report in reports} != set(range(self._shards)) or len(reports) != self._shards:
            return False
        if not all(report.passive for report in reports) or not channels_empty(reports):
            return False
        self._before = {report.shard: _standing(report) for report in reports}
        return self._before == before


class ScopeFinal:
    """Tells when no redirect of a seed can widen the scope any more: until a seed is added, or an older checkpoint with
    open seeds is restored.

    The same two waves as above, with seeds in place of work: a shard that answers twice that it has no open seed, with
    the same start and the same count of seeds, had none throughout, so it made no new targets of seeds; and those that
    were sent before are taken, each in a commit.
    """

    def __init__(self, shards: int) -> None:
        self._shards = shards
        self._before: dict[int, tuple[object, ...]] | None = None

    def told(self, reports: Sequence[Report]) -> bool:
        """Take a round's reports; return whether the scope is final. Rounds are as `Termination.told` has them."""
        before, self._before = self._before, None
        if {report.shard for report in reports} != set(range(self._shards)) or len(reports) != self._shards:
            return False
        if any(report.seeds_open for report in reports) or not _seeds_taken(reports):
            return False
        self._before = {report.shard: _seeds_standing(report) for report in reports}
        return self._before == before


def channels_empty(reports: Sequence[Report]) -> bool:
    """Say whether every batch that was ever sent stands in a commit of its receiver."""
    by_shard = {report.shard: report for report in reports}
    for sender in reports:
        for to, number in sender.sent.items():
            receiver = by_shard.get(to)
            if number and (receiver is None or receiver.taken.get(sender.shard) != (sender.incarnation, number)):
                return False
    return True


def _standing(report: Report) -> tuple[object, ...]:
    return report.opening, report.activity, report.incarnation, tuple(sorted(report.sent.items()))


def _seeds_taken(reports: Sequence[Report]) -> bool:
    by_shard = {report.shard: report for report in reports}
    for sender in reports:
        for to, number in sender.seeds_sent.items():
            receiver = by_shard.get(to)
            incarnation, taken = receiver.taken.get(sender.shard, (0, 0)) if receiver is not None else (0, 0)
            if number and (incarnation != sender.incarnation or taken < number):
                return False
    return True


def _seeds_standing(report: Report) -> tuple[object, ...]:
    return report.opening, report.seeds_activity, report.incarnation, tuple(sorted(report.seeds_sent.items()))
