"""Visits as a crawl would hand them over, and a crawl's journals with a commit that can crash."""

from __future__ import annotations

import gzip
from pathlib import Path

import xxhash

from gossamer.model.links import Found
from gossamer.model.pages import Original, PageRow, Visited
from gossamer.model.visits import Reply
from gossamer.state.journals import Journals, ManifestEntry
from gossamer.url.url import Url

START = 1_767_225_600.25  # 2026-01-01T00:00:00.25Z
HTML = b"<!doctype html><title>Page</title>" + b"<p>Some words in a row, and more of them.</p>\n" * 200


def visited(
    address: str = "http://example.org/docs/page.html",
    body: bytes = HTML,
    status: int = 200,
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "text/html; charset=utf-8"),),
    at: float = START,
    links: int = 0,
    revisit_of: Original | None = None,
    **reply: object,
) -> Visited:
    fields: dict[str, object] = {
        "ip": "127.0.0.1",
        "fetch_s": 0.0123,
        "wire_bytes": len(body) + 200,
        "reason": "OK" if status == 200 else "",
        "request_head": b"GET /docs/page.html HTTP/1.1\r\nHost: example.org\r\nUser-Agent: gossamer/1\r\n\r\n",
        "media_type": "text/html",
    } | reply
    host = address.split("/")[2].partition(":")[0]
    found = [
        Found(f"http://example.org/to/{number}", "anchor", f"Link {number} é", number % 7 == 0)
        for number in range(links)
    ]
    return Visited(
        url=Url(address, address, xxhash.xxh3_64_intdigest(address.encode()), host, host, 1),
        row=PageRow(
            url=address,
            key=address,
            host=host,
            site=host,
            fetched_at=at,
            outcome="fetched",
            status=status,
            media_type=str(fields["media_type"]),
            wire_bytes=len(body) + 200,
            body_bytes=len(body),
            title="Page",
            depth=2,
            referrer="http://example.org/",
            link_type="anchor",
            fetch_s=0.0123,
        ),
        reply=Reply(url=address, status=status, headers=headers, body=body, started_at=at, **fields),  # type: ignore[arg-type]
        links=found,
        link_keys=[link.url for link in found],
        revisit_of=revisit_of,
    )


def assortment() -> list[Visited]:
    """One of every kind of reply that an archive must be able to hold."""
    packed = gzip.compress(HTML, mtime=0)
    return [
        visited(),
        visited(
            "https://www.example.org/packed?b=2&a=1",
            packed,
            headers=(("content-type", "text/html"), ("content-encoding", "gzip"), ("content-length", str(len(packed)))),
            http_version="2",
            reason="",
            request_head=b"GET /packed?b=2&a=1 HTTP/2\r\nHost: www.example.org\r\n\r\n",
        ),
        visited("http://example.org/cut", HTML[:99], headers=(("Content-Length", "99999"),), truncated="length"),
        visited("http://example.org/latin", headers=(("X-Name", "caf\xe9 \xff"), ("Content-Type", "text/html"))),
        visited("http://example.org/empty", b"", headers=()),
        visited("http://example.org/moved", b"gone there", 301, (("Location", "/new"), ("Content-Type", "text/plain"))),
        visited("http://example.org/unchanged", b"", 304, (("ETag", '"1"'),)),
        visited("http://example.org/chunked", headers=(("TRANSFER-ENCODING", "chunked"), ("Content-Type", "a/b"))),
        visited(
            "http://example.org/odd", status=999, headers=(("X-Break", "one\r\nX-Two: two\n"), ("Content-Type", "a/b"))
        ),
        visited("http://example.org/old", http_version="1.0", request_head=b""),
        visited("http://[::1]:8080/six", ip="::1"),
        visited("http://example.org/binary", bytes(range(256)) * 64, headers=(("Content-Type", "image/png"),)),
    ]


class Shard:
    """Journals with a manifest that survives: what the store does for them in a crawl."""

    def __init__(self, directory: Path, manifest: list[ManifestEntry] | None = None) -> None:
        self.directory = directory
        self.manifest = manifest or []
        self.journals = Journals(directory)
        self.journals.recover(self.manifest, owned=("warc", "state/tables"))

    def commit(self) -> None:
        manifest = self.journals.cut()
        self.journals.sync()
        self.manifest = manifest
        self.journals.settle(manifest)

    def crash(self) -> Shard:
        """Return the shard as it comes up after a crash now."""
        self.journals.close_files()
        return Shard(self.directory, self.manifest)
