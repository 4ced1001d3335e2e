"""Archives are imported by a Python program; mistakes are named by its arguments."""

from __future__ import annotations

import asyncio
import inspect
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

import gossamer
from gossamer import Crawler
from gossamer.api import archives
from gossamer.config import configure
from gossamer.config.footprint import SHARES, fixed_bytes, least_bytes
from gossamer.model.errors import ConfigError
from gossamer.results.imports.importing import ImportStatus
from tests.results.imports.archives import HOST, Stored, site, write_warc

PAGES = 6


@pytest.fixture
def warc(tmp_path: Path) -> Path:
    gone = Stored(f"{HOST}/p40", b"gone", status="404 Not Found")
    return write_warc(tmp_path / "other.warc.gz", [*site(PAGES), gone])


def test_tables_and_counts(warc: Path, tmp_path: Path) -> None:
    shown: list[ImportStatus] = []
    done = gossamer.import_archives(warc, output=tmp_path / "crawl", on_progress=shown.append)
    assert (done.status.captures, done.status.refused, done.pending) == (PAGES + 1, 0, 7)
    assert done.pages.to_arrow("status = 200").num_rows == PAGES
    assert done.links.to_arrow().num_rows == 2 * PAGES
    assert shown[-1] == done.status
    again = gossamer.import_archives([str(warc)], output=tmp_path / "crawl")
    assert again.pages.to_arrow().num_rows == PAGES + 1
    assert Crawler.resume(tmp_path / "crawl").directory == tmp_path / "crawl"


def test_captures_are_chosen(warc: Path, tmp_path: Path) -> None:
    since = datetime(2026, 1, 1, 0, 0, 2, tzinfo=UTC)
    done = gossamer.import_archives(
        [warc], output=tmp_path / "crawl", statuses=[200], since=since, until="2026-01-01T00:00:05", exclude=["p3"]
    )
    assert sorted(done.pages.to_arrow()["url"].to_pylist()) == [f"{HOST}/p2", f"{HOST}/p4"]
    assert done.status.left_out == {"status": 1, "time": 3, "exclude": 1}


def test_it_works_where_a_loop_runs(warc: Path, tmp_path: Path) -> None:
    async def cell() -> int:
        return gossamer.import_archives(warc, output=tmp_path / "crawl").status.captures

    assert asyncio.run(cell()) == PAGES + 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"sources": 5}, "sources is 5"),
        ({"sources": []}, "no sources"),
        ({"sources": "nothing.warc"}, "there is no archive"),
        ({"since": "yesterday"}, "since yesterday: expected a date"),
        ({"until": 5}, "until 5: expected a date"),
        ({"statuses": 200}, "statuses is 200: give HTTP statuses"),
        ({"statuses": "200"}, "give HTTP statuses"),
        ({"on_progress": 1}, "on_progress is 1: give a function"),
        ({"output": 5}, "output is 5"),
        ({"seeds": "a.example"}, "did you mean https://a.example/ ?"),
        ({"scope": "planet"}, "scope"),
        ({"max_pags": 3}, "max_pages"),
        ({"settings": {"archive": 1}}, "section.key"),
    ],
)
def test_mistakes_are_named_by_arguments(warc: Path, tmp_path: Path, arguments: dict[str, Any], says: str) -> None:
    given: dict[str, Any] = {"sources": warc, "output": tmp_path / "crawl", **arguments}
    with pytest.raises(ConfigError) as raised:
        gossamer.import_archives(given.pop("sources"), **given)
    assert says in str(raised.value)
    assert "--" not in str(raised.value)
    assert not (tmp_path / "crawl").exists()


def test_a_directory_with_a_crawl_is_refused(warc: Path, tmp_path: Path) -> None:
    crawl = tmp_path / "crawl"
    gossamer.import_archives(warc, output=crawl)
    (crawl / "imports.json").unlink()
    with pytest.raises(ConfigError, match="already holds a crawl"):
        gossamer.import_archives(warc, output=crawl)


def test_help_names_all_options() -> None:
    assert "exclude" in inspect.signature(gossamer.import_archives).parameters
    assert "exclude: " in (gossamer.import_archives.__doc__ or "")


@pytest.mark.parametrize("budget", ["256MiB", "512MiB", "4GiB"])
def test_caches_of_an_import_leave_memory_to_processes_that_read_ahead(budget: str) -> None:
    config = configure(options={"memory": budget}, sets=["frontier.records_cached_max=700"])
    small = archives._with_small_caches(config)
    assert small.memory == config.memory
    assert small.frontier.records_cached_max == 700, "a key that is set stays"
    values = {key: attrgetter(key)(small) * share.unit_bytes for key, share in SHARES.items() if not share.backend}
    fixed = sum(fixed_bytes(config).values())
    assert fixed + sum(values.values()) <= max(config.memory.budget_bytes // 4, fixed + least_bytes(config))
