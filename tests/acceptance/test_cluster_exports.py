"""Exports of a crawl of several shards on a Ray cluster hold what those of one machine hold."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq
import pytest

from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from tests.acceptance.test_workers import crawl_of, gossamer
from tests.api.test_shares import content_of
from tests.cluster.nodes import Nodes
from tests.crash.crawls import environment
from tests.stages.archive.bucket import KEYS, NAME, Bucket

pytestmark = [pytest.mark.acceptance, pytest.mark.together, pytest.mark.long, pytest.mark.timeout(300)]
SHARDS = 3
WEB = SimwebOptions(
    seed=4, hosts=12, hosts_per_site=1, pages=400, bytes_median=2_000, behaviours=("redirects", "copies", "compressed")
)  # fmt: skip
TASK = "ray::_do"


class Divided(NamedTuple):
    """A crawl of several shards, the same in a store, and a cluster that sees both."""

    directory: Path
    uri: str
    nodes: Nodes
    bucket: Bucket
    sets: tuple[str, ...]

    def export(self, source: Path | str, to: str, target: Path | str, *more: str) -> subprocess.CompletedProcess[str]:
        return gossamer(*self.words(source, to, target, *more))

    def words(self, source: Path | str, to: str, target: Path | str, *more: str) -> list[str]:
        sets = self.sets if "://" in f"{source} {target}" else ()
        return ["export", str(source), "--to", to, "-o", str(target), "--cluster", self.nodes.address, *sets, *more]


@pytest.fixture(scope="module")
def divided(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Divided]:
    folder = tmp_path_factory.mktemp("divided")
    with pytest.MonkeyPatch.context() as patch, Bucket() as bucket:
        for name, value in KEYS.items():
            patch.setenv(name, value)
        uri = f"s3://{NAME}/crawls/three"
        places = (f"state.checkpoint_uri='{uri}'", bucket.sets[1])
        with SimwebProcess(WEB, folder / "web") as web:
            done = gossamer(*crawl_of(web, folder / "crawl", SHARDS, *places))
            assert done.returncode == 0, done.stderr
        with Nodes() as nodes:
            nodes.add()
            nodes.add()
            yield Divided(folder / "crawl", uri, nodes, bucket, ("--set", bucket.sets[1]))


def serial(divided: Divided, to: str, target: Path) -> Path:
    done = gossamer("export", divided.directory, "--to", to, "-o", target)
    assert done.returncode == 0, done.stderr
    return target


def files(folder: Path) -> dict[str, bytes]:
    return {str(one.relative_to(folder)): one.read_bytes() for one in folder.rglob("*") if one.is_file()}


def rows(folder: Path, pattern: str) -> Counter[str]:
    found = [row for path in folder.glob(pattern) for row in pq.read_table(path).to_pylist()]
    return Counter(repr({name: row[name] for name in sorted(row)}) for row in found)


def lines(folder: Path, pattern: str) -> Counter[bytes]:
    return Counter(line for path in folder.glob(pattern) for line in path.read_bytes().splitlines())


@pytest.mark.promise("Files and exports", "Exports on a cluster hold the same rows as those of one machine.")
@pytest.mark.parametrize(
    ("place", "to", "pattern"),
    [
        ("uri", "parquet", "pages/*.parquet"),
        ("directory", "jsonl", ""),
        ("directory", "markdown", "*/*.md"),
        ("uri", "pagefiles", "links.log"),
    ],
)
def test_formats_hold_the_same_rows(divided: Divided, place: str, to: str, pattern: str, tmp_path: Path) -> None:
    alone = serial(divided, to, tmp_path / "alone")
    done = divided.export(getattr(divided, place), to, tmp_path / to)
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / to).iterdir())) == SHARDS + 1
    if to == "parquet":
        assert rows(tmp_path / to, f"shard-*/{pattern}") == rows(alone, pattern)
    elif to == "jsonl":
        assert lines(tmp_path / to, "shard-*.jsonl") == Counter(alone.read_bytes().splitlines())
    else:
        assert lines(tmp_path / to, f"shard-*/{pattern}") == lines(alone, pattern)


def test_a_mirror_is_one_tree_whose_links_cross_shards(divided: Divided, tmp_path: Path) -> None:
    alone = serial(divided, "mirror", tmp_path / "alone")
    done = divided.export(divided.uri, "mirror", tmp_path / "mirror")
    assert done.returncode == 0, done.stderr
    assert "434 rows of pages" in done.stderr, "each page is counted once"
    found = files(tmp_path / "mirror")
    assert {name: found[name] for name in found if name != "datapackage.json"} == files(alone)
    assert manifest_of(found) == {name: len(body) for name, body in files(alone).items()}


@pytest.mark.parametrize("place", ["uri", "directory"])
def test_the_index_of_all_machines_is_that_of_one(divided: Divided, place: str, tmp_path: Path) -> None:
    alone = serial(divided, "cdxj", tmp_path / "alone.cdxj")
    done = divided.export(getattr(divided, place), "cdxj", tmp_path / "index")
    assert done.returncode == 0, done.stderr
    found = files(tmp_path / "index")
    assert found.pop("crawl.cdxj") == alone.read_bytes()
    assert list(found) == ["datapackage.json"]
    assert manifest_of(found) == {"crawl.cdxj": alone.stat().st_size}


@pytest.mark.parametrize(("place", "to"), [("uri", "sqlite"), ("directory", "duckdb")])
def test_the_database_of_all_machines_is_that_of_one(divided: Divided, place: str, to: str, tmp_path: Path) -> None:
    alone = content_of(to, serial(divided, to, tmp_path / "alone"))
    done = divided.export(getattr(divided, place), to, tmp_path / "joined")
    assert done.returncode == 0, done.stderr
    assert sorted(files(tmp_path / "joined")) == [f"crawl.{to}", "datapackage.json"]
    assert content_of(to, tmp_path / "joined" / f"crawl.{to}") == alone


def test_copies_are_left_out_across_machines(divided: Divided, tmp_path: Path) -> None:
    near = ("--dedupe", "near")
    done = gossamer("export", divided.directory, "--to", "bulk", "-o", tmp_path / "alone", *near)
    assert done.returncode == 0, done.stderr
    alone = files(tmp_path / "alone")
    done = divided.export(divided.uri, "bulk", tmp_path / "joined", *near)
    assert done.returncode == 0, done.stderr
    joined = files(tmp_path / "joined")
    assert set(joined) == {*alone, "datapackage.json"}
    assert all(joined[name] == alone[name] for name in ("bulk-00001.ndjson", "duplicates.jsonl"))
    assert alone["duplicates.jsonl"]


def test_a_killed_task_starts_again_and_doubles_nothing(divided: Divided, tmp_path: Path) -> None:
    """From a store to a store: what the task has sent is replaced, and the command goes on by itself."""
    alone = serial(divided, "bulk", tmp_path / "alone")
    target = f"s3://{NAME}/exports/bulk"
    with subprocess.Popen(
        [sys.executable, "-m", "gossamer", *divided.words(divided.uri, "bulk", target)],
        env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    ) as running:  # fmt: skip
        os.kill(a_task(divided), signal.SIGKILL)
        _, said = running.communicate(timeout=200)
    assert running.returncode == 0, said
    assert f"{target} is written: 434 rows of texts" in said
    sent = divided.bucket.objects("exports/bulk/")
    assert manifest_of(sent) == {name: len(body) for name, body in sent.items() if name != "datapackage.json"}
    there = Counter(line for name, body in sent.items() if ".ndjson" in name for line in body.splitlines())
    assert there == lines(alone, "*.ndjson*")
    again = divided.export(divided.uri, "bulk", target)
    assert (again.returncode, "holds an export already; name another place" in again.stderr) == (2, True)


def test_ctrl_c_ends_all_tasks_and_a_repeated_command_goes_on(divided: Divided, tmp_path: Path) -> None:
    words = divided.words(divided.directory, "datasets", tmp_path / "sets")
    with subprocess.Popen(
        [sys.executable, "-m", "gossamer", *words], env=environment(), stdin=subprocess.DEVNULL
    ) as one:
        a_task(divided)
        one.send_signal(signal.SIGINT)
        assert one.wait(60) == 130
    ends_at = time.monotonic() + 60
    while divided.nodes.everywhere(TASK):
        assert time.monotonic() < ends_at, "a task is left"
        time.sleep(0.1)
    assert not (tmp_path / "sets").exists()
    done = divided.export(divided.directory, "datasets", tmp_path / "sets")
    assert done.returncode == 0, done.stderr
    assert rows(tmp_path / "sets", "shard-*/data/*.parquet").total() == 434


@pytest.mark.promise("Files and exports", "An index that a cluster builds holds the same pages as that of one machine.")
def test_the_index_is_built_by_all_machines(divided: Divided) -> None:
    def pages(*more: str) -> tuple[str, set[str]]:
        done = gossamer("search", divided.directory, "harbour", "--build", "--json", "--limit", "500", *more)
        assert done.returncode == 0, done.stderr
        return done.stderr.strip().splitlines()[-1], {hit["url"] for hit in json.loads(done.stdout)["hits"]}

    alone = pages()
    assert len(alone[1]) > 20
    assert pages("--cluster", divided.nodes.address) == alone
    folders = sorted(path.name for path in (divided.directory / "search").iterdir())
    assert folders == [f"shard-{number}" for number in range(SHARDS)], "it replaces the earlier one"


def test_the_index_in_a_store_is_built_by_all_machines(divided: Divided) -> None:
    def pages() -> tuple[set[str], str]:
        done = gossamer("search", divided.uri, "harbour", "--json", "--limit", "500", *divided.sets)
        assert done.returncode == 0, done.stderr
        return {hit["url"] for hit in json.loads(done.stdout)["hits"]}, done.stderr

    alone, said = pages()
    assert "index of 20" not in said
    done = gossamer("search", divided.uri, "--build", "--cluster", divided.nodes.address, *divided.sets)
    assert done.returncode == 0, done.stderr
    together, said = pages()
    assert f"from {divided.uri}: index of 20" in said
    assert together == alone
    assert len(alone) > 20


@pytest.mark.parametrize(
    ("to", "more", "line"),
    [
        ("sqlite,csv", [], "--cluster: --to sqlite,csv: the shares become one sqlite; export sqlite alone"),
        ("bulk", ["--dedupe", "near", "--against", "/usr"], "--against /usr: it holds neither a crawl"),
        ("bulk", ["--memory", "1"], "--memory: at least 64 MB are needed"),
        ("jsonl", ["--where", "nothing = 1"], "where nothing = 1"),
    ],
)
def test_mistakes_are_one_line(divided: Divided, to: str, more: list[str], line: str, tmp_path: Path) -> None:
    done = divided.export(divided.directory, to, tmp_path / "none", *more)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert line in done.stderr
    assert list(tmp_path.iterdir()) == []


def a_task(divided: Divided) -> int:
    ends_at = time.monotonic() + 60
    while not (found := divided.nodes.everywhere(TASK)):
        assert time.monotonic() < ends_at, "no task begins"
        time.sleep(0.02)
    return found[0]


def manifest_of(sent: dict[str, bytes]) -> dict[str, int]:
    return {one["path"]: one["bytes"] for one in json.loads(sent["datapackage.json"])["resources"]}
