"""Archives that differ from the standard: the table in the guide, and what two independent readers do with the same."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable
from pathlib import Path

import fastwarc.warc
import pytest
import zstandard
from warcio.archiveiterator import ArchiveIterator

from gossamer.results.imports.capture import Refused
from tests.results.imports.test_public import GUIDE
from tests.results.imports.test_records import PAGE, items_of, record, write

_ROW = re.compile(r"^\| ([^|]+) \| (\d[^|]*) \| (\d[^|]*) \| (\d[^|]*) \|$", re.MULTILINE)
TABLE = {name: cells for name, *cells in _ROW.findall(GUIDE.read_text())}
RECORDS = [record(f"http://a.example/{number}") for number in range(3)]
DICTIONARY = zstandard.train_dictionary(4_096, [record(f"http://a.example/{number}") for number in range(2_000)])


def arc(*, version: str = "1 0", extra: str = "", head: str = "HTTP/1.0 200 OK\nContent-Type: text/html\n\n") -> bytes:
    """Return an ARC file of a `filedesc` record, if it has a version, and of three others."""
    bodies = [f"{version} InternetArchive\nURL IP-address …\n".encode(), *[f"{head}<p>text".encode()] * 3]
    urls = ["filedesc://a.arc", *(f"http://a.example/{number}" for number in range(3))]
    lines = [f"{url} 127.0.0.1 20260101000000 text/html{extra} " for url in urls]
    members = [line.encode() + b"%d\n%b\n" % (len(body), body) for line, body in zip(lines, bodies, strict=True)]
    return b"".join(map(gzip.compress, members if version else members[1:]))


def with_dictionary(dictionary: bytes) -> bytes:
    frames = map(zstandard.ZstdCompressor(dict_data=DICTIONARY).compress, RECORDS)
    return b"\x5d\x2a\x4d\x18" + len(dictionary).to_bytes(4, "little") + dictionary + b"".join(frames)


def each(old: bytes, new: bytes) -> bytes:
    return b"".join(gzip.compress(one.replace(old, new)) for one in RECORDS)


KINDS = {
    "WARC/0.17": each(b"WARC/1.0", b"WARC/0.17"),
    "WARC/0.16": each(b"WARC/1.0", b"WARC/0.16"),
    "line feeds alone": record(block=PAGE.replace(b"\r\n", b"\n")).replace(b"\r\n", b"\n") * 3,
    "no blank lines between records": b"".join(one.removesuffix(b"\r\n\r\n") for one in RECORDS),
    "no blank lines, gzip for each record": b"".join(gzip.compress(one.removesuffix(b"\r\n\r\n")) for one in RECORDS),
    "address in angle brackets": b"".join(gzip.compress(record(f"<http://a.example/{at}>")) for at in range(3)),
    "gzip of the whole file": gzip.compress(b"".join(RECORDS)),
    "files joined, each packed in another way": gzip.compress(RECORDS[0]) + gzip.compress(b"".join(RECORDS[1:])),
    "Zstandard": b"".join(map(zstandard.compress, RECORDS)),
    "Zstandard with a dictionary": with_dictionary(DICTIONARY.as_bytes()),
    "Zstandard with a dictionary that is packed": with_dictionary(zstandard.compress(DICTIONARY.as_bytes())),
    "Zstandard without its dictionary": with_dictionary(b"")[8:],
    "the last record cut": b"".join(map(gzip.compress, RECORDS))[:-30],
    "`application/http` without `msgtype`": each(b"", b""),
    "pseudo headers instead of a status line": each(b"HTTP/1.1 200 OK", b":status: 200"),
    "`ICY 200 OK`, of streams": each(b"HTTP/1.1 200 OK", b"ICY 200 OK, yes"),
    "ARC 1": arc(),
    "ARC 1.1 of Heritrix": arc(version="1 1"),
    "ARC 2, with five more fields": arc(version="2 0", extra=" 200 abc - 0 a.arc"),
    "ARC without `filedesc`": arc(version=""),
    "ARC whose replies have no head": arc(head="<html>"),
}


def count(records: Iterable[object]) -> str:
    found = 0
    try:
        for _ in records:
            found += 1
    except Exception:  # noqa: BLE001 - each reader has its own
        return f"{found}, then stops"
    return str(found)


@pytest.mark.parametrize("name", KINDS)
def test_archives_that_differ_from_the_standard(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / "a.warc", KINDS[name])
    refused = [isinstance(item, Refused) for item in items_of(path)]
    ours = str(refused.count(False)) + (f", {sum(refused)} refused" if any(refused) else "")
    with path.open("rb") as one, path.open("rb") as other:
        theirs = [count(ArchiveIterator(one)), count(fastwarc.warc.ArchiveIterator(other))]
    assert TABLE.get(name) == [ours, *theirs]


def test_the_guide_has_no_others() -> None:
    assert set(KINDS) == set(TABLE)
