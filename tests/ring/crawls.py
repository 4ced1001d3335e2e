"""Crawls of made webs, in this process, and what they left on disk."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq

from gossamer import Crawler
from gossamer.config import configure
from gossamer.config.gather import reopen

BRIEF = (
    "fetch.connect_s_max=1.0",
    "fetch.request_s_max=1.5",
    "frontier.attempts_max=3",
    "frontier.retry_s_first=0.1",
    "frontier.retry_s_max=0.3",
    "frontier.host_failures_max=4",
    "frontier.host_sleep_s_first=0.2",
    "frontier.host_sleep_s_max=0.5",
    "frontier.host_sleeps_max=2",
    "robots.retry_first_s=0.1",
    "robots.retry_s_max=0.3",
    "robots.robots_wait_max_s=2.0",
    "politeness.backoff_s_first=0.2",
    "politeness.backoff_s_max=0.5",
    "resolve.failure_ttl_s=1.0",
    "resolve.timeout_s=0.5",
    "resolve.servers=['127.0.0.1:9']",
    "crawl.commit_s=0.25",
)
"""Every pause that a crawl of the real web makes, scaled down."""
OWN = ("politeness.preset='own'", *BRIEF)


@dataclass
class Crawled:
    """What a crawl left."""

    directory: Path
    end: str = ""
    notes: list[str] = field(default_factory=list)
    status: dict[str, object] = field(default_factory=dict)

    @property
    def rows(self) -> list[dict[str, object]]:
        """The rows of `pages`, in the order in which attempts were concluded."""
        return rows(self.directory / "pages")

    @property
    def outcomes(self) -> dict[str, str]:
        """The last outcome of each key."""
        return {str(row["key"]): str(row["outcome"]) for row in self.rows}

    @property
    def links(self) -> set[tuple[str, str]]:
        """(from, to) of every link, followed or not."""
        return {(str(row["from_url"]), str(row["to_url"])) for row in rows(self.directory / "links")}

    def critical(self) -> str:
        """What went wrong of our own."""
        return (self.directory / "logs/critical.log").read_text()


def rows(directory: Path) -> list[dict[str, object]]:
    """Return all rows of a table."""
    return [row for file in sorted(directory.glob("*.parquet")) for row in pq.read_table(file).to_pylist()]


def crawl(seeds: tuple[str, ...], directory: Path, *sets: str, resuming: bool = False, **options: object) -> Crawled:
    """Crawl to the end."""
    options = {"allow_private": True, **options}
    if resuming:
        config = reopen(directory / "crawl.toml", sets=sets)
        crawler = Crawler.resume(directory, config=config)
    else:
        crawler = Crawler(output=directory, config=configure(options=options, sets=sets, seeds=seeds))
    crawled = Crawled(directory)
    crawler.on_note(crawled.notes.append)
    crawled.end = asyncio.run(crawler.run())
    crawled.status = crawler.status()
    return crawled
