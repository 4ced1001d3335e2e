"""Bodies that are too large for memory: taken to disk while they come in, and decoded from there."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import os
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path

import brotli
import pytest
import zstandard
from msgspec.structs import replace

from gossamer.model.visits import Content, Failure, Reply, Request
from gossamer.stages.fetch.bodies import SPILL_BYTES_MIN, BodyMemory
from gossamer.stages.fetch.decoding import BoundedDecoder
from gossamer.stages.fetch.file import FileModule
from gossamer.stages.fetch.http import HttpModule
from gossamer.stages.fetch.options import FetchOptions
from gossamer.world.clock import WallClock
from gossamer.world.spill import Spills
from tests.ring.hostile import MIB, Answer, HostileServer, noise, whole

SMALL = FetchOptions(body_memory_bytes_max=MIB // 4, decoded_bytes_max=8 * MIB, decode_ratio_max=10_000)
AT_ONCE = 8
"""As many as there are connections to a host."""
TEXT = b"".join(b"%09d " % n for n in range(200_000))  # 2 MB
PACKED = gzip.compress(TEXT, 1)


def fetched(tmp_path: Path, answer: Answer, options: FetchOptions = SMALL, times: int = 1) -> list[Reply | Failure]:
    async def all_of_them(root: str) -> list[Reply | Failure]:
        bodies = BodyMemory(options, Spills(tmp_path, "sha1"))
        module = HttpModule(options, "gossamer/1", WallClock(), bodies)
        request = Request(root + "x", "127.0.0.1", int(root.rsplit(":", 1)[1][:-1]))
        try:
            found = list(await asyncio.gather(*[module.fetch(request) for _ in range(times)]))
        finally:
            await module.close()
        assert bodies.held_bytes == 0, "all that was lent was given back"
        return found

    with HostileServer({"/x": answer}) as server:
        return asyncio.run(all_of_them(server.root))


def body_of(reply: Reply | Content | Failure) -> bytes:
    assert not isinstance(reply, Failure), reply
    if reply.file is None:
        return reply.body
    with reply.file.open() as file:
        return file.read()


def test_a_small_body_stays_in_memory(tmp_path: Path) -> None:
    (reply,) = fetched(tmp_path, whole(b"x" * (MIB // 4)))
    assert isinstance(reply, Reply)
    assert (len(reply.body), reply.file, reply.body_bytes) == (MIB // 4, None, MIB // 4)


def test_a_large_body_is_on_disk_as_it_was_sent(tmp_path: Path) -> None:
    expected = b"".join(noise(3)())
    (reply,) = fetched(tmp_path, Answer(noise(3), "application/octet-stream"))
    assert isinstance(reply, Reply)
    assert reply.body == b""
    assert reply.file is not None
    assert reply.file.digest == hashlib.sha1(expected).digest()
    assert reply.body_bytes == len(expected)
    assert body_of(reply) == expected == body_of(reply)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("coding", ["", "gzip"])
def test_a_large_body_without_a_type_is_what_its_content_begins_as(tmp_path: Path, coding: str) -> None:
    body = b"<html>" + os.urandom(MIB)
    (reply,) = fetched(tmp_path, whole(gzip.compress(body, 1) if coding else body, "", coding))
    assert isinstance(reply, Reply)
    assert (reply.file is not None, reply.media_type) == (True, "text/html")


def test_a_large_body_is_cut_exactly_at_its_bound(tmp_path: Path) -> None:
    options = replace(SMALL, body_bytes_max=MIB + 17)
    (reply,) = fetched(tmp_path, Answer(noise(3), "text/plain"), options)
    assert isinstance(reply, Reply)
    assert reply.truncated == "length"
    assert body_of(reply) == b"".join(noise(3)())[: MIB + 17]


def test_when_many_are_under_way_those_that_are_not_small_go_to_disk(tmp_path: Path) -> None:
    """The memory of all together is bounded; each alone would have stayed."""
    options = replace(SMALL, bodies_memory_bytes_max=4 * SPILL_BYTES_MIN)
    begun = threading.Barrier(AT_ONCE, timeout=120)

    def halves() -> Iterator[bytes]:
        yield b"y" * SPILL_BYTES_MIN
        begun.wait()  # Nobody has its second half before all have their first.
        yield b"y" * SPILL_BYTES_MIN

    replies = fetched(tmp_path, Answer(halves), options, times=AT_ONCE)
    assert all(body_of(reply) == b"y" * 2 * SPILL_BYTES_MIN for reply in replies)
    held = [reply for reply in replies if isinstance(reply, Reply) and reply.file is None]
    assert len(held) <= 4


def test_a_disk_that_refuses_is_no_doing_of_the_webs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gossamer.world.spill.os.write", refuse)
    with pytest.raises(OSError, match="No space left"):
        fetched(tmp_path, Answer(noise(2), "text/plain"))


def test_a_file_of_this_machine_goes_through_disk_too(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    data = os.urandom(MIB)
    (tmp_path / "tree/large.bin").write_bytes(data)
    (tmp_path / "tree/small.txt").write_bytes(b"small")
    options = replace(SMALL, file_roots=(str(tmp_path / "tree"),))
    module = FileModule(options, "x", WallClock(), BodyMemory(options, Spills(tmp_path / "spill", "sha1")))

    def read(name: str, most: int = 0) -> Reply:
        request = Request(f"file://{tmp_path}/tree/{name}", "", 0, body_bytes_max=most)
        reply = asyncio.run(module.fetch(request))
        assert isinstance(reply, Reply)
        return reply

    whole_file = read("large.bin")
    assert whole_file.file is not None
    assert (body_of(whole_file), whole_file.truncated, whole_file.wire_bytes) == (data, "", MIB)
    part = read("large.bin", MIB // 2)
    assert (body_of(part), part.truncated) == (data[: MIB // 2], "length")
    assert read("small.txt").body == b"small"


def reply_of(tmp_path: Path, body: bytes, coding: str, *, spilled: bool = True, truncated: str = "") -> Reply:
    spill = Spills(tmp_path, "sha1").make()
    spill.write(body)
    return Reply(
        "http://e.example/", 200, (("Content-Encoding", coding),) if coding else (), b"" if spilled else body, "", 0.0,
        0.0, len(body), truncated=truncated, file=spill if spilled else None,
    )  # fmt: skip


def raw_deflate(data: bytes) -> bytes:
    packing = zlib.compressobj(1, zlib.DEFLATED, -15)
    return packing.compress(data) + packing.flush()


CODED = {
    "gzip": ("gzip", PACKED),
    "gzip in two members": ("x-gzip", gzip.compress(TEXT[:999_999], 1) + gzip.compress(TEXT[999_999:], 1)),
    "gzip with garbage behind": ("gzip", PACKED + b"garbage" * 20_000),
    "zlib": ("deflate", zlib.compress(TEXT, 1)),
    "raw deflate": ("deflate", raw_deflate(TEXT)),
    "br": ("br", brotli.compress(TEXT, quality=3)),
    "zstd": ("zstd", zstandard.compress(TEXT)),
    "zstd after a frame without content": ("zstd", b"\x5f\x2a\x4d\x18\x04\0\0\0size" + zstandard.compress(TEXT)),
    "zstd in two frames": ("zstd", zstandard.compress(TEXT[:777]) + zstandard.compress(TEXT[777:])),
    "two codings": ("gzip, br", brotli.compress(PACKED, quality=1)),
    "none": ("", TEXT),
}


BOMBS = {
    "gzip": gzip.compress(bytes(20 * MIB)), "br": brotli.compress(bytes(20 * MIB), quality=3),
    "zstd": zstandard.compress(bytes(20 * MIB)), "gzip, gzip": gzip.compress(gzip.compress(bytes(20 * MIB))),
}  # fmt: skip


@pytest.mark.parametrize(("coding", "body"), [*BOMBS.items(), ("gzip", gzip.compress(b"a" * 200) * 20_000)])
def test_much_content_is_decoded_in_slices(coding: str, body: bytes, tmp_path: Path) -> None:
    options = FetchOptions(body_memory_bytes_max=MIB // 4, decode_ratio_max=10_000_000)
    decoder, slices = BoundedDecoder(options, Spills(tmp_path, "sha1")), 0
    decoding = decoder.decode_in_slices(reply_of(tmp_path, body, coding, spilled=True))
    while True:
        try:
            next(decoding)
        except StopIteration as end:
            content = end.value
            break
        slices += 1
    assert content.body_bytes in (20 * MIB, 200 * 20_000)
    assert not content.error
    assert slices >= 4, slices


@pytest.mark.parametrize("spilled", [True, False], ids=["from disk", "from memory"])
@pytest.mark.parametrize("case", CODED)
def test_content_too_large_for_memory_is_decoded_to_disk(case: str, spilled: bool, tmp_path: Path) -> None:
    coding, body = CODED[case]
    content = BoundedDecoder(SMALL, Spills(tmp_path, "sha1")).decode(reply_of(tmp_path, body, coding, spilled=spilled))
    assert (content.error, content.truncated) == ("", "")
    assert body_of(content) == TEXT
    assert content.body_bytes == len(TEXT)
    if coding or spilled:
        assert content.body == TEXT[: MIB // 4], "its beginning is at hand"
        assert content.file is not None
        assert content.file.digest == hashlib.sha1(TEXT).digest()


@pytest.mark.parametrize("case", CODED)
def test_it_is_cut_where_the_quick_way_would(case: str, tmp_path: Path) -> None:
    coding, body = CODED[case]
    options = replace(SMALL, decoded_bytes_max=MIB)
    content = BoundedDecoder(options, Spills(tmp_path, "sha1")).decode(reply_of(tmp_path, body, coding))
    if coding:
        assert (body_of(content), content.truncated) == (TEXT[:MIB], "length")
    else:
        assert body_of(content) == TEXT, "what is not coded was bounded when it came in"


@pytest.mark.parametrize("case", [case for case in CODED if CODED[case][0] in ("gzip", "deflate", "br", "zstd")])
def test_a_body_that_breaks_gives_what_came_before(case: str, tmp_path: Path) -> None:
    coding, body = CODED[case]
    if case == "gzip with garbage behind":
        body = PACKED
    decoder = BoundedDecoder(SMALL, Spills(tmp_path, "sha1"))
    cut = decoder.decode(reply_of(tmp_path, body[: len(body) // 2], coding, truncated="length"))
    assert cut.error == ""
    assert TEXT.startswith(body_of(cut))
    assert cut.body_bytes > MIB // 4
    broken = decoder.decode(reply_of(tmp_path, body[: len(body) // 2] + b"\xff" * 200_000, coding))
    assert TEXT[:MIB].startswith(body_of(broken)[: MIB // 4])


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_a_body_that_is_not_what_it_claims_is_left_as_sent(coding: str, tmp_path: Path) -> None:
    content = BoundedDecoder(SMALL, Spills(tmp_path, "sha1")).decode(reply_of(tmp_path, TEXT, coding))
    assert content.error == f"said to be {coding}, is not; left as sent"
    assert body_of(content) == TEXT


def test_a_coding_that_nobody_knows(tmp_path: Path) -> None:
    decoder = BoundedDecoder(SMALL, Spills(tmp_path, "sha1"))
    content = decoder.decode(reply_of(tmp_path, TEXT, "compress"))
    assert (body_of(content), content.error) == (TEXT, "content coding 'compress' is not known")
    assert decoder.decode(reply_of(tmp_path, TEXT, ",".join(["gzip"] * 9))).error == "more than 4 content codings"
