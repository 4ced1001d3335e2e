"""Logs: expected errors and unexpected ones apart, as JSON lines."""

from __future__ import annotations

import contextlib
import traceback
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from gossamer.world.clock import Clock
from gossamer.world.files import AppendFile

INFO, CRITICAL = "info.log", "critical.log"
_encode = msgspec.json.Encoder().encode


class Logs:
    """`info.log` is for what pages and servers do wrong, `critical.log` for what we do wrong.

    Lines are buffered and written with each commit; a critical one is written at once.
    """

    def __init__(self, directory: Path, clock: Clock) -> None:
        self._clock = clock
        self._files = {name: _appended(directory / name) for name in (INFO, CRITICAL)}
        self._lines: dict[str, bytearray] = {INFO: bytearray(), CRITICAL: bytearray()}

    def info(self, event: str, **facts: object) -> None:
        """Note an expected error."""
        self._line(INFO, event, facts)

    def critical(self, event: str, error: BaseException | None = None, **facts: object) -> None:
        """Note an error of our own, with its traceback."""
        if error is not None:
            facts["error"] = f"{type(error).__name__}: {error}"
            facts["traceback"] = "".join(traceback.format_exception(error))
        self._line(CRITICAL, event, facts)
        self.flush()

    def flush(self) -> None:
        """Hand the lines to the system. A full disk loses log lines, never a crawl."""
        for name, lines in self._lines.items():
            if lines:
                with contextlib.suppress(OSError):
                    self._files[name].write(lines)
                lines.clear()

    def close(self) -> None:
        self.flush()
        for file in self._files.values():
            file.close()

    def _line(self, name: str, event: str, facts: dict[str, object]) -> None:
        at = datetime.fromtimestamp(self._clock.now(), UTC).isoformat(timespec="milliseconds")
        self._lines[name] += _encode({"at": at, "event": event, **facts}) + b"\n"


def _appended(path: Path) -> AppendFile:
    return AppendFile(path, path.stat().st_size if path.exists() else 0)
