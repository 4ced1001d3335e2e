"""A tombstone takes the place of a record to the byte, and every reader reads on behind it."""

from __future__ import annotations

import io
import zlib

import pytest
import zstandard
from fastwarc.warc import ArchiveIterator as Fast
from warcio.archiveiterator import ArchiveIterator as Warcio

from gossamer.results.forget.warcs import tombstone
from gossamer.stages.archive.members import members_of

DATE = "2026-01-01T00:00:00.000000Z"
LENGTHS = [
    220, 221, 250, 999, 1_000, 65_535, 65_540, 65_553, 65_557, 65_558, 65_559, 65_560, 131_080, 131_085, 131_088,
    131_090, 131_098, 262_143, 1_000_000, 3_145_735,
]  # fmt: skip


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("zstd", [False, True])
def test_it_has_the_length_that_is_wanted_and_is_a_record(length: int, zstd: bool) -> None:
    one = b"".join(tombstone(length, DATE, "file:1", zstd=zstd))
    assert len(one) == length
    text = zstandard.ZstdDecompressor().decompress(one) if zstd else zlib.decompress(one, 31)
    assert text.startswith(b"WARC/1.1\r\nWARC-Type: metadata\r\n")
    two = one + b"".join(tombstone(length, DATE, "file:2", zstd=zstd))
    found = [(one.offset, one.length, one.fault) for one in members_of(io.BytesIO(two), len(two), zstd=zstd)]
    assert found == [(0, length, ""), (length, length, "")]
    fast = [(record.stream_pos, record.headers["WARC-Type"]) for record in Fast(io.BytesIO(two), parse_http=False)]
    assert fast == [(0, "metadata"), (length, "metadata")]
    if not zstd:
        kinds = [(record.rec_type, record.content_stream().read().strip()) for record in Warcio(io.BytesIO(two))]
        assert kinds == [("metadata", b""), ("metadata", b"")]


def test_the_same_place_gives_the_same_bytes_and_another_place_another_record() -> None:
    first = b"".join(tombstone(500, DATE, "a.warc.gz:10", zstd=False))
    assert first == b"".join(tombstone(500, DATE, "a.warc.gz:10", zstd=False))
    assert first != b"".join(tombstone(500, DATE, "a.warc.gz:11", zstd=False))
