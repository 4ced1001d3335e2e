"""Politeness: computes the delays of hosts. Pure functions of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from gossamer.state.contacts import Delay

FETCH_S_MIN = 0.01
"""Lower bound of fetch times when capacity is estimated."""
SAMPLES = 5
"""Largest number of fetch times that are averaged."""


class Politeness(msgspec.Struct, frozen=True):
    """The rules in force: a preset with the operator's changes. All times in seconds."""

    delay_s_min: float
    delay_s_max: float
    delay_factor: float
    per_host: int
    per_address: int
    """0: no gate per address."""
    address_delay_s: float
    per_site: int
    """0: no gate per site."""
    site_delay_s: float
    crawl_delay_s_max: float
    retry_after_s_max: float
    backoff_s_first: float
    backoff_s_max: float
    has_own_gate: bool = False
    """In the rules of a single host: other hosts at its address do not count."""
    hosts: Mapping[str, Politeness] = msgspec.field(default_factory=dict)
    """Hosts with overrides."""

    def of(self, host: str) -> Politeness:
        """Return the rules for a host."""
        return self.hosts.get(host, self)

    def delay_s(self, fetches_s: Sequence[float], crawl_delay_s: float | None) -> float:
        """Return the delay of a host after a request, counted from its end.

        A slow answer is a sign of a busy server, so the delay grows with the mean of the last one to five fetch times
        (Mercator waited ten times the last one). Without fetch times it is the minimum. A longer Crawl-delay of
        robots.txt takes precedence.
        """
        own_s = self.delay_s_min
        if self.delay_factor and fetches_s:
            grown = self.delay_factor * sum(fetches_s) / len(fetches_s)
            if grown > own_s:
                own_s = max(min(grown, self.delay_s_max), own_s)
        return crawl_delay_s if crawl_delay_s and crawl_delay_s > own_s else own_s

    def delay_to_come(self, fetches_s: Sequence[float], crawl_delay_s: float | None) -> Delay:
        """Return the delay of a host after a request that begins now; `fetches_s` are the times of ended requests."""
        longest_s = self.longest_delay_s(crawl_delay_s)
        # Of several requests at once, others may end meanwhile and change the mean.
        if self.per_host > 1 or not self.delay_factor:
            return Delay(longest_s, 0.0, longest_s)
        with_this_one = (*fetches_s[1 - SAMPLES :], 0.0)
        return Delay(self.delay_s(with_this_one, crawl_delay_s), self.delay_factor / len(with_this_one), longest_s)

    def visits_per_s(self, fetches_s: Sequence[float], crawl_delay_s: float | None) -> float:
        """Return how many visits per second politeness allows, if the host answers as fast as before."""
        fetch_s = sum(fetches_s) / len(fetches_s) if fetches_s else 0.0
        at_once = 1 if crawl_delay_s else self.per_host
        return at_once / max(self.delay_s(fetches_s, crawl_delay_s) + fetch_s, FETCH_S_MIN)

    def longest_delay_s(self, crawl_delay_s: float | None) -> float:
        """Return the upper bound of `delay_s`, for unknown fetch times."""
        slowest_s = self.delay_s_min
        if self.delay_factor and self.delay_s_max > slowest_s:
            slowest_s = self.delay_s_max
        return crawl_delay_s if crawl_delay_s and crawl_delay_s > slowest_s else slowest_s

    def backoff_s(self, in_a_row: int, dice: float) -> float:
        """Return the delay after the n-th 429 or 503 in a row; `dice` in [0, 1) adds up to half of it."""
        return min(grown_s(self.backoff_s_first, in_a_row, self.backoff_s_max) * (1.0 + dice / 2), self.backoff_s_max)


def grown_s(first_s: float, nth: int, most_s: float) -> float:
    """Return the n-th (from 1) term of a doubling series, at most `most_s`."""
    return min(first_s * 2.0 ** min(nth - 1, 40), most_s)
