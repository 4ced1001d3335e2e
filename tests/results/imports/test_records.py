"""Captures of WARC and ARC files of any crawler, sound and damaged."""

from __future__ import annotations

import gzip
import io
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard
from fastwarc.warc import ArchiveIterator
from warcio.archiveiterator import ArchiveIterator as WarcioIterator

from gossamer.model.pages import Rendered
from gossamer.results.export.bodies import record_of
from gossamer.results.imports.capture import Capture, Item, Refused, Room, Skipped
from gossamer.results.imports.reading import captures_of
from gossamer.results.imports.sources import find_sources
from gossamer.stages.archive.members import HEAD_BYTES_MAX
from gossamer.stages.archive.unpack import Unpacked
from gossamer.world.spill import Spills
from tests.stages.archive.test_salvage import BAD

PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<a href=/to>x</a>"
BODY = b"<a href=/to>x</a>"


def record(
    url: str = "http://a.example/",
    block: bytes = PAGE,
    kind: str = "response",
    date: str = "2026-01-01T00:00:00Z",
    length: object = None,
    **fields: str,
) -> bytes:
    head = f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {url}\r\nWARC-Date: {date}\r\n"
    head += "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
    head += "" if "Content_Type" in fields else "Content-Type: application/http\r\n"
    head += f"Content-Length: {len(block) if length is None else length}\r\n\r\n"
    return head.encode() + block + b"\r\n\r\n"


def items_of(path: Path, room: Room | None = None, **options: Any) -> list[Item]:
    room = room or Room(Spills(path.parent / "spills", "sha1"))
    return [item for source in find_sources([str(path)], **options) for item in captures_of(source, room)]


def captures_in(path: Path, room: Room | None = None) -> list[Capture]:
    return [item for item in items_of(path, room) if isinstance(item, Capture)]


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def one(tmp_path: Path, data: bytes) -> Item:
    (item,) = items_of(write(tmp_path / "a.warc", data))
    return item


def capture(tmp_path: Path, data: bytes) -> Capture:
    item = one(tmp_path, data)
    assert isinstance(item, Capture), item
    return item


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_byte_order_mark_costs_nothing(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    """As editors of Windows write it."""
    found = captures_in(
        write(tmp_path / "a.warc", pack(b"\xef\xbb\xbf" + record()) + pack(record("http://a.example/2")))
    )
    assert [one.url for one in found] == ["http://a.example/", "http://a.example/2"]
    path = tmp_path / "a.warc"
    for one in found:
        data = path.read_bytes()[one.place.offset :][: one.place.length]
        assert one.place.linkable == (gzip.decompress(data) if one.place.packing else data).startswith(b"WARC/")


def test_a_dictionary_that_is_none_is_a_fault(tmp_path: Path) -> None:
    data = zstandard.train_dictionary(4_096, [record(f"http://a.example/{at}") for at in range(2_000)]).as_bytes()[:99]
    frame = b"\x5d\x2a\x4d\x18" + len(data).to_bytes(4, "little") + data + zstandard.compress(record())
    (item,) = items_of(write(tmp_path / "a.warc.zst", frame))
    assert isinstance(item, Refused)
    assert "damaged dictionary" in item.reason


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_versions_in_lower_case(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    """As in a file that the tests of JWAT call valid. Readers that know upper case alone get a copy."""
    data = [record(f"http://a.example/{number}") for number in range(4)]
    lower = [one.replace(b"WARC/1.0", b"warc/1.0", 1) if number % 2 else one for number, one in enumerate(data)]
    found = captures_in(write(tmp_path / "a.warc", b"".join(map(pack, lower))))
    assert [one.place.linkable for one in found] == [True, False, True, False]
    assert len(captures_in(write(tmp_path / "b.warc", b"".join(map(pack, lower[1:]))))) == 3
    damaged = lower[0].replace(b"Content-Length: ", b"Content-Length: x")
    refused, *others = items_of(write(tmp_path / "c.warc", damaged + lower[1]))
    assert isinstance(refused, Refused)
    assert len(others) == 1


def frames(*parts: bytes) -> bytes:
    return b"".join(map(zstandard.ZstdCompressor(write_checksum=True).compress, parts))


def with_dictionary(*parts: bytes, pack: bool = False) -> bytes:
    samples = [b"%d WARC/1.0 WARC-Type: response http://a.example/%d" % (at, at) * 9 for at in range(300)]
    words = zstandard.train_dictionary(2_000, samples)
    data = zstandard.ZstdCompressor().compress(words.as_bytes()) if pack else words.as_bytes()
    compressor = zstandard.ZstdCompressor(dict_data=words, write_checksum=True)
    return b"\x5d\x2a\x4d\x18" + len(data).to_bytes(4, "little") + data + b"".join(map(compressor.compress, parts))


PACKINGS: dict[str, Callable[..., bytes]] = {
    "plain": lambda *parts: b"".join(parts),
    "gzip": lambda *parts: b"".join(map(gzip.compress, parts)),
    "gzip of the whole": lambda *parts: gzip.compress(b"".join(parts)),
    "gzip, two records a member": lambda a, *parts: (
        gzip.compress(a + parts[0]) + b"".join(map(gzip.compress, parts[1:]))
    ),
    "zstd": frames,
    "zstd of the whole": lambda *parts: frames(b"".join(parts)),
    "zstd with a dictionary": with_dictionary,
    "zstd with a packed dictionary": lambda *parts: with_dictionary(*parts, pack=True),
}
LINKABLE = {"plain": 6, "gzip": 6, "zstd": 6, "gzip, two records a member": 4}


def six() -> list[bytes]:
    return [record(f"http://a.example/{at}", PAGE + b"y" * at * 50_000) for at in range(6)]


@pytest.mark.parametrize("name", PACKINGS)
def test_each_packing_gives_all_records_and_those_that_can_be_linked(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / "any name", PACKINGS[name](*six()))
    found = captures_in(path)
    assert [one.url for one in found] == [f"http://a.example/{at}" for at in range(6)]
    assert [one.body for one in found] == [BODY + b"y" * at * 50_000 for at in range(6)]
    assert sum(one.place.linkable for one in found) == LINKABLE.get(name, 0)
    for one in found:
        if one.place.linkable:
            data = path.read_bytes()[one.place.offset : one.place.offset + one.place.length]
            alone = next(iter(ArchiveIterator(io.BytesIO(data))))
            assert alone.reader.read() == one.body


@pytest.mark.parametrize("name", PACKINGS)
def test_reading_goes_on_behind_any_place(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / "a", PACKINGS[name](*six()))
    room = Room(Spills(tmp_path, "sha1"))
    (source,) = find_sources([str(path)])
    every = [item for item in captures_of(source, room) if isinstance(item, Capture)]
    assert every == sorted(every, key=lambda one: (one.place.offset, one.place.within))
    for at, one in enumerate(every):
        rest = [item for item in captures_of(source, room, one.place) if isinstance(item, Capture)]
        assert [item.place for item in rest] == [item.place for item in every[at + 1 :]]


@pytest.mark.parametrize("bad", [*BAD.values(), record(length=""), b"WARC/1.0\r\n\r\n"], ids=[*BAD, "none", "bare"])
@pytest.mark.parametrize("place", [0, 2, 6])
@pytest.mark.parametrize("whole", [False, True])
def test_a_damaged_record_costs_itself(tmp_path: Path, bad: bytes, place: int, whole: bool) -> None:
    if not place and not bad.startswith(b"WARC/"):
        bad = record("http://a.example/first") + bad
    parts = six()
    data = b"".join([*parts[:place], bad, *parts[place:]])
    items = items_of(write(tmp_path / "a.warc", gzip.compress(data) if whole else data))
    found = [item.url for item in items if isinstance(item, Capture)]
    lost = 1 if whole and bad in (BAD["a length too long"], BAD["a length beyond the file"]) else 0
    lost = len(parts) - place if lost and bad == BAD["a length beyond the file"] else lost
    assert len([url for url in found if url[-1].isdigit()]) >= 6 - lost
    assert any(isinstance(item, Refused) for item in items) or bad in (
        BAD["zeros"],
        BAD["lines that look like a beginning"],
    )


@pytest.mark.parametrize("less", [3, 6, 150])
@pytest.mark.parametrize("place", [0, 2, 6])
@pytest.mark.parametrize("ends", [b"\r\n\r\n", b"\n\n", b""])
def test_a_length_that_counts_characters_for_bytes(tmp_path: Path, less: int, place: int, ends: bytes) -> None:
    """As of node-warc (webrecorder/warcio.js, issue 18) and of WARCreate (warcio, issue 121)."""
    block = PAGE + "é".encode() * 200 + b"\n"
    parts = [one.removesuffix(b"\r\n\r\n") + (ends or b"\r\n\r\n") for one in six()]
    lying = record("http://a.example/9", block, length=len(block) - less).removesuffix(b"\r\n\r\n") + ends
    if not ends and place < 6:
        lying += b"\r\n"  # Else no line begins with the next record.
    found = captures_in(write(tmp_path / "a.warc", b"".join([*parts[:place], lying, *parts[place:]])))
    assert [one.url[-1] for one in found] == [*"012345"[:place], "9", *"012345"[place:]]
    assert found[place].body.rstrip() == block.partition(b"\r\n\r\n")[2].rstrip()
    assert not found[place].place.linkable


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_zero_behind_each_record_and_a_status_line_in_lower_case(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    """StormCrawler wrote such zeros for some months (apache/stormcrawler, issue 652)."""
    data = b"".join(pack(one.replace(b"HTTP/1.1 200 OK", b"http/1.1 200 ok") + b"\0") for one in six())
    items = items_of(write(tmp_path / "a.warc", data))
    assert [(one.url[-1], one.status) for one in items if isinstance(one, Capture)] == [(at, 200) for at in "012345"]
    assert len(items) == 6


def test_a_length_that_is_too_large_may_be_damage(tmp_path: Path) -> None:
    lying = record("http://a.example/9", length=len(PAGE) + 40)
    items = items_of(write(tmp_path / "a.warc", b"".join([lying, *six()])))
    assert [one.url[-1] for one in items if isinstance(one, Capture)] == list("012345")
    assert [one.reason for one in items if isinstance(one, Refused)] == ["has another length than its head says"]


@pytest.mark.parametrize("damage", ["changed", "cut", "garbage", "zeros", "no checksum"])
@pytest.mark.parametrize("pack", [gzip.compress, frames, None], ids=["gzip", "zstd", "zstd with a dictionary"])
def test_a_damaged_member_costs_itself(tmp_path: Path, damage: str, pack: Callable[[bytes], bytes] | None) -> None:
    parts = [pack(part) for part in six()] if pack else []
    begin = b""
    if not pack:
        begin = with_dictionary()
        parts = [with_dictionary(part)[len(begin) :] for part in six()]
    changed = bytearray(parts[1])
    changed[30:50] = bytes(20)
    bad = {"changed": bytes(changed), "cut": parts[1][:50], "garbage": b"xy" * 500, "zeros": bytes(5_000)}
    data = begin + b"".join([*parts[:2], bad.get(damage, parts[1][:-2]), *parts[2:]])
    items = items_of(write(tmp_path / "a.warc.gz", data))
    assert [item.url[-1] for item in items if isinstance(item, Capture)] == list("012345")
    refused = [item for item in items if isinstance(item, Refused)]
    assert [item.offset for item in refused] == ([] if damage == "zeros" else [len(begin) + len(parts[0] + parts[1])])


def test_a_file_that_is_cut_gives_what_is_before(tmp_path: Path) -> None:
    data = b"".join(map(gzip.compress, six()))
    for cut in (len(data) - 1, len(data) - 9, len(data) - 300):
        *sound, refused = items_of(write(tmp_path / "a.warc.gz", data[:cut]))
        assert len(sound) == 5
        assert isinstance(refused, Refused)
        assert refused.reason == "ends early"
    whole = gzip.compress(b"".join(six()))
    *sound, refused = items_of(write(tmp_path / "b.warc.gz", whole[:-10]))
    assert len(sound) >= 4
    assert isinstance(refused, Refused)


@pytest.mark.parametrize("pack", [gzip.compress, frames])
def test_a_large_body_is_cut_and_never_in_memory(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    head = record(block=b"HTTP/1.1 200 OK\r\n\r\n", length=60_000_019).removesuffix(b"\r\n\r\n")
    parts = (head + bytes(60_000_000) + b"\r\n\r\n", record("http://a.example/next"))
    path = write(tmp_path / "a.warc.gz", b"".join(map(pack, parts)))
    del parts
    tracemalloc.start()
    bomb, after = captures_in(path, Room(Spills(tmp_path, "sha1"), body_bytes_max=5_000_000))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (bomb.body_bytes, bomb.truncated, bomb.body) == (5_000_000, "length", b"")
    assert after.body == BODY
    assert peak < (8_000_000 if pack is gzip.compress else 80_000_000)


@pytest.mark.heavy
def test_a_head_without_an_end_is_refused(tmp_path: Path) -> None:
    bad = b"WARC/1.0\r\nX: " + b"y" * 100_000_000
    data = gzip.compress(bad, 1) + gzip.compress(record())
    refused, found = items_of(write(tmp_path / "a.warc.gz", data))
    assert isinstance(refused, Refused)
    assert isinstance(found, Capture)
    item = one(tmp_path, record(block=b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 300_000))
    assert item == Refused(0, str(tmp_path / "a.warc"), 0, "has an HTTP head without an end")


def test_heads_without_an_end_cost_one_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each was looked for an end up to a mebibyte further, and for each mark that was not there."""
    passes: list[int] = []
    find = Unpacked.find

    def counting(unpacked: Unpacked, marks: tuple[bytes, ...], limit: int) -> int:
        passes.append(limit)
        return find(unpacked, marks, limit)

    monkeypatch.setattr(Unpacked, "find", counting)
    items = items_of(write(tmp_path / "a.warc", b"WARC/1.0\r\n" * 150_000 + record()))
    assert [type(item) for item in items][-1:] == [Capture]
    assert len(items) < 10
    assert len(passes) < 10


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
BODIES = {
    "chunks": (CHUNKED + b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n", b"abcde", ""),
    "chunks with trailers": (CHUNKED + b"3\r\nabc\r\n0\r\nX: y\r\n\r\n", b"abc", ""),
    "chunks without the last": (CHUNKED + b"3\r\nabc\r\n", b"abc", "unspecified"),
    "chunks that are cut": (CHUNKED + b"3\r\nabc\r\n9\r\nde", b"abcde", "unspecified"),
    "chunks with a bad size": (CHUNKED + b"3\r\nabc\r\nzz\r\nde", b"abc", "unspecified"),
    "chunks already removed": (CHUNKED + b"<p>plain</p>", b"<p>plain</p>", ""),
    "chunks already removed, nothing": (CHUNKED, b"", ""),
    "lines without CR": (b"HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n3\nabc\n0\n\n", b"abc", ""),
    "lines with two CR": (b"HTTP/1.0 200 \r\r\nServer: x\r\r\n\r\r\nabc", b"abc", ""),
    "a head alone": (b"HTTP/1.1 204 No Content\r\nServer: x\r\n", b"", ""),
    "an interim reply": (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\nabc", b"abc", ""),
    "HTTP/2": (b"HTTP/2 200\r\nserver: x\r\n\r\nabc", b"abc", ""),
}


@pytest.mark.parametrize("name", BODIES)
def test_bodies(tmp_path: Path, name: str) -> None:
    block, body, truncated = BODIES[name]
    found = capture(tmp_path, record(block=block))
    assert (found.body, found.truncated) == (body, truncated)
    assert found.status in (200, 204)
    assert found.reply().body == body
    assert found.place.linkable == (name not in ("lines without CR", "lines with two CR", "an interim reply"))
    if found.place.linkable:  # The reader of exports finds the same body.
        alone = next(
            iter(ArchiveIterator(io.BytesIO((tmp_path / "a.warc").read_bytes()), max_header_len=HEAD_BYTES_MAX))
        )
        assert record_of(alone).payload == body


ADDRESSES = {
    "<http://a.example/x>": "http://a.example/x",
    "https://a.example/ä b": "https://a.example/%C3%A4%20b",
    # ARC files of Alexa and of internetarchive/liveweb (issue 41) name the port.
    "http://a.example:80/x": "http://a.example/x",
    "HTTP://A.Example": "http://a.example/",
    "http://bücher.a.example/x#y": "http://xn--bcher-kva.a.example/x",
    "ftp://a.example/x": "ftp://a.example/x",
    "dns:a.example": "response dns",
    "whois://whois.example/a": "response whois",
    "urn:X-wpull:log": "response urn",
    "urn:pageinfo:https://a.example/": "response urn",
    "": "response",
}


@pytest.mark.parametrize("address", ADDRESSES)
def test_addresses(tmp_path: Path, address: str) -> None:
    """Those of pages have the form that links to them have: a link to one is no page that is missing."""
    found = one(tmp_path, record(address, PAGE if "xample" in address else b"text"))
    assert (found.url if isinstance(found, Capture) else found.kind) == ADDRESSES[address]  # type: ignore[union-attr]


DATES = {
    "2026-01-01T00:00:00Z": 1767225600.0,
    "2026-01-01T00:00:00.123456789Z": 1767225600.123456,
    "2026-01-01T01:00:00+01:00": 1767225600.0,
    "20260101000000": 1767225600.0,
    "202601010000000000": 1767225600.0,
    "202601010000": 1767225600.0,
    "2026-01-01": 1767225600.0,
    "2026": 1767225600.0,
}


@pytest.mark.parametrize("date", DATES)
def test_dates(tmp_path: Path, date: str) -> None:
    assert capture(tmp_path, record(date=date)).fetched_at == pytest.approx(DATES[date], abs=1e-6)


@pytest.mark.parametrize("date", ["", "yesterday", "2026-13-45T00:00:00Z", "0001-01-01T00:00:00Z", "9" * 5_000])
def test_a_capture_without_a_date_has_that_of_the_server_or_of_the_last_one(tmp_path: Path, date: str) -> None:
    assert one(tmp_path, record(date=date)).reason.startswith("has no valid date")  # type: ignore[union-attr]
    said = PAGE.replace(b"\r\n\r\n", b"\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\n\r\n")
    assert capture(tmp_path, record(date=date, block=said)).fetched_at == 1767225600.0
    first, second = captures_in(write(tmp_path / "b.warc", record() + record(date=date)))
    assert second.fetched_at == first.fetched_at


def test_records_beside_a_capture_say_something_of_it(tmp_path: Path) -> None:
    ask = b"POST /x HTTP/1.1\r\nHost: a.example\r\n\r\nform=1"
    story = b"via: http://a.example/from\r\nhopsFromSeed: LRE\r\nfetchTimeMs: 5\r\n"
    parts = [
        record(WARC_Record_ID="<urn:uuid:1>"),
        record(block=ask, kind="request", WARC_Record_ID="<urn:uuid:2>", WARC_Concurrent_To="<urn:uuid:1>"),
        record(block=story, kind="metadata", WARC_Record_ID="<urn:uuid:3>", WARC_Concurrent_To="<urn:uuid:1>"),
        record("http://a.example/2", ask.replace(b"POST", b"GET"), "request", WARC_Record_ID="<urn:uuid:4>"),
        record("http://a.example/2", WARC_Record_ID="<urn:uuid:5>", WARC_Concurrent_To="<urn:uuid:4>"),
        record("http://a.example/3"),
    ]
    items = items_of(write(tmp_path / "a.warc.gz", b"".join(map(gzip.compress, parts))))
    assert [item.kind for item in items if not isinstance(item, Refused)] == [
        "response", "request", "metadata", "request", "response", "response",
    ]  # fmt: skip
    first, second, third = [item for item in items if isinstance(item, Capture)]
    assert (first.method, first.via, first.depth) == ("POST", "http://a.example/from", 2)
    assert [first.link_type, second.link_type] == ["embed", "anchor"]
    assert first.request_head.endswith(b"Host: a.example\r\n\r\n")
    assert (second.method, second.via, second.depth) == ("GET", "", None)
    assert (third.method, third.request_head) == ("GET", b"")


def test_records_of_gossamer_say_more(tmp_path: Path) -> None:
    story = b"fetchTimeMs: 1250\r\nlinkType: iframe\r\ndepth: 3\r\nattempt: 2\r\nwireBytes: 512\r\nstatus: 226\r\n"
    story += b"hops: 2\r\nerror: it loops\r\n"
    fields = {"WARC_Protocol": "h2", "Gossamer_Authenticated": "yes"}
    page, file = "http://a.example/", "ftp://a.example/x"
    parts = [
        record(page, **fields), record(page, story, "metadata"),
        record(file, b"x", "resource"), record(file, story.replace(b"iframe", b"of a sort"), "metadata"),
    ]  # fmt: skip
    first, second = captures_in(write(tmp_path / "a.warc", b"".join(parts)))
    assert (first.fetch_s, first.link_type, first.depth, first.attempt) == (1.25, "iframe", 3, 2)
    assert (first.wire_bytes, first.status, first.http_version, first.authenticated) == (512, 200, "2", True)
    assert first.reply().authenticated
    assert (first.hops, first.error) == (2, "it loops")
    assert (second.status, second.link_type, second.authenticated) == (226, "anchor", False)
    odd = b"status: 99999\r\ndepth: -1\r\nattempt: 9999999999\r\nfetchTimeMs: \xc2\xb2\r\n"
    bad = captures_in(write(tmp_path / "b.warc", record(file, b"x", "resource") + record(file, odd, "metadata")))[0]
    assert (bad.status, bad.depth, bad.attempt, bad.fetch_s) == (200, None, 1, 0.0)


@pytest.mark.parametrize(
    ("head", "read_as"), [("", "text/html"), ("Content-Type: application/octet-stream\r\n", "application/octet-stream")]
)
def test_a_reply_without_a_type_is_read_by_its_content(tmp_path: Path, head: str, read_as: str) -> None:
    block = f"HTTP/1.1 200 OK\r\n{head}\r\n<html><title>x".encode()
    assert capture(tmp_path, record(block=block)).reply().media_type == read_as


def test_a_picture_that_is_sent_as_html_is_read_as_in_a_crawl(tmp_path: Path) -> None:
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
    assert capture(tmp_path, record(block=block)).reply().media_type == "image/png"


def test_a_revisit_names_its_original(tmp_path: Path) -> None:
    about = {
        "WARC_Refers_To_Target_URI": "<http://a.example/old>",
        "WARC_Refers_To_Date": "2025-01-01T00:00:00Z",
        "WARC_Refers_To": "<urn:uuid:1>",
        "WARC_Payload_Digest": "sha1:ABC",
    }
    found = capture(tmp_path, record(kind="revisit", block=b"HTTP/1.1 304 Not Modified\r\nETag: 1\r\n\r\n", **about))
    assert found.original is not None
    assert (found.original.url, found.original.record_id) == ("http://a.example/old", "urn:uuid:1")
    assert (found.original.fetched_at, found.digest, found.status) == (1735689600.0, "sha1:ABC", 304)
    bare = capture(tmp_path, record(kind="revisit", block=b""))
    assert (bare.status, bare.headers, bare.body_bytes) == (0, (), 0)


def test_other_records_are_skipped(tmp_path: Path) -> None:
    kinds = ["warcinfo", "conversion", "continuation", "screenshot", ""]
    items = items_of(write(tmp_path / "a.warc", b"".join(record(kind=kind) for kind in kinds)))
    assert [item.kind for item in items if isinstance(item, Skipped)] == [*kinds[:-1], "unknown"]
    first = capture(tmp_path, record(WARC_Segment_Number="1"))
    assert first.truncated == "unspecified"
    resource = capture(tmp_path, record(kind="resource", block=b"%PDF", Content_Type="application/pdf"))
    assert (resource.status, resource.body, resource.reply().media_type) == (200, b"%PDF", "application/pdf")


def test_the_document_that_scripts_made_belongs_to_its_page(tmp_path: Path) -> None:
    shown = record(kind="conversion", block=b"<p>shown", Content_Type="text/html; charset=utf-8", WARC_Page_ID="7")
    text = record(kind="conversion", block=b"text", Content_Type="text/plain")
    items = items_of(write(tmp_path / "a.warc", record() + shown + text))
    [found] = [item for item in items if not isinstance(item, Skipped)]
    assert isinstance(found, Capture)
    assert found.rendered == Rendered(b"<p>shown", "7")
    assert [item.kind for item in items if isinstance(item, Skipped)] == ["conversion"]


ARC = b"filedesc://a.arc 0.0.0.0 20260101000000 text/plain 21\n1 0 Crawler\n\nURL IP-\n\n"


def arc(url: str, block: bytes, more: str = "") -> bytes:
    return f"{url} 192.0.2.1 20260101000000 text/html{more} {len(block)}\n".encode() + block + b"\n"


@pytest.mark.parametrize("name", ["plain", "gzip", "gzip of the whole"])
def test_arc(tmp_path: Path, name: str) -> None:
    parts = [
        arc("http://a.example/1", PAGE),
        arc("http://a.example/a b", PAGE, " 200 checksum - 99 a.arc"),
        b"http://a.example/bad 192.0.2.1 20260101000000 text/html -1\n",
        arc("http://a.example/cafX", PAGE).replace(b"X", b"\xe9"),
    ]
    _, *items = items_of(write(tmp_path / "a", PACKINGS[name](ARC, *parts)))
    found = [item for item in items if isinstance(item, Capture)]
    assert [one.url for one in found] == ["http://a.example/1", "http://a.example/a%20b", "http://a.example/caf%E9"]
    assert [(one.body, one.fetched_at, one.ip) for one in found] == [(BODY, 1767225600.0, "192.0.2.1")] * 3
    assert not any(one.place.linkable for one in found)
    assert [item.reason for item in items if isinstance(item, Refused)] == ["has no valid length ('-1')"]


def test_an_arc_file_that_is_cut_in_a_line_has_the_record_before_it(tmp_path: Path) -> None:
    """As in the test suite of JWAT."""
    data = ARC + arc("http://a.example/1", PAGE)
    for cut in (arc("http://a.example/2", PAGE)[:22], b"http"):
        _, found, last = items_of(write(tmp_path / "a.arc", data + cut))
        assert isinstance(found, Capture)
        assert found.body == BODY
        assert isinstance(last, Refused)
        assert (last.offset, last.reason) == (len(data), "holds no ARC record")


def test_warcio_reads_the_same(tmp_path: Path) -> None:
    """Records, by an independent reader, of each packing that it knows."""
    for name in ("plain", "gzip"):
        path = write(tmp_path / "a.warc", PACKINGS[name](*six()))
        with path.open("rb") as file:
            theirs = [(one.rec_headers["WARC-Target-URI"], one.content_stream().read()) for one in _warcio(file)]
        assert [(one.url, one.body) for one in captures_in(path)] == theirs


def _warcio(file: Any) -> Iterator[Any]:
    return iter(WarcioIterator(file))


def test_fields_that_are_folded(tmp_path: Path) -> None:
    """As in the test suite of JWAT: a value may begin on the line behind its name (RFC 2616, section 2.2)."""
    data = record(WARC_Record_ID="<urn:uuid:1>")
    folded = b"\r\n".join(line.replace(b": ", b": \r\n\t", 1) for line in data.partition(b"\r\n\r\n")[0].split(b"\r\n"))
    found = capture(tmp_path, folded + data[data.index(b"\r\n\r\n") :])
    assert (found.url, found.record_id, found.body) == ("http://a.example/", "urn:uuid:1", BODY)
