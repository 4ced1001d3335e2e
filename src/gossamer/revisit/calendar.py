"""Calendar: how many pages are due when, in spans of time: enough to say what is overdue without looking at any."""

from __future__ import annotations

import msgspec

SPANS_MAX = 1_000


class Calendar(msgspec.Struct, array_like=True):
    """Counts by span; as many spans as the longest wait has."""

    span_s: float
    spans: dict[int, int] = msgspec.field(default_factory=dict)

    def add(self, at: float, by: int = 1) -> None:
        """Count a page that is due at `at`."""
        span = int(at / self.span_s)
        count = self.spans.get(span, 0) + by
        if count:
            self.spans[span] = count
        else:
            self.spans.pop(span, None)

    def remove(self, at: float) -> None:
        """Count it no more; `at` must be what it was added with."""
        self.add(at, -1)

    def before(self, at: float) -> int:
        """Return how many are due before `at`, to a span's length."""
        last = int(at / self.span_s)
        return sum(count for span, count in self.spans.items() if span < last)


def span_of(interval_s_mean: float, interval_s_max: float) -> float:
    """Return a length of spans that is fine enough for the mean interval, and keeps their number bounded."""
    return max(interval_s_mean / 24.0, interval_s_max / SPANS_MAX)
