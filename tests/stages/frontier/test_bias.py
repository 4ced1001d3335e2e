"""The bias: which level is drawn, and how often."""

from __future__ import annotations

from collections import Counter

import pytest

from gossamer.options import OptionsError, convert
from gossamer.stages.frontier.index import LevelBias
from gossamer.stages.frontier.options import FrontierOptions
from gossamer.world.dice import Dice


def test_each_level_is_drawn_as_often_as_the_bias_says() -> None:
    bias = LevelBias(2.0, Dice(1))
    drawn = Counter(bias.choose([1, 2, 4]) for _ in range(11_000))
    assert abs(drawn[1] / drawn[2] - 2.0) < 0.2
    assert abs(drawn[2] / drawn[4] - 4.0) < 0.6


def test_without_bias_all_levels_are_alike() -> None:
    bias = LevelBias(1.0, Dice(1))
    drawn = Counter(bias.choose([0, 7]) for _ in range(10_000))
    assert abs(drawn[0] - drawn[7]) < 500


def test_one_level_is_chosen_without_a_throw() -> None:
    dice = Dice(1)
    LevelBias(2.0, dice).choose([3])
    assert dice.below(1 << 30) == Dice(1).below(1 << 30)


def test_the_strongest_bias_that_may_be_asked_for_can_be_reckoned() -> None:
    """A stronger one once ended crawls with an internal error: its seventh power is no number."""
    strongest = 1_000_000
    assert LevelBias(strongest, Dice(1)).choose([0, 7]) == 0
    assert convert(FrontierOptions, {"level_bias": strongest}).level_bias == strongest
    with pytest.raises(OptionsError, match="level_bias"):
        convert(FrontierOptions, {"level_bias": strongest + 1})
