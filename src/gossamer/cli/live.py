"""Live: the view of a crawl on a terminal, redrawn in place."""

from __future__ import annotations

from collections import deque
from typing import TextIO

from rich.console import Console, Group
from rich.live import Live as RichLive
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from gossamer.cli.output import count, harmless, size, write_line
from gossamer.cli.status_text import StatusFields, done_of, errors_of, state_of, summary_of, to_upload_of
from gossamer.model.status import Status, read_status
from gossamer.model.words import duration

LIVE_INTERVAL_S = 0.5
NOTES_SHOWN_MAX = 3
ERRORS_SHOWN_MAX = 6


class LastingConsole(Console):
    """A console that does not end the process when its terminal goes away, as rich's own does."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class Live:
    """Redraws a few lines twice a second: about 2 ms each time."""

    interval_s = LIVE_INTERVAL_S
    by_lines = False

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._notes: deque[str] = deque(maxlen=NOTES_SHOWN_MAX)
        self._status = Status(state="")
        self._live = RichLive(console=LastingConsole(file=out), auto_refresh=False, transient=False)
        self._broken = False
        self._guarded(self._live.start)

    def show(self, status: StatusFields) -> None:
        self._status = read_status(status)
        self._redraw()

    def _redraw(self) -> None:
        self._guarded(lambda: self._live.update(self._view(), refresh=True))

    def note(self, sentence: str) -> None:
        self._notes.append(harmless(sentence))
        self._redraw()

    def close(self) -> None:
        self._guarded(self._live.stop)

    def end(self, status: StatusFields, directory: str, ended: str) -> None:
        write_line(self._out, summary_of(read_status(status), directory, ended))

    def _guarded(self, draw: object) -> None:
        assert callable(draw)
        if self._broken:
            return
        try:
            draw()
        except OSError:  # The terminal has gone away; the crawl goes on.
            self._broken = True

    def _view(self) -> Group:
        parts: list[Table | Text | ProgressBar] = [_figures(self._status)]
        if (share := _share(self._status)) is not None:
            parts.append(ProgressBar(total=1.0, completed=share, width=60))
        if done := done_of(self._status):
            parts.append(Text(done))
        if to_upload := to_upload_of(self._status):
            parts.append(Text(f"{to_upload} to upload"))
        parts += [Text(note, style="dim") for note in self._notes]
        return Group(*parts)


def _figures(status: Status) -> Table:
    table = Table.grid(padding=(0, 3))
    for _ in range(4):
        table.add_column(no_wrap=True)
    rows = (
        ("pages", count(status.pages), "rate", f"{status.pages_s:.1f} pages/s"),
        ("queued", count(status.queued), "bytes", _bytes(status)),
        ("in flight", count(status.in_flight), "hosts", _hosts(status)),
        ("discovered", count(status.discovered), "time", duration(status.elapsed_s)),
    )
    for name, value, other, its_value in rows:
        table.add_row(Text(name, style="dim"), Text(value, style="bold"), Text(other, style="dim"), Text(its_value))
    errors = list(errors_of(status).items())
    shown = ", ".join(f"{name} {count(n)}" for name, n in errors[:ERRORS_SHOWN_MAX])
    if len(errors) > ERRORS_SHOWN_MAX:
        shown += ", …"
    whole = Table.grid()
    whole.add_row(table)
    whole.add_row(Text.assemble(("not fetched   ", "dim"), (shown or "none", "yellow" if shown else "")))
    whole.add_row(Text.assemble(("state         ", "dim"), state_of(status)))
    return whole


def _bytes(status: Status) -> str:
    return f"{size(status.wire_bytes)}, {size(status.bytes_s)}/s"


def _hosts(status: Status) -> str:
    return f"{count(status.hosts_active)} active, {count(status.hosts_known)} known"


def _share(status: Status) -> float | None:
    """Return how much of the nearest limit is used up; None without a limit."""
    used = (
        (status.pages, status.max_pages),
        (status.wire_bytes, status.max_bytes),
        (status.elapsed_s, status.max_time_s),
    )
    shares = [done / most for done, most in used if most]
    return min(1.0, max(shares)) if shares else None
