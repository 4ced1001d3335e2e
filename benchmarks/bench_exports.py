"""What each export and the search index cost per page: µs of CPU (all threads) and bytes; how quick a host is found.

    python benchmarks/bench_exports.py [FOLDER] [--json FILE]

FOLDER holds HTML files (a documentation package, say); without it pages are made up. Every page has 61 links, its
hosts are 200. One process; one round of each export, since each is seconds long.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
from bench_archive import bodies, visits

from gossamer.assembly.modules import choose_modules
from gossamer.config import Config
from gossamer.model.pages import Page, Visited
from gossamer.model.visits import Content
from gossamer.options import convert
from gossamer.results.export import tables
from gossamer.results.export.export import FORMATS, ExportedCrawl, export
from gossamer.results.export.opening import export_means
from gossamer.results.search.build import build
from gossamer.results.search.log import IndexFollower, SearchLog
from gossamer.results.search.query import search
from gossamer.results.search.question import SearchQuestion
from gossamer.stages.archive.archive import Archives
from gossamer.stages.archive.follower import Follower
from gossamer.stages.archive.options import ArchiveOptions, SearchOptions
from gossamer.stages.archive.tables import TableWriters
from gossamer.stages.archive.warc import WarcArchive, WarcInfo
from gossamer.state.journals import Journals
from gossamer.world.clock import WallClock

HOSTS = 200
EPOCH_PAGES = 500
MEMORY_BYTES = 256_000_000


def spread(visited: list[Visited]) -> list[Visited]:
    """Give the pages to hosts that take turns, as a crawl does."""
    made = []
    for number, visit in enumerate(visited):
        host = f"h{number % HOSTS:03d}.example.org"
        url = visit.row.url.replace("docs.example.org", host)
        visit.row.url = visit.row.key = url
        visit.row.host = host
        assert visit.reply is not None
        reply = msgspec.structs.replace(visit.reply, url=url)
        renamed = msgspec.structs.replace(visit.url, text=url, key=url, host=host)
        made.append(Visited(renamed, visit.row, reply, visit.links, visit.link_keys))
    return made


def seconds(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


class Table:
    """Prints a line for each measurement, and keeps it."""

    def __init__(self, pages: int) -> None:
        self.pages = pages
        self.rows: dict[str, dict[str, float]] = {}

    def line(self, name: str, spent_s: float, size: int) -> None:
        self.rows[name] = {"us_a_page": spent_s / self.pages * 1e6, "bytes_a_page": size / self.pages}
        print(f"{name:<40}{spent_s / self.pages * 1e6:9.0f} µs{size / self.pages:10.0f} bytes")


def size_of(path: Path) -> int:
    files = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
    return sum(one.stat().st_size for one in files)


def crawl(folder: Path, visited: list[Visited], table: Table) -> None:
    """Write a crawl's files, with the index beside them, and print what that index costs."""
    journals = Journals(folder)
    options = SearchOptions(enabled=True)
    log, indexer = SearchLog(options, journals, WallClock()), IndexFollower(options, journals)
    archive = Archives(
        [WarcArchive(ArchiveOptions(), journals, WarcInfo("gossamer")), TableWriters(ArchiveOptions(), journals)]
    )

    def commit() -> None:
        journals.settle(journals.cut())

    text = choose_modules(convert(Config, {"search": {"enabled": True}})).inside
    plain = choose_modules(Config()).inside
    pages = [Page(one.row.url, "text/html", "utf-8", (), one.reply.body) for one in visited if one.reply is not None]
    reading_s = seconds(lambda: [plain.process(page) for page in pages])
    both_s = seconds(lambda: [text.process(page) for page in pages])
    for page, visit in zip(pages, visited, strict=True):
        visit.findings, visit.content = text.process(page).findings, Content(page.body)
    logging_s = 0.0
    for number, visit in enumerate(visited, 1):
        archive.add(visit)
        begun = time.process_time()
        log.add(visit)
        if number % EPOCH_PAGES == 0:
            log.cut()
        logging_s += time.process_time() - begun
        if number % EPOCH_PAGES == 0:
            archive.cut()
            commit()
    archive.close()
    log.close()
    commit()
    logged = sum(size_of(path) for path in (folder / "state/search").iterdir())
    Follower(journals).finish()

    def index() -> None:
        while (task := indexer.next()) is not None:
            indexer.settle(task, task.make())
        indexer.close()

    table.line("search on: extracting the text", both_s - reading_s, 0)
    table.line("search on: the log", logging_s, logged)
    table.line("search on: indexing (other threads)", seconds(index), size_of(folder / "search"))
    commit()


def share_of_groups(folder: Path) -> float:
    """Return the share of row groups whose statistics cover a host: those that a question about it must read."""
    covering = groups = 0
    for path in folder.glob("*.parquet"):
        metadata = pq.read_metadata(path)
        column = metadata.schema.names.index("host")
        for group in range(metadata.num_row_groups):
            statistics = metadata.row_group(group).column(column).statistics
            groups += 1
            covering += statistics.min <= "h100.example.org" <= statistics.max
    return covering / groups


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", nargs="?")
    arguments.add_argument("--json")
    given = arguments.parse_args()
    made = bodies(given.folder)
    visited = spread(visits(made * 4, packed=False))
    table = Table(len(visited))
    print(f"{len(visited)} pages of {sum(map(len, made)) // len(made)} bytes, 61 links each\n")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "crawl"
        folder.mkdir()
        crawl(folder, visited, table)
        crawled, means = ExportedCrawl(folder, running=False, now=1.7673e9), export_means(Config())
        for to in FORMATS:
            target = Path(name) / to
            spent_s = seconds(
                lambda to=to, target=target: export(crawled, to, target, means, memory_bytes_max=MEMORY_BYTES)
            )
            table.line(to, spent_s, size_of(target))
        tables.ROW_GROUP_ROWS_MAX = 200  # So that there are many to choose from.
        export(crawled, "parquet", Path(name) / "small", means, table="pages")
        exported, as_crawled = share_of_groups(Path(name) / "small/pages"), share_of_groups(folder / "pages")
        print(f"\nrow groups that may hold one of {HOSTS} hosts: {exported:.1%} exported, {as_crawled:.0%} as crawled")
        begun = time.perf_counter()
        found = search([folder / "search"], SearchQuestion('"page 17" OR documentation', 10))
        print(f"a query: {(time.perf_counter() - begun) * 1e3:.1f} ms, {found.total} pages match")
        shutil.rmtree(folder / "search")
        spent_s = seconds(lambda: build(crawled, means, 50_000_000, MEMORY_BYTES, lambda _done, _rows: None))
        table.line("search --build", spent_s, size_of(folder / "search"))
    if given.json:
        Path(given.json).write_text(json.dumps(table.rows, indent=2))


if __name__ == "__main__":
    main()
