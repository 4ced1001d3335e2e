"""Changing: when ordinary pages change, from the seed alone: each a Poisson process with a rate of its own.

Time is cut into spans in which a page changes once on average; how often it does in a span, and when, comes from a hash
of page and span. So what a page is at an instant is known without what it was before, in any process, in any order.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import exp
from statistics import NormalDist

from gossamer.lab.simweb.hosts import lot
from gossamer.lab.simweb.options import SimwebOptions

_NORMAL = NormalDist()
_BITS = 1 << 32
SPANS_BACK_MAX = 64
"""A page that changed in none of so many spans, which happens to one in 10^27, has not changed."""


class Changing:
    """Which pages change, how often, and when they did last. Pure; about 5 µs a question."""

    def __init__(self, options: SimwebOptions) -> None:
        self._options = options

    def rate(self, host: int, page: int) -> float:
        """Return a page's changes a second; 0 for one that never does."""
        options = self._options
        bits = lot(options, "changing", host, page)
        if (bits & (_BITS - 1)) >= options.changing_share * _BITS:
            return 0.0
        spread = _NORMAL.inv_cdf(((bits >> 32) + 0.5) / _BITS)
        return exp(options.change_sigma * spread) / options.change_s_median

    def changed_at(self, host: int, page: int, at: float) -> float:
        """Return the instant of the last change until `at`; 0 where there was none."""
        rate = self.rate(host, page)
        if not rate:
            return 0.0
        span = int(at * rate)
        for back in range(SPANS_BACK_MAX):
            past = [instant for instant in self._in_span(host, page, rate, span - back) if instant <= at]
            if past:
                return max(past)
        return 0.0

    def changes(self, host: int, page: int, begin: float, end: float) -> list[float]:
        """Return all instants of changes from `begin` up to, but without, `end`."""
        rate = self.rate(host, page)
        if not rate:
            return []
        spans = range(int(begin * rate), int(end * rate) + 1)
        return sorted(at for span in spans for at in self._in_span(host, page, rate, span) if begin <= at < end)

    def _in_span(self, host: int, page: int, rate: float, span: int) -> Iterator[float]:
        # By inversion: the chance of no change in a span of mean one is 1/e.
        chance, term, number = (lot(self._options, "spans", host, page, span) + 0.5) / (1 << 64), exp(-1.0), 0
        below = term
        while chance > below and number < SPANS_BACK_MAX:
            number += 1
            term /= number
            below += term
        for which in range(number):
            yield (span + (lot(self._options, "span", host, page, span, which) + 0.5) / (1 << 64)) / rate
