"""A crawl that ends while an epoch is being made durable."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from gossamer import Crawler
from gossamer.config import configure
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.state.redo import Range
from gossamer.state.store import Store
from tests.ring.crawls import OWN


def test_a_commit_under_way_is_finished_and_its_pages_are_handed_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk takes longer than the crawl, so the last page ends while a commit is under way."""
    commit = Store.commit

    def slow(
        self: Store, epoch: int, ranges: Sequence[Range], changes: Mapping[int, Mapping[bytes, bytes | None]]
    ) -> int:
        time.sleep(0.3)
        return commit(self, epoch, ranges, changes)

    monkeypatch.setattr(Store, "commit", slow)
    options = SimwebOptions.plain(seed=1, hosts=3, pages=20)

    async def crawled(simweb: SimwebProcess) -> list[str]:
        config = configure(
            options={"allow_private": True, "hosts": str(simweb.hosts_file), "scope": "any"},
            sets=(*OWN, "crawl.commit_s=0.01"),
            seeds=simweb.seeds,
        )
        async with Crawler(output=tmp_path / "crawl", config=config) as crawler:
            return [page.url async for page in crawler]

    with SimwebProcess(options, tmp_path / "web") as simweb:
        pages = asyncio.run(crawled(simweb))
        asked = [one for one in simweb.requests() if one.path != "/robots.txt"]
    assert len(pages) == len(set(pages)) == len(asked)
