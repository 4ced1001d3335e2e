"""A report of one figure."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec


class Report(msgspec.Struct):
    pages: int
    refused: int
    cost: object = None
    attempts_counted: int = 0


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
    return Report(int((directory / "state/pages").read_text()), rejected["scope.host"])


def cost_of(report: Report, *_: object) -> None:
    assert report.cost is None


def as_text(report: Report, width: int) -> str:
    return f"REPORT pages {report.pages}, refused {report.refused}, {width} wide"


def as_json(report: Report) -> str:
    return f'{{"pages": {report.pages}}}'


def as_html(report: Report, title: str) -> str:
    return f"<h1>{title}</h1> pages {report.pages}"
