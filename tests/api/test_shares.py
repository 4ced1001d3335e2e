"""Shares of an export hold together what the export of the whole crawl holds, each row once."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pyarrow.parquet as pq
import pytest
import tantivy

from gossamer.api.search import build_index_of, search_of
from gossamer.api.shares import INDEX, ShareOrder, SharePart, build_index_on_cluster, export_on_cluster, make_share
from gossamer.api.views import export_of
from gossamer.assembly.building import assemble
from gossamer.config import Config, effective_toml
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.model.errors import ConfigError
from gossamer.results.export.copies import Copies
from gossamer.results.export.corpus import earlier_export, join_corpora
from gossamer.results.export.database import join_databases
from gossamer.results.export.index import merge_indexes
from gossamer.results.export.opening import export_means
from gossamer.results.export.work import ExportFolder, ExportInputs, ExportOrder, Share
from gossamer.results.search.folder import FOLDER, indexes_of
from gossamer.results.search.index import POSITION, open_index, text_in
from tests.cluster.crawls import config_of
from tests.faults.shards import Shards

WEB = SimwebOptions(seed=4, hosts=8, hosts_per_site=1, pages=80, bytes_median=1_000, behaviours=("copies", "redirects"))
OPTIONS: dict[str, str | bool | int] = {
    "table": "",
    "where": "",
    "permitted": "",
    "unknown": False,
    "dedupe": "",
    "chunk_tokens": 512,
    "memory_bytes_max": 1 << 28,
}


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("shares") / "crawl"
    directory.mkdir()
    with SimwebProcess(WEB, directory.parent / "web") as simweb:
        config = config_of(simweb, directory, 2)
        (directory / "crawl.toml").write_text(effective_toml(config))
        assert asyncio.run(Shards(config, directory, 2, assemble).run()) == "finished"
    return directory


def make_all(
    crawl: Path, to: str, target: Path, of: int = 2, options: dict[str, str | bool | int] = OPTIONS
) -> list[SharePart]:
    target.mkdir()
    order = ShareOrder(str(crawl), str(target), to, options, of=of)
    parts = [make_share(order, target.as_uri(), number, lambda done, rows: None) for number in range(of)]
    return [msgspec.json.decode(part, type=SharePart) for part in parts]


def lines(paths: Iterator[Path]) -> Counter[bytes]:
    return Counter(line for path in paths for line in path.read_bytes().splitlines())


@pytest.mark.heavy
@pytest.mark.parametrize("of", [2, 3])
def test_rows_of_a_table_are_in_one_share(crawl: Path, of: int, tmp_path: Path) -> None:
    """Also where the crawl had another number of shards."""
    export_of(crawl, "jsonl", tmp_path / "whole.jsonl")
    parts = make_all(crawl, "jsonl", tmp_path / "parts", of)
    whole = lines(iter([tmp_path / "whole.jsonl"]))
    assert lines((tmp_path / "parts").glob("shard-*.jsonl")) == whole
    assert sum(part.done.rows["pages"] for part in parts) == whole.total()
    assert all(part.done.rows["pages"] for part in parts[:2])


@pytest.mark.heavy
@pytest.mark.parametrize(("to", "pattern"), [("markdown", "*.md"), ("pagefiles", "links.log"), ("bulk", "*.ndjson*")])
def test_pages_are_in_one_share(crawl: Path, to: str, pattern: str, tmp_path: Path) -> None:
    export_of(crawl, to, tmp_path / "whole")
    [one, other] = make_all(crawl, to, tmp_path / "parts")
    assert lines((tmp_path / "parts").rglob(pattern)) == lines((tmp_path / "whole").rglob(pattern))
    assert not {file["path"] for file in one.files} & {file["path"] for file in other.files}


@pytest.mark.heavy
def test_the_pages_of_a_mirror_link_to_those_of_other_shares(crawl: Path, tmp_path: Path) -> None:
    export_of(crawl, "mirror", tmp_path / "whole")
    parts = make_all(crawl, "mirror", tmp_path / "parts")
    paths = [path for path in (tmp_path / "whole").rglob("*") if path.is_file()]
    whole = {str(path.relative_to(tmp_path / "whole")): path.read_bytes() for path in paths}
    found = {
        str(file["path"]): (tmp_path / f"parts/.shard-{part.number:03d}" / str(file["path"])).read_bytes()
        for part in parts
        for file in part.files
    }
    assert found == whole


def test_the_index_of_all_shares_is_that_of_the_crawl(crawl: Path, tmp_path: Path) -> None:
    export_of(crawl, "cdxj", tmp_path / "whole.cdxj")
    make_all(crawl, "cdxj", tmp_path / "parts")
    shares = sorted((tmp_path / "parts").glob(".shard-*"))
    merge_indexes(shares, tmp_path / "merged.cdxj")
    whole = (tmp_path / "whole.cdxj").read_bytes()
    assert (tmp_path / "merged.cdxj").read_bytes() == whole
    assert all(0 < len(share.read_bytes()) < len(whole) for share in shares)


@pytest.mark.parametrize(
    ("to", "of", "options"), [("duckdb", 2, {}), ("sqlite", 3, {"permitted": "search", "unknown": True})]
)
def test_the_database_of_all_shares_is_that_of_the_crawl(
    crawl: Path, to: str, of: int, options: dict[str, str | bool], tmp_path: Path
) -> None:
    """Tables, rows, types, comments, indexes and views; the third share has no row."""
    export_of(crawl, to, tmp_path / "whole", **options)
    parts = make_all(crawl, to, tmp_path / "parts", of, {**OPTIONS, **options})
    join_databases([tmp_path / f"parts/.shard-{n:03d}.{to}" for n in range(of)], tmp_path / "joined", to, 1 << 28)
    whole = content_of(to, tmp_path / "whole")
    assert content_of(to, tmp_path / "joined") == whole
    assert whole["pages"].total() == sum(part.done.rows["pages"] for part in parts) > 80


def content_of(to: str, file: Path) -> dict[str, Counter[str]]:
    """Return the rows of all tables and views by name, and what the database knows about those."""
    with closing(duckdb.connect(file, read_only=True) if to == "duckdb" else sqlite3.connect(file)) as database:

        def rows(sql: str) -> Counter[str]:
            found = database.execute(sql).fetchall()  # The order of rows changes the last digits of a mean.
            return Counter(repr([round(one, 9) if isinstance(one, float) else one for one in row]) for row in found)

        if to == "sqlite":
            names = database.execute("SELECT name FROM sqlite_master WHERE type <> 'index'").fetchall()
            about = rows("SELECT type, name, sql FROM sqlite_master")
        else:
            names = database.execute("SELECT table_name FROM information_schema.tables").fetchall()
            about = rows("SELECT table_name, column_name, data_type, comment FROM duckdb_columns() WHERE NOT internal")
        return {name: rows(f'SELECT * FROM "{name}"') for (name,) in names} | {"": about}


@pytest.mark.heavy
@pytest.mark.parametrize(("to", "of"), [("bulk", 2), ("datasets", 3)])
def test_copies_are_left_out_across_shares(crawl: Path, to: str, of: int, tmp_path: Path) -> None:
    export_of(crawl, "bulk", tmp_path / "earlier", where="host = 'h0001.d001.example'")
    options: dict[str, Any] = {"dedupe": "near", "against": [tmp_path / "earlier"]}
    alone = export_of(crawl, to, tmp_path / "whole", **options)
    make_all(crawl, to, tmp_path / "parts", of, {**OPTIONS, "dedupe": "near"})
    shares = sorted((tmp_path / "parts").glob(".shard-*"))
    means = export_means(Config())
    with ExportFolder(tmp_path / "joined", ExportOrder(str(crawl), to)) as work:
        work.begin(ExportInputs({"pages": []}, earlier=[earlier_export(tmp_path / "earlier")]))
        found = join_corpora(shares, work, to, Copies("near"), means, 1 << 28)
        work.finish()
    assert found == {**alone.rows, **alone.removed}
    assert found["exact"] > 3 < found["texts"]
    for name in ["duplicates.jsonl", *(["bulk-00001.ndjson"] if to == "bulk" else [])]:
        assert (tmp_path / "joined" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    for path in (tmp_path / "joined").rglob("*.parquet"):
        whole = tmp_path / "whole" / path.relative_to(tmp_path / "joined")
        assert pq.read_table(path).equals(pq.read_table(whole)), path


@pytest.mark.parametrize("to", ["cdxj", "sqlite"])
def test_an_index_becomes_one_file_and_so_needs_a_directory(crawl: Path, to: str) -> None:
    order = ShareOrder(str(crawl), "s3://bucket/index", to, OPTIONS)
    with pytest.raises(ConfigError, match="-o s3://bucket/index: one process writes the result; name a directory"):
        export_on_cluster(order, "127.0.0.1:9", lambda *_: None)


def test_the_address_of_something_else_is_named(crawl: Path, tmp_path: Path) -> None:
    order = ShareOrder(str(crawl), str(tmp_path / "out"), "jsonl", OPTIONS)
    with pytest.raises(ConfigError, match=r"--cluster http:.*: expected HOST:PORT of the head of a Ray"):
        export_on_cluster(order, "http://127.0.0.1:9", lambda *_: None)


def test_files_are_shared_by_the_number_of_their_shard() -> None:
    names = ["gossamer-000-0001-000001.warc.gz", "pages-005-0002-000010.parquet", "items.book-007-0001-000001.parquet"]
    assert [[Share(number, 3).has(name) for number in range(3)] for name in names] == [
        [True, False, False], [False, False, True], [False, True, False]
    ]  # fmt: skip
    assert Share(0, 3).has("foreign.warc.gz")


@pytest.mark.parametrize(
    ("to", "options", "line"),
    [
        ("markdown,search", {}, "gossamer search DIR --build --cluster"),
        ("duckdb,csv", {}, "--to duckdb,csv: the shares become one duckdb; export duckdb alone"),
        ("cdxj,csv", {}, "--to cdxj,csv: the shares become one cdxj; export cdxj alone"),
        ("mirror,bulk", {}, "--to mirror,bulk: the shares become one mirror; export mirror alone"),
        ("wacz", {"permitted": "search"}, "--to wacz --permitted needs all shards"),
        ("bulk,csv", {"dedupe": "near"}, "the shares become one bulk; export bulk alone"),
        ("csv", {"dedupe": "near"}, "--dedupe: csv holds rows, not texts"),
        ("nothing", {}, "--to nothing: expected"),
    ],
)
def test_what_a_share_cannot_hold_is_refused(crawl: Path, to: str, options: dict[str, str], line: str) -> None:
    order = ShareOrder(str(crawl), "out", to, {**OPTIONS, **options})
    with pytest.raises(ConfigError, match=line):
        export_on_cluster(order, "127.0.0.1:9", lambda *_: None)


def test_manifests_are_json(crawl: Path, tmp_path: Path) -> None:
    [part, _] = make_all(crawl, "jsonl", tmp_path / "parts")
    assert json.loads((tmp_path / "parts/part-000.json").read_bytes())["files"] == part.files


def test_indexes_of_shares_hold_each_page_once(crawl: Path, tmp_path: Path) -> None:
    """Also copies, whose payload another shard has, and anchor texts of links on other shards."""
    build_index_of(crawl)
    whole = search_of(crawl, "harbour", limit=100)
    copy = tmp_path / "crawl"
    shutil.copytree(crawl, copy)
    shutil.rmtree(copy / FOLDER)
    order = ShareOrder(str(copy), str(copy / FOLDER), INDEX, {}, of=2)
    (copy / FOLDER).mkdir()
    parts = [
        msgspec.json.decode(make_share(order, (copy / FOLDER).as_uri(), n, lambda done, rows: None), type=SharePart)
        for n in range(2)
    ]
    found = search_of(copy, "harbour", limit=100)
    assert [folder.name for folder in indexes_of(copy)] == ["shard-0", "shard-1"]
    assert sum(part.done.rows["pages"] for part in parts) == len(list(indexed(crawl)))
    assert Counter(indexed(copy)) == Counter(indexed(crawl))
    assert found.total == whole.total > 10
    assert {hit.url for hit in found.hits} == {hit.url for hit in whole.hits}


def test_the_index_of_one_shard_needs_no_cluster(tmp_path: Path) -> None:
    (tmp_path / "crawl.toml").write_text(effective_toml(Config()))
    with pytest.raises(ConfigError, match="has one shard, so one process builds its index; leave --cluster out"):
        build_index_on_cluster(tmp_path, "127.0.0.1:9", lambda *_: None)


def indexed(directory: Path) -> Iterator[str]:
    for folder in indexes_of(directory):
        index = open_index(folder)
        searcher = index.searcher()
        for _, place in searcher.search(tantivy.Query.all_query(), 10_000).hits:
            if (key := text_in(searcher.doc(place), "key")) != POSITION:
                yield key
