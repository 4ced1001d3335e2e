"""The fault trials find hand-made mistakes. All of them: `python -m tests.lab.mutants`."""

from __future__ import annotations

from pathlib import Path

import pytest

import gossamer
from tests.further import with_further
from tests.lab.mutants import MUTANTS, found_by

SOURCE = Path(gossamer.__file__).parent
ROOT = Path(__file__).parents[2]
SOME = ("redo-never-applied-again", "journal-directory-not-synced", "delay-half")


def test_each_mutant_replaces_one_place() -> None:
    files = {name: (SOURCE / (one.module.replace(".", "/") + ".py")).read_text() for name, one in MUTANTS.items()}
    assert {name: files[name].count(one.line) for name, one in MUTANTS.items()} == dict.fromkeys(MUTANTS, 1)
    assert {test for one in MUTANTS.values() for test in one.tests if not (ROOT / test).exists()} == set()


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", with_further(*SOME))
def test_a_mutant_is_found(name: str) -> None:
    assert "seed" in found_by(name, 50)
