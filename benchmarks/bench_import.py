"""What an import costs a page, beside a plain loop of FastWARC and Resiliparse that extracts links and text.

    python benchmarks/bench_import.py [WARC]

Without a file, 1,000, 4,000 and 16,000 pages are made up: archives whose memory can be compared. Prints the processor
seconds a page of the loop, of reading alone, and of the command on one processor and on all of them, the ratio to the
loop, the wall time, and the most memory of a process so far. The command reads the larger archives with several
processes.
"""

from __future__ import annotations

import gzip
import os
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import monotonic, process_time

from fastwarc.warc import ArchiveIterator, WarcRecordType
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.encoding import detect_encoding
from resiliparse.parse.html import HTMLTree

from gossamer.results.imports.capture import Capture, Room
from gossamer.results.imports.reading import captures_of
from gossamer.results.imports.sources import find_sources
from gossamer.world.spill import Spills

SIZES = (1_000, 4_000, 16_000)
LINKS = 60


def make(path: Path, pages: int) -> None:
    """Write an archive of pages of 25 KB."""
    dice = random.Random(1)
    words = ["".join(dice.choices("etaoinshrdlu", k=dice.randint(2, 9))) for _ in range(3_000)]
    with path.open("wb") as file:
        for page in range(pages):
            links = "".join(f'<p><a href="/{dice.randrange(pages)}">{dice.choice(words)}</a></p>' for _ in range(LINKS))
            body = f"<html><title>{page}</title>{links}<p>{' '.join(dice.choices(words, k=3_300))}</p></html>"
            block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n" + body.encode()
            head = (
                f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:{page}>\r\n"
                f"WARC-Target-URI: http://a.example/{page}\r\nWARC-Date: 2026-01-01T00:00:00Z\r\n"
                f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(block)}\r\n\r\n"
            )
            file.write(gzip.compress(head.encode() + block + b"\r\n\r\n", 5))


def loop(path: Path) -> int:
    """Extract links and text with the libraries alone. Elements are copied: iterating a live list costs n² here."""
    pages = 0
    with path.open("rb") as file:
        for record in ArchiveIterator(file, WarcRecordType.response, auto_decode="all"):
            body = record.reader.read()
            tree = HTMLTree.parse_from_bytes(body, record.http_charset or detect_encoding(body))
            links = [link.getattr("href") for link in tree.document.get_elements_by_tag_name("a")[:]]
            text = extract_plain_text(tree)
            pages += bool(links or text)
    return pages


def read(path: Path) -> int:
    """Read the captures alone."""
    with tempfile.TemporaryDirectory() as folder:
        room = Room(Spills(Path(folder), "sha1"))
        items = (item for source in find_sources([str(path)]) for item in captures_of(source, room))
        return sum(isinstance(item, Capture) for item in items)


def import_all(path: Path) -> int:
    """Run the command. Returns 0: the pages are those of the others."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["import", str(path), "-o", f"{folder}/out", "--quiet"]
        subprocess.run([sys.executable, "-m", "gossamer", *words], check=True, stdout=subprocess.DEVNULL)
    return 0


def import_on_one(path: Path) -> int:
    """Run the command on one processor."""
    every = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(every)})
    try:
        return import_all(path)
    finally:
        os.sched_setaffinity(0, every)


def seconds(run: Callable[[Path], int], path: Path) -> tuple[float, int]:
    """Return the processor time of a run, its children's included, and its pages."""
    before = process_time() + _children()
    pages = run(path)
    return process_time() + _children() - before, pages


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(name) for name in sys.argv[1:]]
        for size in () if paths else SIZES:
            paths.append(Path(folder) / f"{size}.warc.gz")
            make(paths[-1], size)
        for path in paths:
            floor_s, pages = seconds(loop, path)
            print(f"{path.name}: {pages:,} pages, {path.stat().st_size / 1e6:.1f} MB")
            for name, run in (
                ("loop", loop), ("reading alone", read), ("on one processor", import_on_one), ("on all", import_all),
            ):  # fmt: skip
                began = monotonic()
                try:
                    spent, _ = seconds(run, path)
                except subprocess.CalledProcessError as error:
                    print(f"  {name:16} failed: {error}")
                    continue
                wall_s = monotonic() - began
                who = resource.RUSAGE_SELF if run in (loop, read) else resource.RUSAGE_CHILDREN
                memory = resource.getrusage(who).ru_maxrss / 1024
                print(
                    f"  {name:16} {spent / pages * 1e6:7.0f} µs a page, {spent / floor_s:5.2f} times, "
                    f"{wall_s:5.1f} s, {memory:5.0f} MiB"
                )


if __name__ == "__main__":
    main()
