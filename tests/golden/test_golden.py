"""Crawl directories of earlier formats open, and one of a later format is refused in one line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from collections import Counter
from pathlib import Path

import pytest
from pyarrow import parquet

import gossamer
from gossamer.cli.output import Exit
from gossamer.model.product import FORMAT, __version__
from tests import commands
from tests.golden.make import BYTES_MAX, FOLDER, PAGES, PAGES_FETCHED, SITE, served

pytestmark = pytest.mark.promise(
    "Files and exports",
    "Crawl directories of all formats since 1.0 open and can be continued; one of a later format is refused unchanged.",
)
KEPT = sorted(FOLDER.glob("format-*.tar.gz"))


def unpacked(kept: Path, folder: Path) -> Path:
    with tarfile.open(kept) as packed:
        packed.extractall(folder, filter="data")
    return folder / "crawl"


def as_process(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command that crawls."""
    environment = {**os.environ, "PYTHONPATH": str(Path(gossamer.__file__).parents[1])}
    return subprocess.run(
        [sys.executable, "-m", "gossamer", *map(str, words)],
        env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100,
    )  # fmt: skip


def test_a_directory_of_each_format_is_kept() -> None:
    assert [path.name for path in KEPT] == [f"format-{number}.tar.gz" for number in range(1, FORMAT + 1)]
    assert all(path.stat().st_size <= BYTES_MAX for path in KEPT)


@pytest.mark.parametrize("kept", KEPT, ids=lambda path: path.name.partition(".")[0])
def test_a_crawl_of_each_format_is_read_and_continued(kept: Path, tmp_path: Path) -> None:
    crawl = unpacked(kept, tmp_path)
    status, out, _ = commands.run("status", str(crawl), "--json")
    found = json.loads(out)
    assert (status, found["state"], found["pages"]) == (Exit.FINISHED, "finished", PAGES_FETCHED)
    assert found["queued"] > 0
    assert commands.run("verify", str(crawl), "--deep")[0] == Exit.FINISHED
    status, out, _ = commands.run("report", str(crawl), "--json")
    found = json.loads(out)
    assert (status, found["fetched"], found["attempts"], found["damage"]) == (0, PAGES_FETCHED, PAGES_FETCHED, [])
    status, out, _ = commands.run("why", str(crawl), SITE, "--json")
    assert (status, json.loads(out)["state"]) == (Exit.FINISHED, "fetched")

    with served():
        resumed = as_process("resume", crawl, "--max-pages", "100", "--quiet")
    assert (resumed.returncode, resumed.stdout, resumed.stderr) == (Exit.FINISHED, "", "")
    rows = [row for file in crawl.glob("pages/*.parquet") for row in parquet.read_table(file).to_pylist()]
    fetched = Counter(row["url"] for row in rows if row["outcome"] == "fetched")
    assert fetched == {f"{SITE}{number or ''}": 1 for number in range(PAGES)}
    assert commands.run("verify", str(crawl), "--deep")[0] == Exit.FINISHED


@pytest.mark.parametrize("found", [str(FORMAT + 1), '"next"'])
def test_a_later_format_is_refused_in_one_line(found: str, tmp_path: Path) -> None:
    crawl = unpacked(KEPT[-1], tmp_path)
    file = crawl / "crawl.toml"
    text = file.read_text().replace(f"format = {FORMAT} ", f"format = {found} ")
    file.write_text(f"{text}\n[of_the_future]\nkey = 1\n")
    before = {path: path.read_bytes() for path in crawl.rglob("*") if path.is_file()}
    line = (
        f"gossamer: {file}: the crawl's directory has format {json.loads(found)!r}, and Gossamer {__version__} reads "
        f"format {FORMAT}; use the version that made it, or a newer one\n"
    )
    for words in (
        ["status"],
        ["report"],
        ["verify"],
        ["why", SITE],
        ["config show"],
        ["export", "--to", "csv", "-o", "-"],
    ):
        command, *more = words
        answer = commands.run(*command.split(), str(crawl), *more)
        assert answer == (Exit.REFUSED, "", line), command
    resumed = as_process("resume", crawl, "--quiet")
    assert (resumed.returncode, resumed.stdout, resumed.stderr) == (Exit.REFUSED, "", line)
    assert {path: path.read_bytes() for path in crawl.rglob("*") if path.is_file()} == before


def test_the_configuration_of_a_crawl_begins_another(tmp_path: Path) -> None:
    crawl = unpacked(KEPT[-1], tmp_path)
    assert commands.run("config", "check", str(crawl / "crawl.toml"))[0] == Exit.FINISHED
