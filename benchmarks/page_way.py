"""Print the way of one light page through a crawl: `python benchmarks/page_way.py [--functions]`.

A site on loopback is crawled in this process, one page at a time, under a profiler. A page's way begins when its URL is
selected and ends when its links are discovered. Counted are the calls of Gossamer's functions on the event loop, each
step of a coroutine as one; not the libraries', and not other threads. Figures are the median over all pages, so that
commits, which fall on few of them, do not count.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from threading import Thread
from types import CodeType, FrameType
from typing import Any

import gossamer
from gossamer import Crawler
from gossamer.engine.discover import Discovery
from gossamer.engine.loop import CrawlLoop
from gossamer.engine.pipeline import Pipeline
from gossamer.stages.frontier.frontier import Frontier
from gossamer.stages.frontier.host import VisitLease

ROOT = Path(gossamer.__file__).parent
PAGES = 60
FIRST_LINKS = 40
"""Of the first page, so that the queue is never empty."""
Way = Counter[CodeType]


class Site(BaseHTTPRequestHandler):
    """Pages of 400 bytes without end, each with a link to a new page and to four others; robots.txt allows all."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = b""
        if self.path != "/robots.txt":
            number = int(self.path.strip("/"))
            named = [*range(FIRST_LINKS if number == 0 else 4), number + 1000]
            links = "".join(f'<p><a href="/{one}">page {one}</a> of a site of light pages' for one in named)
            body = f"<!doctype html><title>Page {number}</title>{links}".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html" if body else "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def serving() -> Iterator[str]:
    """Serve the site and give its first URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/0"
        server.shutdown()
        thread.join()


class Profiler:
    """Counts calls from the selection of a URL to the end of its visit, of a crawl with one visit at a time."""

    def __init__(self) -> None:
        self.ways: list[Way] = []
        self._way: Way = Counter()
        self._is_page = False
        self._ours: dict[CodeType, bool] = {}

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Take an event of `sys.setprofile`."""
        code = frame.f_code
        if event != "call" or not self._is_ours(code):
            return
        if code is Frontier.select.__code__:
            if not self._is_page:
                self._way = Counter()
        elif code is Pipeline.lease.__code__:
            self._is_page = isinstance(frame.f_locals["lease"], VisitLease)
        elif code is CrawlLoop._on_task_done.__code__:  # noqa: SLF001 - it ends a visit, and nothing else does
            if self._is_page and Discovery.follow.__code__ in self._way:  # Else its address was looked up.
                self.ways.append(self._way)
            self._way, self._is_page = Counter(), False
        self._way[code] += 1

    def _is_ours(self, code: CodeType) -> bool:
        if code not in self._ours:
            self._ours[code] = code.co_filename.startswith(str(ROOT)) and not code.co_name.startswith("<")
        return self._ours[code]


def ways() -> list[Way]:
    """Crawl the site, and return the way of each page."""
    profiler = Profiler()
    with serving() as seed, tempfile.TemporaryDirectory() as directory:
        settings = {"crawl.concurrency": 1, "crawl.commit_s": 60.0, "crawl.commit_pages": 10 * PAGES}
        options = {"allow_private": True, "politeness": "own", "max_pages": PAGES, "settings": settings}
        crawler = Crawler([seed], output=Path(directory) / "crawl", **options)
        sys.setprofile(profiler)
        try:
            asyncio.run(crawler.run())
        finally:
            sys.setprofile(None)
    if len(profiler.ways) != PAGES:
        raise SystemExit(f"{len(profiler.ways)} of {PAGES} pages were followed")
    return profiler.ways


def file_of(code: CodeType) -> Path:
    """Return a function's file, below the package."""
    return Path(code.co_filename).relative_to(ROOT)


def main() -> None:
    """Print the table, and with `--functions` the functions of the median page by file."""
    found = ways()
    figures = {
        "calls": [sum(way.values()) for way in found],
        "functions": [len(way) for way in found],
        "files": [len({file_of(code) for code in way}) for way in found],
        "packages": [len({file_of(code).parts[0] for code in way}) for way in found],
    }
    goals = {"calls": "about 200", "functions": "", "files": "36", "packages": ""}
    print("| of one light page | median | least | most | goal |\n| --- | --: | --: | --: | --: |")
    for name, values in figures.items():
        print(f"| {name} | {median(values):.0f} | {min(values)} | {max(values)} | {goals[name]} |")
    if "--functions" in sys.argv:
        middle = sorted(found, key=lambda way: sum(way.values()))[PAGES // 2]
        print()
        for code, calls in sorted(middle.items(), key=lambda item: (str(file_of(item[0])), item[0].co_qualname)):
            print(f"{calls:4}  {file_of(code)}  {code.co_qualname}")


if __name__ == "__main__":
    main()
