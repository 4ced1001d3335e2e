"""Watch: `status --watch`: the status again and again, in place on a terminal, as blocks of lines elsewhere."""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gossamer.cli.words import obeys_escapes, write_line

INTERVAL_S = 1.0
PLAIN_INTERVAL_S = 5.0
CLEAR, HOME, ERASE_LINE, ERASE_BELOW = "\x1b[2J\x1b[H", "\x1b[H", "\x1b[K", "\x1b[J"
ALTERNATE_ON, ALTERNATE_OFF = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"


def watch(text: Callable[[], tuple[str, bool]]) -> int:
    """Show what `text` returns until it says that the crawl is over, or `q` or Ctrl-C is typed; the last one stays."""
    if not (obeys_escapes(sys.stdout) and sys.stdin.isatty()):
        return _plain(text)
    shown = ""
    with _screen() as keyboard:
        over = False
        while not over:
            shown, over = text()
            size = os.get_terminal_size(sys.stdout.fileno())
            lines = [line[: size.columns] for line in shown.splitlines()][: size.lines - 2]
            body = "".join(f"{line}{ERASE_LINE}\r\n" for line in [*lines, "", "q: quit"][: size.lines - 1])
            sys.stdout.write(HOME + body + ERASE_BELOW)
            sys.stdout.flush()
            if _quits(keyboard):
                break
    write_line(sys.stdout, shown)
    return 0


def _plain(text: Callable[[], tuple[str, bool]]) -> int:
    while True:
        shown, over = text()
        write_line(sys.stdout, shown + "\n")
        if over:
            return 0
        time.sleep(PLAIN_INTERVAL_S)


@contextmanager
def _screen() -> Iterator[int]:
    """Take the terminal's second screen and single keys; give both back, whatever happens."""
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    try:
        tty.setcbreak(keyboard)
        sys.stdout.write(ALTERNATE_ON + CLEAR)
        yield keyboard
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
        sys.stdout.write(ALTERNATE_OFF)
        sys.stdout.flush()


def _quits(keyboard: int) -> bool:
    """Wait for the next refresh; say whether somebody typed `q` meanwhile."""
    until = time.monotonic() + INTERVAL_S
    while (left_s := until - time.monotonic()) > 0:
        if not select.select([keyboard], [], [], left_s)[0]:
            return False
        typed = os.read(keyboard, 64)
        if not typed or b"q" in typed.lower() or b"\x03" in typed:
            return True
    return False
