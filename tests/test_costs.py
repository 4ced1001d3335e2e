"""Processor time of tests: what is measured, and which tests are named."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress

import pytest

from tests.costs import FIXTURES, SPENT, costs, pytest_runtest_call


def report(name: str, seconds: float, *marks: str) -> pytest.TestReport:
    keywords = dict.fromkeys(marks, 1)
    properties = [(FIXTURES, 1.0), (SPENT, seconds), ("other", 9.0)]
    return pytest.TestReport(name, ("", 0, ""), keywords, "passed", None, "call", user_properties=properties)


def test_tests_that_cost_more_than_their_marks_say_are_named() -> None:
    given = [
        report("x.py::a", 1.9), report("x.py::b", 2.1), report("x.py::c", 2.1, "heavy"),
        report("x.py::d", 4.1, "heavy"), report("y.py::e", 4.2, "acceptance"), report("y.py::f", 9.0, "heavy", "long"),
    ]  # fmt: skip
    assert list(costs(given)) == [
        "23 s of 6 tests, without their fixtures",
        "with fixtures, most: 15 s y.py, 14 s x.py",
        "4.2 s, not marked long: y.py::e",
        "4.1 s, not marked long: x.py::d",
        "2.1 s, not marked heavy: x.py::b",
    ]
    assert list(costs([])) == []


def test_children_count_too(request: pytest.FixtureRequest) -> None:
    measuring = pytest_runtest_call(request.node)
    next(measuring)
    subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.2: pass"], check=True)
    with suppress(StopIteration):
        next(measuring)
    name, seconds = request.node.user_properties.pop()
    assert name == SPENT
    assert seconds > 0.1  # The kernel counts hundredths.
