"""A damaged record of a WARC file costs itself."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import zstandard

from gossamer.config.seeds import file_seeds
from gossamer.results.offline.build import SegmentOrder, build
from gossamer.stages.archive.foreign import FaultCount, sound_records
from tests.results.offline.test_build import rows_of


def record(number: int, length: object = None, version: str = "WARC/1.1") -> bytes:
    body = f'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<a href="/to-{number}">x</a>'.encode()
    head = (
        f"{version}\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.example/{number}\r\n"
        "WARC-Date: 2026-01-01T00:00:00Z\r\nContent-Type: application/http; msgtype=response\r\n"
        f"Content-Length: {len(body) if length is None else length}"
    )
    return head.encode() + b"\r\n\r\n" + body + b"\r\n\r\n"


BAD = {
    "garbage": b"garbage\r\nmore: of it\r\n\r\n",
    "zeros": bytes(5_000),
    "a length too short": record(9, 5),
    "a length too long": record(9, 100),
    "a length beyond the file": record(9, 10**15),
    "a negative length": record(9, -5),
    "a length that is no number": record(9, "abc"),
    "a length of 30 digits": record(9, 10**30),
    "another version": record(9, version="WARX/1.0"),
    "a head without an end": b"WARC/1.0\r\nX: " + b"y" * 2_000_000 + b"\r\n",
    "a head that is cut": record(9)[:60] + b"\r\n",
    "lines that look like a beginning": b"WARC/1.0\r\n" * 100,
}


def numbers(path: Path) -> tuple[list[int], FaultCount]:
    faults = FaultCount(path)
    addresses = [one.fields.get("warc-target-uri", "/9") for one in sound_records(path, faults)]
    found = [int(address.rpartition("/")[2]) for address in addresses]
    return [number for number in found if number != 9], faults


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
@pytest.mark.parametrize("place", [0, 2, 4])
def test_in_a_file_that_is_not_compressed_it_costs_itself(tmp_path: Path, bad: bytes, place: int) -> None:
    sound = [record(number) for number in range(4)]
    (tmp_path / "a.warc").write_bytes(b"".join([*sound[:place], bad, *sound[place:]]))
    found, records = numbers(tmp_path / "a.warc")
    assert found == [0, 1, 2, 3]
    if place < 4 and not bad.startswith(b"WARC/1.0\r\nWARC"):  # Such lines are part of the head that follows.
        assert records.says().startswith(f"{tmp_path / 'a.warc'}: ")
        assert "left out, the first at or after offset" in records.says()


@pytest.mark.parametrize("damage", ["changed", "cut", "garbage", "zeros"])
@pytest.mark.parametrize("form", ["gz", "zst"])
def test_in_a_compressed_file_it_costs_itself(tmp_path: Path, damage: str, form: str) -> None:
    pack = gzip.compress if form == "gz" else zstandard.ZstdCompressor(write_checksum=True).compress
    sound = [pack(record(number)) for number in range(4)]
    changed = bytearray(pack(record(9)))
    changed[30:50] = bytes(20)
    bad = {"changed": bytes(changed), "cut": sound[0][:50], "garbage": b"xy" * 500, "zeros": bytes(5_000)}[damage]
    (tmp_path / f"a.warc.{form}").write_bytes(b"".join([*sound[:2], bad, *sound[2:]]))
    found, records = numbers(tmp_path / f"a.warc.{form}")
    assert [number for number in found if found.count(number) == 1 or number] == [0, 1, 2, 3] or found == [
        0,
        1,
        0,
        2,
        3,
    ]
    assert bool(records.says()) == (damage != "zeros")


@pytest.mark.parametrize(
    "first",
    [[record(0, 60)], [record(0), record(1, 60)], [record(0, 60), record(1)]],
    ids=["alone", "behind another", "before another"],
)
def test_a_length_that_is_too_short_is_no_fault_of_a_record_with_its_own_member(
    tmp_path: Path, first: list[bytes]
) -> None:
    """Writers that count characters for bytes (webrecorder/warcio#121)."""
    (tmp_path / "a.warc.gz").write_bytes(gzip.compress(b"".join(first)) + gzip.compress(record(len(first))))
    found, records = numbers(tmp_path / "a.warc.gz")
    assert found == list(range(len(first) + 1))
    assert bool(records.says()) == (len(first) > 1)


def test_a_sound_file_has_no_faults(tmp_path: Path) -> None:
    (tmp_path / "a.warc").write_bytes(b"".join(map(record, range(9))))
    found, records = numbers(tmp_path / "a.warc")
    assert (found, records.says()) == (list(range(9)), "")


def test_a_file_of_damaged_records_is_read_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "a.warc").write_bytes(record(0) + b"WARC/1.0\r\nno: head\r\n\r\n" * 3_000 + record(1))
    found, records = numbers(tmp_path / "a.warc")
    assert found == [0, 1]
    assert records.says().startswith(f"{tmp_path / 'a.warc'}: 3,000 damaged records were left out, the first at")


def test_seeds_and_segments_are_read_past_it(tmp_path: Path) -> None:
    path, notes = tmp_path / "a.warc", list[str]()
    path.write_bytes(record(0) + BAD["garbage"] + record(1))
    assert list(file_seeds(path, ("http",), notes.append)) == ["http://a.example/0", "http://a.example/1"]
    built = build(SegmentOrder((path,), tmp_path / "next.parquet", sets=("scope.scope=any",)))
    assert set(rows_of(tmp_path / "next.parquet")) == {"http://a.example/to-0", "http://a.example/to-1"}
    assert list(built.damaged) == notes
    begins = f"{path}: 1 damaged record was left out, the first at or after offset {len(record(0))}, "
    assert notes == [f"{begins}which holds no WARC record"]
