"""Quotas: a limit on pages of the whole crawl, handed out to its shards so that it is never passed. Pure.

What a shard was told, it may use up at any moment, also when the word is still on its way; so what counts against the
limit is the most that a shard can believe it has. A smaller quota frees the difference only when the shard has said
that it is in force. A shard that went back to an older checkpoint keeps what it was given: the pages that it lost
count no more, and those it fetches again do.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from gossamer.cluster.reports import Report

PARTS = 4
"""Of what is left, a shard gets so many shares less than its even share at a time: others may need them more."""
PAGES_MIN = 32
"""Fewer are not handed out while there are more: each order costs a round."""


class Share(msgspec.Struct):
    """What one shard has of the limit. A coordinator that restarts needs these again: they are part of its state."""

    quota: int = 0
    """As told last."""
    serial: int = 0
    most: int = 0
    """The most that the shard may believe it has."""


class Quotas:
    """The limit and who has what of it."""

    def __init__(self, pages_max: int, shards: int, shares: Sequence[Share] = ()) -> None:
        """`shares` is what `shares` was when the coordinator last saved it: save it before orders go out."""
        self.pages_max = pages_max
        self.shares = list(shares) if shares else [Share() for _ in range(shards)]
        assert len(self.shares) == shards, "a share for each shard"

    def told(self, report: Report) -> None:
        """Take in what a shard says is in force."""
        share = self.shares[report.shard]
        if report.quota_serial == share.serial:
            share.most = share.quota

    def order(self, report: Report) -> tuple[int, int]:
        """Return quota and serial for a shard that just reported."""
        self.told(report)
        share = self.shares[report.shard]
        used = report.pages + report.pages_under_way
        if report.passive:
            self._set(share, min(share.quota, used))  # It gives back what it does not need.
        elif used + self._step() // 2 >= share.quota:
            self._set(share, share.quota + min(self._step(), self.left))
        return share.quota, share.serial

    @property
    def left(self) -> int:
        """Pages that nobody has."""
        return max(0, self.pages_max - sum(share.most for share in self.shares))

    def exhausted(self, reports: Sequence[Report]) -> bool:
        """Say whether the limit is reached: all pages are fetched, each in a commit."""
        return sum(report.pages for report in reports) >= self.pages_max

    def _step(self) -> int:
        even = max(1, self.left // (PARTS * len(self.shares)))
        return max(even, min(PAGES_MIN, -(-self.left // len(self.shares))))

    def _set(self, share: Share, quota: int) -> None:
        if quota != share.quota:
            share.quota = quota
            share.serial += 1
            share.most = max(share.most, quota)
