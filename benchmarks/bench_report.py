"""What a report costs: seconds, CPU and memory, for tables of growing size.

    python benchmarks/bench_report.py [ROWS …]

The tables are made by DuckDB: hosts by Zipf's law, three pages a second, one link row for each page. Each report
runs in a process of its own, so that its peak of memory is its own.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb

from gossamer.results.report.figures import as_json
from gossamer.results.report.report import summary

ROWS = (1_000_000, 10_000_000)
PAGES_A_FILE = 2_000_000
_PAGES = """
COPY (
    SELECT 'http://' || host || '/' || n AS url, url AS key, host, site,
        to_timestamp(1767225600 + n * 0.3)::TIMESTAMPTZ AS fetched_at, outcome,
        CASE WHEN outcome = 'fetched' THEN 200 WHEN outcome = 'http_error' THEN 404 END::SMALLINT AS status,
        'text/html' AS media_type, 'utf-8' AS charset, size // 4 AS wire_bytes, size AS body_bytes, '' AS truncated,
        md5(n::VARCHAR) AS digest, CASE WHEN chance < 0.05 THEN 'http://' || host || '/0' ELSE '' END AS duplicate_of,
        'title ' || n AS title, (n % 12)::INTEGER AS depth, '' AS referrer, 'anchor' AS link_type, '' AS redirect_to,
        '10.' || (h % 256) || '.0.1' AS ip, 0.05 + chance AS fetch_s, 1 AS attempt, 'w.warc.gz' AS warc_file,
        n * 9000 AS warc_offset, 9000::BIGINT AS warc_length, 0 AS shard,
        CASE WHEN outcome = 'timeout' THEN 'no byte for ' || (n % 60) || ' s' ELSE '' END AS error
    FROM (
        SELECT n, h, chance, 'h' || h || '.s' || (h // 3) || '.example' AS host, 's' || (h // 3) || '.example' AS site,
            CASE WHEN chance < 0.9 THEN 'fetched' WHEN chance < 0.96 THEN 'http_error' ELSE 'timeout' END AS outcome,
            (2 ** (8 + 10 * chance))::BIGINT AS size
        FROM (SELECT n, ({hosts} ** random())::BIGINT AS h, random() AS chance FROM range({begin}, {end}) r(n))
    )
) TO '{path}' (FORMAT parquet, COMPRESSION zstd)"""
_LINKS = """
COPY (SELECT 'http://a/' || n AS from_url, 'http://b/' || n AS to_url, 'http://b/' || n AS to_key,
        'anchor' AS link_type, 'text' AS anchor_text, false AS nofollow FROM range({begin}, {end}) r(n))
TO '{path}' (FORMAT parquet, COMPRESSION zstd)"""


def make(directory: Path, rows: int) -> int:
    """Write the tables; return their bytes."""
    for folder in ("pages", "links"):
        (directory / folder).mkdir()
    with duckdb.connect(":memory:", config={"memory_limit": "2GB"}) as made:
        for number, begin in enumerate(range(0, rows, PAGES_A_FILE)):
            given = {"begin": begin, "end": min(begin + PAGES_A_FILE, rows), "hosts": max(10, rows // 50)}
            made.execute(_PAGES.format(path=directory / f"pages/pages-000-0001-{number:06d}.parquet", **given))
            made.execute(_LINKS.format(path=directory / f"links/links-000-0001-{number:06d}.parquet", **given))
    return sum(path.stat().st_size for path in directory.rglob("*.parquet"))


def report(directory: Path) -> None:
    """Make the report and print what it took."""
    begun = time.perf_counter()
    found = summary(directory)
    took_s = time.perf_counter() - begun
    usage = resource.getrusage(resource.RUSAGE_SELF)
    as_json(found)
    print(json.dumps([took_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, found.attempts]))


def main() -> None:
    if sys.argv[1:2] == ["--report"]:
        report(Path(sys.argv[2]))
        return
    counts = [int(word) for word in sys.argv[1:]] or ROWS
    print(f"{'rows':>12} {'tables MB':>10} {'seconds':>8} {'CPU s':>7} {'CPU µs/row':>11} {'peak MiB':>9}")
    for rows in counts:
        with tempfile.TemporaryDirectory(prefix="bench-report-") as folder:
            size = make(Path(folder), rows)
            command = [sys.executable, __file__, "--report", folder]
            took_s, cpu_s, peak_mib, attempts = json.loads(subprocess.check_output(command, text=True))
            assert attempts == rows
            costs = f"{took_s:>8.1f} {cpu_s:>7.1f} {1e6 * cpu_s / rows:>11.2f} {peak_mib:>9,.0f}"
            print(f"{rows:>12,} {size / 1e6:>10,.0f} {costs}", flush=True)


if __name__ == "__main__":
    main()
