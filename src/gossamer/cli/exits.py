"""Exits: the exit statuses of all commands, and the line on standard error that says what is wrong."""

from __future__ import annotations

import sys
from enum import IntEnum
from typing import Self


class Exit(IntEnum):
    """How a command ended. `gossamer --help` and docs/commands.md show these meanings; a test compares the page."""

    meaning: str
    """For people, in one line."""

    def __new__(cls, status: int, meaning: str) -> Self:
        member = int.__new__(cls, status)
        member._value_ = status
        member.meaning = meaning
        return member

    FINISHED = 0, "Finished: nothing is left to fetch, or a limit was reached."
    FAILED = (
        1,
        "Failure: an internal error, a missing or damaged file, a failed upload; the line says what to do.",
    )
    REFUSED = 2, "Usage or configuration error: one line on standard error says what is wrong and how to fix it."
    NOTHING = 3, "The crawl ended, but no seed could be fetched. `segment build`: nothing new to list."
    WAITING = (
        4,
        "Finished but for URLs whose servers asked to wait longer than `crawl.patience_s`; `resume` tries those.",
    )
    INTERRUPTED = 130, "Interrupted by a signal or by `gossamer stop`; everything is saved."


def epilog() -> str:
    """Return the exit statuses for the end of a help text."""
    return "\n".join(["\b", "Exit status:", *(f"{one.value:>3}  {one.meaning}" for one in Exit)])


def table() -> str:
    """Return the exit statuses as docs/commands.md has them."""
    rows = [f"| {one.value} | {one.meaning} |" for one in Exit]
    return "\n".join(["| exit status | meaning |", "| --- | --- |", *rows])


def complain(line: str) -> None:
    """Write one line on standard error."""
    from gossamer.cli.words import harmless

    try:
        sys.stderr.write(f"gossamer: {harmless(line)}\n")
        sys.stderr.flush()
    except OSError:
        return
