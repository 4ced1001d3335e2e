"""A report of one figure."""

from collections.abc import Mapping, Sequence
from pathlib import Path


class Report(int):
    refused: int
    attempts_counted = 0


def modules_with_failures(modules: Mapping[str, object]) -> tuple[object, ...]:
    return tuple(modules)


def summary(
    directory: Path,
    rejected: Mapping[str, int],
    modules: Sequence[object],
    seeds_not_fetched: Sequence[object],
    damage: Sequence[str],
    **unfinished: object,
) -> Report:
    assert not damage
    report = Report((directory / "state/pages").read_text())
    report.refused = rejected["scope.host"]
    return report


def as_text(pages: Report, width: int) -> str:
    return f"REPORT pages {pages}, refused {pages.refused}, {width} wide"


def as_json(pages: Report) -> str:
    return f'{{"pages": {pages}}}'


def as_html(pages: Report, title: str) -> str:
    return f"<h1>{title}</h1> pages {pages}"
