"""Silence: why a crawl that runs does not answer: read from outside, for it cannot tell."""

from __future__ import annotations

import json
import time
from pathlib import Path

STALLED = "state/stalled.json"
LOCK = "state/lock"


def why_silent(directory: Path) -> str:
    """Return a sentence about a crawl whose loop does not answer."""
    process = _process(directory)
    if process and _state(process) == "T":
        return f"its process {process} is stopped (SIGSTOP, or Ctrl-Z): kill -CONT {process} lets it go on"
    try:
        stalled = json.loads((directory / STALLED).read_bytes())
        stood_s, where = time.time() - float(stalled["since"]), str(stalled["stack"]).strip().splitlines()
    except (OSError, ValueError, KeyError, TypeError):
        return "try again"
    at = where[-2].strip() if len(where) > 1 else "somewhere"
    return f"its event loop has stood still for {stood_s:.0f} s, at {at}; {directory / STALLED} tells more"


def _process(directory: Path) -> int:
    try:
        return int((directory / LOCK).read_text() or 0)
    except (OSError, ValueError):
        return 0


def _state(process: int) -> str:
    """Return a process's state as Linux names it: R, S, D, T …"""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""
