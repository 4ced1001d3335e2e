"""Segments: what is written is read, in order, from anywhere; what is no segment is told in one line."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gossamer.model.errors import ConfigError
from gossamer.model.links import Link
from gossamer.offline.segment import GROUP_ROWS, METADATA, SCHEMA, Segment, SegmentInfo, SegmentWriter, table_of
from gossamer.url.name import Namer


def links_of(count: int) -> list[Link]:
    namer = Namer()
    texts = [f"http://www.site{number % 997}.example/%7Epage/{number}" for number in range(count)]
    named = [url for url in namer.names(texts) if url is not None]
    links = [Link(url, "anchor", at % 5, at % 2, f"http://{url.host}/") for at, url in enumerate(named)]
    return sorted(links, key=lambda link: (link.url.partition, link.url.site))


def written(path: Path, links: list[Link], step: int = 1_000) -> SegmentInfo:
    with SegmentWriter(path, SegmentInfo(made_by="a test", rules="{}")) as writer:
        for at in range(0, len(links), step):
            part = links[at : at + step]
            writer.write_links(part, [1] * len(part), [2] * len(part))
    with closing(Segment(path)) as segment:
        return segment.about


@pytest.mark.heavy
def test_what_is_written_is_read(tmp_path: Path) -> None:
    links = links_of(GROUP_ROWS + 5_000)
    about = written(tmp_path / "a.parquet", links)
    assert (about.urls, about.sites) == (len(links), len({link.url.site for link in links}))
    with closing(Segment(tmp_path / "a.parquet")) as segment:
        rows = list(segment.links())
        assert segment.rows == len(links)
    assert [link for part in rows for link in part.links] == links
    assert {level for part in rows for level in part.levels} == {1}
    assert {times for part in rows for times in part.listed} == {2}
    assert rows[-1].end == len(links)
    assert any(link.url.key != link.url.text for link in links), "keys that are not the URL are among them"


@pytest.mark.heavy
@pytest.mark.parametrize(
    "start", [0, 1, 8_191, 8_192, GROUP_ROWS - 1, GROUP_ROWS, GROUP_ROWS + 4_999, GROUP_ROWS + 5_000]
)
def test_reading_begins_anywhere(tmp_path: Path, start: int) -> None:
    links = links_of(GROUP_ROWS + 5_000)
    written(tmp_path / "a.parquet", links)
    with closing(Segment(tmp_path / "a.parquet")) as segment:
        found = [link for part in segment.links(start) for link in part.links]
    assert found == links[start:]


def test_anybody_can_ask_it_questions(tmp_path: Path) -> None:
    links = links_of(3_000)
    written(tmp_path / "a.parquet", links)
    question = f"SELECT count(*), count(DISTINCT site), min(depth) FROM '{tmp_path}/a.parquet'"
    assert duckdb.connect().execute(question).fetchone() == (3_000, 997, 0)


def test_it_is_small_because_keys_stand_in_it_only_where_they_differ(tmp_path: Path) -> None:
    links = links_of(3_000)
    plain = [Link(url, "anchor", 1) for url in Namer().names([f"http://a.example/{n}" for n in range(100)]) if url]
    written(tmp_path / "a.parquet", plain)
    assert pq.read_table(tmp_path / "a.parquet")["key"].null_count == 100
    written(tmp_path / "b.parquet", links)
    assert pq.read_table(tmp_path / "b.parquet")["key"].null_count == 0


def test_a_writer_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(AssertionError), SegmentWriter(tmp_path / "a.parquet", SegmentInfo()) as writer:
        writer.write_links(links_of(10)[::-1], [0] * 10, [1] * 10)
    assert not list(tmp_path.iterdir())


def test_rows_out_of_order_are_our_mistake(tmp_path: Path) -> None:
    links = links_of(2_000)
    writer = SegmentWriter(tmp_path / "a", SegmentInfo())
    writer.write_links(links[1_000:], [0] * 1_000, [1] * 1_000)
    with pytest.raises(AssertionError, match="by partition and site"):
        writer.write_links(links[:1_000], [0] * 1_000, [1] * 1_000)


def test_an_empty_segment_is_one(tmp_path: Path) -> None:
    assert written(tmp_path / "a.parquet", []).urls == 0
    with closing(Segment(tmp_path / "a.parquet")) as segment:
        assert list(segment.links()) == []


def test_what_is_no_segment_is_reported_in_one_line(tmp_path: Path) -> None:
    whole = tmp_path / "whole.parquet"
    written(whole, links_of(2_000))
    short, foreign, text = tmp_path / "short.parquet", tmp_path / "foreign.parquet", tmp_path / "urls.txt"
    short.write_bytes(whole.read_bytes()[:-500])
    pq.write_table(pa.table({"url": ["http://a.example/"]}), foreign)
    text.write_text("http://a.example/\n")
    newer = tmp_path / "newer.parquet"
    pq.write_table(table_of([], [], []).replace_schema_metadata({METADATA: b'{"version": 2}'}), newer)
    less = tmp_path / "less.parquet"
    pq.write_table(pa.table({"url": ["a"]}).replace_schema_metadata({METADATA: b'{"version": 1}'}), less)
    for path, said in [
        (short, "cut short"), (foreign, "no segment; `gossamer segment build`"), (text, "no segment"),
        (newer, "version 2, newer than 1"), (less, "lacks partition"), (tmp_path / "none", "there is no file"),
        (tmp_path, "cannot read"),
    ]:  # fmt: skip
        with pytest.raises(ConfigError, match=said) as raised:
            Segment(path)
        assert "\n" not in str(raised.value)
        assert str(path) in str(raised.value)


def test_damage_inside_is_found_when_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    written(path, links_of(5_000))
    data = bytearray(path.read_bytes())
    middle = data.index(b"PAR1") + 4_000
    data[middle : middle + 64] = bytes(64)
    path.write_bytes(data)
    with pytest.raises(ConfigError, match="damaged"), closing(Segment(path)) as segment:
        for _ in segment.links():
            pass


def test_the_columns_are_those_that_are_documented() -> None:
    assert SCHEMA.names == [
        "partition", "site", "host", "url", "key", "fingerprint", "level", "depth", "hops", "link_type", "referrer",
        "listed", "seed",
    ]  # fmt: skip
