"""The reader of archived pages, over records as this crawler and others write them."""

from __future__ import annotations

import gzip
from codecs import BOM_UTF8
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from fastwarc.warc import ArchiveIterator, WarcRecordType

from gossamer.model.errors import DamagedError
from gossamer.model.pages import Original, Page, PageCapture, Rendered, Visited
from gossamer.results.export.bodies import ArchivedPage, RecordBodies, RecordPlace
from gossamer.results.export.browse import Browsed
from gossamer.results.export.source import pieces_of
from gossamer.stages.archive.archive import Archives
from gossamer.stages.archive.options import ArchiveOptions
from gossamer.stages.archive.tables import TableWriters
from gossamer.stages.archive.unpack import Unpacked
from gossamer.stages.archive.warc import WarcArchive, WarcInfo
from gossamer.stages.fetch.decoding import BoundedDecoder
from gossamer.stages.fetch.options import FetchOptions
from tests.results.export.crawled import finished
from tests.stages.archive.web import START, Shard, visited

CONVERSION = WarcRecordType.conversion
TEXT = "<p>Größe</p>".encode()
PACKED = gzip.compress(TEXT, mtime=0)
HTML, GZIP = ("Content-Type", "text/html; charset=utf-8"), ("Content-Encoding", "gzip")


def _read(folder: Path, archived: ArchivedPage) -> Page:
    with RecordBodies(folder, BoundedDecoder(FetchOptions()).decode) as bodies:
        page = bodies.page(archived)
    assert page is not None
    return page


def _written(directory: Path, *visits: Visited, **options: Any) -> list[RecordPlace]:
    shard = Shard(directory)
    archive = WarcArchive(ArchiveOptions(**options), shard.journals, WarcInfo("gossamer/1"))
    found = [archive.add(one) for one in visits]
    archive.close()
    shard.commit()
    assert all(one.warc_offset is not None and one.warc_length is not None for one in found)
    return [RecordPlace(one.warc_file, one.warc_offset or 0, one.warc_length or 0) for one in found]


# Which headers of a 304 a cache takes: RFC 9111, section 3.2, and Chromium's `HttpResponseHeaders::Update`.
@pytest.mark.parametrize(
    ("headers", "page_headers"),
    [
        ((), (HTML, GZIP, ("ETag", '"1"'))),
        ((("ETag", '"2"'), ("Date", "now")), (("ETag", '"2"'), ("Date", "now"), HTML, GZIP)),
        ((("Content-Type", "text/plain"), ("Content-Encoding", "br")), (HTML, GZIP, ("ETag", '"1"'))),
    ],
)
def test_a_page_that_was_not_modified_has_the_headers_that_its_304_updates(
    tmp_path: Path, headers: tuple[tuple[str, str], ...], page_headers: tuple[tuple[str, str], ...]
) -> None:
    first = visited(body=PACKED, headers=(HTML, GZIP, ("ETag", '"1"')))
    again = visited(body=b"", status=304, headers=headers, revisit_of=Original(first.row.url, first.row.fetched_at))
    original, place = _written(tmp_path, first, again)
    page = _read(tmp_path / "warc", ArchivedPage(place, original, first.row.url, "text/html"))
    assert (page.body, page.media_type, page.charset) == (TEXT, "text/html", "utf-8")
    assert page.headers == page_headers


def test_a_copy_with_another_content_coding_is_decoded_by_its_own(tmp_path: Path) -> None:
    first = visited("http://example.org/file", PACKED, headers=(("Content-Type", "application/gzip"),))
    of = Original(first.row.url, first.row.fetched_at)
    copy = visited("http://example.org/page", PACKED, headers=(HTML, GZIP), revisit_of=of)
    original, place = _written(tmp_path, first, copy)
    assert _read(tmp_path / "warc", ArchivedPage(place, original)).body == TEXT
    assert _read(tmp_path / "warc", ArchivedPage(original)).body == PACKED


# As Heritrix 3 and early warcprox write them (webrecorder/pywb#751: "or they may contain no headers").
def test_a_revisit_without_a_head_has_the_headers_of_its_original(tmp_path: Path) -> None:
    first = visited(body=PACKED, headers=(HTML, GZIP))
    [original] = _written(tmp_path, first)
    record = gzip.compress(
        b"WARC/1.0\r\nWARC-Type: revisit\r\nWARC-Record-ID: <urn:uuid:1>\r\nWARC-Date: 2026-01-02T00:00:00Z\r\n"
        b"WARC-Target-URI: http://example.org/copy\r\nWARC-Profile: "
        b"http://netpreserve.org/warc/1.0/revisit/identical-payload-digest\r\nContent-Length: 0\r\n\r\n\r\n\r\n"
    )
    (tmp_path / "warc" / "other.warc.gz").write_bytes(record)
    page = _read(tmp_path / "warc", ArchivedPage(RecordPlace("other.warc.gz", 0, len(record)), original))
    assert (page.url, page.body, page.headers) == ("http://example.org/copy", TEXT, (HTML, GZIP))


def test_a_version_that_was_not_modified_is_shown_as_its_original(tmp_path: Path) -> None:
    shard, options = Shard(tmp_path), ArchiveOptions()
    tables = TableWriters(options, shard.journals)
    archive = Archives([WarcArchive(options, shard.journals, WarcInfo("gossamer/1")), tables])
    first = visited(body=PACKED, headers=(HTML, GZIP))
    first.row.rendered = "rendered"
    archive.add(first)
    of = Original(first.row.url, first.row.fetched_at)
    again = visited(body=b"", status=304, headers=(), at=START + 9, revisit_of=of, media_type="")
    again.row.outcome, again.row.digest = "not_modified", first.row.digest
    archive.add(again)
    finished(tmp_path, shard, archive)
    with Browsed(pieces_of(sorted((tmp_path / "pages").iterdir())), tmp_path) as pages:
        [newest, _], _ = pages.versions(first.row.key)
    assert (newest.outcome, newest.rendered) == ("not_modified", "rendered")
    assert newest.place is not None
    page = _read(tmp_path / "warc", ArchivedPage(newest.place, newest.original, newest.url, newest.media_type))
    assert (newest.media_type, page.media_type, page.body) == ("text/html", "text/html", TEXT)


def _rendered(url: str, html: bytes, **more: Any) -> Visited:
    one = visited(url, PACKED, headers=(HTML, GZIP), **more)
    one.rendered = Rendered(html, "1", (PageCapture("view", "image/png", b"\x89PNG"),))
    one.row.rendered = "partial"
    return one


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_a_rendered_page_is_read_as_its_scripts_made_it(tmp_path: Path, compression: str) -> None:
    """Two pages of one shell: the second is a copy as sent, but not as rendered."""
    one = _rendered("http://example.org/1", "<p>Größe".encode())
    two = _rendered("http://example.org/2", b"<p>two", revisit_of=Original(one.row.url, one.row.fetched_at))
    plain = visited("http://example.org/3", b"<p>three", headers=(HTML,))
    first, second, third = _written(tmp_path, one, two, plain, warc_compression=compression)
    folder = tmp_path / "warc"

    def read(
        place: RecordPlace, original: RecordPlace | None = None, *, is_rendered: bool = True
    ) -> tuple[bytes, bool]:
        page = _read(folder, ArchivedPage(place, original, is_rendered=is_rendered))
        return page.body.removeprefix(BOM_UTF8), page.is_rendered

    assert read(first) == ("<p>Größe".encode(), True)
    assert read(second, first) == read(second) == (b"<p>two", True)
    assert read(second, first, is_rendered=False) == read(first, is_rendered=False) == (TEXT, False)
    assert read(third) == (b"<p>three", False)
    path = folder / first.file
    data = bytearray(path.read_bytes())
    with path.open("rb") as file:
        [*_, conversion] = [one.stream_pos for one in ArchiveIterator(file) if one.record_type == CONVERSION]
    data[conversion + 60] ^= 16
    path.write_bytes(data)
    assert read(first) == ("<p>Größe".encode(), True)
    with pytest.raises(DamagedError, match=r"http://example\.org/2"):
        read(second, first)


def test_a_rendered_page_is_read_from_a_store(tmp_path: Path) -> None:
    pages = [_rendered(f"http://example.org/{number}", b"<p>%d" % number) for number in range(3)]
    places = _written(tmp_path / "c", *pages)
    (tmp_path / "store").mkdir()
    (tmp_path / "c/warc").rename(tmp_path / "store/warc")
    (tmp_path / "c/crawl.toml").write_text(f'[archive]\nstore = "file://{tmp_path}/store"\n[progress]\n')
    with RecordBodies(tmp_path / "c/warc", BoundedDecoder(FetchOptions()).decode) as bodies:
        read = [bodies.page(ArchivedPage(place, is_rendered=True)) for place in places]
    assert [page and page.body for page in read] == [BOM_UTF8 + b"<p>%d" % number for number in range(3)]


def test_a_record_is_unpacked_once_and_a_large_one_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = b"<p>" + b"a b " * 40_000
    place, other = _written(tmp_path, visited(body=body, headers=(HTML,)), visited(body=body + b"c", headers=(HTML,)))
    unpacked: list[int] = []
    begin = Unpacked.begin
    monkeypatch.setattr(Unpacked, "begin", lambda self: (unpacked.append(1), begin(self))[1])
    monkeypatch.setattr("gossamer.results.export.bodies.ArchiveIterator", _of_plain_text)
    assert _read(tmp_path / "warc", ArchivedPage(place)).body == body
    assert len(unpacked) == 1
    monkeypatch.undo()
    monkeypatch.setattr("gossamer.results.export.bodies.READ_WHOLE_BYTES_MAX", 100_000)
    assert _read(tmp_path / "warc", ArchivedPage(other)).body == body + b"c"


def _of_plain_text(file: BinaryIO, **options: Any) -> ArchiveIterator:
    """FastWARC's reader, of a file that is not packed."""
    assert file.read(5) == b"WARC/"
    file.seek(0)
    return ArchiveIterator(file, **options)
