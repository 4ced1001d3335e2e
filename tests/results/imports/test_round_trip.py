"""What Gossamer writes gives the same tables when it is imported: of crawls over HTTP, FTP, Gopher and of files."""

from __future__ import annotations

import gzip
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import gossamer
from gossamer.model.pages import PageRow
from gossamer.stages.archive.foreign import FaultCount, sound_records
from gossamer.stages.archive.warc import SAME_PAYLOAD
from tests.commands import run
from tests.results.imports.archives import HOST, Stored, digest_of, do_import, page, record, rows, write_warc
from tests.stages.fetch.ftp_server import ftp_server

PLACES = ("warc_file", "warc_offset", "warc_length")
MENU = b"iWelcome\tfake\t(NULL)\t0\r\n0About\t/about.txt\t127.0.0.1\t%d\r\nhPage\t/page.html\t127.0.0.1\t%d\r\n.\r\n"


def require_same(first: Path, again: Path, *but: str) -> None:
    """Check that the tables of a crawl and of an import of its archives are the same. Only the places of records
    differ, and times of requests are in milliseconds.
    """
    names = [name for name in PageRow.__struct_fields__ if name not in (*PLACES, "fetch_s", *but)]
    found = [{name: rows(one, f"key, fetched_at, {name}") for name in names} for one in (first, again)]
    assert [name for name in names if found[0][name] != found[1][name]] == []
    times = [[row[2] for row in rows(one, "key, fetched_at, fetch_s")] for one in (first, again)]
    assert times[1] == pytest.approx(times[0], abs=0.00051)
    assert bool(list((again / "links").glob("*.parquet"))) == bool(list((first / "links").glob("*.parquet")))
    if list((first / "links").glob("*.parquet")):
        assert rows(again, "*", "links") == rows(first, "*", "links")


def crawl(directory: Path, seed: str, **settings: object) -> None:
    every = {"robots.retry_first_s": 0.1, **settings}
    pages = gossamer.crawl(seed, output=directory, allow_private=True, politeness="own", settings=every)
    assert [page.url for page in pages]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "deeper").mkdir(parents=True)
    (root / "page.html").write_text("<title>Page</title><a href=deeper/one.txt>one</a>")
    (root / "deeper" / "one.txt").write_text("text")
    (root / "deeper" / "two.bin").write_bytes(bytes(2_000))
    return root


@contextmanager
def gopher() -> Iterator[int]:
    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            port = self.server.server_address[1]
            selector = self.rfile.readline().strip()
            missing = b"3no such thing\t\terror.host\t1\r\n.\r\n"
            answers = {b"": MENU % (port, port), b"/about.txt": b"about", b"/page.html": b"<title>Page</title><p>x"}
            self.wfile.write(answers.get(selector, missing))

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


WORDS = b"<p>" + b"Some words in a row, and more of them. " * 40
HTML = "text/html; charset=utf-8"
REPLIES: dict[str, tuple[int, str, bytes]] = {
    "/": (200, HTML, b"<title>Home</title>" + b"".join(
        b"<a href=%b>x</a>" % path
        for path in (b"/a", b"/copy1", b"/copy2", b"/moved", b"/gone", b"/busy", b"/packed", b"/refresh", b"/latin",
                     b"/pic.png", b"/untyped", b"/marked", b"/empty", b"/file.pdf", b"/loop", b"/once")
    ) + b"<link rel=alternate type=application/rss+xml href=/feed.xml>"),
    "/a": (200, HTML, b"<title>A</title><a href=/b rel=nofollow>b</a>"),
    "/b": (200, HTML, b"<title>B</title>"),
    "/copy1": (200, HTML, WORDS),
    "/copy2": (200, HTML, WORDS),
    "/moved": (301, HTML, b""),
    "/loop": (302, HTML, b""),
    "/once": (302, HTML, b""),
    "/twice": (302, HTML, b""),
    "/far": (200, HTML, b"<title>Far</title>"),
    "/gone": (410, HTML, b"gone"),
    "/busy": (500, HTML, b"busy"),
    "/packed": (200, HTML, gzip.compress(b"<title>Packed</title><a href=/a>a</a>")),
    "/refresh": (200, HTML, b'<title>R</title><meta http-equiv=refresh content="0;url=/a">'),
    "/latin": (200, "text/html; charset=iso-8859-1", b"<title>caf\xe9</title>"),
    "/pic.png": (200, "image/png", b"\x89PNG\r\n\x1a\n" + bytes(99)),
    "/untyped": (200, "", b"<title>Untyped</title><a href=/b>b</a>"),
    "/marked": (200, HTML, b"<title>M</title><meta name=robots content=nofollow><a href=/hidden>h</a>"),
    "/empty": (200, HTML, b""),
    "/file.pdf": (200, "application/octet-stream", b"%PDF-1.4 none"),
    "/listed": (200, HTML, b"<title>Listed</title>"),
    "/told": (200, HTML, b"<title>Told</title>"),
    "/robots.txt": (200, "text/plain", b"User-agent: *\nContent-Signal: ai-train=no,search=yes\nSitemap: BASE/map.xml"),
    "/map.xml": (200, "application/xml",
                 b"<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'><url><loc>BASE/listed</loc></url></urlset>"),
    "/feed.xml": (200, "application/rss+xml",
                  b"<rss version='2.0'><channel><title>x</title><item><link>BASE/told</link></item></channel></rss>"),
}  # fmt: skip


TARGETS = {"/moved": "/a", "/loop": "/loop", "/once": "/twice", "/twice": "/far"}


@contextmanager
def site() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            base = b"http://127.0.0.1:%d" % self.server.server_address[1]
            status, kind, body = REPLIES.get(self.path, (404, HTML, b"none"))
            body = body.replace(b"BASE", base)
            self.send_response(status)
            for name, value in (
                ("Content-Type", kind),
                ("Location", TARGETS.get(self.path, "")),
                ("Content-Encoding", "gzip" if body.startswith(b"\x1f\x8b") else ""),
                ("Content-Length", str(len(body))),
            ):
                if value:
                    self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.mark.heavy
@pytest.mark.parametrize("how", ["--link", "--copy"])
def test_a_site(tmp_path: Path, how: str) -> None:
    """Of a copy that was not read at another address neither the title nor the permissions are known; refusals are."""
    with site() as seed:
        settings = {"frontier.attempts_max": 2, "frontier.retry_s_first": 0.1}
        crawl(tmp_path / "crawl", seed, **settings)
    first = tmp_path / "crawl"
    again = tmp_path / "again"
    do_import(again, first / "warc", "--allow-private", how)
    require_same(first, again, "title", "usage_search", "usage_reason")
    columns = "key, title, usage_search"
    others = {row for row in rows(first, columns) if not row[0].endswith(("/copy1", "/copy2"))}
    assert others == {row for row in rows(again, columns) if not row[0].endswith(("/copy1", "/copy2"))}
    found = {key.rpartition("/")[2]: rest for key, *rest in rows(again, "key, outcome, media_type, usage_ai_train")}
    assert found["copy1"] == found["copy2"] == ["fetched", "text/html", "refused"]
    assert found["untyped"] == ["fetched", "text/html", "refused"]
    assert found["file.pdf"][1] == "application/pdf"
    assert found["busy"][0] == "http_error"
    hops = {key.rpartition("/")[2]: hops for key, hops in rows(again, "key, hops")}
    assert (hops["once"], hops["twice"], hops["far"]) == (0, 1, 2)
    loops = [error for outcome, error in rows(again, "outcome, error") if outcome == "redirected" and error]
    assert loops == [f"it redirects once more, to {seed}loop: at most 5 are followed"]
    assert run("verify", str(again), "--deep")[0] == 0


@pytest.mark.heavy
@pytest.mark.parametrize("scheme", ["ftp", "gopher", "file"])
def test_other_protocols(tree: Path, tmp_path: Path, scheme: str) -> None:
    settings: dict[str, object] = {"scope.schemes": [scheme]}
    with ftp_server(tree, tmp_path / "ftp") as server, gopher() as port:
        seeds = {
            "ftp": f"ftp://127.0.0.1:{server.port}/",
            "gopher": f"gopher://127.0.0.1:{port}/",
            "file": f"file://{tree}/",
        }
        crawl(tmp_path / "crawl", seeds[scheme], **settings, **{"fetch.file_roots": [str(tree)]})
    assert len(rows(tmp_path / "crawl", "url")) >= 3
    sets = ("--set", f'scope.schemes=["{scheme}"]', "--set", f'fetch.file_roots=["{tree}"]')
    do_import(tmp_path / "again", tmp_path / "crawl" / "warc", "--allow-private", *sets)
    require_same(tmp_path / "crawl", tmp_path / "again")


@pytest.mark.heavy
def test_what_was_copied_beside_a_link_is_imported_once(tmp_path: Path) -> None:
    """Two records in one member cannot be read in place. A package holds them twice: as they were, and as copied."""
    ids = [{"WARC-Record-ID": f"<urn:uuid:0000000{number}>"} for number in range(4)]
    first, second, third = (Stored(f"{HOST}/p{number}", page(number), fields=ids[number]) for number in range(3))
    confirmed = Stored(f"{HOST}/p2", b"", "2026-01-02T00:00:00Z", "response", "304 Not Modified", "", ids[3])
    pair = gzip.compress(record(first) + record(second), mtime=0)
    archive = write_warc(tmp_path / "site.warc.gz", [pair, third, confirmed])
    do_import(tmp_path / "crawl", archive)
    assert run("export", str(tmp_path / "crawl"), "--to", "wacz", "-o", str(tmp_path / "crawl.wacz"))[0] == 0
    for how in ("--link", "--copy"):
        again = tmp_path / how
        assert "repeated record 3" in do_import(again, tmp_path / "crawl.wacz", how)
        columns = "url, fetched_at, outcome, title, digest"
        assert rows(again, columns) == rows(tmp_path / "crawl", columns)


@pytest.mark.heavy
@pytest.mark.parametrize("protocol", ["h2", "h3"])
def test_a_revisit_keeps_its_protocol(tmp_path: Path, protocol: str) -> None:
    about = {"WARC-Protocol": protocol}
    body = page(0)
    original = Stored(f"{HOST}/p0", body, fields={"WARC-Record-ID": "<urn:uuid:00000000>", **about})
    names = {
        "WARC-Refers-To": "<urn:uuid:00000000>",
        "WARC-Refers-To-Target-URI": original.url,
        "WARC-Refers-To-Date": original.date,
        "WARC-Profile": SAME_PAYLOAD,
        "WARC-Payload-Digest": digest_of(body),
        **about,
    }
    revisits = [
        Stored(f"{HOST}/copy", b"", "2026-01-02T00:00:00Z", "revisit", fields=names),
        Stored(f"{HOST}/p0", b"", "2026-01-03T00:00:00Z", "revisit", "304 Not Modified", fields=names),
    ]
    archive = write_warc(tmp_path / "site.warc.gz", [original, *revisits])
    do_import(tmp_path / "crawl", archive, "--copy")
    found = rows(tmp_path / "crawl", "url, outcome, status, warc_type, body_bytes, title")
    assert [row[1:4] for row in found] == [
        ("fetched", 200, "revisit"), ("fetched", 200, "response"), ("not_modified", 304, "revisit"),
    ]  # fmt: skip
    records = [
        one.fields for path in (tmp_path / "crawl" / "warc").iterdir() for one in sound_records(path, FaultCount(path))
    ]
    kinds = ("response", "revisit")
    assert [fields.get("warc-protocol") for fields in records if fields["warc-type"] in kinds] == [protocol] * 3
    do_import(tmp_path / "again", tmp_path / "crawl" / "warc")
    require_same(tmp_path / "crawl", tmp_path / "again")
