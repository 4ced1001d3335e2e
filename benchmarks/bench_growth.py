"""What a page costs, and how much memory a crawl takes, as it grows: from a thousand pages to a million.

    python benchmarks/bench_growth.py [--pages N,N,…] [--hosts N] [--json FILE] [--soak | --continuous-s S]

Nginx serves trees without end: each page names ten children, ten neighbours and ten pages that all share. Everything is
on but the watch for traps, which would cut such trees off. Each size is a crawl of its own; the cost of a page is that
of the pages beyond the size before it, so start and end do not count.

`--soak` is one crawl of the last size instead, in this process: what it holds after each tenth of its pages.
`--continuous-s` is a continuous crawl of the synthetic web for that time, of which half of the pages change: what it
holds after each tenth of the time. Its pages are visits.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import uvloop
from crawls import Nginx, Run, held_by, measured, write_json
from tests.cluster.nodes import descendants

from gossamer import Crawler
from gossamer.config import configure
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess

COST_RATIO_MAX = MEMORY_RATIO_MAX = 1.2
"""Of a page beyond ten thousand; of memory beyond a hundred thousand: what was promised."""
WORDS = (
    "It is a truth universally acknowledged that a page must have something to say, and this one says it again. " * 20
)


def server() -> str:
    """Return directives that answer any address of digits with a page of about 6 KB and thirty links."""
    children = "".join(f"<li><a href='/p/${{at}}{n}.html'>child {n} of $at</a>" for n in range(10))
    neighbours = "".join(f"<li><a href='/p/${{up}}{n}.html'>beside {n}</a>" for n in range(10))
    shared = "".join(f"<li><a href='/p/{n}.html'>chapter {n}</a>" for n in range(10))
    # One parameter of nginx holds 4 KB.
    page = (
        f'set $shared "{shared}"; set $beside "{neighbours}"; set $children "{children}"; set $words "{WORDS}"; '
        'return 200 "<!doctype html><title>Page $at</title><ul>$shared$beside$children</ul><p>$at. $words$words";'
    )
    return (
        "default_type text/html; keepalive_requests 100000000;\n"
        f"location = / {{ set $at ''; set $up ''; {page} }}\n"
        f"location ~ ^/p/(?<up>[0-9]*)(?<last>[0-9])[.]html$ {{ set $at $up$last; {page} }}\n"
        "location / { return 404; }"
    )


def crawl(pages: int, seeds: list[str], directory: Path, nginx: Nginx) -> Run:
    """Crawl so many pages."""
    command = [
        sys.executable, "-m", "gossamer", "crawl", *seeds, "-o", f"{directory}/{pages}", "--max-pages", str(pages),
        "--politeness", "own", "--allow-private", "--quiet", "--set", "scope.traps=false",
    ]  # fmt: skip
    return measured(command, nginx)


TENTHS = 10
LOOK_S = 0.02
KINDS = ("pages_s", "page_us", "descriptors", "threads", "tasks", "resident_mb")


def held(others: set[int]) -> dict[str, float]:
    """Return what the crawl holds now; descriptors, threads and memory are those of this process and its descendants
    but for `others`.
    """
    sums = {"descriptors": 0.0, "threads": 0.0, "resident_mb": 0.0}
    for pid in {os.getpid(), *descendants(os.getpid())} - others:
        with suppress(OSError):  # It has ended.
            for kind, count in held_by(pid).items():
                sums[kind] += count
    return {**sums, "tasks": float(len(asyncio.all_tasks()))}


async def soak(crawler: Crawler, counted: str, share: Callable[[int, float], float]) -> list[dict[str, float]]:
    """Crawl, and return what is held after each tenth, without the server. `share` says how much is done, from what the
    status `counted` and the seconds since the start.
    """
    others = set(descendants(os.getpid()))
    running = asyncio.create_task(crawler.run())
    rows: list[dict[str, float]] = []
    before, cpu_s, start = 0, time.process_time(), time.monotonic()
    began = start
    while not running.done():
        await asyncio.sleep(LOOK_S)
        done = int(str(crawler.status()[counted]))
        if share(done, time.monotonic() - start) * TENTHS >= len(rows) + 1:
            more, spent_s, took_s = done - before, time.process_time() - cpu_s, time.monotonic() - began
            rows.append(
                {"pages": done, "pages_s": more / took_s, "page_us": 1e6 * spent_s / max(more, 1), **held(others)}
            )
            before, cpu_s, began = done, time.process_time(), time.monotonic()
            print(f"| {done:,} | " + " | ".join(f"{rows[-1][kind]:,.0f}" for kind in KINDS) + " |", flush=True)
        if len(rows) == TENTHS:
            crawler.stop()
    await running
    return rows


def soaked(crawler: Crawler, counted: str, share: Callable[[int, float], float]) -> list[dict[str, float]]:
    """Crawl, print what the crawl holds after each tenth, and return it."""
    print("| pages | pages a second | µs CPU a page | descriptors | threads | tasks | resident MB |")
    print("| --: | --: | --: | --: | --: | --: | --: |", flush=True)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(soak(crawler, counted, share))


def in_batch(pages: int, seeds: list[str], directory: Path) -> list[dict[str, float]]:
    """Crawl a number of pages of nginx."""
    options = {"politeness": "own", "allow_private": True}
    sets = ("scope.traps=false", f"limits.max_pages={pages}")
    config = configure(options=options, sets=sets, seeds=seeds)
    return soaked(Crawler(output=str(directory), config=config), "pages", lambda done, _: done / pages)


def continuously(pages: int, time_s: float, directory: Path) -> list[dict[str, float]]:
    """Crawl a synthetic web of a number of pages for some time."""
    web = SimwebOptions.plain(
        hosts=pages // 500, pages=pages, names_per_address=1, changing_share=0.5, change_s_median=1_800.0,
        links_per_page=15.0,
    )  # fmt: skip
    with SimwebProcess(web, directory / "web") as simweb:
        seeds = list(simweb.web.fronts)
        options = {"politeness": "own", "allow_private": True, "mode": "continuous", "hosts": str(simweb.hosts_file)}
        sets = (f"revisit.interval_s_mean={time_s / 3}", f"revisit.interval_s_min={time_s / 30}")
        config = configure(options=options, sets=sets, seeds=seeds)
        crawler = Crawler(output=str(directory / "crawl"), config=config)
        return soaked(crawler, "attempts", lambda _, elapsed_s: elapsed_s / time_s)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pages", default="1000,10000,100000")
    parser.add_argument("--hosts", type=int, default=16)
    parser.add_argument("--json", type=Path)
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--soak", action="store_true")
    kind.add_argument("--continuous-s", type=float)
    given = parser.parse_args()
    sizes = [int(size) for size in given.pages.split(",")]
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as temporary:
        if given.continuous_s:
            rows = continuously(sizes[-1], given.continuous_s, Path(temporary))
            write_json(given.json, {"soak": rows})
            return
        root = Path(temporary) / "root"
        root.mkdir()
        with Nginx(root, Path(temporary) / "nginx", server=server(), addresses=given.hosts) as nginx:
            seeds = [f"{origin}/" for origin in nginx.origins]
            if given.soak:
                write_json(given.json, {"soak": in_batch(sizes[-1], seeds, Path(temporary) / "crawl")})
                return
            print("| pages | CPU s | µs CPU a page beyond the row above | wall s | peak MB |")
            print("| --: | --: | --: | --: | --: |", flush=True)
            for size in sizes:
                run = crawl(size, seeds, Path(temporary), nginx)
                before = rows[-1] if rows else {"pages": 0, "cpu_s": 0.0}
                page_us = 1e6 * (run.cpu_s - before["cpu_s"]) / (size - before["pages"])
                rows.append(
                    {
                        "pages": size,
                        "cpu_s": run.cpu_s,
                        "page_us": page_us,
                        "wall_s": run.wall_s,
                        "peak": run.peak_bytes,
                    }
                )
                print(
                    f"| {size:,} | {run.cpu_s:.2f} | {page_us:,.0f} | {run.wall_s:.1f} | {run.peak_bytes / 1e6:.0f} |",
                    flush=True,
                )
    write_json(given.json, {"growth": rows})
    by_size = {row["pages"]: row for row in rows}
    if {10_000, sizes[-1]} <= set(by_size) and by_size[sizes[-1]]["page_us"] > COST_RATIO_MAX * by_size[10_000][
        "page_us"
    ]:
        raise SystemExit(f"a page costs more than {COST_RATIO_MAX} times what it cost among ten thousand")
    if {100_000, 1_000_000} <= set(by_size) and by_size[1_000_000]["peak"] > MEMORY_RATIO_MAX * by_size[100_000][
        "peak"
    ]:
        raise SystemExit(f"a million pages take more than {MEMORY_RATIO_MAX} times the memory of a hundred thousand")


if __name__ == "__main__":
    main()
