"""Report: the figures of a crawl, asked of its finished Parquet files."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import duckdb

from gossamer.report.figures import Count, FetchTimes, Host, Report, Trouble

MEMORY_BYTES_MAX = 512_000_000
LINES_MAX = 20
SLOWEST_MAX = 10
DEPTHS_MAX = 30

_TOTALS = """
    SELECT count(*), count(*) FILTER (outcome = 'fetched'), count(*) FILTER (attempt > 1),
        count(*) FILTER (duplicate_of <> ''), count(*) FILTER (truncated <> ''),
        coalesce(sum(wire_bytes), 0)::BIGINT, coalesce(sum(body_bytes), 0)::BIGINT,
        coalesce(sum(warc_length), 0)::BIGINT,
        epoch(min(fetched_at)), max(epoch(fetched_at) + fetch_s)
    FROM pages"""
_HOSTS = "SELECT count(*), count(DISTINCT site) FROM (SELECT host, any_value(site) AS site FROM pages GROUP BY host)"
_FETCH_TIMES = """
    SELECT avg(fetch_s), approx_quantile(fetch_s, 0.5), approx_quantile(fetch_s, 0.9), approx_quantile(fetch_s, 0.99),
        max(fetch_s)
    FROM pages WHERE fetch_s > 0"""
_OF_PAGES = "SELECT {name}, count(*) AS n FROM pages WHERE {where} GROUP BY 1 ORDER BY {order} LIMIT {limit}"
_LINK_TYPES = "SELECT link_type::VARCHAR AS name, count(*) AS n FROM links GROUP BY 1 ORDER BY n DESC, 1 LIMIT {limit}"
_TLDS = r"""
    SELECT CASE WHEN host LIKE '[%' OR regexp_full_match(host, '[0-9.]+') THEN '(address)'
        ELSE regexp_extract(host, '[^.]+$') END AS name, count(*) AS n
    FROM (SELECT DISTINCT host FROM pages) GROUP BY 1 ORDER BY n DESC, 1 LIMIT {limit}"""
_PER_HOST = """
    SELECT host::VARCHAR AS host, count(*), count(*) FILTER (outcome = 'fetched') AS fetched,
        coalesce(sum(wire_bytes), 0)::BIGINT AS bytes,
        coalesce(avg(fetch_s) FILTER (fetch_s > 0), 0) AS mean_s
    FROM pages GROUP BY host HAVING {having} ORDER BY {order}, host LIMIT {limit}"""
_TROUBLES = """
    SELECT outcome::VARCHAR, count(*) AS n, min(url), arg_min(error, url)
    FROM pages WHERE outcome NOT IN ('fetched', 'not_modified', 'redirected')
    GROUP BY 1 ORDER BY n DESC, 1 LIMIT {limit}"""


def summary(directory: Path, memory_bytes_max: int = MEMORY_BYTES_MAX) -> Report:
    """Return the figures of a crawl's directory; of one without pages, an empty report.

    Reads finished Parquet files only, so figures of a running crawl lag behind. Memory is bounded by
    `memory_bytes_max`; what does not fit goes to a temporary folder. Costs about 0.5 s per million pages.
    """
    pages = sorted(str(path) for path in (directory / "pages").glob("*.parquet"))
    links = sorted(str(path) for path in (directory / "links").glob("*.parquet"))
    if not pages:
        return Report()
    with tempfile.TemporaryDirectory(prefix="gossamer-report-") as folder:
        config: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": f"{memory_bytes_max}B",
            "temp_directory": folder,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
        with duckdb.connect(":memory:", config=config) as tables:
            tables.read_parquet(pages, union_by_name=True).create_view("pages")
            if links:
                tables.read_parquet(links, union_by_name=True).create_view("links")
            return _asked(tables, bool(links))


def _asked(tables: duckdb.DuckDBPyConnection, has_links: bool) -> Report:
    attempts, fetched, repeated, duplicates, truncated, wire, body, warc, begun, ended = _one(tables, _TOTALS)
    hosts, sites = _one(tables, _HOSTS)
    links = _one(tables, "SELECT count(*) FROM links")[0] if has_links else 0
    duration_s = ended - begun if begun is not None else 0.0

    def of_pages(name: str, where: str = "true", order: str = "n DESC, 1", limit: int = LINES_MAX) -> tuple[Count, ...]:
        query = _OF_PAGES.format(name=name, where=where, order=order, limit=limit)
        return _counts(tables, query, attempts)

    return Report(
        attempts=attempts,
        fetched=fetched,
        repeated=repeated,
        hosts=hosts,
        sites=sites,
        links=links,
        duplicates=duplicates,
        truncated=truncated,
        wire_bytes=wire,
        body_bytes=body,
        warc_bytes=warc,
        begun_at=begun,
        ended_at=ended,
        duration_s=duration_s,
        pages_per_s=fetched / duration_s if duration_s > 0 else 0.0,
        fetch_s=FetchTimes(*(value or 0.0 for value in _one(tables, _FETCH_TIMES))),
        outcomes=of_pages("outcome::VARCHAR"),
        statuses=of_pages("status::VARCHAR", "status IS NOT NULL"),
        media_types=of_pages("media_type::VARCHAR", "outcome = 'fetched'"),
        depths=of_pages("depth::VARCHAR", order="any_value(depth)", limit=DEPTHS_MAX),
        link_types=_counts(tables, _LINK_TYPES.format(limit=LINES_MAX), links) if has_links else (),
        hosts_per_tld=_counts(tables, _TLDS.format(limit=LINES_MAX), hosts),
        top_hosts=_hosts(tables, "true", "fetched DESC, bytes DESC", LINES_MAX),
        slowest_hosts=_hosts(tables, "count(*) FILTER (fetch_s > 0) >= 3", "mean_s DESC", SLOWEST_MAX),
        troubles=tuple(Trouble(*row) for row in _all(tables, _TROUBLES.format(limit=LINES_MAX))),
    )


def _counts(tables: duckdb.DuckDBPyConnection, query: str, whole: int) -> tuple[Count, ...]:
    return tuple(Count(name or "(none)", n, n / whole if whole else 0.0) for name, n in _all(tables, query))


def _hosts(tables: duckdb.DuckDBPyConnection, having: str, order: str, limit: int) -> tuple[Host, ...]:
    return tuple(Host(*row) for row in _all(tables, _PER_HOST.format(having=having, order=order, limit=limit)))


def _all(tables: duckdb.DuckDBPyConnection, query: str) -> list[tuple[Any, ...]]:
    return tables.execute(query).fetchall()


def _one(tables: duckdb.DuckDBPyConnection, query: str) -> tuple[Any, ...]:
    row = tables.execute(query).fetchone()
    assert row is not None, "an aggregate always has a row"
    return row
