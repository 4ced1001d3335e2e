"""Retries: when a URL is asked for again, and how often."""

from __future__ import annotations

from gossamer.model.visits import Again, Visit
from gossamer.world.dice import Dice


class Retries:
    """Doubling waits with jitter, up to so many attempts."""

    def __init__(self, attempts_max: int, first_s: float, most_s: float, dice: Dice) -> None:
        self._attempts_max = attempts_max
        self._first_s = first_s
        self._most_s = most_s
        self._dice = dice

    def left(self, visit: Visit) -> bool:
        """Say whether another attempt may be made."""
        return visit.attempt < self._attempts_max

    def after(self, visit: Visit, error: str, now: float) -> Again | None:
        """Return the next attempt, or None when there have been enough."""
        if not self.left(visit):
            return None
        wait_s = min(self._first_s * 2.0 ** min(visit.attempt - 1, 40), self._most_s)
        wait_s *= 1.0 + self._dice.uniform(0.0, 0.5)
        return Again(visit.url, now + wait_s, visit.attempt + 1, visit.hops, error)
