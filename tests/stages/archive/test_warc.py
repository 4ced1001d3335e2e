"""WARC files, read back with the tools of others."""

from __future__ import annotations

import base64
import contextlib
import gzip
import hashlib
import io
import random
from argparse import Namespace
from pathlib import Path

import msgspec
import pytest
from fastwarc.warc import ArchiveIterator as FastIterator
from fastwarc.warc import WarcRecordType, is_warc_11
from hypothesis import given, settings
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator
from warcio.checker import Checker

from gossamer.model.pages import Archived, Original, Visited
from gossamer.model.visits import LargeBody
from gossamer.stages.archive import records
from gossamer.stages.archive.options import ArchiveOptions
from gossamer.stages.archive.warc import NOT_MODIFIED, SAME_PAYLOAD, WarcArchive, WarcInfo, warc_date
from gossamer.world.spill import Spills
from tests.stages.archive import reference

from . import strict
from .web import HTML, START, Shard, assortment, visited

ABOUT = WarcInfo(
    "gossamer/1", "gossamer/1 (+me@example.org)", "RFC 9309", "me@example.org", configuration="a = 1\nb = 2"
)


def archive(shard: Shard, **options: object) -> WarcArchive:
    return WarcArchive(ArchiveOptions(**options), shard.journals, ABOUT)  # type: ignore[arg-type]


def written(directory: Path, visits: list[Visited], **options: object) -> tuple[Path, list[Archived]]:
    shard = Shard(directory)
    warc = archive(shard, **options)
    places = [warc.add(visit) for visit in visits]
    warc.close()
    shard.commit()
    suffix = "zst" if options.get("warc_compression") == "zstd" else "gz"
    return directory / "warc" / f"gossamer-000-0001-000001.warc.{suffix}", places


def check(path: Path) -> None:
    """The strict reader and both tools' own checks pass, digests included."""
    assert strict.faults([path]) == []
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        status = Checker(Namespace(inputs=[str(path)], verbose=False)).process_all()
    assert status == 0, output.getvalue()
    with path.open("rb") as file:
        for record in FastIterator(file, parse_http=False):
            assert is_warc_11(record)
            assert record.verify_block_digest(), record.headers.to_dict()
    with path.open("rb") as file:
        for record in FastIterator(file, WarcRecordType.response):
            assert record.verify_payload_digest(), record.headers.to_dict()


@pytest.mark.parametrize(("algorithm", "quickest", "smallest"), [("gzip", 0, 3), ("zstd", 1, 19)])
def test_a_level_of_compression_is_a_choice(algorithm: str, quickest: int, smallest: int) -> None:
    data = b"".join(b"<a href=/pages/%d.html>page %d</a>" % (at, at * at) for at in range(2_000))
    sizes = [
        len(
            records.packer(ArchiveOptions(warc_compression=algorithm, **{f"warc_{algorithm}_level": level})).pack(
                b"", data
            )
        )  # type: ignore[arg-type]
        for level in (quickest, smallest)
    ]
    assert sizes[0] > sizes[1]


@pytest.mark.parametrize("options", [{}, {"digests": "sha256"}, {"warc_gzip_level": 0}, {"warc_outlinks": True}])
def test_every_kind_of_reply_comes_back_byte_for_byte(tmp_path: Path, options: dict[str, object]) -> None:
    visits = assortment()
    path, _ = written(tmp_path, visits, **options)
    check(path)
    with path.open("rb") as file:
        responses = [
            (record.rec_headers.get_header("WARC-Target-URI"), record.http_headers, record.raw_stream.read())
            for record in ArchiveIterator(file)
            if record.rec_type == "response"
        ]
    assert [(url, body) for url, _, body in responses] == [(visit.url.text, visit.reply.body) for visit in visits]  # type: ignore[union-attr]
    assert [int(head.get_statuscode()) for _, head, _ in responses] == [visit.row.status for visit in visits]


def test_heads_are_kept_but_for_what_the_stored_body_belies(tmp_path: Path) -> None:
    path, _ = written(tmp_path, assortment())
    with path.open("rb") as file:
        blocks = {
            record.headers["WARC-Target-URI"]: record.reader.read().partition(b"\r\n\r\n")[0]
            for record in FastIterator(file, WarcRecordType.response, parse_http=False)
        }
    assert blocks["http://example.org/latin"] == b"HTTP/1.1 200 OK\r\nX-Name: caf\xe9 \xff\r\nContent-Type: text/html"
    assert blocks["http://example.org/cut"] == b"HTTP/1.1 200 OK\r\nX-Archive-Orig-Content-Length: 99999"
    assert b"\r\nX-Archive-Orig-TRANSFER-ENCODING: chunked\r\n" in blocks["http://example.org/chunked"]
    assert blocks["https://www.example.org/packed?b=2&a=1"].startswith(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n"
    )
    assert blocks["http://example.org/odd"].startswith(b"HTTP/1.1 999 \r\nX-Break: one  X-Two: two \r\nContent-Type")
    assert blocks["http://example.org/old"].startswith(b"HTTP/1.0 200 OK\r\n")


def test_named_fields_say_where_when_and_how(tmp_path: Path) -> None:
    path, places = written(tmp_path, assortment())
    with path.open("rb") as file:
        fields = [
            dict(record.headers.items()) for record in FastIterator(file, WarcRecordType.response, parse_http=False)
        ]
    plain, packed, cut = fields[:3]
    assert plain["WARC-Date"] == "2026-01-01T00:00:00.250000Z"
    assert plain["WARC-IP-Address"] == "127.0.0.1"
    assert plain["WARC-Protocol"] == "http/1.1"
    assert plain["WARC-Record-ID"] == f"<{places[0].record_id}>"
    assert plain["WARC-Payload-Digest"] == "sha1:" + base64.b32encode(hashlib.sha1(HTML).digest()).decode()
    assert packed["WARC-Protocol"] == "h2"
    assert cut["WARC-Truncated"] == "length"
    assert "WARC-Truncated" not in plain


def test_a_file_begins_with_what_made_it(tmp_path: Path) -> None:
    path, _ = written(tmp_path, [visited()])
    with path.open("rb") as file:
        info = next(iter(FastIterator(file)))
    assert info.record_type == WarcRecordType.warcinfo
    assert info.headers["WARC-Filename"] == path.name
    block = info.reader.read().decode()
    assert "software: gossamer/1\r\n" in block
    assert "format: WARC File Format 1.1\r\n" in block
    assert "robots: RFC 9309\r\n" in block
    assert block.endswith("configuration:\r\n\ta = 1\r\n\tb = 2\r\n")


def test_request_and_metadata_stand_behind_their_response(tmp_path: Path) -> None:
    path, _ = written(tmp_path, [visited(links=2)], warc_outlinks=True)
    with path.open("rb") as file:
        found = [
            (record.headers["WARC-Type"], dict(record.headers.items()), record.reader.read())
            for record in FastIterator(file, parse_http=False)
        ]
    _, response, request, metadata = found
    assert (response[0], request[0], metadata[0]) == ("response", "request", "metadata")
    for kind, fields, _ in (request, metadata):
        assert fields["WARC-Concurrent-To"] == response[1]["WARC-Record-ID"], kind
        assert fields["WARC-Date"] == response[1]["WARC-Date"]
    assert request[2] == visited().reply.request_head  # type: ignore[union-attr]
    assert metadata[2].decode().split("\r\n") == [
        "fetchTimeMs: 12", "via: http://example.org/", "linkType: anchor", "depth: 2", "attempt: 1",
        f"wireBytes: {len(HTML) + 200}", "outlink: http://example.org/to/0 anchor",
        "outlink: http://example.org/to/1 anchor", "",
    ]  # fmt: skip


def test_offset_and_length_are_exactly_the_record(tmp_path: Path) -> None:
    visits = assortment()
    path, places = written(tmp_path, visits)
    data = path.read_bytes()
    for visit, place in zip(visits, places, strict=True):
        assert place.warc_file == visit.row.warc_file == path.name
        assert (place.warc_offset, place.warc_length) == (visit.row.warc_offset, visit.row.warc_length)
        assert place.warc_offset is not None
        assert place.warc_length is not None
        piece = data[place.warc_offset : place.warc_offset + place.warc_length]
        record = gzip.decompress(piece)
        assert record.startswith(b"WARC/1.1\r\nWARC-Type: response\r\n")
        assert f"\r\nWARC-Target-URI: {visit.url.text}\r\n".encode() in record
        assert record.endswith(visit.reply.body + b"\r\n\r\n")  # type: ignore[union-attr]


def test_the_same_payload_again_is_a_revisit(tmp_path: Path) -> None:
    shard = Shard(tmp_path)
    warc = archive(shard)
    first = warc.add(visited())
    original = Original("http://example.org/docs/page.html", START, first.record_id)
    again = visited("http://example.org/copy", revisit_of=original, at=START + 5)
    unchanged = visited("http://example.org/docs/page.html", b"", 304, at=START + 9, revisit_of=original)
    warc.add(again)
    warc.add(unchanged)
    warc.close()
    shard.commit()
    path = tmp_path / "warc/gossamer-000-0001-000001.warc.gz"
    check(path)
    with path.open("rb") as file:
        revisits = [
            (dict(record.rec_headers.headers), record.http_headers, record.raw_stream.read())
            for record in ArchiveIterator(file)
            if record.rec_type == "revisit"
        ]
    for fields, head, body in revisits:
        assert body == b""
        assert head.get_header("Content-Type") == "text/html; charset=utf-8"
        assert fields["WARC-Refers-To"] == f"<{first.record_id}>"
        assert fields["WARC-Refers-To-Target-URI"] == original.url
        assert fields["WARC-Refers-To-Date"] == "2026-01-01T00:00:00.250000Z"
    same, not_modified = (fields for fields, _, _ in revisits)
    assert same["WARC-Profile"] == SAME_PAYLOAD
    assert same["WARC-Payload-Digest"] == "sha1:" + base64.b32encode(hashlib.sha1(HTML).digest()).decode()
    assert not_modified["WARC-Profile"] == NOT_MODIFIED
    assert again.row.duplicate_of == original.url


def test_a_304_with_its_original_is_a_revisit_of_its_own_kind(tmp_path: Path) -> None:
    shard = Shard(tmp_path)
    warc = archive(shard)
    first = warc.add(visited())
    original = Original(visited().url.text, START, first.record_id)
    unchanged = visited(body=b"", status=304, headers=(("ETag", '"1"'),), at=START + 86_400, revisit_of=original)
    warc.add(unchanged)
    warc.add(visited("http://example.org/known-to-nobody", b"", 304))
    warc.close()
    shard.commit()
    path = tmp_path / "warc/gossamer-000-0001-000001.warc.gz"
    check(path)
    _, _, _, _, revisit, *_ = strict.read(path)
    assert revisit.fields["WARC-Profile"] == "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
    assert revisit.fields["WARC-Refers-To"] == f"<{first.record_id}>"
    assert revisit.fields["WARC-Refers-To-Date"] == "2026-01-01T00:00:00.250000Z"
    assert revisit.block == b'HTTP/1.1 304 \r\nETag: "1"\r\n\r\n'
    assert (unchanged.row.warc_type, unchanged.row.duplicate_of) == ("revisit", "")
    assert "WARC-Payload-Digest" not in revisit.fields, "nobody said what the payload is"
    assert [record.kind for record in strict.read(path)].count("response") == 2


@pytest.mark.parametrize(
    ("begins", "headers"), [*((begins, ()) for begins in records.COMPRESSED), (b"\x8b", (("Content-Encoding", "br"),))]
)
@pytest.mark.parametrize("size", [9, 15_000, records.STORED_BYTES_MAX - 4, records.STORED_BYTES_MAX + 1, 200_000])
def test_what_is_compressed_already_is_stored_as_it_is(
    tmp_path: Path, begins: bytes, headers: tuple[tuple[str, str], ...], size: int
) -> None:
    body = begins + random.Random(size).randbytes(size)
    text = random.Random(size).choices(b"abc ", k=size)
    visits = [visited("http://example.org/compressed", body, headers=headers), visited(body=bytes(text))]
    path, places = written(tmp_path, visits)
    if headers:
        assert strict.faults([path]) == []  # warcio decodes it, which fails with this library of Brotli.
    else:
        check(path)
    data = path.read_bytes()
    member = data[places[0].warc_offset :][: places[0].warc_length]
    assert body[: records.STORED_BYTES_MAX - len(begins) - 4] in member
    assert len(member) < len(body) + 600
    assert [one.payload for one in strict.read(path) if one.kind == "response"] == [body, bytes(text)]
    assert size < 1_000 or places[1].warc_length < size / 2 + 600, "text is compressed"


def test_zstandard_frames_are_read_by_fastwarc_at_their_offsets(tmp_path: Path) -> None:
    visits = assortment()
    path, places = written(tmp_path, visits, warc_compression="zstd")
    assert path.name.endswith(".warc.zst")
    assert strict.faults([path]) == []
    with path.open("rb") as file:
        bodies = {}
        for record in FastIterator(file, parse_http=False, verify_digests=True):
            body = record.reader.read().partition(b"\r\n\r\n")[2]
            bodies[record.stream_pos] = (record.headers.get("WARC-Target-URI"), body)
    for visit, place in zip(visits, places, strict=True):
        assert bodies[place.warc_offset] == (visit.url.text, visit.reply.body)  # type: ignore[union-attr, index]


def large(directory: Path, data: bytes, algorithm: str = "sha1") -> LargeBody:
    spill = Spills(directory, algorithm).make()
    spill.write(data)
    return spill


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
@pytest.mark.parametrize("size", [1, records.PIECE_BYTES, 3 * records.PIECE_BYTES + 7])
def test_a_body_that_is_in_a_file_is_archived_like_any_other(tmp_path: Path, compression: str, size: int) -> None:
    data = random.Random(1).randbytes(size // 2) + HTML[:1] * (size - size // 2)
    visits = [visited(), visited("http://example.org/large", b"", file=large(tmp_path, data)), visited()]
    path, places = written(tmp_path, visits, warc_compression=compression)
    assert strict.faults([path]) == []
    (record,) = [one for one in strict.read(path) if one.target.endswith("/large") and one.kind == "response"]
    assert record.payload == data
    assert (places[1].warc_offset, places[1].warc_length) == (record.offset, record.length)
    assert visits[1].row.digest == "sha1:" + base64.b32encode(hashlib.sha1(data).digest()).decode()
    if compression == "gzip":
        check(path)


def test_a_large_body_that_the_disk_refuses_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shard = Shard(tmp_path)
    warc = archive(shard)
    warc.add(visited("http://example.org/kept"))
    shard.commit()
    warc.add(visited("http://example.org/kept-too"))
    data = random.Random(1).randbytes(5 * records.PIECE_BYTES)
    visit = visited("http://example.org/large", b"", file=large(tmp_path, data))
    (journal,) = shard.journals.open_journals("warc/")
    write, writes = journal._file.write, [0]

    def refuse(piece: bytes | bytearray | memoryview) -> None:
        writes[0] += 1
        if writes[0] == 3:
            raise OSError(28, "No space left on device")
        write(piece)

    monkeypatch.setattr(journal._file, "write", refuse)
    before = journal.length
    with pytest.raises(OSError, match="No space"):
        warc.add(visit)
    assert (journal.length, visit.row.warc_file) == (before, "")
    warc.add(visit)
    warc.close()
    shard.commit()
    path = tmp_path / "warc/gossamer-000-0001-000001.warc.gz"
    assert strict.faults([path]) == []
    targets = [record.target.rpartition("/")[2] for record in strict.read(path) if record.kind == "response"]
    assert targets == ["kept", "kept-too", "large"]


def test_a_crawl_may_change_its_compression_when_it_is_resumed(tmp_path: Path) -> None:
    shard = Shard(tmp_path)
    archive(shard).add(visited())
    shard.commit()
    shard = shard.crash()
    later = WarcArchive(ArchiveOptions(warc_compression="zstd"), shard.journals, ABOUT, incarnation=2)
    assert later.add(visited()).warc_file == "gossamer-000-0002-000001.warc.zst"
    later.close()
    shard.commit()
    assert strict.faults(sorted((tmp_path / "warc").iterdir())) == []


def test_what_came_before_a_page_is_kept_without_a_row(tmp_path: Path) -> None:
    shard = Shard(tmp_path)
    warc = archive(shard, warc_dns=True)
    robots = visited("http://example.org/robots.txt", b"User-agent: *\n", media_type="text/plain").reply
    lookup = visited("http://example.org/", b"20260101000000\nexample.org.\t60\tIN\tA\t9.9.9.9\n").reply
    assert robots is not None
    assert lookup is not None
    warc.add_prerequisite(robots, "http://example.org/", "robots")
    asked = {"url": "dns:example.org", "request_head": b"", "media_type": "text/dns", "ip": ""}
    warc.add_prerequisite(msgspec.structs.replace(lookup, **asked), "", "dns")
    warc.close()
    shard.commit()
    path = tmp_path / "warc/gossamer-000-0001-000001.warc.gz"
    check(path)
    _, response, request, story, resource = strict.read(path)
    assert [response.kind, request.kind, story.kind, resource.kind] == ["response", "request", "metadata", "resource"]
    assert response.payload == b"User-agent: *\n"
    assert story.story()["via"] == ["http://example.org/"]
    assert story.story()["linkType"] == ["robots"]
    assert story.story()["fetchTimeMs"] == ["12"]
    assert (resource.target, resource.fields["Content-Type"]) == ("dns:example.org", "text/dns")


@pytest.mark.parametrize("left_out", [{"warc_robots": False}, {"warc": False}])
def test_what_came_before_a_page_can_be_left_out(tmp_path: Path, left_out: dict[str, object]) -> None:
    shard = Shard(tmp_path)
    warc = archive(shard, **left_out)
    for kind in ("robots", "dns"):
        reply = visited("http://example.org/robots.txt").reply
        assert reply is not None
        warc.add_prerequisite(reply, "http://example.org/", kind)
    assert not shard.journals.cut()


def test_what_has_no_reply_leaves_nothing(tmp_path: Path) -> None:
    visit = visited()
    visit.reply = None
    shard = Shard(tmp_path)
    assert archive(shard).add(visit) == Archived()
    assert archive(shard, warc=False).add(visited()) == Archived()
    assert not shard.journals.cut()


def test_other_schemes_are_kept_as_resources(tmp_path: Path) -> None:
    path, _ = written(tmp_path, [visited("ftp://example.org/file.txt", b"words", headers=(), media_type="text/plain")])
    check(path)
    with path.open("rb") as file:
        record = next(FastIterator(file, WarcRecordType.resource, parse_http=False))
        assert record.record_type == WarcRecordType.resource
        assert record.headers["Content-Type"] == "text/plain"
        assert record.reader.read() == b"words"


def test_files_are_finished_at_their_size_and_numbers_go_on(tmp_path: Path) -> None:
    shard = Shard(tmp_path)
    warc = archive(shard, warc_segment_bytes_max=3000)
    places = []
    for number in range(10):
        places.append(warc.add(visited(f"http://example.org/{number}", random.Random(number).randbytes(2000))))
        shard.commit()
    warc.close()
    shard.commit()
    names = sorted(path.name for path in (tmp_path / "warc").iterdir())
    assert names == [f"gossamer-000-0001-{number:06d}.warc.gz" for number in range(1, len(names) + 1)]
    assert len(names) >= 5
    assert {place.warc_file for place in places} == set(names)
    for name in names:
        check(tmp_path / "warc" / name)
    resumed = Shard(tmp_path, shard.manifest)
    again = archive(resumed).add(visited())
    assert again.warc_file == f"gossamer-000-0001-{len(names) + 1:06d}.warc.gz"


@pytest.mark.parametrize("lost", [0, 1, 7, 900, 10**9])
def test_after_a_crash_the_file_is_readable_to_its_last_byte_and_goes_on(tmp_path: Path, lost: int) -> None:
    shard = Shard(tmp_path)
    warc = archive(shard)
    warc.add(visited("http://example.org/kept"))
    shard.commit()
    warc.add(visited("http://example.org/lost"))
    shard.journals.cut()  # Written, never committed.
    working = tmp_path / "warc/gossamer-000-0001-000001.warc.gz.open"
    committed = shard.manifest[0].length
    with working.open("r+b") as file:
        file.truncate(max(committed, working.stat().st_size - lost))
    shard = shard.crash()
    warc = archive(shard)
    warc.add(visited("http://example.org/after"))
    warc.close()
    shard.commit()
    path = tmp_path / "warc/gossamer-000-0001-000001.warc.gz"
    check(path)
    with path.open("rb") as file:
        urls = [record.headers["WARC-Target-URI"] for record in FastIterator(file, WarcRecordType.response)]
    assert urls == ["http://example.org/kept", "http://example.org/after"]
    data = path.read_bytes()
    assert gzip.decompress(data).endswith(b"\r\n\r\n")


def test_another_incarnation_begins_files_of_its_own(tmp_path: Path) -> None:
    shard = Shard(tmp_path)
    archive(shard).add(visited())
    shard.commit()
    shard = shard.crash()
    later = WarcArchive(ArchiveOptions(), shard.journals, ABOUT, incarnation=2)
    assert later.add(visited()).warc_file == "gossamer-000-0002-000001.warc.gz"
    shard.commit()
    assert (tmp_path / "warc/gossamer-000-0001-000001.warc.gz").exists()


def test_record_ids_never_repeat(tmp_path: Path) -> None:
    ids = []
    for _ in range(2):  # As many objects as there are starts.
        path, _ = written(tmp_path / str(len(ids)), [visited() for _ in range(50)])
        with path.open("rb") as file:
            ids += [record.record_id for record in FastIterator(file)]
    assert len(ids) == 2 * (1 + 3 * 50)
    assert len(set(ids)) == len(ids)


def test_the_quick_way_and_the_readable_way_write_the_same(tmp_path: Path) -> None:
    warc = archive(Shard(tmp_path))
    for visit in assortment():
        assert visit.reply is not None
        visit.row.digest = records.warc_digest("sha1", visit.reply.body)
        main = warc._main_record(visit.reply, visit.row.fetched_at, visit.row.digest, visit.revisit_of)
        story = warc._metadata_record(main, visit.reply, warc._story(visit, visit.reply))
        for record in (main, warc._request_record(main, visit.reply), story):
            quick = gzip.decompress(records.member(record, "sha1", records.Gzip(2)))
            assert quick == gzip.decompress(reference.member(record, "sha1", 2))


def test_dates_are_exact_to_the_microsecond() -> None:
    assert warc_date(0.0) == "1970-01-01T00:00:00.000000Z"
    assert warc_date(1_767_225_599.9999999) == "2026-01-01T00:00:00.000000Z"


_LATIN = st.text(st.characters(max_codepoint=255), max_size=12)


@given(st.lists(st.tuples(_LATIN, _LATIN), max_size=5), _LATIN, st.binary(max_size=60), st.sampled_from(["1.1", "2"]))
@settings(deadline=None, max_examples=150)
def test_no_header_reaches_the_body(headers: list[tuple[str, str]], reason: str, body: bytes, version: str) -> None:
    visit = visited(body=body, headers=tuple(headers), reason=reason, http_version=version)
    assert visit.reply is not None
    head = records.response_head(visit.reply)
    assert head.count(b"\n") == head.count(b"\r") == len(headers) + 2
    assert head.endswith(b"\r\n\r\n")
    record = records.Record("response", "urn:uuid:0", warc_date(START), records.HTTP_RESPONSE, [], head, body)
    stored = gzip.decompress(records.member(record, "sha1", records.Gzip(2)))
    assert stored.partition(b"\r\n\r\n")[2].partition(b"\r\n\r\n")[2] == body + b"\r\n\r\n"
