"""The strict reader objects to each thing that it is there to object to."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from gossamer.model.pages import Original

from . import strict
from .test_warc import archive
from .web import START, Shard, visited

Change = Callable[[list[bytes]], None]


def records(directory: Path) -> list[bytes]:
    """A small sound file, unpacked: warcinfo, response, request, metadata, revisit, request, metadata."""
    shard = Shard(directory)
    warc = archive(shard)
    first = warc.add(visited())
    warc.add(visited("http://example.org/copy", revisit_of=Original(visited().url.text, START, first.record_id)))
    warc.close()
    shard.commit()
    path = directory / "warc/gossamer-000-0001-000001.warc.gz"
    data = path.read_bytes()
    return [gzip.decompress(data[one.offset : one.offset + one.length]) for one in strict.read(path)]


def replaced(number: int, old: bytes, new: bytes) -> Change:
    def change(found: list[bytes]) -> None:
        assert old in found[number]
        found[number] = found[number].replace(old, new, 1)

    return change


def objections(directory: Path, change: Change) -> list[str]:
    found = records(directory)
    change(found)
    path = directory / "gossamer-000-0001-000001.warc.gz"
    path.write_bytes(b"".join(gzip.compress(one) for one in found))
    return strict.faults([path])


def test_a_sound_file_has_no_faults(tmp_path: Path) -> None:
    assert objections(tmp_path, lambda _: None) == []


@pytest.mark.parametrize(
    ("change", "objection"),
    [
        (replaced(1, b"WARC-Date: 2026-01-01T00:00:00.250000Z\r\n", b""), "WARC-Date is missing"),
        (replaced(1, b"WARC-Date: 2026-01-01T00", b"WARC-Date: 2026-01-01 00"), "is no date"),
        (replaced(1, b".250000Z", b".250000"), "is no date"),
        (replaced(1, b"<urn:uuid:", b"<urn:guid:"), "is no UUID"),
        (replaced(1, b"Some words", b"Same words"), "WARC-Payload-Digest is another's"),
        (replaced(2, b"GET ", b"PUT "), "WARC-Block-Digest is another's"),
        (replaced(1, b"Some words", b"Some more words"), "bytes are there"),
        (replaced(1, b"WARC-Target-URI: http://example.org/docs", b"WARC-Target-URI: http://a b/docs"), "is no URI"),
        (replaced(0, b"WARC-Filename: gossamer", b"WARC-Filename: somebody"), "names its file"),
        (replaced(1, b"WARC-Type: response", b"WARC-Type: answer"), "is no type"),
        (replaced(1, b"WARC-Type: response", b"WARC-Type : response"), "not a named field"),
        (replaced(2, b"WARC-Concurrent-To: <urn:uuid:", b"WARC-Concurrent-To: <urn:uuid:0"), "is not there"),
        (replaced(4, b"WARC-Refers-To-Date: 2026", b"WARC-Refers-To-Date: 2025"), "another date"),
        (replaced(4, b"WARC-Refers-To-Target-URI: http://", b"WARC-Refers-To-Target-URI: ftp://"), "another target"),
        (replaced(4, b"WARC-Profile: http://netpreserve", b"WARC-Profile: http://example"), "is no profile"),
        (replaced(1, b"Content-Type: application/http; msgtype=response\r\n", b""), "a block has a type"),
        (lambda found: found.append(found[1]), "record id twice"),
        (lambda found: found.pop(0), "a warcinfo record stands first"),
        (lambda found: found.pop(1), "is not there"),
    ],
)
def test_each_fault_is_found(tmp_path: Path, change: Change, objection: str) -> None:
    assert any(objection in one for one in objections(tmp_path, change))


@pytest.mark.parametrize("garbage", [b"\0", b"\r\n", b"trailing", gzip.compress(b"", mtime=0)])
def test_nothing_may_trail(tmp_path: Path, garbage: bytes) -> None:
    records(tmp_path)
    path = tmp_path / "warc/gossamer-000-0001-000001.warc.gz"
    path.write_bytes(path.read_bytes() + garbage)
    with pytest.raises((ValueError, zlib.error)):
        strict.faults([path])


def test_two_records_in_one_member_are_a_fault(tmp_path: Path) -> None:
    def joined(found: list[bytes]) -> None:
        found[1:3] = [found[1] + found[2]]

    assert any("bytes are there" in one for one in objections(tmp_path, joined))
