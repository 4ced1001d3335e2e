"""Sites with a login, and listed requests, move between running shards: one session at a time, no request twice."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path

import pytest

from gossamer.assembly.building import assemble
from gossamer.cluster.partitions import PartitionMap
from gossamer.config import Config, configure
from gossamer.url.name import Namer
from tests.cluster.crawls import WORKERS
from tests.faults.shards import Shards
from tests.guarded import AREAS, KEY, PAGES, PASSWORD, TOKEN, USER, served, settings
from tests.ring.crawls import OWN, rows
from tests.ring.test_requests import Api, api

SHARDS_MAX = 4
pytestmark = pytest.mark.timeout(900)


class Chase:
    """Has a site move again and again: each time the crawl has got on, to a number of shards that moves it."""

    def __init__(self, text: str, steps: int) -> None:
        """Move once at the most for each `steps` pages."""
        url = Namer().name(text)
        assert url is not None
        self.partition, self.steps = url.partition, steps
        self.at: list[int] = []
        """The shards that had it."""
        self._pages = 0

    async def __call__(self, running: Shards) -> None:
        moves = running.coordination.moves
        pages = sum(report.pages for report in running.reports())
        if moves.is_moving:
            return
        owner = moves.owners[self.partition]
        if not self.at or self.at[-1] != owner:
            self.at.append(owner)
        if pages < self._pages + self.steps:
            return
        self._pages = pages
        now = PartitionMap(1, running.shards, moves.owners)
        numbers = (one for one in range(1, SHARDS_MAX + 1) if now.scale_to(one).owners[self.partition] != owner)
        if (number := next(numbers, None)) is not None:
            await running.scale(number)


def config_of(seeds: list[str], *sets: str) -> Config:
    every = (*OWN, *WORKERS, "cluster.workers=2", *sets)
    return configure(options={"allow_private": True, "scope": "any"}, sets=every, seeds=seeds)


@pytest.mark.heavy
@pytest.mark.long
@pytest.mark.promise("Operation", "A crawl logs in by form or token, and again when its session has ended.")
@pytest.mark.promise("Several shards", "A running crawl goes on with another number of shards, and loses nothing.")
def test_a_site_with_logins_moves_while_its_sessions_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each page of a session changes its cookie: two shards that used one at once would lose it."""
    for name, value in (("SITE_PASSWORD", PASSWORD), ("SITE_TOKEN", TOKEN), ("SITE_KEY", KEY)):
        monkeypatch.setenv(name, value)
    (tmp_path / "hosts").write_text("127.0.0.1 ours.test theirs.test\n")
    with served() as (ours, _):
        chase, seed = Chase("http://ours.test/", 4), f"http://ours.test:{ours.port}/"
        sets = (f"resolve.hosts_file={tmp_path / 'hosts'}", *settings(ours), "politeness.delay_s_min=0.25")
        running = Shards(config_of([seed], *sets), tmp_path / "crawl", 2, assemble)
        assert asyncio.run(running.run(chase)) == "finished"
    assert len(chase.at) >= 4, "it moves while it is crawled"
    found = [row for row in rows(tmp_path / "crawl/pages") if row["host"] == "ours.test"]
    titles = {str(row["title"]) for row in found if row["outcome"] == "fetched"}
    assert titles >= {f"{area} {number} of {USER}" for area in AREAS for number in range(PAGES)}
    assert ours.busiest == 1, "one request at a time uses a session"
    assert ours.count("GET", "/logout") == 0
    assert 2 <= ours.count("POST", "/session") <= 2 + len(chase.at), "it logs in again where a login was under way"
    of_login = [row for row in found if row["outcome"] == "fetched" and "/login" in str(row["url"])]
    assert of_login == [], "no page of a login is content"
    assert {len([row for row in found if row["title"] == title]) for title in titles} == {1}


@pytest.mark.heavy
@pytest.mark.promise("Several shards", "A running crawl goes on with another number of shards, and loses nothing.")
def test_listed_requests_move_and_none_is_sent_twice(tmp_path: Path) -> None:
    lines = [{"url": f"{{root}}/{number % 5}", "method": "POST", "body": f"n={number}"} for number in range(40)]
    with api() as served_api:
        list_of(tmp_path / "requests", served_api, lines)
        chase = Chase(served_api.root, 6)
        sets = (f"seeds.requests_file={tmp_path / 'requests'}", "politeness.delay_s_min=0.1", "scope.depth_max=0")
        running = Shards(config_of([], *sets), tmp_path / "crawl", 2, assemble)
        assert asyncio.run(running.run(chase)) == "finished"
        sent = Counter(body for method, _, body, _ in served_api.sent if method == "POST")
    assert len(chase.at) >= 3, "it moves while requests are sent"
    assert sent == {f"n={number}".encode(): 1 for number in range(40)}
    fetched = [row for row in rows(tmp_path / "crawl/pages") if row["outcome"] == "fetched"]
    assert len(fetched) == 40


def list_of(path: Path, api: Api, lines: list[dict[str, str]]) -> None:
    written = [json.dumps({**line, "url": line["url"].format(root=api.root)}) + "\n" for line in lines]
    path.write_text("".join(written))
