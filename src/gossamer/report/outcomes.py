"""Outcomes: how each address ended, for whoever compares."""

from __future__ import annotations

from pathlib import Path

from gossamer.report.report import MEMORY_BYTES_MAX
from gossamer.report.tables import opened

_LAST = "SELECT key, arg_max(outcome::VARCHAR, epoch(fetched_at) + attempt * 1e-6) FROM pages GROUP BY key"


def outcomes(directory: Path) -> dict[str, str]:
    """Return the last outcome of each key of a finished crawl. Holds all of them: for crawls that fit in memory."""
    with opened(directory, MEMORY_BYTES_MAX) as tables:
        if tables is None:
            return {}
        return dict(tables.all(_LAST))
