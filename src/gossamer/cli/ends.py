"""Ends: how a command ends: its exit status, and the one line that says what was wrong."""

from __future__ import annotations

import sys

FINISHED, FAILED, REFUSED, INTERRUPTED = 0, 1, 2, 130


def complain(line: str) -> None:
    """Write one line on standard error."""
    from gossamer.cli.words import harmless

    try:
        sys.stderr.write(f"gossamer: {harmless(line)}\n")
        sys.stderr.flush()
    except OSError:
        return
