"""Bias: by which chance one level goes before another."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer.frontier.record import LEVELS
from gossamer.world.dice import Dice


class LevelBias:
    """Draws a level from those that hold something: each `bias` times as likely as the next less urgent one.

    Every level that holds something has its chance at every draw, so none starves (Heydon and Najork 1999, section
    3.1, draw their front queues the same way). With `bias` 1 all are alike.
    """

    __slots__ = ("_dice", "_weights")

    def __init__(self, bias: float, dice: Dice) -> None:
        self._dice = dice
        self._weights = tuple(bias ** (LEVELS - 1 - level) for level in range(LEVELS))

    def choose(self, levels: Sequence[int]) -> int:
        """Return one of some levels, at least one."""
        if len(levels) == 1:
            return levels[0]
        weights = self._weights
        throw = self._dice.uniform(0.0, sum([weights[level] for level in levels]))
        for level in levels:
            throw -= weights[level]
            if throw <= 0:
                return level
        return levels[-1]
