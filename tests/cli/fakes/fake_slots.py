"""The slot as a text file: when the stage began."""

import contextlib
import signal
from pathlib import Path

CONTENT_DEATHS = frozenset({signal.SIGSEGV, signal.SIGABRT})


def death(status: int) -> str:
    return f"ended with status {status}" if status >= 0 else f"died of {signal.Signals(-status).name}"


def accuse(state: Path, since: float) -> None:
    with (state / "accused").open("a") as log:
        log.write("strike\n")


def overdue(state: Path, now: float, limit_s: float, since: float) -> bool:
    slot = state / "slot"
    started = float(slot.read_text() or "inf") if slot.exists() else 0.0
    return started >= since and now - started > limit_s


def is_silent(state: Path, now: float, limit_s: float, since: float, asked_at: float) -> bool:
    """Fakes have no heartbeat: on a machine at its limit a signal waits for them."""
    return False


def page_of(state: Path, since: float) -> str:
    return ""


def progress(state: Path) -> int:
    file = state / "epoch"
    return int(file.read_text()) if file.exists() else 0


def note_end(state: Path, ended: str = "", says: str = "") -> None:
    with contextlib.suppress(FileNotFoundError):
        (state / "end").write_text(f"{ended}: {says}")


def was_told_to_stop(state: Path, since: float) -> bool:
    return False
