"""Run: one crawl in this process, with its progress as lines, JSON or nothing, and the signals that end it."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from gossamer.cli.output import complain, harmless, write_line
from gossamer.cli.status_text import StatusFields, line_of, redraws, summary_of
from gossamer.model.status import detail_pause_s, read_status

if TYPE_CHECKING:
    from gossamer.api import ClusterCrawler, Crawler
    from gossamer.cli.live import Live
    from gossamer.config import Config

SIGNALS = (signal.SIGINT, signal.SIGTERM)
HALTING = frozenset(("answers", "disk", "proxy"))
"""Alarms for which the operator must act, or the crawl goes no further."""


class Stops:
    """Turns signals into requests to stop: the first waits for what is in flight, the second does not."""

    def __init__(self, crawler: Crawler | ClusterCrawler, progress: Progress) -> None:
        self._crawler = crawler
        self._progress = progress
        self.asked = 0

    def ask(self) -> None:
        """Take one signal."""
        self.asked += 1
        if self.asked == 1:
            self._progress.note("Stopping: finishing what is in flight. Once more to stop at once.")
            self._crawler.stop()
        else:
            self._progress.note("Stopping at once.")
            self._crawler.stop(now=True)


async def run_with_console(crawler: Crawler | ClusterCrawler, config: Config, progress: Progress) -> str:
    """Run a crawl to its end, with its console if that is enabled."""
    if config.console.port is None:
        return await drive(crawler, progress)
    from gossamer.cli.serving import console_of

    async with console_of(crawler, config) as address:
        progress.note(f"The console: {address}")
        return await drive(crawler, progress)


async def drive(crawler: Crawler | ClusterCrawler, progress: Progress) -> str:
    """Run a crawl to its end and return how it ended. Raises what the crawl raises."""
    loop = asyncio.get_running_loop()
    stops = Stops(crawler, progress)
    for number in SIGNALS:
        loop.add_signal_handler(number, stops.ask)
    # The supervisor starts us with these blocked, so that none is lost while we begin.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    crawler.on_note(progress.note)
    try:
        async with asyncio.TaskGroup() as group:
            status = crawler.status if progress.interval_s is None else throttle_detail(crawler.status)
            watching = group.create_task(follow(progress, status, lambda: crawler.config.progress.interval_s))
            ended = await crawler.run()
            watching.cancel()
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None  # The crawl's error, without the group around it.
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)
    return ended


def throttle_detail(status: Callable[..., StatusFields]) -> Callable[[], StatusFields]:
    """Return a function for a detailed status, which is renewed as rarely as `detail_pause_s` says."""
    kept: dict[str, object] = {}
    next_at = 0.0

    def renew() -> StatusFields:
        nonlocal kept, next_at
        began = time.monotonic()
        if began < next_at:
            return {**kept, **status()}
        latest = status(detail=True)
        kept = {name: latest[name] for name in ("hosts", "course") if name in latest}
        next_at = began + detail_pause_s(time.monotonic() - began)
        return latest

    return renew


def progress_for(style: str, out: TextIO | None = None) -> Progress:
    """Return the progress for a value of `progress.style`; `auto` is live on a terminal that can redraw, else plain."""
    out = out or sys.stdout
    if style == "auto":
        style = "live" if redraws(out) else "plain"
    match style:
        case "live":
            from gossamer.cli.live import Live

            return Live(out)
        case "json":
            return JsonProgress(out)
        case "plain":
            return PlainLines(out)
        case _:
            return Quiet()


async def follow(progress: Progress, status: Callable[[], StatusFields], interval_s: Callable[[], float]) -> None:
    """Show the status every interval until cancelled; `interval_s` is the configured one, which may change."""
    while True:
        progress.show(status())
        await asyncio.sleep(progress.interval_s or interval_s())


class Quiet:
    """Shows the alarms of a crawl that fetches nothing, once each time: else it would wait in silence."""

    interval_s: float | None = None
    """Seconds between two looks at the status; None: those of `progress.interval_s`."""
    _shown: frozenset[str] = frozenset()

    def show(self, status: StatusFields) -> None:
        alarms = {alarm.name: alarm.says for alarm in read_status(status).alarms if alarm.name in HALTING}
        for name in alarms.keys() - self._shown:
            complain(alarms[name])
        self._shown = frozenset(alarms)

    def note(self, sentence: str) -> None:
        pass

    def close(self) -> None:
        pass

    def end(self, status: StatusFields, directory: str, ended: str, recipe: str = "") -> None:
        pass


class PlainLines(Quiet):
    """One line of text every interval: for logs. While nothing changes, such as in a pause, fewer and fewer."""

    _figures = ""
    _repeats = 0

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def show(self, status: StatusFields) -> None:
        line = line_of(read_status(status))
        figures = line_of(read_status({**status, "elapsed_s": 0.0}))
        self._repeats = self._repeats + 1 if figures == self._figures else 0
        self._figures = figures
        if self._repeats.bit_count() < 2:  # 1, 2, 4, 8 … intervals after the change.
            write_line(self._out, line)

    def note(self, sentence: str) -> None:
        write_line(self._out, harmless(sentence))

    def end(self, status: StatusFields, directory: str, ended: str, recipe: str = "") -> None:
        write_line(self._out, summary_of(read_status(status), directory, ended, recipe))


class JsonProgress(PlainLines):
    """One JSON object a line: `event` is `status`, `note` or `end`; the rest is what `status --json` gives."""

    def show(self, status: StatusFields) -> None:
        self._write({"event": "status", "time": time.time(), **status})

    def note(self, sentence: str) -> None:
        self._write({"event": "note", "time": time.time(), "note": sentence})

    def end(self, status: StatusFields, directory: str, ended: str, recipe: str = "") -> None:
        self._write({"event": "end", "time": time.time(), "ended": ended, "directory": directory, **status})

    def _write(self, event: dict[str, object]) -> None:
        # ASCII only: JSON's escapes keep untrusted text from the terminal.
        write_line(self._out, json.dumps(event, default=str))


if TYPE_CHECKING:
    Progress = Live | Quiet
    """A way to show a crawl's progress. Errors of its stream are not raised."""
