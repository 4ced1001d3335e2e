"""Dice: random numbers, reproducible with a seed."""

from __future__ import annotations

import random
import secrets


def unguessable(random_bytes: int) -> str:
    """Return a secret text of letters, digits, `-` and `_`, a third longer than `random_bytes`."""
    return secrets.token_urlsafe(random_bytes)


class Dice:
    """A random generator for jitter and sampling. With a seed, it returns the same numbers in the same order."""

    def __init__(self, seed: int | None = None) -> None:
        self._random = random.Random(seed)

    def uniform(self, low: float, high: float) -> float:
        """Return a number in [`low`, `high`]."""
        return self._random.uniform(low, high)

    def below(self, n: int) -> int:
        """Return a whole number in [0, n)."""
        return self._random.randrange(n)

    def bits(self, count: int) -> int:
        """Return an integer of `count` random bits. A fifth of the cost of `below`."""
        return self._random.getrandbits(count)
