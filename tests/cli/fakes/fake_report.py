"""A report of one figure."""

from pathlib import Path


def summary(directory: Path) -> int:
    return int((directory / "state/pages").read_text())


def as_text(pages: int) -> str:
    return f"REPORT pages {pages}"


def as_json(pages: int) -> str:
    return f'{{"pages": {pages}}}'
