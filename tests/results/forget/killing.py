"""Forgets pages in a fork that is killed at a chosen step: each change of the disk, and each commit of a store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from gossamer.api import forget_of
from gossamer.state.store import Store
from tests.crash.forks import Steps, answer


def run(job: dict[str, Any], steps: Steps) -> None:
    """Do one job; each line of `job["notes"]` is a step of the plan, with the number of changes before it."""
    for name in ("commit", "apply", "purge"):
        setattr(Store, name, _stepping(getattr(Store, name), steps))
    notes = Path(job["notes"])

    def note(step: str) -> None:
        count, fatal = steps.count, steps.fatal
        steps.fatal = -1
        with notes.open("a") as file:
            file.write(f"{count} {step}\n")
        steps.count, steps.fatal = count, fatal

    forget_of(job["directory"], job["pattern"], reason="a letter", note=note)


def _stepping(function: Callable[..., object], steps: Steps) -> Callable[..., object]:
    def stepped(*arguments: object) -> object:
        steps.step()
        return function(*arguments)

    return stepped


if __name__ == "__main__":
    answer(run)
