"""Politeness: computes the delays of hosts. Pure functions of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec

from gossamer.frontier.options import HostOverride, PolitenessOptions
from gossamer.state.contacts import Rest

Number = TypeVar("Number", int, float)

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

    def rest_s(self, fetches_s: Sequence[float], crawl_delay_s: float | None) -> float:
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

    def rest_to_come(self, fetches_s: Sequence[float], crawl_delay_s: float | None) -> Rest:
        """Return the delay of a host after a request that begins now; `fetches_s` are the times of ended requests."""
        longest_s = self.longest_rest_s(crawl_delay_s)
        if self.per_host > 1:  # Other requests to the host may end meanwhile and change the mean.
            return Rest(longest_s, 0.0, longest_s)
        if not self.delay_factor:
            return Rest(longest_s, 0.0, longest_s)
        with_this_one = (*fetches_s[1 - SAMPLES :], 0.0)
        return Rest(self.rest_s(with_this_one, crawl_delay_s), self.delay_factor / len(with_this_one), longest_s)

    def visits_per_s(self, fetches_s: Sequence[float], crawl_delay_s: float | None) -> float:
        """Return how many visits per second politeness allows, if the host answers as fast as before."""
        fetch_s = sum(fetches_s) / len(fetches_s) if fetches_s else 0.0
        at_once = 1 if crawl_delay_s else self.per_host
        return at_once / max(self.rest_s(fetches_s, crawl_delay_s) + fetch_s, FETCH_S_MIN)

    def longest_rest_s(self, crawl_delay_s: float | None) -> float:
        """Return the upper bound of `rest_s`, for unknown fetch times."""
        slowest_s = self.delay_s_min
        if self.delay_factor and self.delay_s_max > slowest_s:
            slowest_s = self.delay_s_max
        return crawl_delay_s if crawl_delay_s and crawl_delay_s > slowest_s else slowest_s

    def backoff_s(self, in_a_row: int, dice: float) -> float:
        """Return the delay after the n-th 429 or 503 in a row without Retry-After; `dice` in [0, 1) adds up to half,
        bounded by `backoff_s_max`.
        """
        return min(grown_s(self.backoff_s_first, in_a_row, self.backoff_s_max) * (1.0 + dice / 2), self.backoff_s_max)


def grown_s(first_s: float, nth: int, most_s: float) -> float:
    """Return the n-th (from 1) term of a doubling series, at most `most_s`."""
    return min(first_s * 2.0 ** min(nth - 1, 40), most_s)


_PRESETS = {
    #         min   max  factor  per host, per address, address delay
    "polite": (1.0, 60.0, 10.0, 1, 1, 0.1),
    "gentle": (15.0, 60.0, 10.0, 1, 1, 0.1),
    "broad": (70.0, 70.0, 0.0, 1, 1, 0.1),
    "weak": (0.0, 0.0, 0.0, 1, 1, 0.0),
    "own": (0.0, 0.0, 0.0, 8, 0, 0.0),
}


def politeness(options: PolitenessOptions, overrides: Mapping[str, HostOverride] | None = None) -> Politeness:
    """Return the preset's rules with all keys that are set replaced, and `overrides` by host."""
    delay_min, delay_max, factor, per_host, per_address, address_delay = _PRESETS[options.preset]

    def given(value: Number | None, preset: Number) -> Number:
        return preset if value is None else value

    everybody = Politeness(
        delay_s_min=given(options.delay_s_min, delay_min),
        delay_s_max=given(options.delay_s_max, delay_max),
        delay_factor=given(options.delay_factor, factor),
        # A delay is between any two requests to a host, unless several at once are wanted too.
        per_host=given(options.per_host, 1 if options.delay_s_min else per_host),
        per_address=given(options.per_address, per_address),
        address_delay_s=given(options.address_delay_s, address_delay),
        per_site=options.per_site,
        site_delay_s=options.site_delay_s,
        crawl_delay_s_max=options.crawl_delay_s_max,
        retry_after_s_max=options.retry_after_s_max,
        backoff_s_first=options.backoff_s_first,
        backoff_s_max=options.backoff_s_max,
    )
    own = {host: _agreed(everybody, one, alone=options.per_host is None) for host, one in (overrides or {}).items()}
    return msgspec.structs.replace(everybody, hosts=own) if own else everybody


def _agreed(rules: Politeness, override: HostOverride, *, alone: bool) -> Politeness:
    """Return the rules with one host's changes; `alone`: a delay means one request at a time."""
    if override.delay_s is not None:
        rules = msgspec.structs.replace(
            rules, delay_s_min=override.delay_s, delay_s_max=override.delay_s, delay_factor=0.0
        )
        if override.delay_s and alone:
            rules = msgspec.structs.replace(rules, per_host=1)
    if override.per_host is not None:
        rules = msgspec.structs.replace(rules, per_host=override.per_host, has_own_gate=True)
    return rules
