"""Reports: what each shard reports in every round, and what follows from it: quotas, and the end. No I/O, no clock.

# Quotas
A shard may use up a quota at any moment, also while the message is still in flight. So the largest quota that a shard
can assume counts against the limit. A smaller quota frees the difference only when the shard confirms it. A shard that
went back to an older checkpoint keeps its quota: the lost pages no longer count, and those that it fetches again do.

# Termination
Counting in two waves after Mattern ("Algorithms for distributed termination detection", Distributed Computing 2, 1987,
sections 4 and 5), with a counter for each channel instead of one sum: a sum can be right by chance when a shard goes
back to an older checkpoint, a channel cannot. Why two rounds suffice: every shard answers the first round before the
second one starts. A shard that answers `passive` twice with the same start and the same activity was passive
throughout, since each event that ends passivity raises the activity, and each restart has a new start. So between the
rounds all shards were passive at once. Each channel's last batch, unchanged throughout, was taken in a commit, so
frames still in flight are duplicates, which change nothing. That state is stable, except if a machine is lost later and
its shard goes back to an older checkpoint. Therefore the crawl waits until all shards have closed, and counts again if
one closes under another opening than it reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from gossamer.cluster.places import Move, MovedRun


class ShardReport(msgspec.Struct, frozen=True):
    """One shard's answer. All of it was true at one instant between two steps of its loop; counts are committed."""

    shard: int
    opening: int
    """Which start of the shard this is: grows with each, also when an older checkpoint is restored."""
    passive: bool
    """Nothing is queued, delayed, in flight or uncommitted, and nothing arrived that was not taken; what is queued for
    longer than the crawl's patience does not count."""
    activity: int
    """Grows whenever the shard does anything that could make work, since this start."""
    incarnation: int = 0
    """Of what it sends: see `Exchange`."""
    sent: dict[int, int] = msgspec.field(default_factory=dict)
    """Receiver to the number of the last batch in the outbox."""
    taken: dict[int, tuple[int, int]] = msgspec.field(default_factory=dict)
    """Sender to incarnation and number of the last batch taken, in a commit."""
    seeds_open: bool = True
    """Seeds are still to come, or out, or what came of them is not committed: their redirects may widen the scope."""
    seeds_activity: int = 0
    """Grows with each seed, or target of a seed's redirect, that this start of the shard was offered."""
    seeds_sent: dict[int, int] = msgspec.field(default_factory=dict)
    """Receiver to the number of the last batch with a seed or a root in it."""
    pages: int = 0
    pages_under_way: int = 0
    """Not committed, or in flight: each may become a page."""
    wire_bytes: int = 0
    quota_serial: int = 0
    """The newest order whose quota is in force here."""
    awaits: bool = False
    """It has URLs that wait for longer than the crawl's patience."""
    hosts_left: int | None = None
    """Hosts with URLs that are not finished; None while seeds are still to come."""
    urls: int = 0
    """URLs that it has, or had, in its queues."""
    serial: int = 0
    """Up to which it knows the coordinator's map."""
    settled: list[int] = msgspec.field(default_factory=list)
    """Versions of ordered moves to it that are complete, and that no restart of it takes back."""
    behind: bool | None = None
    """Hosts have their turn, and for some time no request was free for them; False if more can go out; None if
    something else keeps it from making requests."""
    waiting: list[tuple[int, int]] | None = None
    """Partitions with hosts that wait for a request, and how many in each; None where `Orders.survey` was None."""


class Orders(msgspec.Struct, frozen=True):
    """Orders to a shard."""

    quota: int | None = None
    """Pages that it may have fetched in all; None: as many as it likes."""
    quota_serial: int = 0
    scope_final: bool = False
    """No redirect of a seed can widen the scope any more, anywhere."""
    paused: bool = False
    end: Literal["", "finished", "limit", "low_water", "patience", "stopped"] = ""
    """The crawl is over, and how."""
    shards: int = 0
    """Shards that there are."""
    moves: list[Move] = msgspec.field(default_factory=list)
    """Moves under way from and to this shard."""
    places: list[MovedRun] = msgspec.field(default_factory=list)
    """Moves that were completed since `known`."""
    known: int = 0
    """`ShardReport.serial` of the shard's last report."""
    serial: int = 0
    """Up to which `places` goes."""
    survey: int | None = None
    """The partition from which on this shard is to report where its work waits; None: it need not."""


PARTS = 4
"""A grant is the even share of what is left, divided by this: other shards may need the rest more."""
PAGES_MIN = 32
"""Smallest grant while more are left: each grant costs a round."""


class LimitShare(msgspec.Struct):
    """What one shard has of the limit. A coordinator that restarts needs these again: they are part of its state."""

    quota: int = 0
    """The last one sent."""
    serial: int = 0
    most: int = 0
    """The most that the shard may believe it has."""


class Quotas:
    """The limit and who has what of it."""

    def __init__(self, pages_max: int, shards: int, shares: Sequence[LimitShare] = ()) -> None:
        """`shares` is what `shares` was when the coordinator last saved it: save it before orders go out."""
        self.pages_max = pages_max
        self.shares = list(shares)
        assert len(self.shares) in (0, shards), "a share for each shard"
        self.grow(shards)

    def grow(self, shards: int) -> None:
        """Have a share for each of `shards` shards."""
        self.shares += [LimitShare() for _ in range(len(self.shares), shards)]

    def note(self, report: ShardReport) -> None:
        """Take in what a shard says is in force."""
        share = self.shares[report.shard]
        if report.quota_serial == share.serial:
            share.most = share.quota

    def order(self, report: ShardReport) -> tuple[int, int]:
        """Return quota and serial for a shard that just reported."""
        self.note(report)
        share = self.shares[report.shard]
        used = report.pages + report.pages_under_way
        if report.passive:
            self._set(share, min(share.quota, used))  # It gives back what it does not need.
        elif used + self._step() // 2 >= share.quota:
            self._set(share, share.quota + min(self._step(), self.left))
        return share.quota, share.serial

    @property
    def left(self) -> int:
        """Pages that no shard has."""
        return max(0, self.pages_max - sum(share.most for share in self.shares))

    def exhausted(self, reports: Sequence[ShardReport]) -> bool:
        """Say whether the limit is reached: all pages are fetched, each in a commit."""
        return sum(report.pages for report in reports) >= self.pages_max

    def _step(self) -> int:
        even = max(1, self.left // (PARTS * len(self.shares)))
        return max(even, min(PAGES_MIN, -(-self.left // len(self.shares))))

    def _set(self, share: LimitShare, quota: int) -> None:
        if quota != share.quota:
            share.quota = quota
            share.serial += 1
            share.most = max(share.most, quota)


class Termination:
    """Detects from complete rounds of reports when all shards are done."""

    def __init__(self, shards: int) -> None:
        self._shards = shards
        self._before: dict[int, tuple[object, ...]] | None = None

    def take_round(self, reports: Sequence[ShardReport]) -> bool:
        """Take a round's reports; return whether the crawl is over.

        A round begins after all shards answered the previous one. Pass an incomplete round too: it does not count, and
        the next one is the first again.
        """
        before, self._before = self._before, None
        if {report.shard for report in reports} != set(range(self._shards)) or len(reports) != self._shards:
            return False
        if not all(report.passive for report in reports) or not channels_empty(reports):
            return False
        self._before = {report.shard: _standing(report) for report in reports}
        return self._before == before


class ScopeFinal:
    """Detects when no redirect of a seed can widen the scope any more, until a seed is added, or an older checkpoint
    with open seeds is restored.

    The same two waves as above, with seeds instead of work: a shard that reports twice that it has no open seed, with
    the same start and the same count of seeds, had none throughout, so it made no new targets of seeds. Targets that
    were sent before are taken, each in a commit.
    """

    def __init__(self, shards: int) -> None:
        self._shards = shards
        self._before: dict[int, tuple[object, ...]] | None = None

    def take_round(self, reports: Sequence[ShardReport]) -> bool:
        """Take a round's reports; return whether the scope is final. Rounds are those of `Termination.take_round`."""
        before, self._before = self._before, None
        if {report.shard for report in reports} != set(range(self._shards)) or len(reports) != self._shards:
            return False
        if any(report.seeds_open for report in reports) or not _seeds_taken(reports):
            return False
        self._before = {report.shard: _seeds_standing(report) for report in reports}
        return self._before == before


def all_taken(before: Sequence[ShardReport], reports: Sequence[ShardReport]) -> bool:
    """Return whether a commit of its receiver includes every batch that was sent before an earlier round, since which
    no sender has begun another incarnation.
    """
    taken = {report.shard: report.taken for report in reports}
    return all(
        taken.get(to, {}).get(sender.shard, (0, 0)) >= (sender.incarnation, number)
        for sender in before
        for to, number in sender.sent.items()
        if number
    )


def channels_empty(reports: Sequence[ShardReport]) -> bool:
    """Return whether a commit of its receiver includes every batch that was ever sent."""
    by_shard = {report.shard: report for report in reports}
    for sender in reports:
        for to, number in sender.sent.items():
            receiver = by_shard.get(to)
            if number and (receiver is None or receiver.taken.get(sender.shard) != (sender.incarnation, number)):
                return False
    return True


def _standing(report: ShardReport) -> tuple[object, ...]:
    return report.opening, report.activity, report.incarnation, tuple(sorted(report.sent.items()))


def _seeds_taken(reports: Sequence[ShardReport]) -> bool:
    by_shard = {report.shard: report for report in reports}
    for sender in reports:
        for to, number in sender.seeds_sent.items():
            receiver = by_shard.get(to)
            incarnation, taken = receiver.taken.get(sender.shard, (0, 0)) if receiver is not None else (0, 0)
            if number and (incarnation != sender.incarnation or taken < number):
                return False
    return True


def _seeds_standing(report: ShardReport) -> tuple[object, ...]:
    return report.opening, report.seeds_activity, report.incarnation, tuple(sorted(report.seeds_sent.items()))
