"""Views: `export`: what others read, made of a crawl, with progress on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from gossamer.cli import door
from gossamer.cli.directory import require_crawl
from gossamer.cli.words import count, counted, obeys_escapes, size

PROGRESS_S = 5.0
LIVE_PROGRESS_S = 0.2


def export(directory: Path, to: str, output: str, table: str, where: str, memory_mb: int, *, quiet: bool) -> int:
    """Make an export, or go on with it; say what came of it."""
    require_crawl(directory)
    shown = Shown(sys.stderr, quiet=quiet)
    if output == "-":
        done = door.stream_of(directory, to, sys.stdout.buffer, table=table, where=where)
        if done.running:
            shown.line(_of_running(directory))
        return 0
    target = Path(output)
    started = time.monotonic()
    done = door.export_of(directory, to, target, table, where, memory_mb * 1_000_000, shown.advance)
    shown.clear()
    if done.running:
        shown.line(_of_running(directory))
    if done.newer:
        shown.line(f"the crawl has {counted(done.newer, 'file')} more since this export began; they are not in it")
    read = ", ".join(f"{counted(rows, 'row')} of {name}" for name, rows in done.rows.items())
    how = "finished" if done.resumed else "written"
    shown.line(
        f"{target} is {how}: {read or 'it was complete'}, {size(_bytes(target))}, {time.monotonic() - started:.1f} s"
    )
    return 0


class Shown:
    """Progress on a terminal or in a log; nothing of it reaches standard output."""

    def __init__(self, out: TextIO, *, quiet: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._out = out
        self._quiet = quiet
        self._clock = clock
        self._is_live = obeys_escapes(out)
        self._interval_s = LIVE_PROGRESS_S if self._is_live else PROGRESS_S
        self._next = clock() + self._interval_s
        self._is_open = False

    def advance(self, table: str, done: int, rows: int) -> None:
        """Show how far it is, if it is time."""
        now = self._clock()
        if self._quiet or now < self._next:
            return
        self._next = now + self._interval_s
        line = f"{table}: {count(done)} of {count(rows)} rows" + (f" ({done / rows:.0%})" if rows else "")
        if self._is_live:
            self._write(f"\r\x1b[K{line}")
            self._is_open = True
        else:
            self._write(f"{line}\n")

    def clear(self) -> None:
        """Take the live line away."""
        if self._is_open:
            self._write("\r\x1b[K")
            self._is_open = False

    def line(self, text: str) -> None:
        """Tell something once."""
        if not self._quiet:
            self._write(f"{text}\n")

    def _write(self, text: str) -> None:
        try:
            self._out.write(text)
            self._out.flush()
        except OSError:
            return


def _of_running(directory: Path) -> str:
    return f"{directory} still crawls: this holds the files that it has finished so far"


def _bytes(target: Path) -> int:
    if target.is_dir():
        return sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    return target.stat().st_size
