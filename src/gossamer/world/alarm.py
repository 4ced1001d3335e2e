"""Alarm: interrupts code that takes too long, and reports a stalled event loop."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType

from gossamer.world.clock import Clock
from gossamer.world.files import write_whole

WALL_FACTOR = 10.0
"""Limit of the wall time of work on a page, as a multiple of that of its processor time: a machine runs other work
too."""
TICKS = 20
"""Checks per limit: a run is interrupted at the latest after 1 + 1 / TICKS of its limit."""
TICK_S_MIN = 0.005
"""Shortest interval of checks."""
REST_SHARE = 0.1
"""Share of the limit that a run gets after it was interrupted, for the work that remains."""


class OverrunAlarm:
    """Raises `TimeoutError` in Python code that runs between `begin` and `end` for longer than its limit.

    The limit is `limit_s` of its thread's processor time, which waiting on a busy machine does not use up, or `wall_s`
    of wall time. A run may have several parts: it goes on with `resume` after `end`, and after `pause` with `begin` and
    what it has spent. An interrupted run may go on for a `REST_SHARE` of its limit. A run costs 0.5 µs and each further
    part 0.1 µs, because a timer does the checks. The alarm cannot interrupt native code that does not return to the
    interpreter, nor code outside the main thread: there, and where other code uses the signal, `set` returns None.
    """

    def __init__(
        self,
        limit_s: float,
        wall_s: float,
        processor_s: Callable[[], float] = time.thread_time,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """`processor_s` returns the main thread's processor time, `now_s` that of any monotonic clock, in seconds."""
        self._limit_s = limit_s
        self._wall_s = wall_s
        self._processor_s = processor_s
        self._now_s = now_s
        self._spent_s = 0.0
        self._ends_s = 0.0
        """Processor time at which the run is interrupted."""
        self._ends_at = 0.0
        """The same by the clock."""
        self._running = False
        tick_s = max(TICK_S_MIN, limit_s / TICKS)
        signal.signal(signal.SIGALRM, self.tick)
        signal.setitimer(signal.ITIMER_REAL, tick_s, tick_s)

    @classmethod
    def set(cls, limit_s: float, wall_s: float) -> OverrunAlarm | None:
        """Return an alarm, or None where it cannot work."""
        is_main = threading.current_thread() is threading.main_thread()
        if not is_main or not hasattr(signal, "SIGALRM") or signal.getsignal(signal.SIGALRM) != signal.SIG_DFL:
            return None
        return cls(limit_s, wall_s)

    def begin(self, spent_s: float = 0.0) -> None:
        """Begin a run, of whose limit `spent_s` are used up."""
        self._spent_s = spent_s
        self._ends_s = self._processor_s() + self._limit_s - spent_s
        self._ends_at = self._now_s() + self._wall_s
        self._running = True

    def resume(self) -> None:
        """Go on with the run."""
        self._running = True

    def end(self) -> None:
        """End a part of the run."""
        self._running = False

    def pause(self) -> float:
        """End a part of the run; return what the run has spent. Short parts, such as slices of a page, cost nothing."""
        self._running = False
        spent_s = self._limit_s - (self._ends_s - self._processor_s())
        if spent_s - self._spent_s <= self._limit_s / TICKS:
            return self._spent_s
        return min(spent_s, self._limit_s * (1 - REST_SHARE))

    def close(self) -> None:
        """Stop the timer."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)

    def tick(self, _number: int = 0, _frame: FrameType | None = None) -> None:
        """Interrupt the current run if it has taken too long. The timer calls this."""
        if not self._running:
            return
        processor_s = self._processor_s()
        now_s = self._now_s()
        if processor_s < self._ends_s and now_s < self._ends_at:
            return
        limit = f"{self._limit_s:g} s of processor time" if processor_s >= self._ends_s else f"{self._wall_s:g} s"
        self._ends_s = processor_s + REST_SHARE * self._limit_s
        self._ends_at = now_s + REST_SHARE * self._wall_s
        raise TimeoutError(f"it took too long: more than {limit}")


class ProcessorLimit:
    """Ends this process by SIGPROF when a run takes more than `limit_s` of processor time, in native code too, and by
    SIGALRM when it takes more than `wall_s` of wall time; 0: no limit.
    """

    def __init__(self, limit_s: float, wall_s: float = 0.0) -> None:
        self._limit_s = limit_s
        self._wall_s = wall_s

    def begin(self) -> None:
        """Begin a run."""
        self._set(self._limit_s, self._wall_s)

    def end(self) -> None:
        """End the run."""
        self._set(0.0, 0.0)

    def _set(self, limit_s: float, wall_s: float) -> None:
        signal.setitimer(signal.ITIMER_PROF, limit_s)
        if self._wall_s:
            signal.setitimer(signal.ITIMER_REAL, wall_s)


class TurnAlarm:
    """Ends the connection that native code reads in a turn that takes more than `limit_s` of its thread's processor
    time, so that the code returns even if the other side never stops sending. For one thread; a turn costs 1 µs.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._clock = time.pthread_getcpuclockid(threading.get_ident())
        self._turn: tuple[int, float] | None = None
        self._cut: tuple[int, float] | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="turns", daemon=True)
        self._thread.start()

    @classmethod
    def set(cls, limit_s: float) -> TurnAlarm | None:
        """Return an alarm for this thread; None if other threads cannot read its processor time on this system."""
        return cls(limit_s) if hasattr(time, "pthread_getcpuclockid") else None

    def begin(self, fd: int) -> None:
        """Begin a turn in which a connection is read."""
        self._turn = fd, time.clock_gettime(self._clock)

    def end(self) -> bool:
        """End the turn; return whether the alarm ended its connection."""
        turn = self._turn
        self._turn = None
        return turn is not None and turn is self._cut

    def close(self) -> None:
        """End the thread."""
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(self._limit_s / TICKS):
            turn = self._turn
            if turn is None or turn is self._cut or time.clock_gettime(self._clock) - turn[1] < self._limit_s:
                continue
            self._cut = turn
            disconnect(turn[0])


def disconnect(fd: int) -> None:
    """End a TCP connection at once and drop received data that is not read yet; the descriptor stays open. On Linux by
    a `connect` to no address (connect(2)); elsewhere received data can still be read.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).connect(fd, bytes(16), 16)
    else:
        with suppress(OSError), socket.socket(fileno=os.dup(fd)) as connection:
            connection.shutdown(socket.SHUT_RDWR)


LOOK_S = 0.5
FRAMES_MAX = 12


class Pulse:
    """Reports a stalled event loop. The loop calls `beat` often; after `stall_s` seconds without a call, a thread
    writes to `file` since when the loop is stalled, and its stack. Other processes read the file, since the loop itself
    cannot answer then. The file is deleted when the loop goes on.
    """

    def __init__(self, file: Path, clock: Clock, stall_s: float) -> None:
        self._file = file
        self._clock = clock
        self.stall_s = stall_s
        self._beat_at = clock.now()
        self._loop_thread = threading.get_ident()
        self._ended = threading.Event()
        self._stack = ""
        self._thread = threading.Thread(target=self._watch, name="pulse", daemon=True)

    def start(self) -> None:
        """Watch the loop of this thread from now on."""
        self._file.unlink(missing_ok=True)
        self._beat_at = self._clock.now()
        self._loop_thread = threading.get_ident()
        self._thread.start()

    def beat(self, now: float) -> None:
        """Note that the loop runs. Call this from the loop."""
        self._beat_at = now

    def take_stack(self) -> str:
        """Return the loop's stack from the last stall, and forget it; empty: none since the last call."""
        stack = self._stack
        self._stack = ""
        return stack

    def close(self) -> None:
        """End the thread, if it was started, within `LOOK_S`."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
            self._file.unlink(missing_ok=True)

    def _watch(self) -> None:
        reported_at = 0.0
        while not self._ended.wait(LOOK_S):
            beat_at = self._beat_at
            if self._clock.now() - beat_at < self.stall_s:
                if reported_at:
                    self._file.unlink(missing_ok=True)
                    reported_at = 0.0
            elif reported_at != beat_at:
                reported_at = beat_at
                self._stack = self._where()
                with suppress(OSError):
                    write_whole(self._file, json.dumps({"since": beat_at, "stack": self._stack}).encode())

    def _where(self) -> str:
        frame = sys._current_frames().get(self._loop_thread)  # noqa: SLF001 - the only way to see another thread
        return "".join(traceback.format_stack(frame)[-FRAMES_MAX:]) if frame is not None else ""
