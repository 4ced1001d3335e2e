"""How many functions a crawl calls for each kind of page (kinds.py): of Python and of C, on all of its threads.

    python benchmarks/bench_calls.py [--kinds KIND…] [--top N] [--json FILE]

Unlike processor time, the number hardly depends on the machine and on what else it does. So commits follow pages here,
not the clock, and the event loop is that of a crawl by command: each turn of asyncio's own is dozens of calls, and a
busy machine makes more turns. What a function of C costs it does not say; that is for bench_crawl.py.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from types import CodeType

from bench_crawl import nginx_for
from crawls import write_json
from kinds import KINDS

from gossamer import Crawler
from gossamer.world.loop import loop_factory

REQUESTS_MIN = 1_000
"""Fewer would say how many calls the start of a crawl takes."""


def name_of(code: CodeType | str) -> str:
    """Return how a function is shown: its file and name; of a function of C its own description."""
    if isinstance(code, str):
        return code
    return f"{'/'.join(Path(code.co_filename).parts[-3:])}:{code.co_firstlineno} {code.co_qualname}"


def crawl(seeds: list[str], directory: str) -> Counter[str]:
    """Crawl in this process and return the number of calls of each function."""
    profiles: list[cProfile.Profile] = []

    def count(*_: object) -> None:
        profiles.append(cProfile.Profile())
        profiles[-1].enable()

    settings = {"crawl.commit_s": 600.0}
    crawler = Crawler(seeds, output=Path(directory), allow_private=True, politeness="own", settings=settings)
    threading.setprofile(count)
    count()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(crawler.run())
    threading.setprofile(None)
    profiles[0].disable()
    calls: Counter[str] = Counter()
    for profile in profiles:
        for entry in profile.getstats():
            calls[name_of(entry.code)] += entry.callcount
    return calls


def measured(kind: str) -> tuple[int, Counter[str]]:
    """Return the requests of a crawl, in a process of its own, and its calls by function."""
    with tempfile.TemporaryDirectory() as temporary:
        server, _ = nginx_for(KINDS[kind], Path(temporary) / "server")
        with server as nginx:
            seeds = json.dumps([f"{origin}/" for origin in nginx.origins])
            command = [sys.executable, __file__, "--of", seeds, f"{temporary}/crawl"]
            done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
            if done.returncode:
                raise SystemExit(done.stderr)
            return len(nginx.log()), Counter(json.loads(done.stdout))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=["light", "documentation", "mixed"])
    parser.add_argument("--top", type=int, default=0, help="list the functions that are called most")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--of", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.of:
        print(json.dumps(crawl(json.loads(given.of[0]), given.of[1])))
        return
    figures: dict[str, float] = {}
    print("| | requests | calls of each |\n| --- | --: | --: |")
    for kind in given.kinds:
        requests, calls = measured(kind)
        if requests < REQUESTS_MIN:
            raise SystemExit(f"{kind}: {requests} requests are too few to count by")
        figures[kind] = calls.total() / requests
        print(f"| {kind} | {requests:,} | {figures[kind]:,.0f} |", flush=True)
        for name, number in calls.most_common(given.top):
            print(f"    {number / requests:8.2f}  {name}")
    write_json(given.json, figures)


if __name__ == "__main__":
    main()
