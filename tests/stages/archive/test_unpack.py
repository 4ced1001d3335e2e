"""Tests of reading files that are not packed."""

from io import BytesIO

from gossamer.stages.archive.unpack import Unpacked


def test_skipping_says_how_many_bytes_are_not_there() -> None:
    unpacked = Unpacked(BytesIO(b"0123456789"), 10, "")
    assert unpacked.begin()
    assert unpacked.take(2) == b"01"
    assert unpacked.skip(3) == 0
    assert unpacked.take(1) == b"5"
    assert unpacked.skip(9) == 5
    assert unpacked.left == 0
