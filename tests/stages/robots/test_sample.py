"""Files made from seeds are read as Google's parser reads them: its answers are in google.json."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from gossamer.stages.robots.rules import RobotsRules
from tests.stages.robots.made import ANSWERS, FILES, HOST, PATHS, made


@pytest.mark.promise("Politeness", "robots.txt is read as Google's parser reads it, but for the differences listed.")
def test_made_files_are_read_as_by_googles_parser() -> None:
    google = json.loads(ANSWERS.read_text())
    assert len(google) == FILES
    differing = []
    for seed, answers in enumerate(google):
        rules = RobotsRules.parse(made(seed), origin=HOST)
        ours = "".join("01"[rules.allows(HOST + path)] for path in PATHS)
        differing += [
            (seed, path, theirs) for path, mine, theirs in zip(PATHS, ours, answers, strict=True) if mine != theirs
        ]
    assert differing == []


def test_the_answers_are_worth_comparing() -> None:
    """Files that allow all, or deny all, would compare nothing."""
    counts = Counter("".join(json.loads(ANSWERS.read_text())))
    assert min(counts["0"], counts["1"]) > 0.2 * counts.total()
    mixed = sum(0 < answers.count("0") < len(PATHS) for answers in json.loads(ANSWERS.read_text()))
    assert mixed > FILES / 4
