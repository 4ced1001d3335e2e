"""Live: a crawl on a terminal: redrawn in place while it runs, or as a full screen."""

import io
from collections import deque
from collections.abc import Callable
from typing import Final, TextIO

from msgspec import UNSET
from rich.console import Console, Group, RenderableType
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


def screen_of(status: Status, name: str, columns: int, lines: int) -> list[str]:
    """Return a status as the lines of a terminal, with colors unless NO_COLOR is set; what has no place is left out."""
    console = Console(file=io.StringIO(), force_terminal=True, width=columns, height=lines)
    hosts = max(0, min(len(_active(status)), (lines - LINES_BESIDE_HOSTS) // 2))
    more = [
        Text.assemble((f"{name:<{NAME_COLUMNS}}", "dim"), line, no_wrap=True, overflow="ellipsis")
        for name, line in [*picture_rows(status), *(("warning", one) for one in status_text.warnings_of(status))]
        if name not in SHOWN_ALREADY
    ]
    head = Text(f" gossamer  {harmless(name)} ".ljust(columns), style="bold reverse", no_wrap=True, overflow="ellipsis")
    with console.capture() as captured:
        console.print(Group(head, Text(), *view_of(status, columns, hosts), Text(), *more))
    return captured.get().splitlines()[:lines]


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
