"""Logs: separate files of expected and unexpected errors, as JSON lines, with a level for each package.

Lines are encoded by msgspec and collected until the commit. structlog at its fastest takes twice as long per line
(`benchmarks/bench_logs.py`: 4.9 µs, here 2.3 µs), and in a crawl with many errors each page has a line.
"""

import contextlib
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

import msgspec

from gossamer.engine.options import Level, LogsOptions
from gossamer.model.links import Link
from gossamer.model.words import instant
from gossamer.world.clock import Clock, WallClock
from gossamer.world.files import AppendFile, make_directory

INFO = "info.log"
CRITICAL = "critical.log"
LEVELS: dict[str, int] = {name: number for number, name in enumerate(get_args(Level))}
PACKAGE_OF: Mapping[str, str] = {
    "alarm": "watch", "alarm_over": "watch", "configuration_changed": "config", "control_failed": "control",
    "dns_error": "resolve", "excluded": "scope", "exclusions_read": "scope", "exclusions_refused": "scope",
    "loop_stalled": "watch", "module_failed": "process", "more_seeds_failed": "seeds", "process_crashed": "process",
    "robots": "robots", "robots_denied": "robots", "robots_unreachable": "robots", "seed_refused": "seeds",
    "trapped": "scope", "host_closed": "frontier", "internal_error": "crawl", "listener_failed": "api",
    "usage_denied": "robots", "link_rejected": "scope", "segment_refused": "seeds", "console_failed": "api",
    "course_unread": "api", "exchange": "crawl",
}  # fmt: skip
"""Package of each event; other events belong to `fetch`."""
LEVEL_OF: Mapping[str, str] = {"alarm": "warning"}


class Logs:
    """Log files: `info.log` for errors of pages and servers, `critical.log` for internal errors.

    Lines are buffered and written with each commit; a critical line is written at once. Each file is bounded: when
    full, it is renamed to `info.log.1`, the previous one to `info.log.2`, and the oldest is deleted.
    """

    def __init__(self, directory: Path, clock: Clock, options: LogsOptions | None = None) -> None:
        self._clock = clock
        self._paths = {name: directory / name for name in (INFO, CRITICAL)}
        self._files: dict[str, AppendFile] = {}
        self._held: dict[str, tuple[int, int]] = {}
        """The `_state` of each file as this process left it."""
        for name in self._paths:
            self._open(name)
        self.error = ""
        """Why the last lines are lost; empty if they are not."""
        self._lines: dict[str, bytearray] = {INFO: bytearray(), CRITICAL: bytearray()}
        self.reconfigure(options or LogsOptions())

    def reconfigure(self, options: LogsOptions) -> None:
        """Apply new levels and bounds."""
        self._options = options
        self._levels = {package: LEVELS[level] for package, level in options.levels.items()}
        self._level = LEVELS[options.level]
        self.logs_visits = self._levels.get("fetch", self._level) <= LEVELS["debug"]
        """Whether every attempt gets a line (`visited`), not only failed ones."""
        logs_rejections = self._levels.get("scope", self._level) <= LEVELS["debug"]
        self.on_rejected = self.link_rejected if logs_rejections else None
        """Takes links that filters reject; None if they are not logged."""

    def debug(self, event: str, **facts: object) -> None:
        """Log a normal event."""
        self._line(INFO, "debug", event, facts)

    def info(self, event: str, **facts: object) -> None:
        """Log an expected error."""
        self._line(INFO, LEVEL_OF.get(event, "info"), event, facts)

    def link_rejected(self, link: Link, name: str) -> None:
        """Log a link that a filter rejected."""
        self.debug("link_rejected", url=link.url.text, filter=name, link_type=link.link_type, referrer=link.referrer)

    def critical(self, event: str, error: BaseException | str = "", **facts: object) -> None:
        """Log an internal error, with its traceback if it is an exception, at any level."""
        facts["error"] = error
        if isinstance(error, BaseException):
            facts["error"] = f"{type(error).__name__}: {error}"
            facts["traceback"] = getattr(error, "trace", "") or "".join(traceback.format_exception(error))
        self._line(CRITICAL, "critical", event, facts)
        self.flush()

    def flush(self) -> None:
        """Write the buffered lines. If the disk is full, lines are lost. A file that another program removed, renamed,
        replaced or cut, as logrotate does, is opened again.
        """
        for name, lines in self._lines.items():
            if lines:
                try:
                    if _state(self._paths[name]) != self._held[name]:
                        self._open(name)
                    if self._held[name][1] and self._held[name][1] + len(lines) > self._options.file_bytes_max:
                        self._turn(name)
                    self._files[name].write(lines)
                    inode, length = self._held[name]
                    self._held[name] = (inode, length + len(lines))
                    self.error = ""
                except OSError as error:
                    self.error = f"{self._paths[name]}: {error.strerror or error}"
                lines.clear()

    def close(self) -> None:
        self.flush()
        for file in self._files.values():
            file.close()

    def _line(self, name: str, level: str, event: str, facts: dict[str, object]) -> None:
        package = PACKAGE_OF.get(event, "fetch")
        if LEVELS[level] < self._levels.get(package, self._level):
            return
        at = instant(self._clock.now())
        line = msgspec.json.encode({"at": at, "level": level, "package": package, "event": event, **facts})
        self._lines[name] += line + b"\n"

    def _turn(self, name: str) -> None:
        """Rotate a log: rename the old files and start a new one."""
        path = self._paths[name]
        kept = self._options.files_kept
        if kept == 0:
            self._files[name].truncate(0)
        else:
            for number in range(kept - 1, 0, -1):
                with contextlib.suppress(FileNotFoundError):
                    path.with_name(f"{name}.{number}").replace(path.with_name(f"{name}.{number + 1}"))
            path.replace(path.with_name(f"{name}.1"))
        self._open(name)

    def _open(self, name: str) -> None:
        """Open the file at a log's path, to append. If that fails, the old one stays open, so that no other file gets
        its descriptor.
        """
        path = self._paths[name]
        opened = AppendFile(path, _state(path)[1])
        if name in self._files:
            self._files[name].close()
        self._files[name] = opened
        self._held[name] = _state(path)


def log_crash(error: BaseException, directory: Path) -> None:
    """Log the internal error that ended a crawl, as far as the disk permits."""
    with contextlib.suppress(OSError):
        make_directory(directory / "logs")
        opened = Logs(directory / "logs", WallClock())
        opened.critical("internal_error", error)
        opened.close()


def _state(path: Path) -> tuple[int, int]:
    """Return the inode and the length of a file; zeros if it is missing."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return (0, 0)
    return (found.st_ino, found.st_size)
