"""The floor of a crawl: the same fetches and the same outputs with the libraries alone, in one plain loop.

    python benchmarks/floor.py [--ca FILE] [--embeds] OUTPUT SEED…

Fetch, decode, parse, join, compare with what is known, WARC records, Parquet rows. No politeness, no robots.txt, no
queue on disk, no commit, no limits, nothing survives a crash: no crawler can be quicker with these libraries, and none
that may be let loose can be as quick. bench_crawl.py prints what Gossamer takes beside it.
"""

from __future__ import annotations

import argparse
import hashlib
from base64 import b32encode
from collections import deque
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import ada_url
import pyarrow as pa
import pyarrow.parquet as pq
import pycurl
import xxhash
from isal import igzip_lib, isal_zlib
from selectolax.lexbor import LexborHTMLParser

AT_ONCE = 8
GZIP_LEVEL = 2
WORD = pa.dictionary(pa.int32(), pa.string())
PAGE_COLUMNS = pa.schema((
    ("url", pa.string()), ("key", pa.string()), ("host", WORD), ("site", WORD),
    ("fetched_at", pa.timestamp("us", "UTC")), ("outcome", WORD), ("status", pa.int16()), ("media_type", WORD),
    ("charset", WORD), ("wire_bytes", pa.int64()), ("body_bytes", pa.int64()), ("digest", pa.string()),
    ("title", pa.string()), ("depth", pa.int32()), ("referrer", pa.string()), ("link_type", WORD), ("ip", WORD),
    ("fetch_s", pa.float64()), ("attempt", pa.int32()), ("warc_file", WORD), ("warc_offset", pa.int64()),
    ("warc_length", pa.int64()), ("shard", pa.int32()),
))  # fmt: skip
LINK_COLUMNS = pa.schema((
    ("from_url", pa.string()), ("to_url", pa.string()), ("to_key", pa.string()), ("link_type", WORD),
    ("anchor_text", pa.string()), ("nofollow", pa.bool_()),
))  # fmt: skip
"""As Gossamer's tables have them, without those that are empty for every page of this site."""


EMBEDS = {"img[src]": "src", "link[rel=stylesheet]": "href", "script[src]": "src"}


class Fetched:
    """One transfer and what it brought."""

    def __init__(self, url: str, depth: int, referrer: str, authority: str) -> None:
        self.url = url
        self.depth = depth
        self.referrer = referrer
        self.head: list[bytes] = []
        self.body: list[bytes] = []
        handle = self.handle = pycurl.Curl()
        handle.setopt(pycurl.URL, url)
        handle.setopt(pycurl.ACCEPT_ENCODING, None)
        handle.setopt(pycurl.HTTPHEADER, ["Accept-Encoding: gzip"])
        handle.setopt(pycurl.HEADERFUNCTION, self.head.append)
        handle.setopt(pycurl.WRITEFUNCTION, self.body.append)
        if authority:
            handle.setopt(pycurl.CAINFO, authority)


class Floor:
    """One crawl in memory, written as it goes."""

    def __init__(self, directory: Path, seeds: list[str], authority: str, *, embeds: bool = False) -> None:
        self._selectors = {"a[href]": "href", **(EMBEDS if embeds else {})}
        self._seeds = [ada_url.normalize_url(seed) for seed in seeds]
        self._origins = tuple(self._seeds)
        self._known = {xxhash.xxh3_64_intdigest(seed.encode()) for seed in self._seeds}
        self._waiting = deque((seed, 0, "") for seed in self._seeds)
        self._authority = authority
        directory.mkdir(parents=True)
        self._directory = directory
        self._warc = (directory / "floor.warc.gz").open("wb")
        self._pages: list[tuple[object, ...]] = []
        self._links: list[tuple[object, ...]] = []

    def run(self) -> int:
        """Fetch everything and return how many pages there were."""
        for fetched in self._transfers():
            self._take(fetched)
        self._warc.close()
        for name, columns, rows in (("pages", PAGE_COLUMNS, self._pages), ("links", LINK_COLUMNS, self._links)):
            cells = [pa.array(cells, one.type) for cells, one in zip(zip(*rows, strict=True), columns, strict=True)]
            table = pa.Table.from_arrays(cells, schema=columns)
            pq.write_table(table, self._directory / f"{name}.parquet", compression="zstd")
        return len(self._pages)

    def _transfers(self) -> Iterator[Fetched]:
        multi = pycurl.CurlMulti()
        running: dict[pycurl.Curl, Fetched] = {}
        while self._waiting or running:
            while self._waiting and len(running) < AT_ONCE * len(self._seeds):
                fetched = Fetched(*self._waiting.popleft(), self._authority)
                running[fetched.handle] = fetched
                multi.add_handle(fetched.handle)
            multi.perform()
            _, done, failed = multi.info_read()
            for handle in [*done, *(one[0] for one in failed)]:
                multi.remove_handle(handle)
                fetched = running.pop(handle)
                if handle in done:
                    yield fetched
            if running and not done:
                multi.select(1.0)

    def _take(self, fetched: Fetched) -> None:
        handle = fetched.handle
        status = handle.getinfo(pycurl.RESPONSE_CODE)
        media_type, _, parameters = (handle.getinfo(pycurl.CONTENT_TYPE) or "").partition(";")
        payload = b"".join(fetched.body)
        digest = digest_of(payload)
        offset, http = self._warc.tell(), "application/http;msgtype="
        request = f"GET {fetched.url} HTTP/1.1\r\n\r\n".encode()
        length = self._warc.write(
            member("response", fetched.url, http + "response", b"".join(fetched.head) + payload, digest)
        )
        self._warc.write(member("request", fetched.url, http + "request", request))
        self._warc.write(member("metadata", fetched.url, "application/warc-fields", b"fetchTimeMs: 1\r\n"))
        title, body = "", payload
        if status == 200 and media_type == "text/html":
            coded = any(line.lower().startswith(b"content-encoding: gzip") for line in fetched.head)
            body = isal_zlib.decompress(payload, 31) if coded else payload
            title = self._links_of(fetched, body)
        elif status in (301, 302):
            self._offer([handle.getinfo(pycurl.REDIRECT_URL)], fetched.depth, fetched.url)
        host, charset = urlsplit(fetched.url).hostname, parameters.rpartition("=")[2] or "utf-8"
        self._pages.append((
            fetched.url, fetched.url, host, host, datetime.now(UTC), "fetched" if status == 200 else "http_error",
            status, media_type, charset, len(payload), len(body), digest, title, fetched.depth, fetched.referrer,
            "anchor", handle.getinfo(pycurl.PRIMARY_IP), handle.getinfo(pycurl.TOTAL_TIME), 1, "floor.warc.gz",
            offset, length, 0,
        ))  # fmt: skip

    def _links_of(self, page: Fetched, body: bytes) -> str:
        base = page.url
        tree = LexborHTMLParser(body)
        urls: dict[str, None] = {}
        for selector, name in self._selectors.items():
            for node in tree.css(selector):
                try:
                    attributes = node.attributes
                    url = ada_url.join_url(base, attributes[name]).partition("#")[0]
                except ValueError:
                    continue
                if url == base and url in urls:
                    continue  # Of anchors into the page itself there is one row.
                urls[url] = None
                text = " ".join(node.text().split())
                nofollow = "nofollow" in (attributes.get("rel") or "")
                kind = "anchor" if name == "href" else "embed"
                self._links.append((base, url, url, kind, text, nofollow))  # A row a mention, as a crawl has it.
        self._offer(urls, page.depth + 1, base)
        node = tree.css_first("title")
        return node.text() if node is not None else ""

    def _offer(self, urls: Iterable[str], depth: int, referrer: str) -> None:
        for url in urls:
            if url.startswith(self._origins):
                fingerprint = xxhash.xxh3_64_intdigest(url.encode())
                if fingerprint not in self._known:
                    self._known.add(fingerprint)
                    self._waiting.append((url, depth, referrer))


def digest_of(data: bytes) -> str:
    """Return a digest as WARC writes it."""
    return "sha1:" + b32encode(hashlib.sha1(data).digest()).decode()


def member(kind: str, url: str, content_type: str, block: bytes, payload_digest: str = "") -> bytes:
    """Return one WARC record as one gzip member."""
    head = (
        f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:{uuid4()}>\r\n"
        f"WARC-Date: {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}\r\nWARC-Target-URI: {url}\r\n"
        f"WARC-Block-Digest: {digest_of(block)}\r\n"
    )
    if payload_digest:
        head += f"WARC-Payload-Digest: {payload_digest}\r\n"
    head += f"Content-Type: {content_type}\r\nContent-Length: {len(block)}\r\n\r\n"
    compressed: bytes = igzip_lib.compress(head.encode() + block + b"\r\n\r\n", GZIP_LEVEL, igzip_lib.COMP_GZIP)
    return compressed


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ca", default="")
    parser.add_argument("--embeds", action="store_true")
    parser.add_argument("output", type=Path)
    parser.add_argument("seeds", nargs="+")
    given = parser.parse_args()
    print(Floor(given.output, given.seeds, given.ca, embeds=given.embeds).run(), "pages")


if __name__ == "__main__":
    main()
