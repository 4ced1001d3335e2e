"""Each record of a WARC file is read, and a damaged one has a fault, whatever its head says."""

from __future__ import annotations

import gzip
import io

import pytest

from gossamer.stages.archive.members import members_of


def _member(length: str) -> bytes:
    head = f"WARC/1.1\r\nWARC-Type: resource\r\nContent-Length: {length}\r\n\r\n"
    return gzip.compress(head.encode() + b"text\r\n\r\n")


@pytest.mark.parametrize("length", ["", "-4", "+4", "4.0", "4 4", "\u00b2", "\u0664", "4_0", "9" * 5_000])
def test_a_length_that_is_no_number_is_a_fault_of_its_record_alone(length: str) -> None:
    records = _member("4") + _member(length) + _member("4")
    found = members_of(io.BytesIO(records), len(records), zstd=False)
    assert [one.fault for one in found] == ["", "holds no WARC record", ""]
