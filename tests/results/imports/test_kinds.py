"""Records as crawlers of all kinds write them, imported: pages, what is left out and why, in tables and exports."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from hashlib import sha1
from pathlib import Path

import pytest
import zstandard

from tests.commands import run
from tests.results.imports.archives import HOST, do_import, rows
from tests.results.imports.test_records import record, write

HTML = b"<title>T</title><p>The river</p><a href=/to>x</a>"
NONE = "sha1:" + "A" * 32


def reply(*headers: str, line: str = "HTTP/1.1 200 OK", body: bytes = HTML) -> bytes:
    return "\r\n".join([line, "Content-Type: text/html", *headers, "", ""]).encode() + body


PAGES: dict[str, tuple[bytes, dict[str, str]]] = {
    "without a media type": (reply(), {"Content_Type": ""}),
    "HTTP/2 with pseudo headers": (reply(":status: 200", line="HTTP/2 200"), {}),
    "HTTP/2.0": (reply(line="HTTP/2.0 200"), {}),
    "HTTP/3": (reply(line="HTTP/3 200 "), {}),
    "chunked, which it is not": (reply("Transfer-Encoding: chunked"), {}),
    "chunked": (reply("Transfer-Encoding: chunked", body=b"%x\r\n%b\r\n0\r\n\r\n" % (len(HTML), HTML)), {}),
    "gzip, which it is not": (reply("Content-Encoding: gzip"), {}),
    "br, which it is not": (reply("Content-Encoding: br"), {}),
    "zstd": (reply("Content-Encoding: zstd", body=zstandard.compress(HTML)), {}),
    "wrong digests": (reply(), {"WARC_Payload_Digest": NONE, "WARC_Block_Digest": NONE}),
    "digest in base 16": (reply(), {"WARC_Payload_Digest": "sha1:" + sha1(HTML).hexdigest()}),
    "digest of another kind": (reply(), {"WARC_Payload_Digest": "md5:d41d8cd98f00b204e9800998ecf8427e"}),
    "length of another body": (reply("Content-Length: 5000"), {"WARC_Truncated": "length"}),
    "line feeds alone": (reply().replace(b"\r\n", b"\n"), {}),
    "an interim reply": (b"HTTP/1.1 100 Continue\r\n\r\n" + reply(), {}),
}


@pytest.mark.parametrize("how", ["--link", "--copy"])
def test_pages(tmp_path: Path, how: str) -> None:
    urls = {f"{HOST}/{number}": name for number, name in enumerate(PAGES)}
    records = [record(url, PAGES[name][0], **PAGES[name][1]) for url, name in urls.items()]
    archive = write(tmp_path / "a.warc", b"".join(records))
    directory = tmp_path / "crawl"
    do_import(directory, archive, how)
    found = rows(directory, "url, outcome, status, title, body_bytes")
    assert {urls[row[0]]: row[1:] for row in found} == dict.fromkeys(PAGES, ("fetched", 200, "T", len(HTML)))
    assert run("verify", str(directory), "--deep")[0] == 0
    assert run("export", str(directory), "--to", "markdown", "-o", str(tmp_path / "md"))[0] == 0
    texts = [path.read_text() for path in (tmp_path / "md").rglob("*.md")]
    assert len(texts) == len(PAGES)
    assert all("The river" in text for text in texts)
    assert run("export", str(directory), "--to", "wacz", "-o", str(tmp_path / "a.wacz"))[0] == 0
    do_import(tmp_path / "again", tmp_path / "a.wacz")
    assert {row[0] for row in rows(tmp_path / "again", "url")} == set(urls)


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (record(f"{HOST}/p?a=1&__wb_method=POST&__wb_post_data=YT0x"), "method 1"),
        (record("dns:a.example", b"20260101000000\na. 300 IN A 192.0.2.1\n", Content_Type="text/dns"), "response dns"),
        (record("ftp://a.example/x", b"hello", "resource", Content_Type="text/plain"), "scheme 1"),
        (record(f"urn:pageinfo:{HOST}/", b"{}", "resource", Content_Type="application/json"), "resource urn records 1"),
        (record(f"urn:text:{HOST}/", b"x", "resource", Content_Type="text/plain"), "resource urn records 1"),
        (record(f"urn:view:{HOST}/", b"x", "resource", Content_Type="image/png"), "resource urn records 1"),
        (record(f"urn:thumbnail:{HOST}/", b"x", "resource", Content_Type="image/jpeg"), "resource urn records 1"),
        (record(f"screenshot:{HOST}/", b"x", "resource", Content_Type="image/png"), "resource screenshot"),
        (record("wss://a.example/feed", reply(line="HTTP/1.1 101 Switching Protocols")), "response wss records 1"),
        (record("wss://a.example/feed", b"ping", "resource", Content_Type="text/plain"), "resource wss records 1"),
        (record("metadata://x/crawl.log", b"x", "metadata", Content_Type="text/plain"), "metadata records 1"),
        (record("", b"robots: obey\r\n", "warcinfo", Content_Type="application/warc-fields"), "warcinfo records 1"),
    ],
)
def test_records_that_are_no_pages_are_counted(tmp_path: Path, one: bytes, reason: str) -> None:
    archive = write(tmp_path / "a.warc", record(f"{HOST}/") + one)
    out = do_import(tmp_path / "crawl", archive)
    assert f"Imported 1 capture; left out: {reason}" in out


def derived(kind: str, records: Iterable[tuple[str, bytes]]) -> bytes:
    """Return what Common Crawl derives of responses: WET (conversion) or WAT (metadata)."""
    info = record("", b"software: x\r\n", "warcinfo", Content_Type="application/warc-fields")
    return b"".join(map(gzip.compress, [info, *(record(url, data, kind) for url, data in records)]))


@pytest.mark.parametrize(("kind", "name"), [("conversion", "wet"), ("metadata", "wat")])
def test_what_was_derived_of_archives_holds_no_pages(tmp_path: Path, kind: str, name: str) -> None:
    folder = tmp_path / "crawl-data"
    folder.mkdir()
    path = write(folder / f"a.warc.{name}.gz", derived(kind, [(f"{HOST}/{number}", b"text") for number in range(3)]))
    status, out, err = run("import", str(path), "-o", str(tmp_path / "crawl"))
    assert status == 3
    assert f"{kind} records 3" in out
    assert "there are no pages" in err
    assert err.count("\n") == 1
    paths = write(folder / f"{name}.paths.gz", gzip.compress(f"crawl-data/{path.name}\n".encode()))
    status, _, err = run("import", str(paths), "-o", str(tmp_path / "other"))
    assert status == 2
    assert err.count("\n") == 1
    assert "name the list of WARC files" in err
