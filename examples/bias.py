"""A bias for `components.bias`: mostly the most urgent level, now and then any.

gossamer crawl https://docs.example.org/ --contact you@example.org --set components.bias=bias.py:MostlyFirst
"""

from collections.abc import Sequence

from gossamer.world.dice import Dice


class MostlyFirst:
    """Chooses the most urgent level, but any level in one of sixteen draws, so that none starves."""

    any_in = 16

    def __init__(self, *, bias: float, dice: Dice) -> None:
        self._dice = dice

    def choose(self, levels: Sequence[int]) -> int:
        if len(levels) > 1 and self._dice.below(self.any_in) == 0:
            return levels[self._dice.below(len(levels))]
        return min(levels)
