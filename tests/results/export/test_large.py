"""Many rows: a host is found by reading little, and memory stays within its budget."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gossamer.results.export import tables
from gossamer.stages.archive.schema import LINKS, PAGES
from tests.further import with_further
from tests.results.export.conftest import Exporting

ROOT = Path(__file__).parents[3]
HOSTS = 100


def pages(rows: int, start: int) -> pa.Table:
    """Rows whose hosts take turns."""
    hosts = [f"h{(start + number) * 37 % HOSTS:02d}.example" for number in range(rows)]
    table = pa.table({"host": hosts, "url": [f"http://{host}/{start + number}" for number, host in enumerate(hosts)]})
    for field in PAGES:
        if field.name not in table.column_names:
            table = table.append_column(field, pa.nulls(rows, field.type))
    return table.select(PAGES.names).cast(PAGES)


def test_a_question_about_a_host_reads_the_row_groups_that_hold_it(
    exporting: Exporting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "ROW_GROUP_ROWS_MAX", 500)
    (tmp_path / "crawl/pages").mkdir(parents=True)
    for number in range(4):
        pq.write_table(pages(5_000, number * 5_000), tmp_path / f"crawl/pages/pages-000-0001-{number:06d}.parquet")
    exporting("parquet", tmp_path / "out", tmp_path / "crawl", table="pages")
    for host in ("h00.example", "h37.example", "h99.example"):
        covering = total = 0
        for path in (tmp_path / "out/pages").glob("*.parquet"):
            metadata = pq.read_metadata(path)
            column = metadata.schema.names.index("host")
            for group in range(metadata.num_row_groups):
                statistics = metadata.row_group(group).column(column).statistics
                covering += statistics.min <= host <= statistics.max
                total += 1
        assert total >= 40
        assert covering <= 2, "its 200 rows lie in one group, or on either side of a border"
        question = f"SELECT count(*) FROM '{tmp_path}/out/pages/*.parquet' WHERE host = '{host}'"
        assert duckdb.sql(question).fetchall() == [(200,)]


MEASURED = """
import resource, sys
from pathlib import Path
from gossamer.results.export.export import ExportedCrawl, ExportRequest, Means, export
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
means = Means(None, str, str, str, str, None)
request = ExportRequest(sys.argv[2], table="links", memory_bytes_max=64_000_000)
export(ExportedCrawl(Path(sys.argv[1]), running=False), request, Path(sys.argv[3]), means)
print(before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl whose links take several times the memory of an export."""
    folder = tmp_path_factory.mktemp("large") / "crawl/links"
    folder.mkdir(parents=True)
    whole_bytes = 0
    for number in range(3):
        urls = [f"http://h{(number * 500_000 + n) * 7919 % 5003}.example/path/to/page-{n}.html" for n in range(500_000)]
        column = pa.array(urls)
        table = pa.table(
            [column, column, column, pa.array(["anchor"] * len(urls)), column, pa.array([False] * len(urls))],
            names=LINKS.names,
        ).cast(LINKS)
        whole_bytes += table.nbytes
        pq.write_table(table, folder / f"links-000-0001-{number:06d}.parquet", row_group_size=100_000)
    assert whole_bytes > 4 * 64_000_000
    return folder.parent


@pytest.mark.heavy
@pytest.mark.promise("Files and exports", "An export keeps within its memory budget.")
@pytest.mark.parametrize("to", with_further("parquet", "jsonl", "csv"))
@pytest.mark.long
def test_memory_stays_within_its_budget(to: str, large: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(large), to, str(tmp_path / "out")],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    assert done.returncode == 0, done.stderr
    before, after = map(int, re.findall(r"\d+", done.stdout))
    assert (after - before) * 1024 <= 64_000_000 + 40_000_000, "the budget, and what libraries take to begin with"
