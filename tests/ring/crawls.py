"""Crawls of made webs, in this process, and what they left on disk."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pyarrow.parquet as pq

import gossamer
from gossamer import Crawler
from gossamer.assembly.stopped import open_stopped
from gossamer.config import configure
from gossamer.config.gather import reopen
from gossamer.lab.simweb.truth import TruthWalk
from gossamer.state.slots import progress
from tests import commands

T = TypeVar("T")
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
HASTY = ("politeness.preset='own'", *BRIEF)
"""For webs with servers that never answer. A sound one's answer may come too late on a busy machine."""
PATIENT = ("fetch.connect_s_max=60.0", "fetch.request_s_max=60.0", "watch.stall_s=60.0", "watch.commit_s_max=60.0")
"""No server of the test stalls: what takes long is a machine that does other things as well, which is no alarm."""
OWN = (*HASTY, *PATIENT)


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

    def ends(self, walked: TruthWalk) -> dict[str, str]:
        """The outcomes, with those of the URLs that ended with their host: they have no row, but `why` knows."""
        found = self.outcomes
        closed = [url for url, end in walked.pages.items() if url not in found and end.allows("host_closed")]
        return found | states(self.directory, closed)

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


@contextmanager
def opened(directory: Path) -> Iterator[Callable[[str], dict[str, object]]]:
    """Give what `why_of` answers of a URL; to open a crawl once for many URLs saves a tenth of a second for each."""
    crawl = open_stopped(reopen(directory / "crawl.toml"), directory)
    try:
        yield crawl.explainer.why
    finally:
        crawl.close()


def states(directory: Path, urls: Iterable[str]) -> dict[str, str]:
    """Return the state that a crawl which does not run has for each URL."""
    with opened(directory) as why:
        return {url: str(why(url)["state"]) for url in urls}


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


class CommandLine:
    """`gossamer crawl` as people run it: a supervisor and the child that crawls."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.errors = directory.with_suffix(".errors")
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *arguments: str) -> None:
        source = str(Path(gossamer.__file__).parents[1])
        with self.errors.open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "gossamer", *arguments],
                env={**os.environ, "PYTHONPATH": source},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
            )

    def crawl(self, seeds: tuple[str, ...], *sets: str, **options: str) -> None:
        arguments = [*seeds, "--output", str(self.directory), "--allow-private", "--quiet"]
        arguments += [word for name, value in options.items() for word in (f"--{name}", value)]
        self.start("crawl", *arguments, *(word for one in sets for word in ("--set", one)))

    @property
    def child(self) -> int | None:
        """The process that crawls, if there is one now."""
        assert self.process is not None
        listed = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(listed[0]) if listed else None

    def kill_child(self) -> float:
        """End the child as the kernel would, and return when."""
        child = until(lambda: self.child)
        at = time.time()
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        until(lambda: self.child != child)
        return at

    def until_commit(self) -> None:
        """Wait for a commit that began after the call; one may be under way. A crawl that dies again and again before
        its first one is ended by its supervisor.
        """
        before = progress(self.directory / "state")
        until(lambda: progress(self.directory / "state") > before + 1)

    def wait(self, timeout_s: float = 100.0) -> int:
        assert self.process is not None
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it did not end in {timeout_s:.0f} s: {self.says()}") from None

    def says(self) -> str:
        """What it printed, and what it says of itself."""
        _, status, errors = commands.run("status", str(self.directory))
        return f"{self.errors.read_text()[-2_000:]}\n{status}{errors}"


@contextmanager
def command_line(directory: Path) -> Iterator[CommandLine]:
    """Give a command line that does not outlive the test."""
    running = CommandLine(directory)
    try:
        yield running
    finally:
        if running.process is not None and running.process.poll() is None:
            running.process.kill()
            running.process.wait()


def until(condition: Callable[[], T | None], timeout_s: float = 100.0) -> T:
    """Wait until there is something, and return it."""
    ends_at = time.monotonic() + timeout_s
    while not (found := condition()):
        assert time.monotonic() < ends_at, "waited in vain"
        time.sleep(0.01)
    return found
