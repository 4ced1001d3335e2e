"""Dice: random numbers, reproducible with a seed."""

import random
import secrets
from collections.abc import Callable


def unguessable(random_bytes: int) -> str:
    """Return a secret text of letters, digits, `-` and `_`, a third longer than `random_bytes`."""
    return secrets.token_urlsafe(random_bytes)


class Dice:
    """A random generator for jitter and sampling. With a seed, it returns the same numbers in the same order."""

    def __init__(self, seed: int | None = None) -> None:
        generator = random.Random(seed)
        self.uniform: Callable[[float, float], float] = generator.uniform
        """Returns a number between two, these included."""
        self.below: Callable[[int], int] = generator.randrange
        """Returns a whole number from 0 to one below its argument."""
        self.bits: Callable[[int], int] = generator.getrandbits
        """Returns an integer of that many random bits. A fifth of the cost of `below`."""
