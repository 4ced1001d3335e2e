"""Alarm: code that takes too long is interrupted where it stands."""

from __future__ import annotations

import signal
import threading
from types import FrameType


class Alarm:
    """Raises `TimeoutError` in Python code that runs between `begin` and `end` for longer than `limit_s`.

    At the latest after twice that time. A tick looks whether the same run is still on, so a run costs 0.1 µs. Native
    code that does not come back to the interpreter cannot be interrupted, nor can code outside the main thread: `set`
    returns None there, and where somebody else uses the signal.
    """

    def __init__(self, limit_s: float) -> None:
        self._run = 0
        self._seen = -1
        self._running = False
        signal.signal(signal.SIGALRM, self._tick)
        signal.setitimer(signal.ITIMER_REAL, limit_s, limit_s)

    @classmethod
    def set(cls, limit_s: float) -> Alarm | None:
        """Return an alarm, where there can be one."""
        is_main = threading.current_thread() is threading.main_thread()
        if not is_main or not hasattr(signal, "SIGALRM") or signal.getsignal(signal.SIGALRM) != signal.SIG_DFL:
            return None
        return cls(limit_s)

    def begin(self) -> None:
        """Run from here."""
        self._run += 1
        self._running = True

    def end(self) -> None:
        """Run to here."""
        self._running = False

    def close(self) -> None:
        """Never ring again."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)

    def _tick(self, _number: int, _frame: FrameType | None) -> None:
        if self._running and self._seen == self._run:
            raise TimeoutError("it took too long")
        self._seen = self._run
