"""`gossamer segment`: what it prints, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gossamer.cli.main import status_of_command
from tests.results.offline.made import link, page, write


@pytest.fixture
def crawl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    links = [link("http://a.example/", f"http://s{n % 4}.example/{n}") for n in range(20)]
    return write(Path("crawl"), [page("http://a.example/", 1)], links)


def run(words: str) -> int:
    return status_of_command(["segment", *words.split()])


def test_a_segment_is_built_shown_split_and_merged(crawl: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("build crawl -o next.parquet --known known --scope any --per-host 3") == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "20 links read, 20 new URLs judged, 12 URLs of 4 sites listed, 8 left for later by --per-host" in said.err
    assert run("show next.parquet --limit 2") == 0
    shown = capsys.readouterr().out
    assert shown.startswith("next.parquet: 12 URLs, 4 sites, 4 hosts; made by gossamer")
    assert "by depth: 1: 12" in shown
    assert run("show next.parquet --json --limit 2") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["urls"], len(found["first"]), sum(found["by_level"].values())) == (12, 2, 12)
    assert run("split next.parquet -n 2 -o part.parquet") == 0
    assert run("merge part-1-of-2.parquet part-2-of-2.parquet -o all.parquet") == 0
    assert "all.parquet: 12 URLs of 4 sites" in capsys.readouterr().err


def test_the_status_says_whether_anything_is_new(crawl: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """So that a shell loop ends by itself, also where it is repeated."""
    assert run("build crawl -o 1.parquet --known known --scope any") == 0
    assert run("build crawl -o 1.parquet --known known --scope any") == 0
    assert "was built before" in capsys.readouterr().err
    for _ in range(2):
        assert run("build crawl -o 2.parquet --known known --scope any") == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("build crawl", "-o"),
        ("build crawl -o x.parquet --rank size", "--rank size: expected priority or in-links"),
        ("build crawl -o x.parquet --bloom 0.1", "--bloom: name the directory"),
        ("build crawl -o x.parquet --bloom 2 --known k", "--bloom 2: expected a share"),
        ("build crawl -o x.parquet --memory 1MiB", "--memory: at least 288MiB"),
        ("build crawl -o x.parquet --memory much", "--memory much: expected a number of bytes"),
        ("build crawl -o x.parquet --per-host -1", "--per-host"),
        ("build crawl -o x.parquet --scope all", "--scope"),
        ("build crawl -o x.parquet --include (", "--include"),
        ("show none.parquet", "there is no file none.parquet"),
        ("show crawl/links/links-000000.parquet", "but no segment"),
        ("merge none.parquet -o x.parquet", "there is no file"),
        ("bild", "did you mean build?"),
    ],
)
def test_mistakes_are_one_line(crawl: Path, words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert said in told
    assert not Path("x.parquet").exists()
    assert not Path("x.parquet.part").exists()
