"""Samples: how a crawl stood at instants that are evenly spread over it, however long it turns out to be."""

from __future__ import annotations

import msgspec

SAMPLES_MAX = 240
MILESTONES_MAX = 1_024
INTERVAL_S_FIRST = 0.25


class Sample(msgspec.Struct, frozen=True):
    """How the whole crawl stood at an instant, and how it did since the sample before."""

    at_s: float
    """Since the start."""
    pages: float
    requests: float
    discovered: float
    """URLs."""
    hosts_active: float
    """Hosts with URLs that are not finished."""
    hosts_benched: float
    """Hosts on the workbenches."""
    hosts_known: float
    pending: float
    """URLs queued or under way."""
    wire_bytes: float
    cpu_s: float
    """Processor's work, all shards."""
    used_s: float
    """Time times the share of slots in use, mean of the shards."""
    full_s: float
    """Time in which all slots were in use, mean of the shards."""


class Samples:
    """Takes a sample when one is due; keeps 240 at most, by dropping every other one and going half as often."""

    def __init__(self) -> None:
        self.taken: list[Sample] = []
        self.interval_s = INTERVAL_S_FIRST
        self.due_s = INTERVAL_S_FIRST

    def add(self, sample: Sample) -> None:
        """Keep a sample that was due."""
        self.taken.append(sample)
        if len(self.taken) >= SAMPLES_MAX:
            del self.taken[::2]
            self.interval_s *= 2
        self.due_s = max(self.due_s, (sample.at_s // self.interval_s + 1) * self.interval_s)


class Milestones:
    """When each so-manieth page was fetched: 512 to 1,024 instants, however many pages there are."""

    def __init__(self) -> None:
        self._at_s: list[float] = []
        self._step = 1
        self._pages = 0

    @property
    def pages(self) -> int:
        """Pages fetched."""
        return self._pages

    def fetched(self, at_s: float) -> None:
        """Count a page."""
        self._pages += 1
        if self._pages % self._step == 0:
            self._at_s.append(at_s)
            if len(self._at_s) == MILESTONES_MAX:
                self._at_s = self._at_s[1::2]
                self._step *= 2

    def reached_s(self, share: float) -> float:
        """Return when a share of the pages was fetched, to a five-hundredth of them; 0 when there are none."""
        place = min(round(share * self._pages / self._step), len(self._at_s))
        return self._at_s[place - 1] if place else 0.0
