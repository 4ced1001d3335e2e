"""Page: a check as one HTML page that loads nothing. All texts are escaped; only addresses of the web are links."""

import base64
import hashlib
import pkgutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import islice
from string import Template

from gossamer.results.check.causes import OF_LINKS, Cause, causes_of, faults_by_page, summary
from gossamer.results.check.comparison import SiteCheck
from gossamer.results.export.faults import KINDS, SEVERITIES, SiteFault
from gossamer.results.report.html import STYLE, html_text
from gossamer.results.report.parts import instant

ROWS_MAX = 500
"""Rows of one table; the other files of a check have all."""
ROWS_ALL_MAX = 2_000
"""Rows of the tables of all kinds together, but for the first ones of each: a phone opens some megabytes."""
LISTED_MAX = 20
"""Addresses listed in one cell, and rows of a table that shows itself unasked."""
FAULT_HEADS = ("URL", "Detail", "Pages")
"""Columns of the faults of one kind; those that are empty are left out."""

Cells = Sequence[tuple[str, str]]
"""Cells of a row: HTML, and the value to sort by; empty: the text."""


def as_html(check: SiteCheck) -> str:
    """Return the page: a summary, contents, causes, the faults of each kind, and those of each page."""
    script = _file("sort.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    counts = check.counts()
    said = summary(counts) if counts.total() else "No faults were found."
    return Template(_file("page.html")).substitute(
        digest=digest,
        site=html_text(check.site),
        style=STYLE + _file("page.css"),
        summary=said if check.at is None else f"{said.rstrip('.')}. Checked {instant(check.at)} UTC.",
        body="".join(_sections(check)),
        script=script,
    )


def _file(name: str) -> str:
    return (pkgutil.get_data("gossamer.results.check", name) or b"").decode()


def _sections(check: SiteCheck) -> Iterator[str]:
    yield _cards(check)
    shown = [one for one in check.faults if check.state(one) != "accepted"]
    if not shown:
        return
    by_kind: dict[str, list[SiteFault]] = {}
    for fault in shown:
        by_kind.setdefault(fault.kind, []).append(fault)
    yield _contents(by_kind, len(check.gone()))
    yield _causes(causes_of(one for one in shown if one.severity))
    rows_max = max(LISTED_MAX, min(ROWS_MAX, ROWS_ALL_MAX // len(by_kind)))
    for kind, faults in by_kind.items():
        yield _kind(kind, faults, check, rows_max)
    yield _pages(faults_by_page(one for one in shown if one.severity))
    if gone := check.gone():
        headings = {kind: rule.heading for kind, rule in KINDS.items()}
        rows = ([(html_text(headings.get(one.kind, one.kind)), ""), (_link(one.what), "")] for one in gone)
        yield _table("gone", "Gone since the last check", len(gone), "", ("Fault", "URL"), rows)


def _cards(check: SiteCheck) -> str:
    counts = check.counts()
    facts = [(f"{counts[one]:,}", f"{one}s") for one in SEVERITIES]
    facts.append((f"{sum(not one.severity for one in check.faults):,}", "links not checked"))
    if check.earlier is not None:
        facts.append((f"{sum(check.state(one) == 'new' for one in check.counting()):,}", "new since the last check"))
        facts.append((f"{len(check.gone()):,}", "gone since the last check"))
    if check.accepted:
        facts.append((f"{sum(check.state(one) == 'accepted' for one in check.faults):,}", "accepted by the baseline"))
    cards = "".join(f"<div class=card><b>{number}</b><span>{name}</span></div>" for number, name in facts)
    return f'<section class="wide cards" aria-label="Summary">{cards}</section>'


def _contents(by_kind: dict[str, list[SiteFault]], gone: int) -> str:
    counts = {kind: f" {len(faults):,}" for kind, faults in by_kind.items()}
    places = [("causes", "By cause", ""), *((kind, KINDS[kind].heading, number) for kind, number in counts.items())]
    places += [("pages", "By page", "")]
    places += [("gone", "Gone since the last check", f" {gone:,}")] if gone else []
    lines = "".join(f"<li><a href=#{name}>{heading}</a>{number}</li>" for name, heading, number in places)
    return f'<section class=wide><nav aria-label="Contents"><h2>Contents</h2><ul>{lines}</ul></nav></section>'


def _causes(causes: Sequence[Cause]) -> str:
    rows = ([_severity(one.kind), (_kind_link(one.kind), ""), (_cause(one), str(one)), _number(one.faults)]
            for one in causes)  # fmt: skip
    said = "Begin at the top: one change is likely to mend all faults of a row."
    return _table("causes", "By cause", len(causes), said, ("Severity", "Fault", "Cause", "Faults"), rows)


def _cause(cause: Cause) -> str:
    if cause.common == "one":
        pages = cause.faults[0].pages if cause.kind in OF_LINKS else []
        more = str(cause).removeprefix(f"{cause.place}, on {pages[0]}") if pages else ""
        return f"{_link(cause.place)}{f', on {_link(pages[0])}{more}' if pages else ''}"
    return html_text(str(cause).removesuffix(cause.place)) + _link(cause.place)


def _kind(kind: str, faults: Sequence[SiteFault], check: SiteCheck, rows_max: int) -> str:
    new = {"new": " <span class=new>new</span>"}
    rows = [[(_link(one.url) + new.get(check.state(one), ""), ""), (html_text(one.detail), ""), _list(one.pages)]
            for one in faults[:rows_max]]  # fmt: skip
    filled = [place for place in range(len(FAULT_HEADS)) if any(row[place][0] for row in rows)]
    heads = [FAULT_HEADS[place] for place in filled]
    rule = KINDS[kind]
    severity = f"<span class={rule.severity}>{rule.severity}</span>: " if rule.severity else ""
    said = f"{severity}{escape(rule.advice)}"
    return _table(kind, rule.heading, len(faults), said, heads, ([row[place] for place in filled] for row in rows))


def _list(pages: Sequence[str]) -> tuple[str, str]:
    """Return a cell with pages, all but the first behind a click."""
    if len(pages) < 2:
        return "".join(map(_link, pages)), str(len(pages))
    lines = "".join(f"<li>{_link(page)}</li>" for page in pages[:LISTED_MAX])
    lines += f"<li>and {len(pages) - LISTED_MAX:,} more</li>" if len(pages) > LISTED_MAX else ""
    return f"<details><summary>{len(pages):,} pages</summary><ul>{lines}</ul></details>", str(len(pages))


def _pages(pages: dict[str, list[SiteFault]]) -> str:
    worst = [min(faults, key=lambda one: SEVERITIES.index(one.severity)).kind for faults in pages.values()]
    rows = ([(_link(page), ""), _severity(kind), _kinds(faults), _number(faults)]
            for kind, (page, faults) in zip(worst, pages.items(), strict=True))  # fmt: skip
    said = "Where to mend: the page that links, or the page that has the fault."
    return _table("pages", "By page", len(pages), said, ("Page", "Worst", "What", "Faults"), rows)


def _kinds(faults: Sequence[SiteFault]) -> tuple[str, str]:
    counts = Counter(one.kind for one in faults)
    return ", ".join(f"{_kind_link(kind)} {number:,}" for kind, number in counts.items()), ""


def _kind_link(kind: str) -> str:
    return f"<a href=#{kind}>{KINDS[kind].heading}</a>"


def _number(faults: Sequence[SiteFault]) -> tuple[str, str]:
    return f"{len(faults):,}", str(len(faults))


def _severity(kind: str) -> tuple[str, str]:
    severity = KINDS[kind].severity
    return f"<span class={severity}>{severity}</span>", str(SEVERITIES.index(severity))


def _table(name: str, title: str, total: int, said: str, heads: Sequence[str], rows: Iterable[Cells]) -> str:
    head = "".join(f"<th scope=col{_is_number(one)}>{one}</th>" for one in heads)
    lines = [f"<tr>{''.join(_cells(heads, row))}</tr>" for row in islice(rows, ROWS_MAX)]
    left = total - len(lines)
    rest = f"<p>… and {left:,} more, which the CSV and JSON files list.</p>" if left > 0 else ""
    sorting = " data-sort" if total > 1 else ""
    table = f"<table{sorting}><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    if name != "causes" and total > LISTED_MAX:
        table = f"<details><summary>Show {len(lines):,} rows</summary>{table}</details>"
    return f"<section class=wide id={name}><h2>{title}: {total:,}</h2><p class=advice>{said}</p>{table}{rest}</section>"


def _cells(heads: Sequence[str], row: Cells) -> Iterable[str]:
    for head, (shown, value) in zip(heads, row, strict=True):
        sorting = f' data-value="{html_text(value)}"' if value else ""
        yield f'<td{_is_number(head)} data-name="{head}"{sorting}>{shown}</td>'


def _is_number(head: str) -> str:
    return " class=number" if head == "Faults" else ""


def _link(url: str) -> str:
    shown = html_text(url)
    return f'<a href="{shown}">{shown}</a>' if url.startswith(("http://", "https://")) and url.isprintable() else shown
