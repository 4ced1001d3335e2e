"""Entry: where a command begins: `crawl` and `resume` go to the process that will crawl before anything is imported."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

_may_be_secret = re.compile(
    r".*(?:://[^/\s]*@|(?:authorization|cookie|token|secret|passw|api[-_]?key)[^=\s]*\s*=)", re.IGNORECASE | re.DOTALL
).match
"""A word of the command line that seems to hold a credential: every user of the machine can read it."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit with its status. A mistake is one line on standard error and status 2."""
    words = sys.argv[1:] if arguments is None else arguments
    if any(map(_may_be_secret, words)):
        from gossamer.world.process import hide_arguments

        hide_arguments(_may_be_secret)
    sys.exit(status_of(words))


def status_of(words: Sequence[str]) -> int:
    """Run a command and return its exit status."""
    if words and words[0] == "help":
        words = [*words[1:], "--help"]
    if words and words[0] in {"crawl", "resume"} and not {"-h", "--help"} & set(words):
        from gossamer.cli.crawling import carried_out
        from gossamer.cli.exits import Exit

        try:
            return carried_out(words)
        except KeyboardInterrupt:
            return Exit.INTERRUPTED
    from gossamer.cli.command import status_of_command

    return status_of_command(words)
