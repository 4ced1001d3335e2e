"""Captures of one address at several times, and the records that refer to them."""

from __future__ import annotations

import gzip
import json
from hashlib import sha256
from pathlib import Path

import pytest

from tests.commands import run
from tests.results.imports.archives import (
    HOST,
    Stored,
    digest_of,
    do_import,
    packed,
    page,
    rows,
    write_wacz,
    write_warc,
)
from tests.results.imports.test_records import ARC, arc

FIRST = page(1, 2)
LAST = page(1, 3)
DAY = "2026-01-0{}T00:00:00Z"
SAME = "http://netpreserve.org/warc/1.0/revisit/identical-payload-digest"


def revisit(url: str, of: bytes, day: int, original: str = f"{HOST}/p1", status: str = "200 OK") -> Stored:
    fields = {
        "WARC-Profile": SAME,
        "WARC-Payload-Digest": digest_of(of),
        "WARC-Refers-To-Target-URI": original,
        "WARC-Refers-To-Date": DAY.format(1),
    }
    return Stored(url, b"", DAY.format(day), "revisit", status, fields=fields)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return a crawl of archives whose names are not in the order of their times."""
    write_warc(tmp_path / "a-later.warc.gz", [
        revisit(f"{HOST}/p1", FIRST, 2),
        revisit(f"{HOST}/copy", FIRST, 2),
        Stored(f"{HOST}/p1", LAST, DAY.format(3)),
        revisit(f"{HOST}/p1", LAST, 4, status="304 Not Modified"),
    ])  # fmt: skip
    write_warc(tmp_path / "b-earlier.warc.gz", [Stored(f"{HOST}/p1", FIRST, DAY.format(1))])
    do_import(tmp_path / "crawl", tmp_path / "*.warc.gz")
    return tmp_path / "crawl"


def test_captures_become_the_history(directory: Path) -> None:
    found = rows(directory, "left(fetched_at::VARCHAR, 10), url, outcome, warc_type, duplicate_of")
    assert [row[1:] for row in found] == [
        (f"{HOST}/p1", "fetched", "response", ""),
        (f"{HOST}/copy", "fetched", "revisit", f"{HOST}/p1"),
        (f"{HOST}/p1", "not_modified", "revisit", ""),
        (f"{HOST}/p1", "fetched", "response", ""),
        (f"{HOST}/p1", "not_modified", "revisit", ""),
    ]
    says = json.loads(run("why", str(directory), f"{HOST}/p1", "--json")[1])
    assert says["fetched_at"].startswith("2026-01-04")


def test_revisits_find_their_payload_in_another_file(directory: Path, tmp_path: Path) -> None:
    target = tmp_path / "md"
    assert run("export", str(directory), "--to", "markdown", "-o", str(target))[0] == 0
    written = {path.name: path.read_text() for path in target.rglob("*.md")}
    assert any("copy" in name and "The river of page 1" in text for name, text in written.items()), written.keys()


def test_changes_between_captures(directory: Path) -> None:
    status, out, err = run("changes", str(directory), "--json")
    assert status == 0, err
    found = [json.loads(line) for line in out.splitlines()]
    assert [(one["at"][:10], one["change"], one["url"]) for one in found] == [
        ("2026-01-01", "appeared", f"{HOST}/p1"),
        ("2026-01-02", "appeared", f"{HOST}/copy"),
        ("2026-01-03", "changed", f"{HOST}/p1"),
    ]
    versions = run("changes", str(directory), "--url", f"{HOST}/p1", "--json")[1].splitlines()
    assert [json.loads(line)["change"] for line in versions] == ["appeared", "same", "changed", "same"]


def test_a_capture_in_two_archives_is_no_change_and_an_error_is_one(tmp_path: Path) -> None:
    """As of a collection that is there packed and unpacked."""
    captures = [
        Stored(f"{HOST}/p1", FIRST, DAY.format(1)),
        Stored(f"{HOST}/p1", b"gone", DAY.format(2), status="404 Not Found"),
        Stored(f"{HOST}/p1", b"gone", DAY.format(3), status="410 Gone"),
        Stored(f"{HOST}/p1", b"busy", DAY.format(4), status="503 Busy"),
        Stored(f"{HOST}/p1", FIRST, DAY.format(5)),
    ]
    write_warc(tmp_path / "a.warc.gz", captures)
    write_warc(tmp_path / "b.warc.gz", [*captures, Stored(f"{HOST}/p2", LAST)])
    do_import(tmp_path / "crawl", tmp_path / "*.warc.gz")
    out = run("changes", str(tmp_path / "crawl"), "--json")[1]
    found = [json.loads(line) for line in out.splitlines()]
    assert [(one["at"][:10], one["change"]) for one in found if one["url"] == f"{HOST}/p1"] == [
        ("2026-01-01", "appeared"),
        ("2026-01-02", "vanished"),
        ("2026-01-05", "appeared"),
    ]


@pytest.mark.parametrize("how", ["--link", "--copy"])
@pytest.mark.parametrize(
    "digest",
    ["sha256:" + sha256(FIRST).hexdigest(), "sha-256:" + sha256(FIRST).hexdigest(), "md5:x", digest_of(b"its chunks")],
)
def test_digests_of_any_kind_lead_to_the_payload(tmp_path: Path, digest: str, how: str) -> None:
    """Browsers' crawlers write SHA-256, and wget the digest of a chunked body. The crawl knows payloads by its own."""
    fields = {"WARC-Payload-Digest": digest, "WARC-Refers-To-Target-URI": "http://b.example/p1"}
    archive = write_warc(tmp_path / "a.warc.gz", [
        Stored("http://b.example/p1", FIRST, DAY.format(1), fields={"WARC-Payload-Digest": digest}),
        Stored(f"{HOST}/copy", b"", DAY.format(2), "revisit", fields=fields),
        Stored("http://b.example/p1", b"", DAY.format(3), "revisit", "304 Not Modified", fields=fields),
        Stored("http://b.example/bare", b"", DAY.format(4), "revisit", fields={"WARC-Payload-Digest": digest}),
    ])  # fmt: skip
    do_import(tmp_path / "crawl", archive, how)
    found = rows(tmp_path / "crawl", "url, outcome, body_bytes, digest")
    assert found == [
        (f"{HOST}/copy", "fetched", len(FIRST), digest_of(FIRST)),
        ("http://b.example/bare", "fetched", len(FIRST), digest_of(FIRST)),
        ("http://b.example/p1", "fetched", len(FIRST), digest_of(FIRST)),
        ("http://b.example/p1", "not_modified", len(FIRST), digest_of(FIRST)),
    ]
    assert run("export", str(tmp_path / "crawl"), "--to", "markdown", "-o", str(tmp_path / "md"))[0] == 0
    texts = [path.read_text() for path in (tmp_path / "md").rglob("*.md")]
    assert len(texts) == 3
    assert all("The river of page 1" in text for text in texts)


def test_a_revisit_without_its_original_keeps_the_digest_of_the_archive(tmp_path: Path) -> None:
    archive = write_warc(tmp_path / "a.warc.gz", [revisit(f"{HOST}/p1", FIRST, 2)])
    do_import(tmp_path / "crawl", archive)
    assert rows(tmp_path / "crawl", "digest, body_bytes") == [(digest_of(FIRST), 0)]


def test_a_revisit_without_a_head_is_the_page_of_its_original(tmp_path: Path) -> None:
    """Of warcit and webrecorder: the record has no block, and the copy another address."""
    fields = {"WARC-Profile": SAME, "WARC-Payload-Digest": digest_of(FIRST)}
    original = {"WARC-Refers-To-Target-URI": f"{HOST}/p1", "WARC-Refers-To-Date": DAY.format(1)}
    archive = write_warc(tmp_path / "a.warc.gz", [
        Stored(f"{HOST}/p1", FIRST, DAY.format(1)),
        headless(f"{HOST}/copy", fields | original),
        headless(f"{HOST}/bare", fields),
        headless(f"{HOST}/p1", fields | original),
    ])  # fmt: skip
    do_import(tmp_path / "crawl", archive)
    assert rows(tmp_path / "crawl", "url, outcome, status, error, media_type") == [
        (f"{HOST}/bare", "fetched", 200, "", "text/html"),
        (f"{HOST}/copy", "fetched", 200, "", "text/html"),
        (f"{HOST}/p1", "fetched", 200, "", "text/html"),
        (f"{HOST}/p1", "not_modified", 200, "", "text/html"),
    ]
    assert run("export", str(tmp_path / "crawl"), "--to", "markdown", "-o", str(tmp_path / "md"))[0] == 0
    texts = [path.read_text() for path in (tmp_path / "md").rglob("*.md")]
    assert len(texts) == 3
    assert all("The river of page 1" in text for text in texts)


def headless(url: str, fields: dict[str, str]) -> bytes:
    """Return a revisit record that refers to a payload and has no block."""
    lines = ["WARC/1.0", "WARC-Type: revisit", f"WARC-Target-URI: {url}", f"WARC-Date: {DAY.format(5)}"]
    lines += [f"{name}: {value}" for name, value in fields.items()]
    return gzip.compress("\r\n".join([*lines, "Content-Length: 0", "", "", "", ""]).encode(), mtime=0)


def test_records_without_ids_are_known_by_their_content(tmp_path: Path) -> None:
    """An ARC file that has grown, and the copies that an import made of its records."""
    parts = [arc(f"{HOST}:80/p{number}", page(number, number + 1)) for number in (1, 2, 3)]
    (tmp_path / "a.arc").write_bytes(ARC + b"".join(parts[:2]))
    do_import(tmp_path / "crawl", tmp_path / "a.arc")
    (tmp_path / "a.arc").write_bytes(ARC + b"".join(parts))
    assert "Imported 1 capture; left out: repeated record 2," in do_import(tmp_path / "crawl", tmp_path / "a.arc")
    out = do_import(tmp_path / "again", tmp_path / "crawl/warc", tmp_path / "a.arc")
    assert "Imported 3 captures; left out: metadata records 3, repeated record 3," in out
    assert rows(tmp_path / "again", "url") == [(f"{HOST}/p{number}",) for number in (1, 2, 3)]


def test_a_record_in_two_archives_is_imported_once(tmp_path: Path) -> None:
    """As of a WARC file and the WACZ that holds it, and of an archive that is added later. One with another date or
    payload is another.
    """
    first, last = ({"WARC-Record-ID": f"<urn:uuid:{number}>"} for number in (1, 2))
    captures = [
        Stored(f"{HOST}/p1", FIRST, DAY.format(1), fields=first),
        Stored(f"{HOST}/robots.txt", b"User-agent: *", DAY.format(1), fields={"WARC-Record-ID": "<urn:uuid:9>"}),
        Stored(f"{HOST}/p1", LAST, DAY.format(2), fields=last),
    ]
    write_warc(tmp_path / "a.warc.gz", captures)
    write_wacz(tmp_path / "b.wacz", archive__a_warc_gz=packed([*captures, Stored(f"{HOST}/p2", LAST)]))
    do_import(tmp_path / "crawl", tmp_path / "a.warc.gz")
    out = do_import(tmp_path / "crawl", tmp_path / "a.warc.gz", tmp_path / "b.wacz")
    assert "Imported 3 captures; left out: repeated record 3, robots.txt 1\n" in out
    others = [
        Stored(f"{HOST}/p1", FIRST, DAY.format(3), fields=first),
        Stored(f"{HOST}/p1", LAST, DAY.format(2), fields=first),
        Stored(f"{HOST}/p2", FIRST, DAY.format(1), fields=first),
    ]
    write_warc(tmp_path / "c.warc.gz", others)
    out = do_import(tmp_path / "crawl", tmp_path / "c.warc.gz")
    assert "Imported 3 captures\n" in out
    urls = [url for (url,) in rows(tmp_path / "crawl", "url")]
    assert sorted(urls) == [f"{HOST}/p1"] * 4 + [f"{HOST}/p2"] * 2
    assert run("verify", str(tmp_path / "crawl"), "--deep")[0] == 0


@pytest.mark.parametrize("how", ["--link", "--copy"])
def test_a_plain_304_is_a_revisit_of_the_capture_before_it(tmp_path: Path, how: str) -> None:
    """Browsers and proxies record what a server answered to their cached copy. Without a capture it is an error."""
    write_warc(tmp_path / "a.warc.gz", [
        Stored(f"{HOST}/p1", b"", DAY.format(1), status="304 Not Modified", headers="ETag: 1\r\n"),
        Stored(f"{HOST}/p1", FIRST, DAY.format(2)),
        revisit(f"{HOST}/p1", FIRST, 3),
        Stored(f"{HOST}/p1", b"", DAY.format(4), status="304 Not Modified", headers="ETag: 1\r\n"),
        Stored(f"{HOST}/p1", LAST, DAY.format(5)),
        Stored(f"{HOST}/p1", b"", DAY.format(6), status="304 Not Modified", headers="ETag: 2\r\n"),
    ])  # fmt: skip
    do_import(tmp_path / "crawl", tmp_path / "a.warc.gz", how)
    none = digest_of(b"")
    found = rows(tmp_path / "crawl", "day(fetched_at) AS day, outcome, status, digest, body_bytes, warc_type")
    assert found == [
        (1, "http_error", 304, none, 0, "response"),
        (2, "fetched", 200, digest_of(FIRST), len(FIRST), "response"),
        (3, "not_modified", 200, digest_of(FIRST), len(FIRST), "revisit"),
        (4, "not_modified", 304, digest_of(FIRST), len(FIRST), "revisit"),
        (5, "fetched", 200, digest_of(LAST), len(LAST), "response"),
        (6, "not_modified", 304, digest_of(LAST), len(LAST), "revisit"),
    ]
    assert run("verify", str(tmp_path / "crawl"), "--deep")[0] == 0
    assert run("export", str(tmp_path / "crawl"), "--to", "markdown", "-o", str(tmp_path / "md"))[0] == 0
    (text,) = [path.read_text() for path in (tmp_path / "md").rglob("*.md")]
    assert digest_of(LAST) in text
    assert "The river of page 1" in text
    changes = run("changes", str(tmp_path / "crawl"), "--url", f"{HOST}/p1", "--json")[1].splitlines()
    assert [json.loads(line)["change"] for line in changes][-4:] == ["same", "same", "changed", "same"]
