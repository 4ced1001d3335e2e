"""Pulse: a thread that notices when the event loop stalls, and reports where."""

from __future__ import annotations

import json
import sys
import threading
import traceback
from contextlib import suppress
from pathlib import Path

from gossamer.world.clock import Clock
from gossamer.world.files import write_whole

LOOK_S = 0.5
FRAMES_MAX = 12


class Pulse:
    """The loop calls `beat` often. After `stall_s` seconds without a call, `file` reports since when and where the loop
    is stalled, to other processes: the loop itself cannot answer then. The file is deleted when the loop goes on.
    """

    def __init__(self, file: Path, clock: Clock, stall_s: float) -> None:
        self._file = file
        self._clock = clock
        self.stall_s = stall_s
        self._beat_at = clock.now()
        self._loop_thread = threading.get_ident()
        self._ended = threading.Event()
        self._stack = ""
        file.unlink(missing_ok=True)
        self._thread = threading.Thread(target=self._watch, name="pulse", daemon=True)
        self._thread.start()

    def beat(self, now: float) -> None:
        """Say that the loop runs. To be called from it."""
        self._beat_at = now

    def take_stack(self) -> str:
        """Return where the loop stood when it was last seen standing, once."""
        stack, self._stack = self._stack, ""
        return stack

    def close(self) -> None:
        """End the thread; within one look."""
        self._ended.set()
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
