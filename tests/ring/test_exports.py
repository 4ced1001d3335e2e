"""Exports of crawls of a made web, by the command line: one that finished, one that runs, one that was killed."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.stages.archive.cdxj import entries_of_warcs, write_index
from tests.commands import run
from tests.crash.crawls import crawl_of, until
from tests.results.export.test_views import bodies, latest, lines, rows
from tests.ring.crawls import OWN, crawl

SMALL_FILES = ("archive.warc_segment_bytes_max=60_000", "archive.table_segment_rows_max=80", "crawl.commit_pages=40")


def exported(directory: Path, to: str, target: Path, *options: str) -> str:
    status, out, err = run("export", str(directory), "--to", to, "-o", str(target), *options)
    assert (status, out) == (0, ""), err
    return err


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimwebProcess]:
    options = SimwebOptions(
        seed=3, hosts=10, pages=60, behaviours=("redirects", "bodies", "charsets", "types", "frames", "copies"),
        shares=dict.fromkeys(("redirects", "bodies", "charsets", "types", "frames", "copies"), 0.5), links_per_page=6,
        oversized_bytes=3_000_000, bomb_bytes=8_000_000,
    )  # fmt: skip
    with SimwebProcess(options, tmp_path_factory.mktemp("web")) as web:
        yield web


@pytest.fixture(scope="module")
def finished(web: SimwebProcess, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("finished") / "crawl"
    settings = (*OWN, *SMALL_FILES, "search.enabled=true")
    assert crawl(web.seeds, directory, *settings, hosts=str(web.hosts_file), scope="any").end == "finished"
    return directory


def test_tables_are_the_crawls_own(finished: Path, tmp_path: Path) -> None:
    exported(finished, "jsonl", tmp_path / "jsonl")
    exported(finished, "parquet", tmp_path / "parquet")
    status, out, err = run("export", str(finished), "--to", "csv", "-o", "-", "--table", "links")
    assert (status, err) == (0, "")
    expected = rows(finished, "pages")
    assert [row["url"] for row in lines(tmp_path / "jsonl")] == [row["url"] for row in expected]
    read = list(csv.reader(io.StringIO(out, newline=""), strict=True))
    assert [line[:4] for line in read[1:]] == [
        [str(row[name]) for name in ("from_url", "to_url", "to_key", "link_type")] for row in rows(finished, "links")
    ]
    assert {path.name for path in (tmp_path / "parquet").iterdir()} >= {"pages", "links"}
    host_of = {str(row["url"]): row["host"] for row in expected}
    for row in rows(tmp_path / "parquet", "links"):
        assert row["from_host"] == host_of[str(row["from_url"])]
    hosts = [row["host"] for row in rows(tmp_path / "parquet", "pages")]
    assert hosts == sorted(hosts)  # type: ignore[type-var]
    assert len(hosts) == len(expected)


@pytest.mark.heavy
@pytest.mark.promise("Files and exports", "An export holds what the WARC files and tables hold.")
@pytest.mark.long
def test_contents_are_what_the_archive_holds(finished: Path, tmp_path: Path) -> None:
    assert "is written" in exported(finished, "pagefiles", tmp_path / "pages")
    pages, contents = latest(finished), bodies(finished)
    seen = compared = 0
    for line in (tmp_path / "pages/store.log").read_bytes().split(b"\n")[:-1]:
        _, url, key, kind, _, _, size, _, number, offset = line.decode().split("\t")
        row = pages[key.encode().decode("unicode_escape") if "\\" in key else key]
        numbers = {"frame": "1", "iframe": "1", "redirect": "2", "meta_refresh": "2"}
        assert kind == numbers.get(str(row["link_type"]), "0")
        data = (tmp_path / f"pages/pagefile_{number}.pfl").read_bytes()[int(offset) : int(offset) + int(size)]
        expected = contents[url, str(row["digest"])]
        if row["truncated"] == "" and row["error"] == "" and expected is not None:
            assert data == expected
            compared += 1
        assert len(data) == row["body_bytes"]
        seen += 1
    assert seen == len(pages)
    assert compared > 0.9 * seen
    exported(finished, "markdown", tmp_path / "markdown")
    files = {path.relative_to(tmp_path / "markdown") for path in (tmp_path / "markdown").rglob("*.md")}
    text_types = ("text/html", "application/xhtml+xml", "text/plain")
    assert len(files) == sum(row["media_type"] in text_types for row in pages.values())


def test_indexes_are_those_of_the_archive(finished: Path, tmp_path: Path) -> None:
    exported(finished, "cdxj", tmp_path / "index")
    write_index(tmp_path / "slow", entries_of_warcs(sorted((finished / "warc").glob("*.warc.gz"))))
    assert (tmp_path / "index").read_bytes() == (finished / "index.cdxj").read_bytes()
    exported(finished, "wacz", tmp_path / "crawl.wacz")
    with zipfile.ZipFile(tmp_path / "crawl.wacz") as archive:
        for path in (finished / "warc").iterdir():
            assert archive.read(f"archive/{path.name}") == path.read_bytes()


def test_the_kept_index_answers_for_every_page(finished: Path) -> None:
    status, out, _ = run("search", str(finished), "url:http", "--json", "--limit", "1000")
    found = json.loads(out)
    text_types = ("text/html", "application/xhtml+xml", "text/plain")
    expected = sorted(str(row["url"]) for row in latest(finished).values() if row["media_type"] in text_types)
    assert status == 0
    assert sorted(hit["url"] for hit in found["hits"]) == expected
    assert out.isascii()
    title = next(hit["title"] for hit in found["hits"] if " " in hit["title"])
    status, out, _ = run("search", str(finished), f'title:"{title}"', "--limit", "3")
    assert status == 0
    assert title in out
    assert "\x1b" not in out
    words = title.split()
    said = [run("search", str(finished), *query, "--limit", "3")[1] for query in (words, [" ".join(words)])]
    assert said[0] == said[1]


@pytest.mark.heavy
def test_a_crawl_that_was_killed_is_exported_whole_without_a_resume(web: SimwebProcess, tmp_path: Path) -> None:
    # Slow enough to be still under way after an export.
    killed = crawl_of(web, tmp_path / "crawl", *SMALL_FILES, "politeness.per_host=1", "politeness.delay_s_min=0.5")
    try:
        killed.start()
        until(lambda: len(list(killed.directory.glob("warc/*.warc.gz"))) >= 2)
        assert "is still crawling: the export holds its last commit" in exported(
            killed.directory, "jsonl", tmp_path / "running", "--table", "pages"
        )
        killed.kill("both")
    finally:
        killed.close()
    assert list(killed.directory.glob("state/tables/*")), "something was left undone"
    exported(killed.directory, "jsonl", tmp_path / "lines")
    exported(killed.directory, "wacz", tmp_path / "crawl.wacz")
    exported(killed.directory, "pagefiles", tmp_path / "pages")
    before = lines(tmp_path / "lines")
    running = lines(tmp_path / "running")
    assert before[: len(running)] == running
    killed.start("--max-pages", str(len(before)))
    assert killed.wait() == 0
    after = [row["url"] for row in rows(killed.directory, "pages")]
    assert [row["url"] for row in before] == after[: len(before)]
    with zipfile.ZipFile(tmp_path / "crawl.wacz") as archive:
        for name in (name for name in archive.namelist() if name.startswith("archive/")):
            data = archive.read(name)
            assert (killed.directory / "warc" / name.rpartition("/")[2]).read_bytes()[: len(data)] == data


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("export", "crawl", "--to", "xls", "-o", "x"), "expected parquet, jsonl"),
        (("export", "crawl", "--to", "wacz", "-o", "-"), "cannot be written to standard output"),
        (
            ("export", "crawl", "--to", "csv", "-o", "/proc/x"),
            "/proc/x: No such file or directory; name another with -o",
        ),
        (
            ("export", "crawl", "--to", "bulk", "-o", "all.ndjson"),
            "bulk makes a folder of files; name one, such as -o all",
        ),
        (("export", "crawl", "--to", "csv", "-o", "absent/x"), "there is no directory absent"),
        (("export", "crawl", "--to", "csv", "-o", "x", "--table", "pags"), "the crawl has pages, links"),
        (("export", "crawl", "--to", "csv", "-o", "x", "--where", "hots = 1"), "hots"),
        (("export", "crawl", "--to", "csv", "-o", "x", "--memory", "1"), "at least 64 MB"),
        (("export", "crawl", "--to", "csv", "-o", "crawl"), "crawl is the crawl itself, or holds it"),
        (("export", "absent", "--to", "csv", "-o", "x"), "no directory absent"),
        (("search", "crawl", ""), "the query is empty"),
        (("search", "crawl", "x", "--limit", "0"), "expected 1 to 1000"),
        (("search", "other", "x"), "--build` makes one"),
    ],
)
def test_a_mistake_is_one_line_that_says_how_to_mend_it(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "crawl").symlink_to(finished)
    (tmp_path / "other").mkdir()
    (tmp_path / "other/crawl.toml").touch()
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert err.startswith("gossamer: ")
    assert says in err
    assert err.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["crawl", "other"]


@pytest.mark.heavy
def test_parquet_files_of_the_crawl_have_more_than_one_segment(finished: Path) -> None:
    """What these tests read of several files is of several files."""
    assert sum(pq.read_metadata(path).num_rows > 0 for path in (finished / "pages").glob("*.parquet")) > 2
    assert len(list((finished / "warc").glob("*.warc.gz"))) > 2
