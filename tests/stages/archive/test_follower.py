"""Parquet from logs, through crashes at every step."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from gossamer.model.pages import Archived, EpochRow, Visited
from gossamer.model.visits import Reply
from gossamer.stages.archive import follower as follower_module
from gossamer.stages.archive.archive import Archives, Followers, Following
from gossamer.stages.archive.follower import Follower, make_parquet
from gossamer.stages.archive.options import ArchiveOptions
from gossamer.stages.archive.schema import LINKS, PAGES
from gossamer.stages.archive.tables import TableWriters
from gossamer.stages.archive.warc import WarcArchive, WarcInfo

from .web import Shard, visited


def crawled(directory: Path, pages: int = 5) -> Shard:
    """A shard whose two logs are finished."""
    shard = Shard(directory)
    into = TableWriters(ArchiveOptions(), shard.journals)
    for number in range(pages):
        into.add(visited(f"http://example.org/{number}", links=3))
        into.cut()
    into.close()
    shard.commit()
    return shard


def urls(directory: Path) -> list[str]:
    """All rows of all Parquet files that the folder shows."""
    return [url for path in sorted(directory.glob("pages/*.parquet")) for url in pq.read_table(path)["url"].to_pylist()]


def files(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file())


WANTED = [f"http://example.org/{number}" for number in range(5)]
FINISHED = ["links/links-000-0001-000001.parquet", "pages/pages-000-0001-000001.parquet"]


def test_finished_logs_become_parquet(tmp_path: Path) -> None:
    shard = crawled(tmp_path)
    follower = Follower(shard.journals)
    while conversion := follower.next():
        conversion.settle(conversion.make())
    shard.commit()
    assert files(tmp_path) == FINISHED
    assert urls(tmp_path) == WANTED
    pages = pq.ParquetFile(tmp_path / FINISHED[1])
    assert pages.schema_arrow.equals(PAGES)
    assert pq.read_schema(tmp_path / FINISHED[0]).equals(LINKS)
    assert pages.metadata.row_group(0).column(0).compression == "ZSTD"
    assert [entry.length for entry in shard.journals.finals("pages/")] == [(tmp_path / FINISHED[1]).stat().st_size]


def test_an_open_log_is_left_alone(tmp_path: Path) -> None:
    shard = Shard(tmp_path)
    into = TableWriters(ArchiveOptions(), shard.journals)
    into.add(visited())
    into.cut()
    shard.commit()
    assert Follower(shard.journals).next() is None
    into.close()
    assert Follower(shard.journals).next() is None  # Closed, not committed.
    shard.commit()
    assert Follower(shard.journals).next() is not None


@pytest.mark.parametrize("moment", ["writing", "published", "settled", "committed"])
def test_a_crash_at_any_step_gives_the_same_files(tmp_path: Path, moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shard = crawled(tmp_path)
    follower = Follower(shard.journals)
    conversion = follower.next()
    assert conversion is not None
    if moment == "writing":
        with monkeypatch.context() as patch:
            patch.setattr(follower_module, "publish", _die)
            with pytest.raises(KeyboardInterrupt):
                conversion.make()
        assert any(".tmp" in name for name in files(tmp_path))
        assert not list(tmp_path.glob("*/*.parquet"))
    else:
        length = conversion.make()
        if moment != "published":
            conversion.settle(length)
        if moment == "committed":  # The commit is done, its consequences for files are not.
            manifest = shard.journals.cut()
            shard.journals.sync()
            shard.manifest = manifest
    shard = shard.crash()
    follower = Follower(shard.journals)
    follower.sweep()
    follower.finish()
    shard.commit()
    assert files(tmp_path) == FINISHED
    assert urls(tmp_path) == WANTED


def _die(*_: object) -> None:
    raise KeyboardInterrupt


def test_the_same_log_gives_the_same_bytes(tmp_path: Path) -> None:
    crawled(tmp_path)
    source = tmp_path / "state/tables/pages-000-0001-000001.journal"
    target = tmp_path / FINISHED[1]
    make_parquet(source, target)
    first = target.read_bytes()
    assert make_parquet(source, target).length == len(first)
    assert target.read_bytes() == first


def test_rows_are_grouped_whatever_the_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower_module, "ROW_GROUP_ROWS_MAX", 4)
    shard = crawled(tmp_path, pages=10)
    Follower(shard.journals).finish()
    metadata = pq.read_metadata(tmp_path / FINISHED[1])
    assert [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)] == [4, 4, 2]
    assert len(urls(tmp_path)) == 10


def test_numbers_of_dropped_logs_are_not_given_again(tmp_path: Path) -> None:
    shard = crawled(tmp_path)
    Follower(shard.journals).finish()
    shard.commit()
    shard = shard.crash()
    into = TableWriters(ArchiveOptions(), shard.journals)
    into.add(visited("http://example.org/later"))
    into.close()
    shard.commit()
    Follower(shard.journals).finish()
    shard.commit()
    assert urls(tmp_path) == [*WANTED, "http://example.org/later"]


def test_several_archives_are_one_and_rows_know_their_record(tmp_path: Path) -> None:
    shard = Shard(tmp_path)
    options = ArchiveOptions()
    both = Archives(
        [WarcArchive(options, shard.journals, WarcInfo("gossamer/1")), TableWriters(options, shard.journals)]
    )
    place = both.add(visited())
    both.cut()
    both.close()
    shard.commit()
    Follower(shard.journals).finish()
    row = pq.read_table(tmp_path / FINISHED[1]).to_pylist()[0]
    assert (row["warc_file"], row["warc_offset"], row["warc_length"]) == (
        place.warc_file,
        place.warc_offset,
        place.warc_length,
    )
    assert place.warc_file == "gossamer-000-0001-000001.warc.gz"
    assert row["digest"].startswith("sha1:")


class Counting:
    """An archive that counts what it gets beside pages."""

    def __init__(self) -> None:
        self.got: list[str] = []

    def add(self, visited: Visited) -> Archived:
        self.got.append(visited.row.url)
        return Archived()

    def add_prerequisite(self, reply: Reply, via: str, link_type: str) -> None:
        self.got.append(f"{link_type} {via} {reply.url}")

    def add_epoch(self, row: EpochRow) -> None:
        self.got.append(f"epoch {row.epoch}")

    def cut(self) -> None:
        self.got.append("cut")

    def close(self) -> None:
        self.got.append("closed")


def test_what_arrives_for_no_page_after_the_end_is_dropped() -> None:
    one = Counting()
    archives = Archives([one])
    reply = visited().reply
    assert reply is not None
    for _ in range(2):
        archives.add_prerequisite(reply, "http://example.org/", "robots")
        archives.add_epoch(EpochRow(7, 0.0, 0.0, 0.0, 1, 1, 0))
        archives.close()
    assert one.got == [f"robots http://example.org/ {reply.url}", "epoch 7", "closed"]


def test_no_task_begins_while_the_disk_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gossamer.stages.archive.archive.FOLLOW_S", 0.0)
    asked: list[int] = []

    class Asked(Following):
        def next(self) -> None:
            asked.append(len(held))

    held = [False, False, True, True]

    async def follow() -> None:
        await Followers([Asked()]).run(held.pop)

    with pytest.raises(IndexError):
        asyncio.run(follow())
    assert asked == [1, 0]
