"""The slot as a text file: when the stage began."""

import time
from pathlib import Path


def accuse(directory: Path) -> None:
    with (directory / "state/accused").open("a") as log:
        log.write("strike\n")


def overdue(directory: Path, limit_s: float) -> bool:
    slot = directory / "state/slot"
    return slot.exists() and time.time() - float(slot.read_text() or "inf") > limit_s
