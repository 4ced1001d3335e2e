"""History: what visits told about one page's changes, in a few numbers however many visits there were.

Changes come as a Poisson process of rate λ. Three kinds of visits tell of it:

- nothing changed for t seconds: a factor e^(-λt);
- something changed within t seconds, nobody knows when: 1 - e^(-λt);
- the last change was a seconds ago, and known to be (Last-Modified, a feed, a ping): λ e^(-λa).

So the likelihood needs the sum of all quiet times, the number of dated changes, and the lengths of the intervals with
an undated change. Only these lengths are many; they are kept in bins that are half an octave wide, as count and sum.
"""

from __future__ import annotations

from math import floor, log2

import msgspec

BINS_AN_OCTAVE = 2
BIN_MIN, BIN_MAX = 0, 60
"""From 1 s to 2^30 s: what is shorter or longer joins the outermost bins."""


class History(msgspec.Struct, array_like=True):
    """A page's visits, forgetting old ones by `fade`. At most 61 bins; in practice two or three, 40 bytes."""

    quiet_s: float = 0.0
    """Seconds in which it is known that nothing changed."""
    dated: float = 0.0
    """Changes whose instant is known."""
    undated: dict[int, tuple[float, float]] = msgspec.field(default_factory=dict)
    """Bin to number and sum of the lengths, in seconds, of intervals with a change nobody dated."""
    visits: int = 0

    def unchanged(self, interval_s: float) -> None:
        """Note a visit that found what the one before had found."""
        self.visits += 1
        self.quiet_s += max(interval_s, 0.0)

    def changed(self, interval_s: float, since_change_s: float | None = None) -> None:
        """Note a visit that found something new; `since_change_s` where a trusted source dates the last change.

        A date that lies before the visit before is not trusted: a change did happen since.
        """
        self.visits += 1
        if since_change_s is not None and 0.0 <= since_change_s <= interval_s:
            self.dated += 1.0
            self.quiet_s += since_change_s
        elif interval_s > 0.0:
            number = min(max(floor(BINS_AN_OCTAVE * log2(interval_s)), BIN_MIN), BIN_MAX)
            count, sum_s = self.undated.get(number, (0.0, 0.0))
            self.undated[number] = (count + 1.0, sum_s + interval_s)

    def told(self, changes: int, elapsed_s: float) -> None:
        """Note that a feed or a ping, which misses nothing, told of so many changes in a time."""
        self.dated += changes
        self.quiet_s += max(elapsed_s, 0.0)

    def fade(self, share: float) -> None:
        """Let all that is known weigh less, so that a page that changes its habits is believed: multiply by `share`."""
        self.quiet_s *= share
        self.dated *= share
        self.undated = {
            number: (count * share, sum_s * share)
            for number, (count, sum_s) in self.undated.items()
            if count * share > FORGOTTEN_BELOW
        }


FORGOTTEN_BELOW = 0.01
"""Visits: a bin that weighs less is dropped."""
