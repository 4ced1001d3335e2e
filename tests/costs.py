"""Processor time of tests, with the children that they waited for: which take more than their marks say, and in all."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager

import pytest

SPENT, FIXTURES = "processor_s", "fixtures_s"
"""Properties of a test's report: seconds without those of its fixtures, which tests share, and those of the fixtures
that were made for it.
"""
LIGHT_S_MAX = 2.0
HEAVY_S_MAX = 4.0
"""Of a test without the mark `heavy` or `acceptance`, and of one without `long`: twice what CONTRIBUTING.md says, for
other programs slow a processor down.
"""
SHOWN_MAX = 20
FILES_SHOWN_MAX = 12


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    with _measured(item, FIXTURES):
        yield


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    with _measured(item, SPENT):
        yield


@contextmanager
def _measured(item: pytest.Item, name: str) -> Iterator[None]:
    began_s = sum(os.times()[:4])
    try:
        yield
    finally:
        item.user_properties.append((name, sum(os.times()[:4]) - began_s))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = terminalreporter.stats.get("passed", [])
    if lines := list(costs([one for one in reports if isinstance(one, pytest.TestReport)])):
        terminalreporter.section("processor time")
        # Workers are waited for by now.
        terminalreporter.line(f"{sum(os.times()[:4]):.0f} s in all, with imports, collection and fixtures")
        for line in lines:
            terminalreporter.line(line)


def costs(reports: Collection[pytest.TestReport]) -> Iterator[str]:
    """Yield the sum, the files that cost most, and the tests that cost more than their marks say, costliest first."""
    spent = [(seconds, one) for one in reports for name, seconds in one.user_properties if name == SPENT]
    if not spent:
        return
    yield f"{sum(seconds for seconds, _ in spent):.0f} s of {len(spent)} tests, without their fixtures"
    files = Counter[str]()
    for one in reports:
        files[one.nodeid.partition("::")[0]] += sum(s for name, s in one.user_properties if name in (SPENT, FIXTURES))
    most = ", ".join(f"{seconds:.0f} s {file}" for file, seconds in files.most_common(FILES_SHOWN_MAX))
    yield f"with fixtures, most: {most}"
    costly = [(seconds, one) for seconds, one in spent if seconds > bound_s(one.keywords)]
    for seconds, one in sorted(costly, key=lambda pair: pair[0], reverse=True)[:SHOWN_MAX]:
        mark = "heavy" if bound_s(one.keywords) == LIGHT_S_MAX else "long"
        yield f"{seconds:.1f} s, not marked {mark}: {one.nodeid}"


def bound_s(marks: Collection[str]) -> float:
    """Return the processor time that a test with these marks may take."""
    if "long" in marks and "further" not in marks:
        return float("inf")
    return HEAVY_S_MAX if {"heavy", "acceptance"} & set(marks) else LIGHT_S_MAX
