"""Watching: owners who ask while the crawl runs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from gossamer import Crawler
from gossamer.model.errors import ConfigError
from tests.api.conftest import Make, Run
from tests.api.site import Site, page


async def until_logged(crawler: Crawler, event: str) -> dict[str, object]:
    """Return the first line of that event; logs are written with each commit."""
    while True:
        log = crawler.directory / "logs/info.log"
        for line in log.read_bytes().splitlines() if log.exists() else []:
            told = msgspec.json.decode(line, type=dict[str, object])
            if told["event"] == event:
                return told
        await asyncio.sleep(0.02)


def replaced(file: Path, text: str) -> None:
    """Write a list as people should: aside, then in its place."""
    aside = file.with_suffix(".new")
    aside.write_text(text)
    aside.replace(file)


@pytest.mark.promise("Politeness", "An exclusion list is read again during a crawl; one with errors changes nothing.")
def test_a_list_is_read_again_and_a_bad_one_leaves_the_old_in_force(run: Run, make: Make, tmp_path: Path) -> None:
    asked = tmp_path / "asked.txt"
    asked.write_text("# owners who asked\nfirst.example\n")

    async def scenario() -> None:
        async with Site({"/": page(*(f"/{n}" for n in range(30))), **{f"/{n}": page() for n in range(30)}}) as site:
            settings = {"scope.exclude_hosts_file": str(asked), "scope.exclude_hosts_reread_s": 0.05}
            crawler = make(site.root, settings=settings, per_host=1, delay=0.02)
            notes: list[str] = []
            crawler.on_note(notes.append)
            async with asyncio.TaskGroup() as group:
                ended = group.create_task(crawler.run())
                await site.asked(3)
                site.open.clear()
                replaced(asked, "first.example\nhttp://no.host/\n")
                refused = await until_logged(crawler, "exclusions_refused")
                assert "asked.txt line 2: 'http://no.host/' is not a host" in str(refused["error"])
                assert crawler._shard is not None
                exclusions = crawler._shard.ring.scope.exclusions
                assert exclusions.covers("first.example")
                replaced(asked, "127.0.0.1\n.second.example\n")
                assert (await until_logged(crawler, "exclusions_read"))["hosts"] == 2
                assert [exclusions.covers(host) for host in ("127.0.0.1", "x.second.example", "first.example")] == [
                    True, True, False,
                ]  # fmt: skip
                site.open.set()
                assert await ended == "finished"
            outcomes = crawler.status()["outcomes"]
            assert isinstance(outcomes, dict)
            assert outcomes["excluded"] > 0
            assert sum(outcomes.values()) == 31
            assert sum(site.counts.values()) < 31
            assert [note for note in notes if "left as it was" in note]
            asked.unlink()
            again = Crawler.resume(crawler.directory)
            with pytest.raises(ConfigError, match=r"cannot read .*asked.txt"):
                await again.run()

    run(scenario())


def test_a_crawl_keeps_the_rules_that_its_keys_were_made_by(run: Run, make: Make) -> None:
    async def scenario() -> None:
        async with Site({"/": page("/a", "/A"), "/a": page(), "/A": page()}) as site:
            crawler = make(site.root, settings={"url.hosts": {"synonyms": {"alias.test": "127.0.0.1"}}}, max_pages=1)
            assert await crawler.run() == "limit"
            for key, value in (("url.rules", ["fragment"]), ("url.hosts", {"synonyms": {}})):
                with pytest.raises(ConfigError, match=r"began with other rules in the section \[url\]"):
                    await Crawler.resume(crawler.directory, settings={key: value}).run()
            again = Crawler.resume(crawler.directory, settings={"limits.max_pages": None})
            assert await again.run() == "finished"
            assert again.status()["pages"] == 3

    run(scenario())
