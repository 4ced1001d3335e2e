"""Reports: the report of each shard in a round, and what is decided from these: quotas, and the end. No I/O, no clock.

# Quotas A shard may use up a quota at any moment, also while the message is still in flight. So the largest quota that
a shard can assume counts against the limit. A smaller quota frees the difference only when the shard confirms it. A
shard that was restored from an older checkpoint keeps its quota: the lost pages no longer count, and those that it
fetches again do.

# Termination Counting in two waves after Mattern ("Algorithms for distributed termination detection", Distributed
Computing 2, 1987, sections 4 and 5), with a counter for each channel instead of one sum: a sum can be right by chance
when a shard is restored from an older checkpoint, a channel cannot. Why two rounds suffice: every shard answers the
first round before the second one starts. A shard that answers `passive` twice with the same start and the same activity
was passive throughout, since each event that ends passivity raises the activity, and each restart has a new start. So
between the rounds all shards were passive at once. Each channel's last batch, unchanged throughout, was taken in a
commit, so frames still in flight are duplicates, which change nothing. That state is stable, except if a machine is
lost later and its shard is restored from an older checkpoint. Therefore the crawl waits until all shards have closed,
and counts again if one closes under another opening than it reported.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import msgspec

from gossamer.cluster.places import Move, MovedRun


class ShardReport(msgspec.Struct, frozen=True):
    """The report of one shard: its state at one moment between two steps of its loop. Counts are committed ones."""

    shard: int
    opening: int
    """Number of this start of the shard; grows with each start, even if an older checkpoint is restored."""
    passive: bool
    """Whether nothing is queued, delayed, in flight or uncommitted, and everything that arrived is taken. URLs that
    wait for longer than the crawl's patience do not count."""
    activity: int
    """Grows, since this start, whenever the shard does anything that can create work."""
    incarnation: int = 0
    """Incarnation of the batches that it sends: see `Exchange`."""
    sent: dict[int, int] = msgspec.field(default_factory=dict)
    """By receiver: number of the last batch in the outbox."""
    taken: dict[int, tuple[int, int]] = msgspec.field(default_factory=dict)
    """By sender: incarnation and number of the last batch that was taken, in a commit."""
    seeds_open: bool = True
    """Whether seeds are still to be added, in flight, or not committed, so that their redirects may widen the scope."""
    seeds_activity: int = 0
    """Grows with each seed, or target of a seed's redirect, that this start of the shard was offered."""
    seeds_sent: dict[int, int] = msgspec.field(default_factory=dict)
    """By receiver: number of the last batch with a seed or a root."""
    pages: int = 0
    pages_under_way: int = 0
    """Visits that are not committed, or in flight: each may become a page."""
    wire_bytes: int = 0
    quota_serial: int = 0
    """Serial of the newest quota in force here."""
    awaits: bool = False
    """Whether it has URLs that wait for longer than the crawl's patience."""
    hosts_left: int | None = None
    """Hosts with URLs that are not finished; None while seeds are still to come."""
    urls: int = 0
    """URLs that are, or were, in its queues."""
    serial: int = 0
    """Serial number up to which it knows the coordinator's map."""
    settled: list[int] = msgspec.field(default_factory=list)
    """Versions of moves to it that are complete, and that no restart can undo."""
    behind: bool | None = None
    """Whether for some time hosts with their turn had no free request; False if more requests can go out; None if
    something else prevents requests."""
    waiting: list[tuple[int, int]] | None = None
    """Partitions with hosts that wait for a request, and their number in each; None if `Orders.survey` was None."""
    requests_s: float = 0.0
    """Requests a second, over one to two minutes."""
    requests: list[tuple[int, int]] | None = None
    """Partitions with requests in that time, and their number in each; None if `Orders.weigh` was False."""


class Orders(msgspec.Struct, frozen=True):
    """Instructions to a shard."""

    quota: int | None = None
    """Total pages that it may have fetched; None: no limit."""
    quota_serial: int = 0
    scope_final: bool = False
    """Whether no seed's redirect can widen the scope any more, in any shard."""
    paused: bool = False
    end: Literal["", "finished", "limit", "low_water", "patience", "stopped"] = ""
    """How the crawl has ended; empty: it has not."""
    shards: int = 0
    """Shards that there are."""
    moves: list[Move] = msgspec.field(default_factory=list)
    """Moves in progress from and to this shard."""
    places: list[MovedRun] = msgspec.field(default_factory=list)
    """Moves that were completed since `known`."""
    known: int = 0
    """`ShardReport.serial` of the shard's last report."""
    serial: int = 0
    """Serial number up to which `places` goes."""
    survey: int | None = None
    """Partition from which this shard should report its waiting work; None: it need not."""
    weigh: bool = False
    """Whether this shard should report the requests of each partition."""


PARTS = 4
"""A grant is the even share of the remaining pages, divided by this, since other shards may need the rest more."""
PAGES_MIN = 32
"""Smallest grant while more pages are left, since each grant costs a round."""


class LimitShare(msgspec.Struct):
    """The share of one shard in the limit. Part of the coordinator's stored state."""

    quota: int = 0
    """The last quota sent."""
    serial: int = 0
    most: int = 0
    """The largest quota that the shard may assume."""


class Quotas:
    """The limit, and the share of each shard."""

    def __init__(self, pages_max: int, shards: int, shares: Sequence[LimitShare] = ()) -> None:
        """`shares` is the last saved value of that attribute, which must be saved before instructions are sent."""
        self.pages_max = pages_max
        self.shares = list(shares)
        assert len(self.shares) in (0, shards), "a share for each shard"
        self.grow(shards)

    def grow(self, shards: int) -> None:
        """Add shares, so that each of `shards` shards has one."""
        self.shares += [LimitShare() for _ in range(len(self.shares), shards)]

    def note(self, report: ShardReport) -> None:
        """Process the quota that a shard reports as in force, and its pages: those of runs before have no share."""
        share = self.shares[report.shard]
        most = share.quota if report.quota_serial == share.serial else share.most
        share.most = max(most, report.pages + report.pages_under_way)

    def order(self, report: ShardReport) -> tuple[int, int]:
        """Return quota and serial for a shard that just reported."""
        self.note(report)
        share = self.shares[report.shard]
        used = report.pages + report.pages_under_way
        if report.passive or sum(one.most for one in self.shares) > self.pages_max:
            # It returns what it does not need, or all that is left where the limit was lowered: it is granted again.
            self._set(share, min(share.quota, used))
        elif used + self._step() // 2 >= share.quota:
            self._set(share, max(share.quota, used) + min(self._step(), self.pages_left))
        return share.quota, share.serial

    @property
    def pages_left(self) -> int:
        """Pages of the limit that are not granted."""
        return max(0, self.pages_max - sum(share.most for share in self.shares))

    def is_exhausted(self, reports: Sequence[ShardReport]) -> bool:
        """Return whether the limit is reached: all pages are fetched and committed."""
        return sum(report.pages for report in reports) >= self.pages_max

    def _step(self) -> int:
        even = max(1, self.pages_left // (PARTS * len(self.shares)))
        return max(even, min(PAGES_MIN, -(-self.pages_left // len(self.shares))))

    def _set(self, share: LimitShare, quota: int) -> None:
        if quota != share.quota:
            share.quota = quota
            share.serial += 1
            share.most = max(share.most, quota)


class _TwoWaves:
    """Compares complete rounds of reports: what holds in two of them, with nothing changed between, held throughout."""

    def __init__(self, shards: int) -> None:
        self._shards = shards
        self._before: dict[int, tuple[object, ...]] | None = None

    def _is_repeated(
        self, reports: Sequence[ShardReport], *, holds: bool, standing: Callable[[ShardReport], tuple[object, ...]]
    ) -> bool:
        before = self._before
        self._before = None
        if not holds or sorted(report.shard for report in reports) != list(range(self._shards)):
            return False
        self._before = {report.shard: standing(report) for report in reports}
        return self._before == before


class Termination(_TwoWaves):
    """Detects from complete rounds of reports when all shards are done."""

    def take_round(self, reports: Sequence[ShardReport]) -> bool:
        """Process a round's reports; return whether the crawl is over.

        A round begins after all shards have answered the previous one. Pass incomplete rounds too: they do not count,
        and the next round is the first again.
        """
        channels = _channels(reports, reports, lambda sender: sender.sent)
        holds = all(report.passive for report in reports) and all(taken == sent for sent, taken in channels)
        return self._is_repeated(reports, holds=holds, standing=_standing)


class ScopeFinal(_TwoWaves):
    """Detects when no redirect of a seed can widen the scope any more, until a seed is added, or an older checkpoint
    with open seeds is restored.

    Uses the same two waves as above, with seeds instead of work: a shard that reports twice that it has no open seed,
    with the same start and the same count of seeds, had none throughout, so there were no new targets of seeds. Earlier
    targets were taken and committed.
    """

    def take_round(self, reports: Sequence[ShardReport]) -> bool:
        """Process a round's reports; return whether the scope is final. Rounds are as in `Termination.take_round`."""
        holds = not any(report.seeds_open for report in reports) and _seeds_taken(reports)
        return self._is_repeated(reports, holds=holds, standing=_seeds_standing)


def all_taken(before: Sequence[ShardReport], reports: Sequence[ShardReport]) -> bool:
    """Return whether every batch that was sent before an earlier round is in a commit of its receiver, and no sender
    has begun another incarnation since.
    """
    return all(taken >= sent for sent, taken in _channels(before, reports, lambda sender: sender.sent))


def _channels(
    senders: Sequence[ShardReport], reports: Sequence[ShardReport], sent: Callable[[ShardReport], dict[int, int]]
) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Yield, of each channel with batches, incarnation and number of the last one, and of the last that is in a commit
    of its receiver.
    """
    taken = {report.shard: report.taken for report in reports}
    for sender in senders:
        for to, number in sent(sender).items():
            if number:
                yield (sender.incarnation, number), taken.get(to, {}).get(sender.shard, (0, 0))


def _standing(report: ShardReport) -> tuple[object, ...]:
    return report.opening, report.activity, report.incarnation, tuple(sorted(report.sent.items()))


def _seeds_taken(reports: Sequence[ShardReport]) -> bool:
    channels = _channels(reports, reports, lambda sender: sender.seeds_sent)
    return all(taken[0] == sent[0] and taken[1] >= sent[1] for sent, taken in channels)


def _seeds_standing(report: ShardReport) -> tuple[object, ...]:
    return report.opening, report.seeds_activity, report.incarnation, tuple(sorted(report.seeds_sent.items()))
