"""The page about the simulator measures each figure of web2025 that has no source."""

from __future__ import annotations

import re
import runpy

import pytest

from tests.docs.shown import ROOT

PAGE = ROOT / "docs/explanation/simulation.md"
MEASURE = runpy.run_path(str(ROOT / "benchmarks/assumptions.py"), run_name="assumptions")


def shown() -> list[list[str]]:
    text = PAGE.read_text(encoding="utf-8")
    table = text.partition(MEASURE["BEGIN"])[2].partition(MEASURE["END"])[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.strip().splitlines()][2:]


def test_each_assumed_figure_has_a_row_with_its_value() -> None:
    options = MEASURE["_options"]({})
    expected = {key: MEASURE["_text"](MEASURE["_value"](options, key)) for key in MEASURE["assumed_keys"]()}
    rows = {re.sub(r"`([^`]+)`.*", r"\1", row[0]): row for row in shown()}
    assert {key: rows[key][1] for key in expected} == expected, "python benchmarks/assumptions.py measures again"
    assert len(rows) == len(expected) + 2, "as assumed, and the seed"


def test_the_number_of_assumed_figures_is_named() -> None:
    assert f"{len(MEASURE['assumed_keys']())} of the" in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("row", shown()[3:], ids=lambda row: row[0][:30])
def test_a_row_has_a_result_for_each_value_that_was_tried(row: list[str]) -> None:
    tried = 0 if row[2] == "nothing" else len(row[2].split("; "))
    results = row[3:]
    assert len(results) == 4
    assert [bool(cell) for cell in results] == [number < tried for number in (0, 1)] * 2


def test_cells_say_by_how_much_time_and_cost_change() -> None:
    outcome = MEASURE["Outcome"]
    before = outcome(10.0, 100.0, "cpu", True)
    cell = MEASURE["_cell"]
    assert cell(outcome(10.1, 101.0, "cpu", True), before) == "same"
    assert cell(outcome(20.0, 200.0, "cpu", True), before) == "2.00"
    assert cell(outcome(10.0, 150.0, "cpu", True), before) == "same, cost 1.50"
    assert cell(outcome(5.0, 50.0, "hosts", True), before) == "0.50, hosts"
    assert cell(outcome(5.0, 50.0, "hosts", False), before) == "not in 60 days"
