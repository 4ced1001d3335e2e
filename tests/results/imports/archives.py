"""Archives as other crawlers write them, and what an import makes of them."""

from __future__ import annotations

import gzip
import zipfile
from base64 import b32encode
from collections.abc import Iterable, Mapping
from hashlib import sha1
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import duckdb

from tests.commands import run

HOST = "http://a.example"


class Stored(NamedTuple):
    """A record to write."""

    url: str
    body: bytes = b""
    date: str = "2026-01-01T00:00:00Z"
    kind: str = "response"
    status: str = "200 OK"
    headers: str = "Content-Type: text/html\r\n"
    fields: Mapping[str, str] = MappingProxyType({})


def page(number: int, *to: int, text: str = "") -> bytes:
    """Return a page with links to others."""
    links = "".join(f'<a href="/p{other}">to {other}</a>' for other in to)
    return (
        f"<title>Page {number}</title><h1>Page {number}</h1><p>The river of page {number}. {text}</p>{links}".encode()
    )


def digest_of(body: bytes) -> str:
    return "sha1:" + b32encode(sha1(body, usedforsecurity=False).digest()).decode()


def record(one: Stored) -> bytes:
    block = one.body
    fields = {"Content-Type": "application/http;msgtype=response", **one.fields}
    if one.kind in ("response", "revisit"):
        block = f"HTTP/1.1 {one.status}\r\n{one.headers}\r\n".encode() + one.body
    if one.kind == "response":
        fields.setdefault("WARC-Payload-Digest", digest_of(one.body))
    lines = [f"WARC-Type: {one.kind}", f"WARC-Target-URI: {one.url}", f"WARC-Date: {one.date}"]
    lines += [f"{name}: {value}" for name, value in fields.items()]
    head = "\r\n".join(["WARC/1.0", *lines, f"Content-Length: {len(block)}", "", ""])
    return head.encode() + block + b"\r\n\r\n"


def write_warc(path: Path, records: Iterable[Stored | bytes]) -> Path:
    """Write a WARC file with a gzip member a record; bytes are written as they are."""
    pieces = [one if isinstance(one, bytes) else gzip.compress(record(one), mtime=0) for one in records]
    path.write_bytes(b"".join(pieces))
    return path


def write_wacz(path: Path, **files: bytes) -> Path:
    """Write a package as py-wacz does: archives are stored, lists of pages are deflated."""
    with zipfile.ZipFile(path, "w") as package:
        for name, data in files.items():
            full = name.replace("__", "/").replace("_", ".")
            kind = zipfile.ZIP_STORED if full.startswith("archive/") else zipfile.ZIP_DEFLATED
            package.writestr(full, data, kind)
    return path


def packed(records: Iterable[Stored]) -> bytes:
    """Return records as gzip members."""
    return b"".join(gzip.compress(record(one), mtime=0) for one in records)


def site(pages: int) -> list[Stored]:
    """Return the records of a site whose pages link to two more each, as a tree."""
    return [
        Stored(
            f"{HOST}/p{number}",
            page(number, 2 * number + 1, 2 * number + 2),
            f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z",
        )
        for number in range(pages)
    ]


def do_import(directory: Path, *arguments: object) -> str:
    """Import archives; return the output."""
    status, out, err = run("import", *map(str, arguments), "-o", str(directory))
    assert status == 0, err
    return out


def rows(directory: Path, columns: str, table: str = "pages") -> list[tuple[Any, ...]]:
    """Return columns of a table, in the order of their values."""
    files = [str(path) for path in (directory / table).glob("*.parquet")]
    found = duckdb.read_parquet(files, union_by_name=True).project(columns).to_arrow_table().to_pylist()
    return sorted((tuple(row.values()) for row in found), key=repr)
