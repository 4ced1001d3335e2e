"""Outcomes are declared once: the type, what each means, and the page of the documentation say the same."""

import re
from pathlib import Path
from typing import get_args

from gossamer.model.outcomes import MEANINGS, OUTCOMES, SUCCEEDED, WITH_CONTENT, Outcome

OUTPUT = Path(__file__).parents[2] / "docs/reference/output.md"


def test_each_outcome_has_a_meaning() -> None:
    assert get_args(Outcome) == OUTCOMES == tuple(MEANINGS)


def test_the_documentation_names_them_all() -> None:
    (row,) = (line for line in OUTPUT.read_text().splitlines() if line.startswith("| `outcome` |"))
    assert tuple(re.findall(r"`(\w+)`", row)[1:]) == OUTCOMES


def test_what_has_content_succeeded() -> None:
    assert WITH_CONTENT < SUCCEEDED
