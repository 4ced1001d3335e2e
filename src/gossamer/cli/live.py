"""Live: a crawl on a terminal: redrawn in place while it runs, or as a full screen."""

import os
import select
import sys
import termios
import time
import tty
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TextIO

import typer
from msgspec import UNSET
from rich.console import Console, Group, RenderableType
from rich.layout import Layout
from rich.live import Live as RichLive
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from gossamer.cli import status_text
from gossamer.cli.output import harmless, write_line
from gossamer.cli.status_view import picture_rows
from gossamer.model.health import Level, health_of
from gossamer.model.outcomes import SUCCEEDED
from gossamer.model.status import Status, limit_share, read_status
from gossamer.model.words import count, duration, size

LIVE_INTERVAL_S = 1.0
PLAIN_INTERVAL_S = 5.0
NOTES_SHOWN_MAX = 3
ERRORS_SHOWN_MAX = 6
HOSTS_SHOWN_MAX = 5
LINES_BESIDE_HOSTS = 18
"""Lines of all other parts of the view: a view that is higher than the terminal cannot be redrawn."""
SHOWN_ALREADY = frozenset(("rates", "largest"))
"""Rows of a status that the view shows in another form."""
NAME_COLUMNS = 14
GAP_COLUMNS = 3
BAR_COLUMNS = 40
WORDS_COLUMNS = 50
"""Columns for the words after the bars of a line."""
STYLES: Final[dict[Level, str]] = {"good": "green", "warning": "yellow", "bad": "bold red", "over": "blue"}


class LastingConsole(Console):
    """A console that, unlike rich's own, does not end the process when its terminal is closed."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class Live:
    """Redraws some lines once a second: about 5 ms each time."""

    interval_s = LIVE_INTERVAL_S

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._notes: deque[str] = deque(maxlen=NOTES_SHOWN_MAX)
        self._status = Status(state="")
        self._console = LastingConsole(file=out)
        self._live = RichLive(console=self._console, auto_refresh=False, transient=False)
        self._broken = False
        self._try_draw(self._live.start)

    def show(self, status: status_text.StatusFields) -> None:
        self._status = read_status(status)
        self._redraw()

    def _redraw(self) -> None:
        self._try_draw(lambda: self._live.update(self._view(), refresh=True))

    def note(self, sentence: str) -> None:
        self._notes.append(harmless(sentence))
        self._redraw()

    def close(self) -> None:
        self._try_draw(self._live.stop)

    def end(self, status: status_text.StatusFields, directory: str, ended: str, recipe: str = "") -> None:
        write_line(self._out, status_text.summary_of(read_status(status), directory, ended, recipe))

    def _try_draw(self, draw: Callable[[], object]) -> None:
        if self._broken:
            return
        try:
            draw()
        except OSError:  # The terminal has gone away; the crawl goes on.
            self._broken = True

    def _view(self) -> Group:
        hosts = max(0, min(HOSTS_SHOWN_MAX, self._console.height - LINES_BESIDE_HOSTS))
        notes = [Text(note, style="dim") for note in self._notes]
        return Group(*view_of(self._status, self._console.width, hosts), *notes)


def screen_of(status: Status, name: str, columns: int, lines: int) -> Group:
    """Return a status as a screen; hosts that have no place in its lines are left out."""
    hosts = max(0, min(len(_active(status)), (lines - LINES_BESIDE_HOSTS) // 2))
    more = [
        Text.assemble((f"{name:<{NAME_COLUMNS}}", "dim"), line, no_wrap=True, overflow="ellipsis")
        for name, line in [*picture_rows(status), *(("warning", one) for one in status_text.warnings_of(status))]
        if name not in SHOWN_ALREADY
    ]
    head = Text(f" gossamer  {harmless(name)} ".ljust(columns), style="bold reverse", no_wrap=True, overflow="ellipsis")
    return Group(head, Text(), *view_of(status, columns, hosts), Text(), *more)


def view_of(status: Status, columns: int, hosts_max: int) -> list[RenderableType]:
    """Return the parts of the view, one below the other."""
    parts: list[RenderableType] = [_figures(status, max(10, columns - WORDS_COLUMNS))]
    if (share := limit_share(status)) is not None:
        parts.append(ProgressBar(total=1.0, completed=share, width=min(60, columns)))
    if done := status_text.progress_of(status):
        parts.append(Text(done))
    if to_upload := status_text.to_upload_of(status):
        parts.append(Text(f"{to_upload} to upload"))
    if active := _active(status)[:hosts_max]:
        parts += [Text(), _hosts_table(active)]
    return parts


def _figures(status: Status, bars: int) -> Table:
    table = Table.grid(padding=(0, GAP_COLUMNS))
    trend = health_of(status).trend
    rows = (
        ("pages", count(status.pages), "rate", ", ".join(filter(None, (f"{status.pages_s:.1f} pages/s", trend)))),
        ("queued", count(status.queued), "bytes", f"{size(status.wire_bytes)}, {size(status.bytes_s)}/s"),
        (
            "in flight",
            count(status.in_flight),
            "hosts",
            f"{count(status.hosts_active)} active, {count(status.hosts_known)} known",
        ),
        ("discovered", count(status.discovered), "time", duration(status.elapsed_s)),
    )
    widest = max(len(value) for _, value, _, _ in rows)  # On a narrow terminal the last column is cut, no count is.
    for least in (NAME_COLUMNS - GAP_COLUMNS, widest, len("bytes"), 0):
        table.add_column(no_wrap=True, min_width=least)
    for name, value, other, its_value in rows:
        table.add_row(Text(name, style="dim"), Text(value, style="bold"), Text(other, style="dim"), Text(its_value))
    whole = Table.grid()
    whole.add_row(table)
    for name, line in _lines(status, bars):
        if line:
            whole.add_row(Text.assemble((f"{name:<{NAME_COLUMNS}}", "dim"), line, no_wrap=True, overflow="ellipsis"))
    return whole


def _lines(status: Status, bars: int) -> list[tuple[str, Text]]:
    """Return named lines with bars of at most `bars` columns; an empty one is not shown."""
    health = health_of(status)
    errors = list(status_text.errors_of(status).items())
    not_fetched = ", ".join(f"{name} {count(n)}" for name, n in errors[:ERRORS_SHOWN_MAX])
    if len(errors) > ERRORS_SHOWN_MAX:
        not_fetched += ", …"
    well = Text(harmless(health.says), style=STYLES[health.level])
    state = status_text.state_of(status)
    return [
        ("rates", Text(status_text.course_of(status, bars), style="cyan")),
        ("outcomes", _outcomes(status, min(bars, BAR_COLUMNS))),
        ("not fetched", Text(not_fetched or "none", style="yellow" if not_fetched else "")),
        ("limited by", Text(harmless(health.limited_by))),
        ("remaining", Text("" if status_text.progress_of(status) else health.remaining)),
        ("state", Text(state) if state != "running" else well),
        ("health", well if state != "running" and health.level in {"warning", "bad"} else Text()),
    ]


def _outcomes(status: Status, columns: int) -> Text:
    """Return a bar of pages fetched, other successes and failures, and the counts of the successful outcomes."""
    found = {name: n for name, n in status.outcomes.items() if n}
    total = sum(found.values())
    if not total:
        return Text()
    succeeded = {harmless(name): n for name, n in found.items() if name in SUCCEEDED}
    kinds = (
        ("green", found.get("fetched", 0)),
        ("blue", sum(succeeded.values()) - found.get("fetched", 0)),
        ("yellow", total - sum(succeeded.values())),
    )
    bar = [("█" * max(1, round(columns * n / total)), style) for style, n in kinds if n]
    words = ", ".join(f"{name} {count(n)}" for name, n in sorted(succeeded.items(), key=lambda item: -item[1]))
    return Text.assemble(*bar, " ", words)


def _hosts_table(hosts: list[dict[str, object]]) -> Table:
    table = Table(box=None, padding=(0, GAP_COLUMNS, 0, 0), header_style="dim", show_edge=False)
    table.add_column("largest active hosts", no_wrap=True, overflow="ellipsis", max_width=40)
    table.add_column("state", no_wrap=True, overflow="ellipsis")
    table.add_column("queued", justify="right", no_wrap=True)
    table.add_column("mean time", justify="right", no_wrap=True)
    for one in hosts:
        limit = str(one["limit"])
        fetch_s = one["fetch_s"]
        table.add_row(
            Text(harmless(one["host"])),
            Text(status_text.LIMITS.get(limit, harmless(limit)), style="green" if limit == "fetching" else ""),
            count(float(str(one["queued"]))),
            f"{float(str(fetch_s)) * 1000:,.0f} ms" if fetch_s is not None else "",
        )
    return table


def _active(status: Status) -> list[dict[str, object]]:
    return [] if status.hosts is UNSET else list(status.hosts["active"])


def watch(text: Callable[[], tuple[str, bool]], drawn: Callable[[int, int], RenderableType] | None = None) -> int:
    """Show what `text` returns until it says that the crawl is over, or `q` or Ctrl-C is typed; the last one stays.

    On a terminal `drawn` draws the same for a number of columns and lines, where there is such a function.
    """
    if not (status_text.redraws(sys.stdout) and sys.stdin.isatty()):
        return _plain(text)
    view = Layout()
    screen = Layout()
    screen.split_column(view, Layout(Text("q: quit"), size=1))
    shown = ""
    over = False
    with _single_keys() as keyboard, RichLive(screen, screen=True, auto_refresh=False) as live:
        while not over:
            shown, over = text()
            columns, lines = live.console.size
            view.update(drawn(columns, lines - 2) if drawn else Text(shown, no_wrap=True, overflow="crop"))
            live.refresh()
            if _quits(keyboard):
                break
    write_line(sys.stdout, shown)
    return 0


def _plain(text: Callable[[], tuple[str, bool]]) -> int:
    while True:
        shown, over = text()
        typer.echo(shown + "\n")  # Raises where the reader has gone away (`| head`).
        if over:
            return 0
        time.sleep(PLAIN_INTERVAL_S)


@contextmanager
def _single_keys() -> Iterator[int]:
    """Have the terminal pass on each key as it is typed; restore it in any case."""
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    try:
        tty.setcbreak(keyboard)
        yield keyboard
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)


def _quits(keyboard: int) -> bool:
    """Wait for the next refresh; return whether `q` was typed meanwhile."""
    until = time.monotonic() + LIVE_INTERVAL_S
    while (left_s := until - time.monotonic()) > 0:
        if not select.select([keyboard], [], [], left_s)[0]:
            return False
        typed = os.read(keyboard, 64)
        if not typed or b"q" in typed.lower() or b"\x03" in typed:
            return True
    return False
