"""The pages of all shards, as a program reads them while shards crawl and die."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from gossamer.api.following import CommittedPages
from gossamer.api.page import CrawledPage
from gossamer.assembly.home import homes
from gossamer.assembly.modules import text_of
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from tests.cluster.crawls import config_of, crawl
from tests.crash.harvest import Harvest
from tests.faults.shards import Shards

WEB = SimwebOptions(
    seed=4, hosts=12, hosts_per_site=1, pages=160, bytes_median=2_000, behaviours=("redirects", "compressed")
)


@pytest.mark.heavy
@pytest.mark.promise(
    "Several shards", "A program reads the pages of all shards, each once, also when a shard's process is killed."
)
def test_pages_come_once_while_shards_are_killed(tmp_path: Path) -> None:
    directory, read = tmp_path / "crawl", list[CrawledPage]()
    with SimwebProcess(WEB, tmp_path / "web") as simweb:
        config = config_of(simweb, directory, 2, "archive.table_segment_rows_max=30")
        pages = CommittedPages(config, homes(directory, 2))
        killed = list[int]()

        def take() -> int:
            found = pages.next()
            read.extend(CrawledPage(one, lambda seen: text_of(seen, config)) for one in found)
            return len(found)

        async def meddle(running: Shards) -> None:
            await asyncio.to_thread(take)
            if len(read) > 20 * (len(killed) + 1) and len(killed) < 3:
                killed.append(len(killed) % 2)
                await running.kill(killed[-1])
                await asyncio.to_thread(take)
                await running.start(killed[-1])

        crawl(config, directory, 2, meddle)
        during = len(read)
        while take():
            pass
    pages.close()
    harvest = Harvest(directory)
    assert killed
    assert 0 < during <= len(read)
    assert Counter(page.row.key for page in read) == Counter(str(row["key"]) for row in harvest.rows)
    assert {page.row.shard for page in read} == {0, 1}
    found = Counter((page.url, link.url, link.link_type, link.anchor_text) for page in read for link in page.links)
    assert found == Counter((row[0], row[1], row[3], row[4]) for row in harvest.links.elements())
    for page in read:
        if page.row.warc_type == "response" and page.outcome == "fetched":
            assert (len(page.body), bool(page.headers)) == (page.row.body_bytes, True), page
    assert any(page.title and page.title in page.text for page in read)


@pytest.mark.heavy
def test_pages_of_earlier_runs_are_skipped(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    with SimwebProcess(WEB, tmp_path / "web") as simweb:
        config = config_of(simweb, directory, 2)
        crawl(config, directory, 2)
        pages = CommittedPages(config, homes(directory, 2))
        pages.skip()
        assert pages.next() == []
        pages.close()
