"""A report of one figure."""

from pathlib import Path


def statistics(directory: Path) -> dict[str, object]:
    return {"pages": int((directory / "state/pages").read_text())}


def as_text(statistics: dict[str, object]) -> str:
    return f"REPORT pages {statistics['pages']}"
