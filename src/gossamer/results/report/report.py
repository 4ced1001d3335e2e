"""Report: the figures of a crawl, from its Parquet files."""

from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from gossamer.model.product import FORGOTTEN
from gossamer.results.report import figures, sections
from gossamer.results.report.tables import RENDER_REASON, ReportTables, open_tables, queries

MEMORY_BYTES_MAX = 512_000_000
COUNTS_MAX = 10_000
"""Rows of a list of counts; what servers send may have any number of kinds."""
LINES_MAX = 20
SLOWEST_MAX = 10
COPIES_MAX = 10
NOTHING = figures.Report()
_SQL = queries(__package__, "report.sql")
EXAMPLES_MAX = 3
ATTEMPTS_MAX = 12
"""Attempts of an error from which examples of distinct URLs are taken."""
# Numbers differ from page to page where the kind of error does not.
_KIND = """CASE WHEN outcome = 'http_error' THEN coalesce(status::VARCHAR, '')
        ELSE regexp_replace(error, '[0-9]+', '#', 'g') END"""


def summary(
    directory: Path,
    known: figures.Report = NOTHING,
    *,
    memory_bytes_max: int = MEMORY_BYTES_MAX,
    rejected: Mapping[str, int] | None = None,
    unfinished: Path | None = None,
    counted: int | None = None,
    received: int | None = None,
    unread: str = "",
) -> figures.Report:
    """Return the figures of a crawl's directory; of one without pages, an empty report.

    Reads the crawl's Parquet files, and those in `unfinished`, a folder that holds what is in no finished file yet.
    Where the tables hold fewer attempts than the crawl `counted`, or logs are `unread` for a reason, it says so.
    `received` is the bytes that the crawl counted, with those of robots.txt, which no table has. Memory is bounded by
    `memory_bytes_max`; what does not fit goes to a temporary folder. The tables hold neither what each filter refused
    (`rejected`) nor what is `known` from the crawl's status. docs/reference/report.md says what it costs.
    """
    with open_tables(directory, memory_bytes_max, unfinished=unfinished) as tables:
        report = _query(tables, rejected or {}, known) if tables is not None else known
    received = report.wire_bytes if received is None else received
    lasted_s = report.crawling_s or report.duration_s
    return msgspec.structs.replace(
        report,
        wire_bytes=received,
        bits_per_s=8 * received / lasted_s if lasted_s > 0 else 0.0,
        incomplete=_incomplete(report.attempts, counted, unread, forgotten=(directory / FORGOTTEN).exists()),
        attempts_counted=counted,
        failed_modules=tuple(sorted(known.failed_modules, key=lambda one: -one.failed)),
    )


def _incomplete(attempts: int, counted: int | None, unread: str, *, forgotten: bool) -> str:
    lacks = []
    if unread:
        lacks.append(f"rows that are in no finished table are left out ({unread})")
    if counted is not None and counted > attempts:
        others = ", among them those of forgotten pages" if forgotten else ""
        lacks.append(f"the tables hold {attempts:,} of {counted:,} attempts; the figures lack the others{others}")
    return "; ".join(lacks)


def _query(tables: ReportTables, rejected: Mapping[str, int], known: figures.Report) -> figures.Report:
    totals = tables.row(_SQL["totals"])
    attempts = totals["attempts"]
    fetched = totals["fetched"]
    begun_at = totals["begun_at"]
    pages_truncated = totals.pop("pages_truncated")
    links, local_links = tables.one(_SQL["links"]) if tables.has_links else (0, 0)
    duration_s = totals["ended_at"] - begun_at if begun_at is not None else 0.0
    lasted_s = known.crawling_s or duration_s
    of_pages = partial(_of_pages, tables)
    of_fetched = partial(_of_fetched, tables, fetched)
    urls = tables.query_slices(_SQL["urls"], "key")
    dns, caches, link_checks = sections.dns_and_caches(tables)
    uses, statements = sections.uses(tables)
    return msgspec.structs.replace(
        known,
        **totals,
        urls=sum(row[1] for row in urls),
        urls_fetched=sum(row[2] for row in urls),
        urls_revisited=sum(row[3] for row in urls),
        hosts=tables.one("SELECT count(*) FROM hosts")[0],
        hosts_answered=tables.one("SELECT count(*) FROM hosts WHERE answers > 0")[0],
        sites=sum(count for (count,) in tables.query_slices(_SQL["sites"], "site")),
        links=links,
        truncated_share=pages_truncated / fetched if fetched else 0.0,
        local_links_share=local_links / links if links else 0.0,
        duration_s=duration_s,
        pages_per_s=fetched / lasted_s if lasted_s > 0 else 0.0,
        course=sections.course(tables, begun_at, duration_s) if begun_at is not None else figures.TimelineFigures(),
        fetch_s=figures.FetchTimes(*(value or 0.0 for value in tables.one(_SQL["fetch_times"]))),
        outcomes=of_pages("outcome::VARCHAR", attempts),
        url_outcomes=_url_outcomes(urls),
        statuses=of_pages("status::VARCHAR", attempts, "status IS NOT NULL"),
        media_types=of_pages("media_type::VARCHAR", fetched, "outcome = 'fetched'"),
        text_methods=of_fetched("text_method"),
        rendered=of_fetched("rendered"),
        render_reasons=of_fetched(RENDER_REASON),
        depths=of_pages("depth::VARCHAR", attempts, order="any_value(depth)"),
        link_types=_counts(tables.all(_SQL["link_types"]), links) if tables.has_links else (),
        rejected=_counts(sorted(rejected.items(), key=lambda item: -item[1]), sum(rejected.values())),
        document_sizes=sections.buckets(tables, "SELECT body_bytes AS size FROM pages WHERE outcome = 'fetched'"),
        hosts_by_pages=sections.buckets(tables, "SELECT fetched AS size FROM hosts"),
        hosts_by_bytes=sections.buckets(tables, "SELECT bytes AS size FROM hosts"),
        domains=sections.domains(tables),
        top_hosts=_hosts(tables, "true", "fetched DESC, bytes DESC", LINES_MAX),
        slowest_hosts=_hosts(tables, "fetches >= 3", "mean_s DESC", SLOWEST_MAX),
        trapped_hosts=of_pages("host::VARCHAR", totals["trapped"], "outcome = 'trapped'"),
        politeness=sections.politeness(tables),
        uses=uses,
        statements=statements,
        dns=dns,
        caches=caches,
        link_checks=link_checks,
        copied=_copies(tables),
        troubles=_troubles(tables),
    )


def _of_pages(
    tables: ReportTables, name: str, whole: int, where: str = "true", order: str = "n DESC, 1"
) -> tuple[figures.Count, ...]:
    return _counts(tables.all(_SQL["of_pages"], name=name, where=where, order=order), whole)


def _of_fetched(tables: ReportTables, fetched: int, column: str) -> tuple[figures.Count, ...]:
    return _of_pages(tables, f"{column}::VARCHAR", fetched, f"outcome = 'fetched' AND coalesce({column}, '') <> ''")


def _counts(rows: list[tuple[str, int]], whole: int) -> tuple[figures.Count, ...]:
    rest = sum(n for _, n in rows[COUNTS_MAX:])
    shown = [*rows[:COUNTS_MAX], *([("(other)", rest)] if rest else [])]
    return tuple(figures.Count(name or "(none)", n, n / whole if whole else 0.0) for name, n in shown if n)


def _url_outcomes(urls: list[tuple[Any, ...]]) -> tuple[figures.Count, ...]:
    sums = Counter[str]()
    for outcome, count, _, _ in urls:
        sums[outcome] += count
    return _counts(sorted(sums.items(), key=lambda item: (-item[1], item[0])), sums.total())


def _hosts(tables: ReportTables, where: str, order: str, limit: int) -> tuple[figures.HostFigures, ...]:
    return tuple(
        figures.HostFigures(*row) for row in tables.all(_SQL["per_host"], where=where, order=order, limit=limit)
    )


def _copies(tables: ReportTables) -> tuple[figures.CopyFigures, ...]:
    rows = tables.query_slices(_SQL["copied"], "duplicate_of", limit=COPIES_MAX)
    return tuple(figures.CopyFigures(*row) for row in sorted(rows, key=lambda row: (-row[1], row[0]))[:COPIES_MAX])


def _troubles(tables: ReportTables) -> tuple[figures.Trouble, ...]:
    rows = tables.query_slices(_SQL["troubles"], _KIND, kind=_KIND, limit=LINES_MAX, few=ATTEMPTS_MAX)
    return tuple(
        figures.Trouble(outcome, kind, count, url, error, tuple(dict.fromkeys(urls))[1:EXAMPLES_MAX])
        for outcome, kind, count, url, error, urls in sorted(rows, key=lambda row: (-row[2], *row[:2]))[:LINES_MAX]
    )


def outcomes(directory: Path) -> dict[str, str]:
    """Return the last outcome of each key of a finished crawl. Holds all of them: for crawls that fit in memory."""
    with open_tables(directory, MEMORY_BYTES_MAX) as tables:
        return dict(tables.all(_SQL["last_outcomes"])) if tables is not None else {}
