"""A report of one figure."""

from collections.abc import Mapping
from pathlib import Path

import msgspec


class Report(msgspec.Struct):
    pages: int = 0
    refused: int = 0
    cost: object = None
    attempts_counted: int = 0
    failed_modules: tuple[object, ...] = ()
    warnings: tuple[str, ...] = ()
    crawling_s: float = 0.0
    seeds_not_fetched: tuple[object, ...] = ()
    awaited: tuple[object, ...] = ()
    lasting: tuple[object, ...] = ()
    idle_shards: tuple[int, ...] = ()
    damage: tuple[str, ...] = ()
    rendering: object = None
    ended: str = ""
    ended_says: str = ""
    proxies: tuple[tuple[str, int, int], ...] = ()


def modules_with_failures(modules: Mapping[str, object]) -> tuple[object, ...]:
    return tuple(modules)


def summary(directory: Path, known: Report, rejected: Mapping[str, int], **unfinished: object) -> Report:
    assert not known.damage
    return Report(int((directory / "state/pages").read_text()), rejected["scope.host"])


def cost_of(report: Report, *_: object) -> None:
    assert report.cost is None


def as_text(report: Report, width: int) -> str:
    return f"REPORT pages {report.pages}, refused {report.refused}, {width} wide"


def as_json(report: Report) -> str:
    return f'{{"pages": {report.pages}}}'


def as_html(report: Report, title: str) -> str:
    return f"<h1>{title}</h1> pages {report.pages}"
