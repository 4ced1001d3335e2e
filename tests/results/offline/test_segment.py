"""Segments: what is written is read, in order, from anywhere; what is no segment is told in one line."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import duckdb
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gossamer.model.errors import ConfigError
from gossamer.model.links import Link
from gossamer.results.offline.merge import merge, split, summary
from gossamer.results.offline.segment import (
    ABOUT,
    BATCH_ROWS,
    GROUP_ROWS,
    SCHEMA,
    VALUE_BYTES_MAX,
    Segment,
    SegmentInfo,
    SegmentWriter,
    table_of,
)  # fmt: skip
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
def test_reading_begins_anywhere(tmp_path: Path) -> None:
    links = links_of(GROUP_ROWS + 5_000)
    written(tmp_path / "a.parquet", links)
    with closing(Segment(tmp_path / "a.parquet")) as segment:
        for start in (0, 1, 8_191, 8_192, GROUP_ROWS - 1, GROUP_ROWS, GROUP_ROWS + 4_999, GROUP_ROWS + 5_000):
            found = [link for part in segment.links(start) for link in part.links]
            assert found == links[start:], start


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
    pq.write_table(table_of([], [], []).replace_schema_metadata({ABOUT: b'{"version": 2}'}), newer)
    less = tmp_path / "less.parquet"
    pq.write_table(pa.table({"url": ["a"]}).replace_schema_metadata({ABOUT: b'{"version": 1}'}), less)
    for path, said in [
        (short, "cut short"), (foreign, "no segment; `gossamer segment build`"), (text, "no segment"),
        (newer, "version 2, newer than 1"), (less, "lacks partition"), (tmp_path / "none", "there is no file"),
        (tmp_path, "cannot read"),
    ]:  # fmt: skip
        with pytest.raises(ConfigError, match=said) as raised:
            Segment(path)
        assert "\n" not in str(raised.value)
        assert str(path) in str(raised.value)


def rewritten(path: Path, target: Path, **columns: pa.Array | pa.ChunkedArray) -> Path:
    """Write the rows of a segment again with some columns replaced, as another program does."""
    table = pq.read_table(path)
    for name, column in columns.items():
        table = table.set_column(table.schema.get_field_index(name), name, column)
    return saved(table, target)


def saved(table: pa.Table, target: Path) -> Path:
    pq.write_table(table.replace_schema_metadata({ABOUT: msgspec.json.encode(SegmentInfo(rules="{}"))}), target)
    return target


TEXT = [name for name in SCHEMA.names if not pa.types.is_integer(SCHEMA.field(name).type)]


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string()),
        pa.dictionary(pa.int32(), pa.large_string()),
    ],
    ids=str,
)  # fmt: skip
def test_columns_of_texts_may_be_of_any_kind_of_text(tmp_path: Path, kind: pa.DataType) -> None:
    links = links_of(50)
    written(tmp_path / "a.parquet", links)
    table = pq.read_table(tmp_path / "a.parquet")
    for name in TEXT:
        plain = table[name].combine_chunks()
        plain = plain.dictionary_decode() if pa.types.is_dictionary(plain.type) else plain
        column = plain.cast(kind.value_type).dictionary_encode() if pa.types.is_dictionary(kind) else plain.cast(kind)
        table = table.set_column(table.schema.get_field_index(name), name, column)
    with closing(Segment(saved(table, tmp_path / "b.parquet"))) as segment:
        assert [link for part in segment.links() for link in part.links] == links
    found, wanted = summary(tmp_path / "b.parquet", 3), summary(tmp_path / "a.parquet", 3)
    assert {name for name in wanted if found[name] != wanted[name]} <= {"file", "made_by", "sites"}


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint32(), pa.int32(), pa.uint16()], ids=str)
def test_columns_of_numbers_may_be_of_any_width(tmp_path: Path, kind: pa.DataType) -> None:
    links = links_of(50)
    written(tmp_path / "a.parquet", links)
    table = pq.read_table(tmp_path / "a.parquet")
    columns = {name: table[name].cast(kind) for name in ("partition", "level", "depth", "hops", "listed", "seed")}
    with closing(Segment(rewritten(tmp_path / "a.parquet", tmp_path / "b.parquet", **columns))) as segment:
        assert [link for part in segment.links() for link in part.links] == links


def test_a_segment_that_duckdb_and_pandas_wrote_again_is_read(tmp_path: Path) -> None:
    links = links_of(50)
    about = written(tmp_path / "a.parquet", links)
    said = msgspec.json.encode(about).decode().replace("'", "''")
    with duckdb.connect() as database:
        database.execute(
            f"COPY (FROM '{tmp_path}/a.parquet' ORDER BY partition, site) TO '{tmp_path}/b.parquet' "
            f"(FORMAT parquet, KV_METADATA {{'gossamer.segment': '{said}'}})"
        )
    assert summary(tmp_path / "b.parquet", 3)["urls"] == 50
    assert [one.urls for one in split(tmp_path / "b.parquet", tmp_path / "c.parquet", 2)] != [50, 0]
    merge([tmp_path / "a.parquet", tmp_path / "b.parquet"], tmp_path / "d.parquet")
    assert summary(tmp_path / "d.parquet", 3)["urls"] == 50


@pytest.mark.parametrize("name", [name for name in SCHEMA.names if name != "key"])
def test_a_row_without_a_value_is_reported_in_one_line(tmp_path: Path, name: str) -> None:
    written(tmp_path / "a.parquet", links_of(50))
    column = pq.read_table(tmp_path / "a.parquet")[name].to_pylist()
    kind = SCHEMA.field(name).type
    plain = pa.array([None, *column[1:]], kind.value_type if pa.types.is_dictionary(kind) else kind)
    path = rewritten(tmp_path / "a.parquet", tmp_path / "b.parquet", **{name: plain})
    with pytest.raises(ConfigError, match=f"has rows without {name}; make it without them") as raised:
        summary(path, 3)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("url", pa.array([1] * 50), "the column url is of int64; write text"),
        ("url", pa.array([b"a"] * 50), "the column url is of binary; write text"),
        ("depth", pa.array([0.5] * 50), "the column depth is of double; write whole numbers"),
        ("host", pa.array([["a"]] * 50), "the column host is of list<"),
        ("partition", pa.array([-1] * 50), "a partition that does not fit"),
        ("level", pa.array([1_000] * 50), "a level that does not fit"),
        ("seed", pa.array([True] * 50), "the column seed is of bool; write whole numbers"),
    ],
)
def test_columns_of_other_types_are_reported_in_one_line(
    tmp_path: Path, name: str, values: pa.Array, said: str
) -> None:
    written(tmp_path / "a.parquet", links_of(50))
    path = rewritten(tmp_path / "a.parquet", tmp_path / "b.parquet", **{name: values})
    with pytest.raises(ConfigError, match=said) as raised:
        summary(path, 3)
    assert "\n" not in str(raised.value)


def test_rows_that_are_not_sorted_are_not_split_or_merged(tmp_path: Path) -> None:
    written(tmp_path / "a.parquet", links_of(50))
    table = pq.read_table(tmp_path / "a.parquet")
    saved(table.take(list(reversed(range(50)))), tmp_path / "b.parquet")
    for work in (
        lambda: split(tmp_path / "b.parquet", tmp_path / "c.parquet", 2),
        lambda: merge([tmp_path / "b.parquet"], tmp_path / "c.parquet"),
    ):
        with pytest.raises(ConfigError, match="is not sorted: write it again with ORDER BY partition, site"):
            work()


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


def read_with(folder: Path, rows: int, **columns: pa.Array) -> str:
    """Return why a segment with other columns is not read."""
    written(folder / "a.parquet", links_of(rows))
    path = rewritten(folder / "a.parquet", folder / "b.parquet", **columns)
    with pytest.raises(ConfigError) as raised:
        summary(path, 3)
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize("name", TEXT)
def test_a_text_that_is_longer_than_any_url_is_refused(tmp_path: Path, name: str) -> None:
    plain = pa.array(["x" * (VALUE_BYTES_MAX + 1), *["http://a.example/"] * 999])
    assert f"a {name} of 16,385 bytes; 16,384 is the most" in read_with(tmp_path, 1_000, **{name: plain})


def test_texts_that_do_not_fit_in_memory_are_not_read(tmp_path: Path) -> None:
    said = read_with(tmp_path, 1, referrer=pa.array(["x" * 40_000_000]))
    assert "bytes of text in a row group of 1 rows" in said


def test_a_text_that_many_rows_share_is_read_once(tmp_path: Path) -> None:
    """As text of each row it would have 800 MB."""
    said = read_with(tmp_path, BATCH_ROWS, referrer=pa.array(["http://a.example/" + "x" * 100_000] * BATCH_ROWS))
    assert "a referrer of 100,017 bytes" in said
