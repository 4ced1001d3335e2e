"""Kills a crawl at moments spread evenly over its run, by the server's count of pages."""

from __future__ import annotations

import random
import time
from pathlib import Path

import msgspec
from msgspec.structs import replace

from gossamer.lab.simweb.judge import repeats
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from tests.crash.crawls import VICTIMS, Crawl, crawl_of, until
from tests.crash.harvest import Harvest

JITTER_S_MAX = 0.12
"""A kill comes so much after its page at most: longer than an epoch, so that every phase of one is met. Half of the way
to the next is enough where a quick crawl goes that in less.
"""


class Reached:
    """How many different addresses the server was asked for so far."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._read = 0
        self._seen: set[bytes] = set()

    def count(self) -> int:
        if self._log.exists():
            with self._log.open("rb") as file:
                file.seek(self._read)
                data = file.read()
            whole = data[: data.rfind(b"\n") + 1]
            self._read += len(whole)
            self._seen.update(b"\t".join(line.split(b"\t")[4:6]) for line in whole.splitlines())
        return len(self._seen)


class Story(msgspec.Struct):
    """What a crawl came to, and what it cost."""

    crawl: Crawl
    harvest: Harvest
    asked: int
    """Different addresses that the server was asked for."""
    again: int
    """Requests for pages that had been answered before."""
    kills: int
    seconds: float
    status: int


def undisturbed(options: SimwebOptions, directory: Path, *settings: str) -> tuple[Story, SimwebOptions]:
    """Crawl a web from beginning to end; return the story, and the web with its port held fast."""
    story, port = _crawled(options, directory, settings, 0, 0)
    return story, replace(options, port=port)


def killed(options: SimwebOptions, directory: Path, kills: int, asked: int, *settings: str) -> Story:
    """Crawl the same web, killed so often in turns of child, supervisor and both; `asked` is the undisturbed count."""
    return _crawled(options, directory, settings, kills, asked)[0]


def _crawled(
    options: SimwebOptions, directory: Path, settings: tuple[str, ...], kills: int, asked: int
) -> tuple[Story, int]:
    began = time.monotonic()
    dice = random.Random(kills)
    with SimwebProcess(options, directory / "web") as web:
        reached = Reached(web.log)
        crawl = crawl_of(web, directory / "crawl", *settings)
        try:
            crawl.start()
            for number in range(kills):
                moment = asked * number // kills
                until(lambda: reached.count() >= moment or not crawl.runs)  # noqa: B023 - called at once
                kill_at = time.monotonic() + dice.uniform(0.0, JITTER_S_MAX)
                latest = asked * (2 * number + 1) // (2 * kills)
                until(lambda: time.monotonic() >= kill_at or reached.count() >= latest or not crawl.runs)  # noqa: B023
                assert crawl.runs, f"it ended before the kill {number}: {crawl.complaints}"
                crawl.kill(VICTIMS[number % len(VICTIMS)])
                if not crawl.runs:
                    crawl.start()
            status = crawl.finish()
        finally:
            crawl.close()
        port = web.port
    again = sum(count - 1 for count in repeats(web.requests(), web.web).values())
    story = Story(crawl, Harvest(crawl.directory), reached.count(), again, kills, time.monotonic() - began, status)
    return story, port
