from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from gossamer.api.views import export_of
from gossamer.config import Config, effective_toml
from gossamer.config.gather import reopen
from gossamer.model.errors import ConfigError, DamagedError
from gossamer.model.pages import MARKED_TYPES, Page
from gossamer.results.export.bodies import ArchivedPage, Means, RecordPlace
from gossamer.results.export.export import ExportedCrawl, ExportRequest, export
from gossamer.results.export.opening import export_means
from gossamer.results.export.plan import make_plan, read_plan
from gossamer.results.export.source import pieces_of
from gossamer.results.isolated.contents import OWN_BYTES, PROCESS_BYTES, ContentProcesses
from gossamer.results.search.build import build
from gossamer.results.search.index import IndexWriter
from gossamer.stages.archive.segments import files_of
from tests.results.export.crawled import crawl

MEMORY_BYTES = 1_000_000_000


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = crawl(tmp_path_factory.mktemp("made") / "crawl")
    (directory / "crawl.toml").write_text(effective_toml(Config()))
    return directory


@pytest.fixture
def means(crawled: Path) -> Means:
    return export_means(reopen(crawled / "crawl.toml"))


@pytest.fixture(autouse=True)
def several(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("export.pages", "export.mirror", "search.build"):
        monkeypatch.setattr(f"gossamer.results.{name}.PAGES_MIN", 1)
    monkeypatch.setattr("gossamer.results.isolated.contents.PAGES_AT_ONCE", 2)
    monkeypatch.setattr("gossamer.results.isolated.contents.processors", lambda: 2)


@pytest.mark.heavy
@pytest.mark.parametrize("to", ["markdown", "datasets", "mirror"])
def test_several_processes_find_what_one_finds(
    tmp_path: Path, crawled: Path, means: Means, to: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = {}
    with ContentProcesses(crawled / "crawl.toml", MEMORY_BYTES) as processes:
        several = replace(means, contents_of=processes.contents_of, write_files=processes.write_files)
        for name, how in (("one", means), ("several", several)):
            if name == "several" and to == "mirror":
                monkeypatch.setattr("gossamer.results.export.mirror.write_files", None)
            export(ExportedCrawl(crawled, running=False), ExportRequest(to), tmp_path / name, how)
            made[name] = {
                str(path.relative_to(tmp_path / name)): path.read_bytes()
                for path in (tmp_path / name).rglob("*")
                if path.is_file()
            }
    assert made["several"] == made["one"]
    assert made["one"]


@pytest.mark.heavy
def test_several_processes_find_the_texts_that_one_indexes(
    tmp_path: Path, crawled: Path, means: Means, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[list[str]] = []
    put = IndexWriter.put
    monkeypatch.setattr(IndexWriter, "put", lambda self, page: (found[-1].append(repr(page)), put(self, page))[1])
    directory = tmp_path / "crawl"
    shutil.copytree(crawled, directory)
    with ContentProcesses(directory / "crawl.toml", MEMORY_BYTES) as processes:
        for how in (means, replace(means, texts_of=processes.texts_of)):
            found.append([])
            build(ExportedCrawl(directory, running=False), how, 50_000_000, MEMORY_BYTES, lambda *_: None)
            monkeypatch.setattr("gossamer.results.search.build.texts_of", None)
    assert found[0] == found[1]
    assert len(found[0]) > 40


@pytest.mark.heavy
def test_what_needs_text_alone_pays_for_no_markdown(
    tmp_path: Path, crawled: Path, means: Means, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Markdown is half of what finding a page's content costs, and `bulk` has none."""
    pages = [row.record for _, row in read_plan(_plan(crawled, tmp_path))]
    with ContentProcesses(crawled / "crawl.toml", MEMORY_BYTES, markdown=False) as processes:
        texts = list(processes.contents_of(crawled / "warc", pages))
    whole = list(means.contents(crawled / "warc", pages))
    assert texts == [
        one._replace(markdown="") if one is not None and one.text_method == "main" else one for one in whole
    ]
    assert any(one is not None and one.text_method == "main" for one in whole)

    def refuse(*_: object) -> str:
        raise AssertionError("no Markdown is needed")

    monkeypatch.setattr("gossamer.stages.process.content.as_markdown", refuse)
    monkeypatch.setattr("gossamer.results.export.pages.PAGES_MIN", 1_000)
    export_of(crawled, "bulk", tmp_path / "bulk")
    assert list((tmp_path / "bulk").glob("*.ndjson"))


def _plan(crawled: Path, folder: Path) -> Path:
    plan = folder / "plan.parquet"
    make_plan(plan, pieces_of(files_of(crawled, "pages")), "", MEMORY_BYTES)
    return plan


@pytest.mark.heavy
@pytest.mark.parametrize(("memory_bytes", "number"), [(64_000_000, 1), (512_000_000, 2), (600_000_000, 3)])
def test_all_processes_together_stay_within_the_memory(
    crawled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory_bytes: int, number: int
) -> None:
    """Those that find contents and the one that uses them, on a machine of many processors."""
    monkeypatch.setattr("gossamer.results.isolated.contents.processors", lambda: 64)
    started: list[object] = []
    begin = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *a, **more: (started.append(a), begin(*a, **more))[1])
    pages = [row.record for _, row in read_plan(_plan(crawled, tmp_path))]
    with ContentProcesses(crawled / "crawl.toml", memory_bytes) as processes:
        assert len(list(processes.contents_of(crawled / "warc", pages))) == len(pages)
    assert len(started) == number
    assert number == 1 or OWN_BYTES + number * PROCESS_BYTES <= memory_bytes


def test_markdown_of_marked_text_is_the_text(means: Means) -> None:
    body = "# Kilns\n\n    code\n\n* item *\n"
    for media_type in MARKED_TYPES:
        found = means.content_of(Page("http://a.example/x", media_type, "", (), body.encode()))
        assert (found.markdown, found.text, found.text_method) == (body, body, "plain")


@pytest.mark.heavy
def test_the_processes_have_no_network(crawled: Path, means: Means, tmp_path: Path) -> None:
    """By the same call as processes of `tests/world/test_sandbox.py`: here the kernel says that these made it. They end
    with the last content: their memory does not add to that of what is made of the texts.
    """
    found: dict[int, str] = {}
    with ContentProcesses(crawled / "crawl.toml", MEMORY_BYTES) as processes:
        export(
            ExportedCrawl(crawled, running=False), ExportRequest("bulk"), tmp_path / "m",
            replace(means, contents_of=processes.contents_of), progress=lambda *_: found.update(children()),
        )  # fmt: skip
        assert len(found) == 2
        for status in found.values():
            assert "NoNewPrivs:\t1\n" in status
            assert "Seccomp:\t2\n" in status
        assert not children().keys() & found.keys()


def children() -> dict[int, str]:
    """Return the processes that this one has started for contents, and what the kernel says of them."""
    pids = map(int, Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())
    found = {}
    for pid in pids:
        with suppress(OSError):
            if b"contents" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found[pid] = Path(f"/proc/{pid}/status").read_text()
    return found


@pytest.mark.heavy
def test_a_damaged_record_is_named_as_by_one_process(tmp_path: Path, crawled: Path, means: Means) -> None:
    directory = tmp_path / "damaged"
    shutil.copytree(crawled, directory)
    for file in (directory / "warc").iterdir():
        data = file.read_bytes()
        file.write_bytes(data[:100] + bytes(len(data) - 100))
    says: list[str] = []
    with ContentProcesses(crawled / "crawl.toml", MEMORY_BYTES) as processes:
        for how in (means, replace(means, contents_of=processes.contents_of)):
            with pytest.raises(DamagedError) as refused:
                export(
                    ExportedCrawl(directory, running=False), ExportRequest("markdown"), tmp_path / str(len(says)), how
                )
            says.append(str(refused.value))
    assert says[0] == says[1]
    assert "is damaged" in says[0]


def test_a_page_that_no_process_survives_is_told_in_one_line(
    tmp_path: Path, crawled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", shutil.which("false"))
    page = ArchivedPage(RecordPlace("a.warc.gz", 0, 10), None, "http://a.test/")
    with ContentProcesses(crawled / "crawl.toml", MEMORY_BYTES) as processes:
        with pytest.raises(DamagedError, match=r"died of one of the 1 pages from http://a\.test/ on") as died:
            list(processes.contents_of(tmp_path, [page]))
        assert "\n" not in str(died.value)


def test_a_file_that_is_not_here_is_the_operators_mistake(tmp_path: Path, crawled: Path) -> None:
    page = ArchivedPage(RecordPlace("a.warc.gz", 0, 10), None, "http://a.test/")
    missing = pytest.raises(ConfigError, match=r"a\.warc\.gz is not here")
    with ContentProcesses(crawled / "crawl.toml", MEMORY_BYTES) as processes, missing:
        list(processes.contents_of(tmp_path, [page]))
