"""The page about five texts names files, keys and commands that there are."""

from __future__ import annotations

import re

import pytest

from gossamer.cli.main import COMMANDS
from gossamer.config.gather import keys
from tests.docs.shown import ROOT

PAGE = ROOT / "docs/explanation/sources.md"
TEXTS = ("Mercator", "The IR book", "Mischel", "LARM", "Nielsen")
STATES = ("Whole", "Part", "Missing")
ROW = re.compile(r"^\| (?!mechanism |---)(.*) \| (\w+)\b(.*) \| (.*) \| (.*) \|$", re.MULTILINE)
SOURCE = ROOT / "src/gossamer"


def rows() -> list[tuple[str, ...]]:
    return ROW.findall(PAGE.read_text(encoding="utf-8"))


def test_every_row_names_where_it_is_and_how_it_stands() -> None:
    assert len(rows()) >= 119
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    assert len(rows()) == len([line for line in lines if not line.startswith(("| mechanism", "| ---"))])
    for mechanism, state, why, _, where in rows():
        assert state in STATES, mechanism
        assert re.search(r"`[\w/]+\.py`", where), mechanism
        assert state == "Whole" or why.strip(". "), f"{mechanism}: say why"


def test_no_mechanism_of_a_text_has_two_rows() -> None:
    for part in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        named = [row[0] for row in ROW.findall(part)]
        assert len(set(named)) == len(named)


def test_the_page_counts_its_rows() -> None:
    states = [row[1] for row in rows()]
    whole, part, missing = (states.count(state) for state in STATES)
    says = f"Of {len(states)} rows, {whole} are whole, {part} in part and {missing} missing."
    assert says in PAGE.read_text(encoding="utf-8")


def test_every_text_has_a_section_and_the_page_is_in_the_navigation() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [text.index(f"\n## {name}\n") for name in TEXTS] == sorted(text.index(f"\n## {name}\n") for name in TEXTS)
    assert '"explanation/sources.md"' in (ROOT / "zensical.toml").read_text()


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0][:40])
def test_files_keys_and_commands_of_a_row_exist(row: tuple[str, ...]) -> None:
    commands = {name for named in COMMANDS.values() for name in named}
    for word in re.findall(r"`([^`]+)`", " ".join(row)):
        if "/" in word:
            assert (SOURCE / word).is_file() or (ROOT / word).is_file(), word
        elif word.startswith("gossamer "):
            assert word.split()[1] in commands, word
        elif re.fullmatch(r"[a-z]+\.[a-z_]+", word):
            assert word in keys() or (SOURCE / word).is_file(), word
