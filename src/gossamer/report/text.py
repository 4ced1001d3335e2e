"""Text: a report for a terminal, with small bars. What strangers wrote is escaped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from rich.cells import cell_len, set_cell_size

from gossamer.report.figures import Count, Host, Report, Trouble

WIDTH_MIN = 60
_EIGHTHS = " ▏▎▍▌▋▊▉"
_NAME_WIDTH_MAX = 32


def as_text(report: Report, width: int = 80) -> str:
    """Return the report as lines of at most `width` cells (60 at least), with a line end after each.

    Control characters and invisible ones are shown as escapes, so that nothing in it acts on a terminal.
    """
    width = max(width, WIDTH_MIN)
    return "".join(f"{line.rstrip()}\n" for line in _lines(report, width))


def printable(text: str) -> str:
    r"""Return the text with everything that does not show itself as `\x1b`, `\u202e` and the like."""
    if text.isprintable():
        return text
    return "".join(mark if mark.isprintable() else mark.encode("unicode_escape").decode() for mark in text)


def _lines(report: Report, width: int) -> Iterator[str]:
    if not report.attempts:
        yield "No pages yet."
        return
    yield from (_shortened(line, width) for line in _totals(report))
    yield from _bars("Outcomes", report.outcomes, width)
    yield from _bars("Status codes", report.statuses, width)
    yield from _bars("Media types", report.media_types, width)
    yield from _bars("Depth", report.depths, width)
    yield from _bars("Links by type", report.link_types, width)
    yield from _bars("Hosts by top-level domain", report.hosts_per_tld, width)
    yield from _host_table("Largest hosts", report.top_hosts, width)
    yield from _host_table("Slowest hosts", report.slowest_hosts, width)
    yield from _troubles(report.troubles, width)


def _totals(report: Report) -> Iterator[str]:
    times = report.fetch_s
    yield f"{report.fetched:,} pages fetched in {report.attempts:,} attempts from {report.hosts:,} hosts"
    facts = [
        ("Time", f"{_instant(report.begun_at)} to {_instant(report.ended_at)} ({_duration(report.duration_s)})"),
        ("Rate", f"{report.pages_per_s:,.1f} pages/s"),
        ("Received", f"{_size(report.wire_bytes)}, {_size(report.body_bytes)} decoded"),
        ("Archived", f"{_size(report.warc_bytes)}"),
        ("Links", f"{report.links:,}"),
        ("Sites", f"{report.sites:,}"),
        ("Copies", f"{report.duplicates:,} duplicates, {report.truncated:,} truncated, {report.repeated:,} repeated"),
        ("Fetch time", f"{times.p50:.3f} s (90 %: {times.p90:.3f}, 99 %: {times.p99:.3f}, longest: {times.max:.3f})"),
    ]
    for name, value in facts:
        yield f"  {name:<12}{value}"


def _bars(title: str, counts: Sequence[Count], width: int) -> Iterator[str]:
    if not counts:
        return
    yield ""
    yield title
    names = [printable(count.name) for count in counts]
    name_width = min(max(map(cell_len, names)), _NAME_WIDTH_MAX)
    number_width = max(len(f"{count.count:,}") for count in counts)
    bar_width = width - name_width - number_width - 13
    largest = max(count.count for count in counts)
    for name, count in zip(names, counts, strict=True):
        bar = _bar(count.count / largest, bar_width)
        yield f"  {_cell(name, name_width)}  {count.count:>{number_width},} {count.share:>6.1%}  {bar}"


def _host_table(title: str, hosts: Sequence[Host], width: int) -> Iterator[str]:
    if not hosts:
        return
    name_width = width - 44
    yield ""
    yield title
    yield f"{'attempts':>{name_width + 14}} {'fetched':>10} {'bytes':>9} {'mean':>8}"
    for host in hosts:
        yield (
            f"  {_cell(printable(host.host), name_width)}  {host.attempts:>10,} {host.fetched:>10,} "
            f"{_size(host.wire_bytes):>9} {host.mean_fetch_s:>6.2f} s"
        )


def _troubles(troubles: Sequence[Trouble], width: int) -> Iterator[str]:
    if not troubles:
        return
    yield ""
    yield "Errors, with an example of each"
    for trouble in troubles:
        yield f"  {trouble.count:,} {printable(trouble.outcome)}"
        yield f"      {_shortened(printable(trouble.url), width - 6)}"
        if trouble.error:
            yield f"      {_shortened(printable(trouble.error), width - 6)}"


def _cell(text: str, width: int) -> str:
    return set_cell_size(_shortened(text, width), width)


def _shortened(text: str, width: int) -> str:
    return text if cell_len(text) <= width else set_cell_size(text, width - 1) + "…"


def _bar(part: float, width: int) -> str:
    """A bar of at least one eighth of a cell."""
    eighths = max(1, round(part * width * 8))
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (_EIGHTHS[rest] if rest else "")


def _size(size_bytes: float) -> str:
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if size_bytes < 1000:
            return f"{size_bytes:.0f} {unit}" if unit == "B" else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1000
    return f"{size_bytes:,.1f} PB"


def _instant(wall_s: float | None) -> str:
    return "?" if wall_s is None else f"{datetime.fromtimestamp(wall_s, UTC):%Y-%m-%d %H:%M:%S}"


def _duration(duration_s: float) -> str:
    hours, rest = divmod(round(duration_s), 3600)
    if hours:
        return f"{hours} h {rest // 60} min"
    return f"{rest // 60} min {rest % 60} s" if rest >= 60 else f"{duration_s:.1f} s"
