"""The report of crawls whose tables are not finished: one that runs, one that was killed, one that was resumed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from tests.commands import run
from tests.crash.crawls import crawl_of, until
from tests.ring.crawls import crawl

OFTEN = ("crawl.commit_pages=10", "crawl.commit_s=0.2")
SLOW = ("politeness.per_host=1", "politeness.delay_s_min=0.5")


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimwebProcess]:
    with SimwebProcess(SimwebOptions(seed=3, hosts=8, pages=80), tmp_path_factory.mktemp("web")) as web:
        yield web


def told(command: str, directory: Path) -> dict[str, object]:
    status, out, err = run(command, str(directory), "--json")
    assert (status, err) == (0, ""), err
    found: dict[str, object] = json.loads(out)
    return found


def attempts(found: dict[str, object]) -> int:
    assert isinstance(found["attempts"], int)
    return found["attempts"]


def test_report_and_status_count_the_same_bytes(web: SimwebProcess, tmp_path: Path) -> None:
    crawl(web.seeds, tmp_path / "crawl", "limits.max_pages=3", hosts=str(web.hosts_file))
    assert told("report", tmp_path / "crawl")["wire_bytes"] == told("status", tmp_path / "crawl")["wire_bytes"]


@pytest.mark.heavy
@pytest.mark.timeout(900)
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.long
def test_a_report_counts_what_is_in_no_finished_table(web: SimwebProcess, tmp_path: Path, workers: int) -> None:
    shards = (f"cluster.workers={workers}",) if workers > 1 else ()
    crawl = crawl_of(web, tmp_path / "crawl", *OFTEN, *SLOW, *shards)
    directory = crawl.directory
    try:
        crawl.start()
        until(lambda: any(path.stat().st_size > 2000 for path in directory.glob("state/**/tables/pages-*")))
        until(lambda: attempts(told("status", directory)) > 0)  # The coordinator counts twice a second.
        running = told("report", directory)
        assert not list(directory.glob("pages/*.parquet")), "all of it came from logs"
        counted = running["attempts_counted"]
        assert isinstance(counted, int)
        assert attempts(running) > 0
        assert bool(running["incomplete"]) == (attempts(running) < counted)
        crawl.kill("both")
    finally:
        crawl.close()
    assert list(directory.glob("state/**/tables/pages-*")), "something was left undone"
    killed = told("report", directory)
    assert attempts(killed) == attempts(told("status", directory)) >= attempts(running)
    assert killed["incomplete"] == ""
    assert killed["links"]
    course = killed["course"]
    assert isinstance(course, dict)
    assert course["commits"]["count"] > 0
    crawl.start("--max-pages", str(int(str(killed["fetched"])) + 5))
    assert crawl.wait() == 0
    resumed = told("report", directory)
    assert attempts(resumed) == attempts(told("status", directory)) > attempts(killed)
    assert resumed["incomplete"] == ""


def assert_counted(report: dict[str, object]) -> None:
    """Caches, lookups and the queue's length are in the report of a crawl."""
    caches, course = report["caches"], report["course"]
    assert isinstance(caches, list)
    assert isinstance(course, dict)
    found = {cache["name"]: cache for cache in caches}
    assert set(found) >= {"dns", "robots", "records", "urls"}
    assert all(cache["misses"] > 0 for cache in caches)
    assert found["urls"]["hits"] > 0
    assert max(step["queued"] for step in course["steps"]) > 0


@pytest.mark.heavy
@pytest.mark.long
def test_rows_that_are_nowhere_are_said_to_be_missing_in_every_form(web: SimwebProcess, tmp_path: Path) -> None:
    crawl = crawl_of(web, tmp_path / "crawl", "archive.table_segment_rows_max=20", "limits.max_pages=60", *OFTEN)
    try:
        crawl.start()
        assert crawl.wait() == 0
    finally:
        crawl.close()
    whole = told("report", crawl.directory)
    assert_counted(whole)
    first = min(crawl.directory.glob("pages/*.parquet"))
    first.rename(tmp_path / "moved")
    found = told("report", crawl.directory)
    says = f"the tables hold {attempts(found):,} of {attempts(whole):,} attempts"
    assert says in str(found["incomplete"])
    assert found["attempts_counted"] == attempts(whole) > attempts(found)
    assert says in run("report", str(crawl.directory))[1].replace("\n", " ")
    run("report", str(crawl.directory), "--html", str(tmp_path / "page.html"))
    assert says in (tmp_path / "page.html").read_text()
