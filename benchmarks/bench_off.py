"""Measure what preferences cost a crawl that declares no purpose: their share of its time on light pages.

    python benchmarks/bench_off.py

A site on loopback is crawled in this process. Every call that exists for statements about use is timed where it is
made. The reader of headers and markup is timed too and does not count: it finds `nofollow`, which every crawl needs. In
a second crawl nothing is timed in the same places: between two pages all has left the processor's cache, so that the
clock itself takes some microseconds. That is subtracted. The share is of the time of the crawl's own thread, without
the threads that write.

Signing, sessions, rendering, rules for items and listed requests are not imported by a crawl without them
(`tests/cli/test_imports.py`): each is a comparison with None, about 0.02 µs.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from page_way import serving

from gossamer import Crawler
from gossamer.features.permit import Usage
from gossamer.stages.process.usage import Directives

PAGES = 1_000
ROUNDS = 5
TIMED = ((Usage, "judge"), (Usage, "judge_page"), (Directives, "process"))
NEEDED = "Directives.process"
SHARE_MAX = 0.01


def timed(call: Callable[..., Any], name: str, took: Counter[str], *, nothing: bool) -> Callable[..., Any]:
    """Return a function that adds the nanoseconds of each call to `took`; or those of `nothing` before the call."""

    def run(*arguments: Any, **named: Any) -> Any:
        began = time.thread_time_ns()
        found = idle(*arguments, **named) if nothing else call(*arguments, **named)
        took[name] += time.thread_time_ns() - began
        return call(*arguments, **named) if nothing else found

    return run


def idle(*_: Any, **__: Any) -> None:
    """Do nothing."""


@contextmanager
def timing(took: Counter[str], *, nothing: bool) -> Iterator[None]:
    """Time the calls meanwhile."""
    kept = [(owner, name, getattr(owner, name)) for owner, name in TIMED]
    for owner, name, call in kept:
        setattr(owner, name, timed(call, f"{owner.__name__}.{name}", took, nothing=nothing))
    try:
        yield
    finally:
        for owner, name, call in kept:
            setattr(owner, name, call)


def crawl(seed: str) -> tuple[int, int]:
    """Crawl; return the pages and the processor nanoseconds of this thread."""
    with tempfile.TemporaryDirectory() as directory:
        settings = {"scope.traps": False}
        options = {"allow_private": True, "politeness": "own", "max_pages": PAGES, "settings": settings}
        crawler = Crawler([seed], output=Path(directory) / "crawl", **options)
        began = time.thread_time_ns()
        asyncio.run(crawler.run())
        return crawler.status()["pages"], time.thread_time_ns() - began


def main() -> int:
    """Print medians of the rounds; status 1 where the share is above the goal."""
    shares: dict[str, list[float]] = {}
    costs: dict[str, list[float]] = {}
    with serving() as seed:
        for _ in range(ROUNDS):
            took, empty = Counter[str](), Counter[str]()
            with timing(empty, nothing=True):
                crawl(seed)
            with timing(took, nothing=False):
                pages, whole = crawl(seed)
            for name in took:
                ns = took[name] - empty[name]
                costs.setdefault(name, []).append(ns / pages / 1000)
                shares.setdefault(name, []).append(ns / whole)
            ns = sum(took[name] - empty[name] for name in took if name != NEEDED)
            shares.setdefault("without directives", []).append(ns / whole)
            costs.setdefault("without directives", []).append(ns / pages / 1000)
            costs.setdefault("a page", []).append(whole / pages / 1000)
    for name, values in costs.items():
        share = f"{median(shares[name]):8.2%}" if name in shares else ""
        print(f"{name:<20} {median(values):8.2f} µs{share}")
    print(f"goal: {SHARE_MAX:.0%}")
    return median(shares["without directives"]) > SHARE_MAX


if __name__ == "__main__":
    sys.exit(main())
