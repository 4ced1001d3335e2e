from __future__ import annotations

import gzip
import random
import resource
import zlib
from pathlib import Path

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from gossamer.model.errors import ConfigError
from gossamer.model.visits import Content, Reply
from gossamer.stages.fetch import codings as of_codings
from gossamer.stages.fetch.decoding import BoundedDecoder
from gossamer.stages.fetch.options import FetchOptions
from gossamer.world.spill import Spills

DECODER = BoundedDecoder(FetchOptions())


def raw_deflate(data: bytes) -> bytes:
    return zlib.compress(data)[2:-4]


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


CODINGS = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "Deflate": raw_deflate,
    "br": brotli.compress,
    "zstd": zstd,
}
_words = random.Random(1)
PAGE = b" ".join(b"%x" % _words.randrange(1 << 30) for _ in range(30_000))

every_coding = pytest.mark.parametrize("coding", list(CODINGS))


def decode(
    body: bytes, *codings: str, decoder: BoundedDecoder = DECODER, truncated: str = "", media_type: str = ""
) -> Content:
    headers = tuple(("Content-Encoding", coding) for coding in codings)
    reply = Reply(
        url="", status=200, headers=headers, body=body, ip="", started_at=0.0, fetch_s=0.0, wire_bytes=0,
        truncated=truncated, media_type=media_type,
    )  # fmt: skip
    return decoder.decode(reply)


@every_coding
def test_what_was_coded_comes_back(coding: str) -> None:
    assert decode(CODINGS[coding](PAGE), coding) == Content(PAGE)
    assert decode(CODINGS[coding](b""), coding) == Content(b"")
    assert decode(b"", coding) == Content(b"")


@pytest.mark.parametrize("codings", [(), ("identity",), ("",), (" Identity , ",)])
def test_what_was_not_coded_stays(codings: tuple[str, ...]) -> None:
    assert decode(PAGE, *codings) == Content(PAGE)


@pytest.mark.parametrize("codings", [("gzip, br",), ("gzip", "br"), (" GZIP ,identity", "Br")])
def test_several_codings_in_a_row(codings: tuple[str, ...]) -> None:
    assert decode(brotli.compress(gzip.compress(PAGE)), *codings) == Content(PAGE)


@pytest.mark.parametrize("codings", [("gzip, utf-8",), ("UTF-8", "gzip"), ("none, gzip, 7bit",), ("aws-chunked,gzip",)])
def test_unknown_labels_beside_known_codings_are_ignored(codings: tuple[str, ...]) -> None:
    assert decode(gzip.compress(PAGE), *codings) == Content(PAGE)


@pytest.mark.parametrize(
    "label",
    [
        '"gzip"', "'GZip'", "gzip; q=1", "gzip;", 'none, "gzip"', "gzip,", "application/gzip", "x-gzip-compressed",
        "gzip gzip", "utf-8",
    ],
)  # fmt: skip
def test_odd_labels_of_gzip_are_understood(label: str, tmp_path: Path) -> None:
    body = gzip.compress(PAGE)
    assert decode(body, label) == Content(PAGE)
    to_disk = BoundedDecoder(FetchOptions(body_memory_bytes_max=1_000), Spills(tmp_path, "sha1"))
    content = decode(body, label, decoder=to_disk)
    assert not content.error
    assert content.file is not None
    assert content.file.pread(len(PAGE), 0) == PAGE


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd", "deflate"])
def test_a_coding_that_is_named_twice_and_applied_once_is_no_error(coding: str) -> None:
    assert decode(CODINGS[coding](PAGE), coding, coding) == Content(PAGE)
    assert decode(CODINGS[coding](CODINGS[coding](PAGE)), coding, coding) == Content(PAGE)
    assert decode(CODINGS[coding](CODINGS[coding](PAGE)[:-9]), coding, coding).error


@pytest.mark.parametrize("label", ["deflate", "zstd"])
def test_gzip_is_decoded_under_another_known_name(label: str) -> None:
    assert decode(gzip.compress(PAGE), label) == Content(PAGE)


def test_deflate_may_be_named_as_gzip_may() -> None:
    assert decode(zlib.compress(PAGE), "x-deflate") == Content(PAGE)


@pytest.mark.parametrize(("times", "labels"), [(1, ()), (2, ("gzip",)), (3, ("gzip", "gzip"))])
@pytest.mark.parametrize("media_type", ["text/html", "application/xhtml+xml", "application/json"])
def test_a_text_that_is_gzip_is_decoded_although_no_header_says_so(
    times: int, labels: tuple[str, ...], media_type: str, tmp_path: Path
) -> None:
    body = PAGE
    for _ in range(times):
        body = gzip.compress(body)
    assert decode(body, *labels, media_type=media_type) == Content(PAGE)
    to_disk = BoundedDecoder(FetchOptions(body_memory_bytes_max=1_000), Spills(tmp_path, "sha1"))
    content = decode(body, *labels, decoder=to_disk, media_type=media_type)
    assert content.file is not None
    assert content.file.pread(len(PAGE), 0) == PAGE
    left = decode(body, *labels, media_type="application/gzip")
    assert left.body.startswith(b"\x1f\x8b\x08"), "a file that is gzip"


class Brotlipy:
    """Has what the class of brotlipy has, in a module of the same name."""

    def decompress(self, data: bytes) -> bytes:
        return data


def test_another_module_brotli_is_refused_before_the_first_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_codings.brotli, "Decompressor", Brotlipy)
    with pytest.raises(ConfigError, match="pip uninstall brotlipy") as error:
        BoundedDecoder(FetchOptions())
    assert "\n" not in str(error.value)


def test_too_many_codings() -> None:
    body = PAGE
    for _ in range(5):
        body = gzip.compress(body)
    content = decode(body, "gzip,gzip,gzip,gzip,gzip")
    assert content.body == body
    assert content.error


def test_an_unknown_coding_is_left_as_sent() -> None:
    content = decode(b"\x01\x02", "compress")
    assert (content.body, content.truncated) == (b"\x01\x02", "")
    assert "compress" in content.error


@every_coding
def test_what_only_says_it_is_coded_is_left_as_sent(coding: str) -> None:
    for body in (b"<!doctype html><p>Hello, this was never compressed", b"<p>"):
        content = decode(body, coding)
        if content.body != body:  # three bytes may well begin a stream
            assert len(body) == 3
        assert content.error


def test_frames_of_zstd_without_content_are_skipped() -> None:
    """As pzstd writes them: https://github.com/facebook/zstd/tree/dev/contrib/pzstd."""
    empty = b"\x50\x2a\x4d\x18\x04\0\0\0size"
    assert decode(empty + zstd(PAGE) + empty + zstd(PAGE), "zstd") == Content(PAGE * 2)
    assert decode(b"\x60" + empty[1:] + zstd(PAGE), "zstd").error


@every_coding
def test_what_follows_the_end_is_ignored(coding: str) -> None:
    assert decode(CODINGS[coding](PAGE) + b"\0\0junk" * 50, coding) == Content(PAGE)


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_several_members(coding: str) -> None:
    code = CODINGS[coding]
    assert decode(code(PAGE) + code(b"") + code(PAGE), coding) == Content(PAGE * 2)
    content = decode(code(b"x") * 1000, coding)
    assert content.body == b"x" * 64
    assert content.error


@every_coding
@pytest.mark.parametrize("share", [0.3, 0.7, 0.99])
def test_a_missing_tail_gives_what_came_before(coding: str, share: float) -> None:
    coded = CODINGS[coding](PAGE)
    cut = coded[: int(len(coded) * share)]
    content = decode(cut, coding)
    assert PAGE.startswith(content.body)
    # A block of zstd that has not come whole cannot be read; it holds 128 KB.
    assert len(content.body) >= len(PAGE) * share - 140_000
    if coding != "zstd":
        assert len(content.body) >= len(PAGE) * share * 0.95
    assert content.error
    assert decode(cut, coding, truncated="length") == Content(content.body)


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
def test_a_broken_middle_gives_what_came_before(coding: str) -> None:
    coded = bytearray(CODINGS[coding](PAGE))
    at = len(coded) * 3 // 4
    coded[at : at + 8] = b"\xff" * 8
    content = decode(bytes(coded), coding)
    assert content.error
    sound = next((i for i, (a, b) in enumerate(zip(content.body, PAGE, strict=False)) if a != b), len(content.body))
    assert sound >= len(PAGE) * 0.75 - 140_000
    if coding != "zstd":
        assert sound >= len(PAGE) * 0.7


def test_a_wrong_checksum_costs_no_more_than_the_last_byte_sent() -> None:
    coded = bytearray(gzip.compress(PAGE))
    coded[-6] ^= 0xFF
    content = decode(bytes(coded), "gzip")
    assert PAGE.startswith(content.body)
    assert len(content.body) >= len(PAGE) - 300
    assert "checksum" in content.error


def bomb(coding: str, size: int) -> bytes:
    if coding == "gzip":
        packer = zlib.compressobj(9, zlib.DEFLATED, 31)
        zeros = bytes(1 << 20)
        return b"".join(packer.compress(zeros) for _ in range(size >> 20)) + packer.flush()
    if coding == "br":
        return brotli.compress(bytes(size), quality=1)
    return zstd(bytes(size))


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd"])
def test_a_bomb_costs_no_more_than_its_bound(coding: str) -> None:
    coded = bomb(coding, 200_000_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    content = decode(coded, coding, decoder=BoundedDecoder(FetchOptions(decoded_bytes_max=4_000_000)))
    grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert content.truncated == "length"
    assert len(content.body) <= 4_000_000
    assert content.body.strip(b"\0") == b""
    assert grown_kb < 40_000


@pytest.mark.heavy
def test_a_bomb_in_a_bomb() -> None:
    coded = gzip.compress(bomb("gzip", 200_000_000))
    content = decode(coded, "gzip, gzip")
    assert content.truncated == "length"
    assert len(content.body) <= 32 * 1024 * 1024


@every_coding
def test_decoded_bytes_are_cut_exactly(coding: str) -> None:
    coded = CODINGS[coding](PAGE)
    for bound in (1, 1000, len(PAGE) - 1):
        content = decode(coded, coding, decoder=BoundedDecoder(FetchOptions(decoded_bytes_max=bound)))
        assert content == Content(PAGE[:bound], "length")
    for bound in (len(PAGE), len(PAGE) + 1):
        assert decode(coded, coding, decoder=BoundedDecoder(FetchOptions(decoded_bytes_max=bound))) == Content(PAGE)


def test_what_is_not_coded_is_cut_too() -> None:
    assert decode(PAGE, decoder=BoundedDecoder(FetchOptions(decoded_bytes_max=10))) == Content(PAGE[:10], "length")


def test_the_ratio_is_bounded_beyond_a_megabyte() -> None:
    flat = gzip.compress(bytes(1_000_000))
    assert decode(flat, "gzip", decoder=BoundedDecoder(FetchOptions(decode_ratio_max=1))) == Content(bytes(1_000_000))
    coded = gzip.compress(bytes(10_000_000))
    content = decode(coded, "gzip", decoder=BoundedDecoder(FetchOptions(decode_ratio_max=150)))
    assert (len(content.body), content.truncated) == (150 * len(coded), "length")


@given(st.binary(max_size=300), st.sampled_from(["gzip", "deflate", "br", "zstd", "gzip, br", "x"]))
def test_nothing_raises(body: bytes, coding: str) -> None:
    content = decode(body, coding)
    assert isinstance(content.body, bytes)


@given(st.data())
def test_no_damage_raises(data: st.DataObject) -> None:
    coding = data.draw(st.sampled_from(sorted(CODINGS)))
    coded = bytearray(CODINGS[coding](PAGE[:5000]))
    for _ in range(data.draw(st.integers(1, 5))):
        coded[data.draw(st.integers(0, len(coded) - 1))] = data.draw(st.integers(0, 255))
    decode(bytes(coded), coding)
