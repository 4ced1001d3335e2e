"""Builds that can be killed at each of their steps (`tests.crash.forks`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gossamer.assembly.modules import judge_of
from gossamer.config import configure
from gossamer.results.offline import build as building
from gossamer.results.offline import steps
from gossamer.results.offline.steps import BuildRequest
from tests.crash.forks import Steps, answer


def run(job: dict[str, Any], _: Steps) -> None:
    """Make one build."""
    steps.BASE_BYTES, steps.BUFFER_BYTES_MIN = 1 << 40, job["buffer_bytes"]
    wish = BuildRequest(per_host=job["per_host"], parts=job["parts"], retries=1)
    known = Path(job["known"]) if job["known"] else None
    order = building.SegmentOrder(
        tuple(map(Path, job["places"])), Path(job["target"]), known, job["bloom"], sets=tuple(job["sets"]), wish=wish
    )
    building.build(order)


def warm() -> None:
    """Pay once for what every build needs; nothing that has threads."""
    judge_of(configure(None)).namer.name("http://www.example.co.uk/")


if __name__ == "__main__":
    warm()
    answer(run)
