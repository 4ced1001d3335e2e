"""HTML: a report as one page without network or scripts. Untrusted text is escaped."""

import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from itertools import zip_longest

from gossamer.model.words import bit_rate, counted, duration, size
from gossamer.results.report import svg
from gossamer.results.report.figures import Bucket, Report, TimelineFigures
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
from gossamer.results.report.text import bucket_name, printable

TIME_LABELS = 7
_DIGITS = (1, 2, 5)
TIME_STEPS_S = (
    *(digit * 10.0**power for power in (-3, -2, -1, 0) for digit in _DIGITS), 10, 15, 20, 30, 60, 120, 300, 600, 900,
    1800, 3600, 7200, 10800, 21600, 43200, *(86400 * digit * 10**power for power in range(4) for digit in _DIGITS),
)  # fmt: skip
"""Distances of labels on a time axis."""
DOTS_MIN = 5
HOSTS_MIN = 10
"""Fewer dots on two axes, or no dot as high as the first decade, show less than their numbers."""
DEPTH_MAX = 60
STYLE = (pkgutil.get_data("gossamer.results.report", "style.css") or b"").decode()
"""How the page looks, in the light and in the dark."""


def as_html(report: Report, title: str) -> str:
    """Return the page. About 60 KB for any size of crawl."""
    none = "No pages in the files that are left." if report.damage else "No pages yet."
    body = f"<p class=lacks>Incomplete: {html_text(report.incomplete)}</p>" if report.incomplete else ""
    body += "".join(f'<p class="damage">Damaged: {html_text(line)}</p>' for line in report.damage)
    body += "".join(map(_part, early_parts(report)))
    body += f'<p class="lacks ended">Ended: {_prose(report.ended_says)}</p>' if report.ended_says else ""
    body += "".join(f"<p class=lacks>Warning: {_prose(line)}</p>" for line in report.warnings)
    if report.idle_shards:
        body += f"<p class=lacks>Idle shards, without any URL: {', '.join(map(str, report.idle_shards))}</p>"
    body += _lasting_hosts(report)
    body += "".join(_sections(report)) if report.attempts else f"<p>{none}</p>"
    return page_of(html_text(title), "report of a crawl", body)


def page_of(name: str, what: str, body: str) -> str:
    """Return a whole page of HTML that may load nothing."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{name}: {what}</title><style>{STYLE}</style></head>"
        f"<body><header><h1>{name}</h1><p>{what.capitalize()}</p></header><main>{body}</main></body></html>\n"
    )


def _lasting_hosts(report: Report) -> str:
    rows = ((html_text(one.host), ";<br>".join(map(_prose, one.says.split("; ")))) for one in report.lasting)
    return _table("Hosts that outlast all others", "As of the last run.", ("host", "time"), rows, wide=True)


def _sections(report: Report) -> Iterator[str]:
    yield _cards(report)
    yield _part(cost_of(report))
    yield from _course(report.course)
    sizes = [(bucket_name(bucket, of_bytes=True), bucket) for bucket in report.document_sizes]
    yield _figure(
        "Document sizes",
        "Pages fetched by bytes of decoded content; each column holds sizes up to twice its label.",
        svg.columns(
            [(name, one.count, f"from {name}: {one.count:,} pages, {size(one.sum)}") for name, one in sizes], "pages"
        ),
    )
    yield _figure(
        "Depth",
        "Attempts by clicks from a seed.",
        svg.columns([(d.name, d.count, f"depth {d.name}: {d.count:,}") for d in report.depths[:DEPTH_MAX]], "attempts"),
    )
    yield _log_log("Hosts by pages", "How many hosts have how many pages.", report.hosts_by_pages, of_bytes=False)
    yield _log_log("Hosts by bytes", "How many hosts sent how many bytes.", report.hosts_by_bytes, of_bytes=True)
    yield _fetch_times(report)
    yield from map(_part, parts_of(report))


def _part(part: ReportBars | ReportRows) -> str:
    if isinstance(part, ReportBars):
        return _bars(part)
    title, said, heads, rows, more, details = part
    last = (["<br>".join(map(html_text, lines))] for lines in details)
    cells = ([*map(html_text, row), *lines] for row, lines in zip_longest(rows, last, fillvalue=()))
    return _table(title, said, heads, cells, wide=bool(details), more=more)


def _cards(report: Report) -> str:
    near = f", {report.near_duplicates:,} nearly the same" if report.near_duplicates else ""
    lasted = duration(report.crawling_s or report.duration_s, 1)
    facts = (
        (
            "pages fetched",
            f"{report.urls_fetched:,}",
            f"{report.attempts:,} attempts, {report.repeated:,} of them again; {report.fetched:,} downloads",
        ),
        ("URLs tried", f"{report.urls:,}", f"{report.visits:,} visits; {report.urls_revisited:,} URLs revisited"),
        ("pages a second", f"{report.pages_per_s:,.1f}", bit_rate(report.bits_per_s)),
        ("received", size(report.wire_bytes), f"{size(report.body_bytes)} decoded, {size(report.warc_bytes)} archived"),
        (
            "host that answered" if report.hosts_answered == 1 else "hosts that answered",
            f"{report.hosts_answered:,}",
            f"of {report.hosts:,} named, of {counted(report.sites, 'site')}",
        ),
        ("links", f"{report.links:,}", f"{report.links / max(1, report.fetched):,.1f} a page"),
        ("copies", f"{report.duplicates:,}", f"{size(report.duplicate_bytes)}{near}"),
        ("cut", f"{report.truncated:,}", f"{report.trapped:,} URLs in traps"),
        (
            "crawling time" if report.crawling_s else "time",
            lasted,
            f"{instant(report.begun_at)} to {instant(report.ended_at)} UTC",
        ),
    )
    cards = (
        f"<div class=card><b>{value}</b><span>{name}</span><small>{more}</small></div>" for name, value, more in facts
    )
    return f"<section class='wide cards'>{''.join(cards)}</section>"


def time_labels(last_s: float) -> list[svg.Label]:
    """Return round times from 0 on, at most `TIME_LABELS` of them."""
    step_s = next((step_s for step_s in TIME_STEPS_S if last_s / step_s < TIME_LABELS), last_s)
    times = [index * step_s for index in range(int(last_s / step_s + 1e-9) + 1)]
    if last_s < 1:
        return [(time_s, f"{1000 * time_s:.0f} ms") for time_s in times]
    names = (duration(time_s, int(step_s < 1)) for time_s in times)
    return [(time_s, re.sub(r"(?<=[a-z]) 0 \w+$", "", name)) for time_s, name in zip(times, names, strict=True)]


def _course(course: TimelineFigures) -> Iterator[str]:
    if len(course.steps) < 2:
        return
    labels = time_labels(course.steps[-1].at_s)
    silent = [(silence.at_s, silence.at_s + silence.lasted_s) for silence in course.silences]
    said = (
        f" Shaded: nothing ended for {course.silence_s_min:.0f} s or more, {duration(course.silent_s, 1)} in all."
        if course.silences
        else ""
    )
    step = duration(course.step_s, 1)

    def figure(title: str, said: str, values: list[float], shown: Callable[[float], str], unit: str) -> str:
        points = [
            (one.at_s, value, f"{duration(one.at_s, 1)}: {shown(value)}")
            for one, value in zip(course.steps, values, strict=True)
        ]
        return _figure(title, said, svg.area(points, labels, unit, silent), wide=True)

    pages = [one.pages / course.step_s for one in course.steps]
    yield figure("Pages a second", f"In steps of {step}.{said}", pages, "{:,.1f} pages/s".format, "pages/s")
    bits = [8 * one.wire_bytes / course.step_s for one in course.steps]
    yield figure("Bits a second", f"Received, in steps of {step}.", bits, bit_rate, "bit/s")
    queued = [float(one.queued) for one in course.steps]
    if any(queued):
        said = f"URLs that were not finished, in steps of {step}."
        yield figure("Queue length", said, queued, "{:,.0f} URLs".format, "URLs")
    if (commits := course.commits).count:
        said = (
            f"The longest in each step. {commits.count:,} commits took {seconds(commits.mean_s)} on average and "
            f"{seconds(commits.p99_s)} in 99% of cases; one stalled the crawl for {seconds(commits.cut_max_s)} at most."
        )
        yield figure("Commits", said, [one.commit_s for one in course.steps], seconds, "seconds")


def _log_log(title: str, said: str, buckets: Sequence[Bucket], *, of_bytes: bool) -> str:
    labels = [bucket_name(bucket, of_bytes=of_bytes) for bucket in buckets]
    counts = [bucket.count for bucket in buckets]
    dots = [bucket.count for bucket in buckets if bucket.least and bucket.count]
    if len(dots) < DOTS_MIN or max(dots) < HOSTS_MIN:
        rows = ((label, f"{count:,}") for label, count in zip(labels, counts, strict=True) if count)
        return _table(title, f"{said} Each line has those below twice its first number.", ("from", "hosts"), rows)
    points = [
        (float(bucket.least), float(bucket.count), f"from {label}: {bucket.count:,} hosts")
        for bucket, label in zip(buckets, labels, strict=True)
    ]
    none = next((bucket.count for bucket in buckets if not bucket.least), 0)
    return _figure(title, f"{said} Not shown: {none:,} with none.", svg.log_log(points, labels, "hosts"))


def _fetch_times(report: Report) -> str:
    times = report.fetch_s
    rows = {"half": times.p50, "90%": times.p90, "99%": times.p99, "the longest": times.max, "mean": times.mean}
    cells = ((name, seconds(value)) for name, value in rows.items() if times.max)
    return _table("Fetch times", "From the start of a request to its last byte.", ("of fetches", "took at most"), cells)


def _bars(part: ReportBars) -> str:
    title, said, counts = part
    if not counts:
        return ""
    most = max(count.count for count in counts)
    rows = (
        f"<tr><th scope=row>{html_text(c.name).replace('_', '_<wbr>')}</th><td>{c.count:,}</td><td>{c.share:.1%}</td>"
        f"<td class=meter><i style='width:{100 * c.count / most:.1f}%'></i></td></tr>"
        for c in counts[:LINES_MAX]
    )
    return _section(title, said, f"<table class=bars>{''.join(rows)}</table>{_others(len(counts) - LINES_MAX)}")


def _others(more: int) -> str:
    return f"<p>… and {more:,} more, which <code>gossamer report --json</code> lists.</p>" if more > 0 else ""


def _table(
    title: str, said: str, heads: Sequence[str], rows: Iterable[Sequence[str]], *, wide: bool = False, more: int = 0
) -> str:
    """Cells are HTML already; `more` rows are left out."""
    lines = "".join(_row(heads, row) for row in rows)
    if not lines:
        return ""
    names = "".join(f"<th scope=col>{name}</th>" for name in heads)
    head = f"<thead><tr>{names}</tr></thead>" if any(heads) else ""
    table = f"<table class=rows>{head}<tbody>{lines}</tbody></table>"
    return _section(title, said, table + _others(more), wide=wide)


def _row(heads: Sequence[str], row: Sequence[str]) -> str:
    """A row whose cells name themselves where a narrow screen has no heads."""
    cells = (f'<td data-head="{head}">{cell}</td>' for head, cell in zip(heads[1:], row[1:], strict=True))
    return f"<tr><th scope=row>{row[0]}</th>{''.join(cells)}</tr>"


def _figure(title: str, said: str, drawing: str, *, wide: bool = False) -> str:
    """A drawing has one name for those who cannot see it."""
    if not drawing:
        return ""
    return _section(title, said, f'<figure role="img" aria-label="{title}">{drawing}</figure>', wide=wide)


def _section(title: str, said: str, content: str, *, wide: bool = False) -> str:
    kind = " class=wide" if wide else ""
    return f"<section{kind}><h2>{title}</h2><p>{said}</p>{content}</section>"


def _prose(text: str) -> str:
    """Return text as HTML; parts between backticks become code."""
    parts = html_text(text).split("`")
    return "".join(f"<code>{part}</code>" if place % 2 else part for place, part in enumerate(parts))


def html_text(text: str) -> str:
    """Return text of the web as HTML."""
    return escape(printable(text))
