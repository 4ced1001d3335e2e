"""Make the crawl directory of today's format: `python -m tests.golden.make`.

Run it once for each format, before the release that has it, and keep the directory: it is never made again. Its site
answers on an address of loopback that nothing else uses, so that a test can continue the crawl.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from gossamer.model.product import FORMAT
from tests.answering import serving

FOLDER = Path(__file__).parent
ADDRESS = ("127.83.11.5", 8017)
SITE = f"http://{ADDRESS[0]}:{ADDRESS[1]}/"
PAGES = 12
PAGES_FETCHED = 5
"""When the crawl stops: the others are queued."""
BYTES_MAX = 300_000


class Site(BaseHTTPRequestHandler):
    """Twelve pages in a row, each with links to the next three, and no robots.txt."""

    protocol_version = "HTTP/1.1"
    date_time_string = staticmethod(lambda timestamp=None: "Sun, 01 Jan 2023 00:00:00 GMT")  # type: ignore[assignment]

    def do_GET(self) -> None:
        name = self.path.removeprefix("/") or "0"
        number = int(name) if name.isdigit() and int(name) < PAGES else None
        links = [
            f'<a href="/{one}">Page {one}</a>' for one in range(PAGES) if number is not None and 0 < one - number < 4
        ]
        body = f"<!doctype html><title>Page {number}</title><p>Text of page {number}.</p>{' '.join(links)}".encode()
        self.send_response(200 if number is not None else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def served() -> Iterator[None]:
    """Serve the site."""
    with serving(ThreadingHTTPServer(ADDRESS, Site)):
        yield


def main() -> None:
    """Crawl the first pages of the site, and pack what it leaves into `format-N.tar.gz`."""
    kept = FOLDER / f"format-{FORMAT}.tar.gz"
    assert not kept.exists(), "released directories are kept as they are"
    command = [
        sys.executable, "-m", "gossamer", "crawl", SITE, "--allow-private", "--politeness", "own", "--per-host", "1",
        "--max-pages", str(PAGES_FETCHED), "--contact", "you@example.org", "--quiet", "-o", "crawl",
    ]  # fmt: skip
    with tempfile.TemporaryDirectory(dir="/tmp") as folder, served():
        subprocess.run(command, check=True, cwd=folder, timeout=60)
        # The store's options name every default of RocksDB, and its log this machine: it reads neither again.
        for left in Path(folder).glob("crawl/state/store/LOG*"):
            left.unlink()
        with tarfile.open(kept, "w:gz") as packed:
            packed.add(Path(folder, "crawl"), "crawl", filter=_without_owner)
    assert kept.stat().st_size < BYTES_MAX


def _without_owner(file: tarfile.TarInfo) -> tarfile.TarInfo:
    file.uid = file.gid = 0
    file.uname = file.gname = ""
    return file


if __name__ == "__main__":
    main()
