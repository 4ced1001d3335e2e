"""WARC files of any crawler are read: what their pages name is listed."""

from __future__ import annotations

import gzip
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path

import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from gossamer.model.errors import ConfigError
from gossamer.results.offline.build import SegmentOrder, build
from tests.results.offline.test_build import rows_of

HTML = [("Content-Type", "text/html; charset=utf-8")]
CODED = [("Content-Encoding", "gzip"), ("Transfer-Encoding", "chunked")]
LONG = ("Content-Security-Policy", "x" * 100_000)
ANY = ("scope.scope=any",)


def archive(path: Path, *pages: tuple[str, str, list[tuple[str, str]], bytes], zipped: bool = True) -> Path:
    """Write responses as warcio does, requests and metadata beside them."""
    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=zipped)
        writer.write_record(writer.create_warcinfo_record(path.name, {"software": "another crawler"}))
        for url, status, headers, body in pages:
            http = StatusAndHeaders(status, headers, protocol="HTTP/1.1")
            response = writer.create_warc_record(url, "response", payload=BytesIO(body), http_headers=http)
            asked = StatusAndHeaders("GET / HTTP/1.1", [("Host", "a.example")], is_http_request=True)
            request = writer.create_warc_record(url, "request", payload=BytesIO(b""), http_headers=asked)
            writer.write_request_response_pair(request, response)
            for record in (request, response):
                record.raw_stream.close()  # It has put a temporary file there.
    return path


@pytest.mark.parametrize("zipped", [True, False])
def test_links_redirects_and_codings(tmp_path: Path, zipped: bool) -> None:
    page = b'<a href="/new">n</a> <a rel=nofollow href="/not">n</a> <a href="http://a.example/">self</a>'
    packed = gzip.compress(b'<a href="/from-packed">p</a>')
    chunked = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (packed[:20], packed[20:])) + b"0\r\n\r\n"
    silent = b'<meta name=robots content=nofollow><a href="/not">n</a>'
    path = archive(
        tmp_path / ("a.warc.gz" if zipped else "a.warc"),
        ("http://a.example/", "200 OK", HTML, page),
        ("http://a.example/packed", "200 OK", [*HTML, *CODED, LONG], chunked),
        ("http://a.example/moved", "301 Moved", [("Location", "/target")], b""),
        ("http://a.example/silent", "200 OK", HTML, silent),
        ("http://a.example/none", "404 Not Found", HTML, b'<a href="/not">n</a>'),
        zipped=zipped,
    )  # fmt: skip
    build(SegmentOrder((path,), tmp_path / "next.parquet", sets=ANY))
    found = rows_of(tmp_path / "next.parquet")
    assert {url: row[2:5] for url, row in found.items()} == {
        "http://a.example/new": (1, 0, "anchor"),
        "http://a.example/from-packed": (1, 0, "anchor"),
        "http://a.example/target": (0, 1, "redirect"),
    }
    assert found["http://a.example/new"][5] == "http://a.example/"


def test_a_directory_of_warcs_and_an_index_that_knows_how_deep_pages_are(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    archive(tmp_path / "one" / "a.warc.gz", ("http://a.example/", "200 OK", HTML, b'<a href="/1">1</a>'))
    archive(
        tmp_path / "two" / "b.warc.gz", ("http://a.example/1", "200 OK", HTML, b'<a href="/2">2</a><a href="/">0</a>')
    )
    known = tmp_path / "known"
    build(SegmentOrder((tmp_path / "one",), tmp_path / "1.parquet", known, sets=ANY))
    build(SegmentOrder((tmp_path / "two",), tmp_path / "2.parquet", known, sets=ANY))
    assert {url: row[2] for url, row in rows_of(tmp_path / "2.parquet").items()} == {"http://a.example/2": 2}


def test_a_damaged_archive_is_named_and_one_that_was_cut_short_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    pages = [(f"http://a.example/{n}", "200 OK", HTML, b'<a href="/to-%d">x</a>' % n) for n in range(20)]
    path = archive(tmp_path / "a.warc.gz", *pages)
    data, middle = path.read_bytes(), path.stat().st_size // 2
    path.write_bytes(data[:middle])
    assert build(SegmentOrder((path,), tmp_path / "cut.parquet", sets=ANY)).urls in range(8, 12)
    path.write_bytes(b"\xff" * 60 + data[:10])
    with pytest.raises(ConfigError, match=r"a\.warc\.gz is no WARC file"):
        build(SegmentOrder((path,), tmp_path / "next.parquet", sets=ANY))
    assert not (tmp_path / "next.parquet.part").exists()


class _Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        pages = {"/": b'<a href="/one">1</a>', "/one": b'<a href="/two">2</a> <a href="http://b.example/">b</a>'}
        body = pages.get(self.path)
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.acceptance
def test_what_wget_archived_is_read(tmp_path: Path) -> None:
    """Wget writes addresses in angle brackets, and its own log as a resource."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Site) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_port}"
        command = ["wget", "-q", "--warc-file=site", "-O", "page", f"{base}/", f"{base}/one"]
        subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
        server.shutdown()
    assert build(SegmentOrder((tmp_path,), tmp_path / "next.parquet", sets=ANY)).urls == 2
    assert rows_of(tmp_path / "next.parquet").keys() == {f"{base}/two", "http://b.example/"}
