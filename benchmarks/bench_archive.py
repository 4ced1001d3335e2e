"""What each output of the archive costs per page: µs of CPU and bytes on disk.

    python benchmarks/bench_archive.py [FOLDER]

A large allocation that the C library hands back at once makes FastWARC's writer three times slower; with
MALLOC_MMAP_THRESHOLD_=4000000 MALLOC_TRIM_THRESHOLD_=100000000 in the environment it is at its best.

FOLDER holds HTML files (a documentation package, say); without it pages are made up. Every page has 61 links.
One process, one thread; the best of three rounds.
"""

from __future__ import annotations

import asyncio
import gzip
import random
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from gossamer.model.links import Found
from gossamer.model.pages import PageRow, Visited
from gossamer.model.visits import Reply
from gossamer.options import convert
from gossamer.stages.archive import records
from gossamer.stages.archive.cdxj import entries_of_tables, entries_of_warcs, write_index
from gossamer.stages.archive.follower import Follower
from gossamer.stages.archive.objectstore import ObjectStore, fixity_of
from gossamer.stages.archive.options import ArchiveOptions
from gossamer.stages.archive.records import warc_digest
from gossamer.stages.archive.tables import TableWriters
from gossamer.stages.archive.warc import WarcArchive, WarcInfo
from gossamer.state.journals import Journals
from gossamer.url.url import Url

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.stages.archive import reference

PAGES = 1000
EPOCH_PAGES = 500
LINKS = 61
ALONE = {"warc_request_records": False, "warc_metadata_records": False}
HEADERS = (
    ("Server", "nginx/1.22.1"), ("Date", "Thu, 01 Jan 2026 00:00:00 GMT"), ("Content-Type", "text/html; charset=utf-8"),
    ("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT"), ("Connection", "keep-alive"), ("ETag", '"65937a80-66a2"'),
)  # fmt: skip


def bodies(folder: str | None) -> list[bytes]:
    if folder:
        paths = [path for path in Path(folder).rglob("*.html") if 10_000 < path.stat().st_size < 60_000][:PAGES]
        return [path.read_bytes() for path in paths]
    dice = random.Random(1)
    words = ["".join(dice.choices("etaoinshrdlu", k=dice.randint(2, 9))) for _ in range(3000)]
    return [("<p>" + " ".join(dice.choices(words, k=3800)) + "</p>").encode() for _ in range(PAGES)]


def visits(pages: list[bytes], packed: bool) -> list[Visited]:
    made = []
    for number, page in enumerate(pages):
        address = f"https://docs.example.org/library/part-{number % 40}/page-{number}.html"
        body = gzip.compress(page, 6) if packed else page
        links = [
            Found(f"https://docs.example.org/library/part-{n % 40}/page-{number * 17 + n}.html#", "anchor", f"Page {n}")
            for n in range(LINKS)
        ]
        row = PageRow(
            address, address, "docs.example.org", "example.org", 1.7673e9 + number / 1000, "fetched", 200, "text/html",
            "utf-8", len(body), len(page), title=f"Page {number} of the documentation", depth=3, ip="127.0.0.1",
            referrer="https://docs.example.org/", link_type="anchor", fetch_s=0.01,
            digest=warc_digest("sha1", body),
        )  # fmt: skip
        reply = Reply(
            address, 200, HEADERS, body, "127.0.0.1", row.fetched_at, 0.01, len(body) + 300, reason="OK",
            request_head=b"GET /library/page.html HTTP/1.1\r\nHost: docs.example.org\r\nUser-Agent: gossamer/1\r\n\r\n",
        )  # fmt: skip
        url = Url(address, address, number, "docs.example.org", "example.org", 7)
        made.append(Visited(url, row, reply, links, [link.url for link in links]))
    return made


def cost(name: str, work: Callable[[], int], count: int) -> None:
    """`work` returns the bytes it made."""
    best, size = float("inf"), 0
    for _ in range(3):
        begun = time.process_time()
        size = work()
        best = min(best, time.process_time() - begun)
    print(f"{name:<46}{best / count * 1e6:9.1f} µs{size / count:10.0f} bytes")


def warc(visited: list[Visited], **options: object) -> int:
    with tempfile.TemporaryDirectory() as folder:
        journals = Journals(Path(folder))
        archive = WarcArchive(convert(ArchiveOptions, options), journals, WarcInfo("gossamer"))
        for visit in visited:
            archive.add(visit)
        return sum(entry.length for entry in journals.cut())


def written_by(member: Callable[[records.Record], bytes], visited: list[Visited]) -> int:
    archive = WarcArchive(ArchiveOptions(), Journals(Path("/nowhere")), WarcInfo("gossamer"))
    size = 0
    for visit in visited:
        assert visit.reply is not None
        record = archive._main_record(visit.reply, visit.row.fetched_at, visit.row.digest, None)  # noqa: SLF001
        size += len(member(record))
    return size


def by_hand(packer: records.Packer) -> Callable[[records.Record], bytes]:
    return lambda record: records.member(record, "sha1", packer)


def by_fastwarc(level: int) -> Callable[[records.Record], bytes]:
    return lambda record: reference.member(record, "sha1", level)


def warc_options(name: str, visited: list[Visited], count: int) -> None:
    """What each choice costs, one at a time."""
    cost(f"warc, {name}: as configured by default", partial(warc, visited), count)
    for level in (0, 1, 3):
        cost(f"  warc_gzip_level = {level}", partial(warc, visited, warc_gzip_level=level), count)
    for level in (1, 3, 9):
        options = {"warc_compression": "zstd", "warc_zstd_level": level}
        cost(f"  zstd, warc_zstd_level = {level}", partial(warc, visited, **options), count)
    cost("  no request records", partial(warc, visited, warc_request_records=False), count)
    cost("  no metadata records", partial(warc, visited, warc_metadata_records=False), count)
    cost("  neither", partial(warc, visited, **ALONE), count)
    cost("  links in metadata records (warc_outlinks)", partial(warc, visited, warc_outlinks=True), count)
    cost("  digests = sha256", partial(warc, visited, digests="sha256"), count)
    for label, packer in (("ISA-L", records.Gzip(2)), ("zstd 3", records.Zstd(3))):
        cost(f"  its response by hand and {label}", partial(written_by, by_hand(packer), visited), count)
    for level in (1, 2):
        cost(f"  the same by FastWARC, level {level}", partial(written_by, by_fastwarc(level), visited), count)


def uploads(visited: list[Visited]) -> None:
    """What copying to an object store costs beside the network: digests, and writing to a directory elsewhere."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "file"
        source.write_bytes(b"".join(visit.reply.body for visit in visited if visit.reply is not None))
        size, count = source.stat().st_size, len(visited)
        cost("upload: digests of a file", lambda: fixity_of(source, 8 << 20).length, count)
        store = ObjectStore(ArchiveOptions(store=f"file://{folder}/store", store_verify="size"))
        names = iter(range(1000))

        def copy() -> int:
            asyncio.run(store.copy(source, f"copy-{next(names)}"))
            return size

        cost("upload: digests and copy, to file://", copy, count)


def tables(visited: list[Visited], links: bool) -> int:
    with tempfile.TemporaryDirectory() as folder:
        journals = Journals(Path(folder))
        archive = TableWriters(ArchiveOptions(links=links), journals)
        for number, visit in enumerate(visited, 1):
            archive.add(visit)
            if number % EPOCH_PAGES == 0:
                archive.cut()
        archive.cut()
        return sum(entry.length for entry in journals.cut())


def whole(visited: list[Visited], folder: Path) -> None:
    """A finished crawl, and what is made of it afterwards."""
    journals = Journals(folder)
    archives = [WarcArchive(ArchiveOptions(), journals, WarcInfo("gossamer")), TableWriters(ArchiveOptions(), journals)]
    for number, visit in enumerate(visited, 1):
        for archive in archives:
            archive.add(visit)
            if number % EPOCH_PAGES == 0:
                archive.cut()
    for archive in archives:
        archive.close()
    manifest = journals.cut()
    journals.settle(manifest)
    while conversion := Follower(journals).next():
        cost(f"parquet: {conversion.parquet.partition('/')[0]}", conversion.make, len(visited))
        Follower(journals).settle(conversion, conversion.target.stat().st_size)
    index = folder / "index.cdxj"

    def from_tables() -> int:
        write_index(index, entries_of_tables(sorted(folder.glob("pages/*.parquet"))))
        return index.stat().st_size

    def from_warcs() -> int:
        write_index(index, entries_of_warcs(sorted(folder.glob("warc/*"))))
        return index.stat().st_size

    cost("index.cdxj from tables", from_tables, len(visited))
    cost("index.cdxj from WARC files", from_warcs, len(visited))


def main() -> None:
    pages = bodies(sys.argv[1] if len(sys.argv) > 1 else None)
    plain, packed = visits(pages, packed=False), visits(pages, packed=True)
    count = len(pages)
    print(f"{count} pages of {sum(map(len, pages)) / count:.0f} bytes, {LINKS} links each\n")
    for name, visited in (("plain", plain), ("gzip", packed)):
        warc_options(name, visited, count)
    uploads(packed)
    cost("table logs: pages", partial(tables, plain, links=False), count)
    cost("table logs: pages and links", partial(tables, plain, links=True), count)
    with tempfile.TemporaryDirectory() as folder:
        whole(plain, Path(folder))


if __name__ == "__main__":
    main()
