"""Archives that other programs write, counted by an independent reader, and archives in a bucket of S3."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
import threading
import zipfile
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from warcio.archiveiterator import ArchiveIterator

from gossamer.model.errors import ConfigError
from gossamer.results.imports.capture import Capture, Refused, Room
from gossamer.results.imports.reading import captures_of
from gossamer.results.imports.sources import find_sources
from gossamer.stages.archive.options import ArchiveOptions
from gossamer.world.spill import Spills
from tests.results.imports.test_records import items_of, record
from tests.stages.archive.bucket import KEYS, NAME, Bucket

PAGE = b"".join(b'<a href="/%b">x</a>' % name for name in (b"one", b"packed", b"chunked", b"moved", b"gone"))


class _Site(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = {"/": PAGE, "/packed": gzip.compress(PAGE)}.get(self.path, b"<p>text</p>")
        self.send_response({"/moved": 302, "/gone": 404}.get(self.path, 200))
        self.send_header("Content-Type", "text/html")
        if self.path == "/moved":
            self.send_header("Location", "/one")
        if self.path == "/packed":
            self.send_header("Content-Encoding", "gzip")
        if self.path == "/chunked":
            self.send_header("Transfer-Encoding", "chunked")
            body = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:4], body[4:])) + b"0\r\n\r\n"
        else:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def base() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Site) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def theirs(path: Path) -> tuple[Counter[str], list[tuple[str, bytes]]]:
    """Return what warcio finds: records by type, and the bodies of responses and pages as resources."""
    kinds: Counter[str] = Counter()
    bodies = []
    with path.open("rb") as file:
        for one in ArchiveIterator(file):
            kinds[one.rec_type] += 1
            url = (one.rec_headers["WARC-Target-URI"] or "").strip("<>")
            if one.rec_type == "response" and url.startswith("http"):
                stream: Any = one.raw_stream
                if (one.http_headers.get_header("Transfer-Encoding") or "") == "chunked":
                    stream = one.content_stream()
                bodies.append((url, stream.read()))
    return kinds, bodies


def ours(path: Path) -> tuple[Counter[str], list[tuple[str, bytes]]]:
    items = items_of(path)
    assert not [item for item in items if isinstance(item, Refused)]
    kinds = Counter(item.kind.partition(" ")[0] for item in items if not isinstance(item, Refused))
    responses = [item for item in items if isinstance(item, Capture) and item.kind == "response"]
    return kinds, [(item.url, item.body) for item in responses]


@pytest.mark.acceptance
@pytest.mark.parametrize("options", [(), ("--no-warc-compression",), ("--warc-cdx", "--warc-max-size=1k")])
def test_wget(tmp_path: Path, base: str, options: tuple[str, ...]) -> None:
    command = ["wget", "-q", "-r", "-l1", "--compression=none", "--warc-file=site", *options, f"{base}/"]
    subprocess.run(command, cwd=tmp_path, check=False, timeout=60)  # A page is missing: status 8.
    paths = sorted(tmp_path.glob("site*.warc*"))
    assert paths
    assert [ours(path) for path in paths] == [theirs(path) for path in paths]
    found = [one for path in paths for one in ours(path)[1]]
    assert {url.removeprefix(base) for url, _ in found} >= {"/", "/one", "/packed", "/chunked", "/moved", "/gone"}
    assert dict(found)[f"{base}/chunked"] == b"<p>text</p>"
    if not options:
        captures = [item for item in items_of(paths[0]) if isinstance(item, Capture)]
        assert all(item.request_head.startswith(b"GET /") and item.place.linkable for item in captures)


CAPTURE = """
import sys
from warcio.capture_http import capture_http
import http.client
with capture_http(sys.argv[2]):
    for path in ("/", "/packed", "/chunked", "/gone"):
        connection = http.client.HTTPConnection(sys.argv[1])
        connection.request("GET", path)
        connection.getresponse().read()
        connection.close()
"""


def test_the_capture_of_warcio(tmp_path: Path, base: str) -> None:
    path = tmp_path / "a.warc.gz"
    command = [sys.executable, "-c", CAPTURE, base.removeprefix("http://"), str(path)]
    subprocess.run(command, check=True, timeout=60)
    assert ours(path) == theirs(path)
    assert len(ours(path)[1]) == 4
    again = tmp_path / "b.warc.gz"
    subprocess.run([sys.executable, "-m", "warcio.cli", "recompress", str(path), str(again)], check=True, timeout=60)
    assert ours(again) == ours(path)


def test_archives_in_a_bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    members = b"".join(gzip.compress(record(f"http://a.example/{at}")) for at in range(300))
    package = io.BytesIO()
    with zipfile.ZipFile(package, "w") as file:
        file.writestr("archive/a.warc.gz", members)
    lines = gzip.compress(b"crawl-data/x/1.warc.gz\ncrawl-data/x/gone.warc.gz\n")
    objects = {"x/1.warc.gz": members, "x/2.wacz": package.getvalue(), "x/read.txt": b"no", "warc.paths.gz": lines}
    with Bucket() as bucket:
        for name, data in objects.items():
            bucket.client.put_object(Bucket=NAME, Key=f"crawl-data/{name}", Body=data)
        store = ArchiveOptions(store_options=bucket.options)
        room = Room(Spills(tmp_path, "sha1"), store=store)

        def count(name: str) -> list[int]:
            sources = find_sources([f"s3://{NAME}/{name}"], store)
            return [sum(isinstance(one, Capture) for one in captures_of(source, room)) for source in sources]

        assert count("crawl-data/x/1.warc.gz") == [300]
        assert count("crawl-data/x/") == [300, 300]
        assert count("crawl-data/*.wacz") == [300]
        assert count("crawl-data/warc.paths.gz") == [300, 0]
        for bad in (f"s3://{NAME}/none/", "s3://no-bucket/x.warc.gz"):
            with pytest.raises(ConfigError, match=r"there is no archive|cannot be read"):
                find_sources([bad], store)
