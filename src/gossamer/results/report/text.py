"""Text: a report for a terminal, with small bars. Untrusted text is escaped."""

import re
from collections.abc import Iterator, Sequence
from textwrap import wrap

from rich.cells import cell_len, set_cell_size

from gossamer.model.words import UNSEEN, bit_rate, counted, duration, size
from gossamer.results.report import figures
from gossamer.results.report.parts import (
    LINES_MAX,
    ReportBars,
    ReportRows,
    cost_of,
    early_parts,
    instant,
    parts_of,
    seconds,
)

WIDTH_MIN = 60
SILENCES_MAX = 3
_EIGHTHS = " ▏▎▍▌▋▊▉"
_LEVELS = " ▁▂▃▄▅▆▇█"
_NAME_WIDTH_MAX = 32


def as_text(report: figures.Report, width: int = 80) -> str:
    """Return the report as lines of at most `width` cells (60 at least), with a line end after each.

    Control characters and invisible ones are shown as escapes, so that nothing in it acts on a terminal.
    """
    width = max(width, WIDTH_MIN)
    lost = "".join(f"Damaged: {printable(line)}\n" for line in report.damage)  # Never shortened: they say what to do.
    lost += f"Ended: {printable(report.ended_says)}\n" if report.ended_says else ""
    return lost + "".join(f"{_shorten(line.rstrip(), width)}\n" for line in _lines(report, width))


def _lines(report: figures.Report, width: int) -> Iterator[str]:
    if report.incomplete:
        yield from wrap(f"Incomplete: {printable(report.incomplete)}", width)
        yield ""
    if early := [line for part in early_parts(report) for line in _table(part, width)]:
        yield from (*early[1:], "")
    yield from _pending_lines(report, width)
    if not report.attempts:
        yield "No pages in the files that are left." if report.damage else "No pages yet."
        return
    yield from _totals(report)
    if report.cost.requests:
        yield from _table(cost_of(report), width)
    yield from _course(report.course, width)
    yield from _buckets("Document sizes, from", report.document_sizes, width, of_bytes=True)
    yield from _bars(ReportBars("Depth", "", report.depths), width)
    yield from _buckets("Hosts by pages fetched, from", report.hosts_by_pages, width, of_bytes=False)
    yield from _buckets("Hosts by bytes received, from", report.hosts_by_bytes, width, of_bytes=True)
    for part in parts_of(report):
        yield from _bars(part, width) if isinstance(part, ReportBars) else _table(part, width)


def _pending_lines(report: figures.Report, width: int) -> Iterator[str]:
    if report.lasting:
        yield "Hosts that outlast all others:"
        for host in report.lasting:
            said = f"{printable(host.host)}: {printable(host.says)}"
            yield from wrap(said, width, initial_indent="  ", subsequent_indent="    ")
        yield ""
    if report.idle_shards:
        yield f"Idle shards, without any URL: {', '.join(map(str, report.idle_shards))}"
        yield ""


def _totals(report: figures.Report) -> Iterator[str]:
    times = report.fetch_s
    most = f"90%: {seconds(times.p90)}, 99%: {seconds(times.p99)}, longest: {seconds(times.max)}"
    near = f"; {report.near_duplicates:,} nearly the same" if report.near_duplicates else ""
    of_names = f" of {report.hosts:,} named" if report.hosts != report.hosts_answered else ""
    fetched = counted(report.urls_fetched, "page")
    attempts = counted(report.attempts, "attempt")
    of_time = f", in {duration(report.crawling_s, 1)} of crawling" if report.crawling_s else ""
    yield f"{fetched} fetched in {attempts} from {counted(report.hosts_answered, 'host')}{of_names}"
    facts = [
        ("Time", f"{instant(report.begun_at)} to {instant(report.ended_at)} ({duration(report.duration_s, 1)})"),
        ("Rate", f"{report.pages_per_s:,.1f} pages/s, {bit_rate(report.bits_per_s)}{of_time}"),
        ("Received", f"{size(report.wire_bytes)}, {size(report.body_bytes)} decoded"),
        ("Archived", f"{size(report.warc_bytes)}"),
        ("Pages", f"{size(round(report.body_bytes_mean))} on average, {report.truncated_share:.1%} cut"),
        ("Links", f"{report.links:,}, {report.local_links_share:.1%} to the host of their page"),
        ("Sites", f"{report.sites:,}"),
        ("Copies", f"{report.duplicates:,} of pages, {size(report.duplicate_bytes)}{near}"),
        ("Also", f"{report.repeated:,} repeated attempts, {report.truncated:,} cut, {report.trapped:,} in traps"),
        ("URLs", f"{report.urls:,} tried, in {report.visits:,} visits; {report.urls_revisited:,} visited repeatedly"),
        ("Downloads", f"{report.fetched:,}"),
    ]
    if times.max:  # Archives do not say it.
        facts.append(("Fetch time", f"{seconds(times.p50)} ({most})"))
    for name, value in facts:
        yield f"  {name:<12}{value}"


def _bars(part: ReportBars, width: int, *, most: int = LINES_MAX) -> Iterator[str]:
    if not part.counts:
        return
    yield from _heading(part, width)
    counts = part.counts[:most]
    names = [printable(count.name) for count in counts]
    name_width = min(max(map(cell_len, names)), _NAME_WIDTH_MAX)
    number_width = max(len(f"{count.count:,}") for count in counts)
    bar_width = width - name_width - number_width - 13
    largest = max(count.count for count in counts)
    for name, count in zip(names, counts, strict=True):
        bar = _bar(count.count / largest, bar_width)
        yield f"  {_cell(name, name_width)}  {count.count:>{number_width},} {count.share:>6.1%}  {bar}"
    yield from _others(len(part.counts) - most)


def _table(part: ReportRows, width: int) -> Iterator[str]:
    """Yield a table: the first column as wide as there is room, the others to the right; below, what has many lines."""
    if not part.rows:
        return
    yield from _heading(part, width)
    rows: list[Sequence[str]] = [part.heads[: len(part.rows[0])]] if any(part.heads) else []
    lines_of: list[Sequence[str]] = [*([()] * len(rows)), *(part.details or [()] * len(part.rows))]
    rows += [[printable(cell) for cell in row] for row in part.rows]
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    widths[0] = min(widths[0], width - 2 - sum(widths[1:]) - 2 * len(widths[1:]))
    for row, lines in zip(rows, lines_of, strict=True):
        numbers = (f"  {cell:>{room}}" for cell, room in zip(row[1:], widths[1:], strict=True))
        yield f"  {_cell(row[0], widths[0])}{''.join(numbers)}"
        yield from (f"      {_shorten(printable(line), width - 6)}" for line in lines)
    yield from _others(part.more)


def _heading(part: ReportBars | ReportRows, width: int) -> Iterator[str]:
    yield ""
    yield part.title
    yield from wrap(part.said, width, initial_indent="  ", subsequent_indent="  ")


def _others(more: int) -> Iterator[str]:
    if more > 0:
        yield f"  … and {more:,} more, which --json lists"


def _course(course: figures.TimelineFigures, width: int) -> Iterator[str]:
    if len(course.steps) < 2:
        return
    yield ""
    yield f"Pages a second over time, {duration(course.step_s, 1)} a column"
    line, peak = _sparkline([step.pages / course.step_s for step in course.steps], width - 4)
    yield f"  {line}"
    yield f"  most {peak:,.1f} pages/s"
    if any(step.queued for step in course.steps):
        line, peak = _sparkline([step.queued for step in course.steps], width - 4)
        yield "URLs queued over time"
        yield f"  {line}"
        yield f"  most {peak:,.0f} URLs"
    commits = course.commits
    if commits.count:
        mean = seconds(commits.mean_s)
        most = seconds(commits.max_s)
        yield f"  {commits.count:,} commits took {mean} on average, {most} at most"
        yield f"  one stalled the crawl for {seconds(commits.cut_max_s)} at most"
    for silence in course.silences[:SILENCES_MAX]:
        yield f"  nothing ended for {duration(silence.lasted_s, 1)}, {duration(silence.at_s, 1)} after the start"


def _sparkline(values: Sequence[float], width: int) -> tuple[str, float]:
    """Return at most `width` columns, each the mean of its values, and the highest."""
    per_column = -(-len(values) // width)
    means = [sum(part) / len(part) for part in (values[i : i + per_column] for i in range(0, len(values), per_column))]
    most = max(means)
    return "".join(_LEVELS[round(mean / most * (len(_LEVELS) - 1))] if most else " " for mean in means), most


def _buckets(title: str, buckets: Sequence[figures.Bucket], width: int, *, of_bytes: bool) -> Iterator[str]:
    whole = sum(bucket.count for bucket in buckets)
    named = [figures.Count(bucket_name(one, of_bytes=of_bytes), one.count, one.count / whole) for one in buckets]
    yield from _bars(ReportBars(title, "", named), width, most=len(named))


def _cell(text: str, width: int) -> str:
    return set_cell_size(_shorten(text, width), width)


def _shorten(text: str, width: int) -> str:
    return text if cell_len(text) <= width else set_cell_size(text, width - 1) + "…"


def _bar(part: float, width: int) -> str:
    """Return a bar of at least one eighth of a cell; an empty one for 0."""
    whole, rest = divmod(max(1, round(part * width * 8)) if part else 0, 8)
    return "█" * whole + (_EIGHTHS[rest] if rest else "")


def printable(text: str) -> str:
    r"""Return the text with everything that does not show itself as `\x1b`, `\u202e` and the like."""
    shown = re.sub(UNSEEN, lambda found: _escape(found[0]), text)
    return shown if shown.isprintable() else "".join(mark if mark.isprintable() else _escape(mark) for mark in shown)


def _escape(mark: str) -> str:
    return mark.encode("unicode_escape").decode()


def bucket_name(bucket: figures.Bucket, *, of_bytes: bool) -> str:
    """Return where a bucket begins; it ends below twice that."""
    return size(bucket.least) if of_bytes else f"{bucket.least:,}"
