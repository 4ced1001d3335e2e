"""Output: output of commands: escaped untrusted text, progress, mistakes, exit statuses."""

import os
import sys
import time
from enum import IntEnum
from typing import Self, TextIO

SHOWN_CHARACTERS_MAX = 500
DUMB = frozenset(("dumb", "unknown"))
"""Values of TERM for terminals that print control sequences instead of obeying them."""
PROGRESS_S = 5.0
LIVE_PROGRESS_S = 0.2


class Exit(IntEnum):
    """Exit status of a command. `gossamer --help` and docs/reference/commands.md show the meanings."""

    meaning: str
    """Its meaning, in one line for people."""

    def __new__(cls, status: int, meaning: str) -> Self:
        member = int.__new__(cls, status)
        member._value_ = status
        member.meaning = meaning
        return member

    FINISHED = 0, "Finished: nothing is left to fetch, or a limit was reached."
    FAILED = (
        1,
        "Failure: an internal error, a damaged file, a failed upload; the line says what to do. `check`: faults found.",
    )
    REFUSED = 2, "Usage or configuration error: one line on standard error says what is wrong and how to fix it."
    NOTHING = 3, "No seed could be fetched. `import`: no capture is in the archives. `segment build`: nothing is new."
    WAITING = (
        4,
        "Finished, except for URLs whose servers asked to wait longer than `crawl.patience_s`; `resume` tries these.",
    )
    INTERRUPTED = 130, "Interrupted by a signal or by `gossamer stop`; everything is saved."


def epilog() -> str:
    """Return the exit statuses for the end of a help text."""
    return "\n".join(["\b", "Exit status:", *(f"{one.value:>3}  {one.meaning}" for one in Exit)])


def table() -> str:
    """Return the exit statuses as docs/reference/commands.md has them."""
    rows = [f"| {one.value} | {one.meaning} |" for one in Exit]
    return "\n".join(["| exit status | meaning |", "| --- | --- |", *rows])


def complain(line: str) -> None:
    """Write one line on standard error. Where journald reads that, the line has the priority of an error."""
    error = os.fstat(2)
    priority = "<3>" if os.environ.get("JOURNAL_STREAM") == f"{error.st_dev}:{error.st_ino}" else ""
    write_line(sys.stderr, f"{priority}gossamer: {harmless(line)}")


def harmless(text: object) -> str:
    """Return text on one line without control characters for a terminal.

    URLs, titles and server errors are untrusted: control characters, direction marks and lone surrogates
    are shown as escapes.
    """
    whole = str(text)
    cut = whole[:SHOWN_CHARACTERS_MAX]
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in cut)
    return shown + ("…" if len(whole) > len(cut) else "")


def obeys_escapes(out: TextIO) -> bool:
    """Return whether a stream is a terminal that obeys control sequences: those of editors and CI systems do not."""
    return out.isatty() and os.environ.get("TERM", "").lower() not in DUMB


def write_line(out: TextIO, line: str, end: str = "\n") -> None:
    """Write a line; a reader that has gone away (`| head`) does not end a crawl."""
    try:
        out.write(line.encode(out.encoding or "utf-8", "backslashreplace").decode(out.encoding or "utf-8") + end)
        out.flush()
    except (OSError, ValueError):
        return


class Shown:
    """Progress on a terminal or in a log; nothing of it reaches standard output."""

    def __init__(self, out: TextIO, *, quiet: bool) -> None:
        self._out = out
        self._quiet = quiet
        self._is_live = obeys_escapes(out)
        self._interval_s = LIVE_PROGRESS_S if self._is_live else PROGRESS_S
        self._next = time.monotonic() + self._interval_s
        self._is_open = False

    def advance(self, table: str, done: int, rows: int) -> None:
        """Show the progress if an interval has passed."""
        self.say(f"{table}: {done:,} of {rows:,} rows" + (f" ({done / rows:.0%})" if rows else ""))

    def say(self, line: str) -> None:
        """Show a line if an interval has passed."""
        now = time.monotonic()
        if self._quiet or now < self._next:
            return
        self._next = now + self._interval_s
        if self._is_live:
            write_line(self._out, f"\r\x1b[K{line}", "")
            self._is_open = True
        else:
            write_line(self._out, line)

    def clear(self) -> None:
        """Erase the live line."""
        if self._is_open:
            write_line(self._out, "\r\x1b[K", "")
            self._is_open = False

    def line(self, text: str) -> None:
        """Print a line that stays."""
        if not self._quiet:
            write_line(self._out, text)
