"""The index, against the tool of those who read it."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tracemalloc
from contextlib import ExitStack
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from gossamer.model.pages import Original
from gossamer.stages.archive import cdxj
from gossamer.stages.archive.archive import Archives
from gossamer.stages.archive.cdxj import IndexEntry, entries_of_tables, entries_of_warcs, write_index
from gossamer.stages.archive.follower import Follower
from gossamer.stages.archive.options import ArchiveOptions
from gossamer.stages.archive.tables import TableWriters
from gossamer.stages.archive.warc import WarcArchive, WarcInfo

from .web import START, Shard, assortment, visited


def crawled(directory: Path) -> Path:
    shard = Shard(directory)
    options = ArchiveOptions(warc_segment_bytes_max=6000)
    archive = Archives(
        [WarcArchive(options, shard.journals, WarcInfo("gossamer/1")), TableWriters(options, shard.journals)]
    )
    for visit in assortment():
        archive.add(visit)
    original = Original("http://example.org/docs/page.html", START)
    archive.add(visited("http://example.org/copy", revisit_of=original, at=START + 2.7))
    near = visited("http://example.org/near-copy", gzip.compress(b"x"), at=START + 3)
    near.row.duplicate_of = original.url  # Same content, other payload: archived whole.
    archive.add(near)
    failed = visited("http://example.org/failed")
    failed.reply = None
    archive.add(failed)
    archive.close()
    shard.commit()
    Follower(shard.journals).finish()
    shard.commit()
    return directory


def from_tables(directory: Path) -> list[str]:
    target = directory / "index.cdxj"
    write_index(target, entries_of_tables(sorted(directory.glob("pages/*.parquet"))))
    return target.read_text().splitlines()


def test_the_index_equals_that_of_cdxj_indexer(tmp_path: Path) -> None:
    lines = from_tables(crawled(tmp_path))
    warcs = sorted((tmp_path / "warc").iterdir())
    assert len(warcs) > 1
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", "from cdxj_indexer.main import main; main()", "-s", *map(str, warcs)],
        check=True,
        capture_output=True,
        text=True,
    )
    theirs = run.stdout.splitlines()
    assert len(lines) == len(theirs) == len(assortment()) + 2
    for our_line, their_line in zip(lines, theirs, strict=True):
        our_key, our_stamp, ours = our_line.split(" ", 2)
        their_key, their_stamp, wanted = their_line.split(" ", 2)
        assert (our_key, our_stamp) == (their_key, their_stamp)
        assert json.loads(ours) == json.loads(wanted), our_line
    assert any("mime" not in json.loads(line.split(" ", 2)[2]) for line in theirs)


def test_tables_and_warcs_give_the_same_index(tmp_path: Path) -> None:
    lines = from_tables(crawled(tmp_path))
    target = tmp_path / "other.cdxj"
    assert write_index(target, entries_of_warcs(sorted((tmp_path / "warc").iterdir()))) == len(lines)
    ours = [json.loads(line.split(" ", 2)[2]) for line in lines]
    assert target.read_text().splitlines() == lines
    assert [one["url"] for one in ours if one.get("mime") == "warc/revisit"] == ["http://example.org/copy"]


def test_every_line_leads_to_its_record(tmp_path: Path) -> None:
    for line in from_tables(crawled(tmp_path)):
        entry = json.loads(line.split(" ", 2)[2])
        data = (tmp_path / "warc" / entry["filename"]).read_bytes()
        piece = data[int(entry["offset"]) : int(entry["offset"]) + int(entry["length"])]
        assert f"WARC-Target-URI: {entry['url']}\r\n".encode() in gzip.decompress(piece)


def _entry(number: int) -> IndexEntry:
    host = (number * 7919) % 10007
    return IndexEntry(f"http://host{host}.example/Ä{number}", number, "text/html", "200", "sha1:X", 10, number, "f")


def test_lines_are_sorted_by_bytes_however_little_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cdxj, "FILES_MERGED_MAX", 4)
    target = tmp_path / "index.cdxj"
    assert write_index(target, map(_entry, range(1000)), sort_bytes_max=5000) == 1000
    lines = target.read_bytes().splitlines(keepends=True)
    assert lines == sorted(lines)
    assert lines == sorted(_entry(number).line() for number in range(1000))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index.cdxj", "state"], "and the sum of it"


def test_the_memory_of_lines_is_bounded_with_that_of_their_objects(tmp_path: Path) -> None:
    bytes_max = 1_000_000
    with ExitStack() as stack:
        tracemalloc.start()
        stack.callback(tracemalloc.stop)
        lines = cdxj._sort_lines((b"%d\n" % number for number in range(60_000)), tmp_path, bytes_max, stack)
        assert sum(1 for _ in lines) == 60_000
        peak = tracemalloc.get_traced_memory()[1]
    assert peak < bytes_max * 1.2


def test_the_old_index_stands_until_the_new_one_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "index.cdxj"
    write_index(target, [_entry(1)])
    before = target.read_bytes()

    def entries() -> object:
        yield _entry(2)
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        write_index(target, entries())  # type: ignore[arg-type]
    assert target.read_bytes() == before
    (tmp_path / ".index.cdxj-leftover").mkdir()
    assert write_index(target, [_entry(1), _entry(1)]) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index.cdxj", "state"], "and the sum of it"


def test_no_pages_give_an_empty_index(tmp_path: Path) -> None:
    assert write_index(tmp_path / "index.cdxj", entries_of_tables([])) == 0
    assert (tmp_path / "index.cdxj").read_bytes() == b""


def test_a_304_leads_to_the_version_that_stood_then(tmp_path: Path) -> None:
    def entry(second: int, status: str, digest: str, offset: int, url: str = "http://a.test/") -> IndexEntry:
        mime = "warc/revisit" if status == "304" else "text/html"
        return IndexEntry(url, second, mime, status, digest, 10 + offset, offset, "one.warc.gz")

    entries = [
        entry(1, "200", "sha1:A", 1), entry(2, "304", "sha1:A", 2), entry(3, "404", "sha1:N", 3),
        entry(4, "304", "sha1:A", 4), entry(5, "200", "sha1:B", 5), entry(6, "304", "sha1:B", 6),
        entry(7, "304", "sha1:A", 7), entry(8, "304", "", 8), entry(1, "304", "sha1:A", 9, "http://b.test/"),
    ]  # fmt: skip
    write_index(tmp_path / "index", reversed(entries), 200)
    found = []
    for line in (tmp_path / "index").read_text().splitlines():
        _, stamp, fields = line.split(" ", 2)
        told = json.loads(fields)
        found.append((int(stamp[-2:]), told["status"], told["mime"], int(told["offset"]), int(told["length"])))
    assert found == [
        (1, "200", "text/html", 1, 11), (2, "200", "text/html", 1, 11), (3, "404", "text/html", 3, 13),
        (4, "200", "text/html", 1, 11), (5, "200", "text/html", 5, 15), (6, "200", "text/html", 5, 15),
        (7, "304", "warc/revisit", 7, 17), (8, "304", "warc/revisit", 8, 18), (1, "304", "warc/revisit", 9, 19),
    ]  # fmt: skip


def test_rows_of_earlier_versions_give_the_type_as_which_the_reply_was_read(tmp_path: Path) -> None:
    lines = from_tables(crawled(tmp_path))
    for path in tmp_path.glob("pages/*.parquet"):
        pq.write_table(pq.read_table(path).drop_columns(["sent_type"]), path)
    earlier = [json.loads(line.split(" ", 2)[2]) for line in from_tables(tmp_path)]
    assert len(earlier) == len(lines)
    assert {one["mime"] for one in earlier} == {"text/html", "warc/revisit"}
