"""The index after kills: every page that was fetched stands in it once, none twice, as in an undisturbed crawl."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.results.search.query import search
from gossamer.results.search.question import SearchQuestion
from tests.crash.crawls import VICTIMS, Crawl, crawl_of, until
from tests.crash.harvest import Harvest

pytestmark = pytest.mark.promise(
    "Files and exports", "The full-text index holds the last version of every fetched page once, also after kills."
)

KILLS = 3
OFTEN = ("search.enabled=true", "search.commit_pages=30", "search.commit_s=0.3")


def indexed(directory: Path) -> Counter[str]:
    found = search([directory / "search"], SearchQuestion("url:http", limit=1000))
    assert found.total == len(found.hits), "the limit hides none"
    return Counter(f"{hit.url} {hit.title}" for hit in found.hits)


def fetched(directory: Path) -> Counter[str]:
    rows = {str(row["key"]): row for row in Harvest(directory).rows if row["outcome"] == "fetched"}
    return Counter(f"{row['url']} {row['title']}" for row in rows.values() if row["media_type"] == "text/html")


def pages_of(crawl: Crawl) -> int:
    try:
        return int(str(json.loads(crawl.said().splitlines()[-1])["pages"]))
    except (IndexError, KeyError, ValueError):
        return 0


@pytest.mark.heavy
@pytest.mark.long
def test_an_index_survives_kills(tmp_path: Path) -> None:
    dice = random.Random(5)
    with SimwebProcess(SimwebOptions.plain(seed=5, hosts=8, pages=360), tmp_path / "web") as web:
        whole, killed = (crawl_of(web, tmp_path / name, *OFTEN) for name in ("whole", "killed"))
        assert whole.finish() == 0
        kills = 0
        try:
            for number in range(KILLS):
                killed.start()
                until(lambda: (killed.directory / "search/meta.json").exists() or not killed.runs)
                until(lambda most=(number + 1) * 80: pages_of(killed) >= most or not killed.runs)
                time.sleep(dice.uniform(0.0, 0.1))
                with suppress(FileNotFoundError):  # It ended meanwhile.
                    if killed.runs:
                        killed.kill(VICTIMS[number % 2 + 1])  # Those that end the command: it is started again here.
                        kills += 1
            killed.start()
            assert killed.wait() == 0
        finally:
            killed.close()
    assert kills >= 2, "the crawl was too quick to be killed"
    assert indexed(whole.directory) == fetched(whole.directory) == fetched(killed.directory)
    assert indexed(killed.directory) == indexed(whole.directory)
    assert set(indexed(killed.directory).values()) == {1}
    assert not list((killed.directory / "state/search").glob("*"))
