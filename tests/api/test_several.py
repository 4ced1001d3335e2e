"""Exports to several formats at once: each as it is alone, with the content of each page found once."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from gossamer.api import Crawler
from gossamer.api.search import build_index_of
from gossamer.api.views import export_of
from gossamer.config import Config, effective_toml
from gossamer.model.errors import ConfigError
from gossamer.results.export import several
from gossamer.results.export.bodies import ArchivedPage, MarkdownPage
from gossamer.results.export.pages import PAGES_MIN
from gossamer.results.isolated.contents import ContentProcesses
from gossamer.results.search.documents import IndexedPage
from gossamer.results.search.index import IndexWriter
from tests.api.site import Site
from tests.results.export.crawled import crawl

FORMATS = ("markdown", "datasets", "bulk", "chunks", "jsonl", "parquet")


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = crawl(tmp_path_factory.mktemp("made") / "crawl")
    (directory / "crawl.toml").write_text(effective_toml(Config()))
    return directory


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses of pages whose content was found, in order."""
    pages: list[str] = []
    contents_of = ContentProcesses.contents_of

    def count(self: ContentProcesses, folder: Path, asked: Iterable[ArchivedPage]) -> Iterator[MarkdownPage | None]:
        def noted() -> Iterator[ArchivedPage]:
            for page in asked:
                pages.append(page.url)
                yield page

        return contents_of(self, folder, noted())

    monkeypatch.setattr(ContentProcesses, "contents_of", count)
    monkeypatch.setattr("gossamer.results.export.pages.PAGES_MIN", 1)
    monkeypatch.setattr("gossamer.results.export.opening.WallClock.now", lambda _: 1_767_225_600.0)  # In data cards.
    return pages


@pytest.fixture
def find_here(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Have the exports that follow find contents in this process, as those of few pages do: no process starts."""
    return lambda: monkeypatch.setattr("gossamer.results.export.pages.PAGES_MIN", PAGES_MIN)


def files_in(folder: Path) -> dict[str, bytes]:
    if folder.is_file():
        return {"": folder.read_bytes()}
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.heavy
@pytest.mark.long
@pytest.mark.promise(
    "Files and exports", "Several formats at once hold what each holds alone, and find each page's content once."
)
def test_several_formats_are_what_each_is_alone(
    crawled: Path, tmp_path: Path, found: list[str], find_here: Callable[[], None]
) -> None:
    shown: list[str] = []
    done = export_of(
        crawled, ",".join(FORMATS), tmp_path / "all", progress=lambda name, _done, _rows: shown.append(name)
    )
    assert len(found) == len(set(found)) > 40
    assert set(shown) >= {"markdown: pages", "bulk: pages", "parquet: links"}
    assert done.rows["texts as bulk"] == done.rows["texts as datasets"] > 0
    find_here()
    for to in FORMATS:
        export_of(crawled, to, tmp_path / to)
        together = tmp_path / "all" / ("pages.jsonl" if to == "jsonl" else to)
        assert files_in(together) == files_in(tmp_path / to), to
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.heavy
@pytest.mark.long
@pytest.mark.promise(
    "Files and exports", "`search` among several formats builds the index of the texts found for them."
)
def test_search_among_formats_indexes_what_was_found_for_them(
    crawled: Path, tmp_path: Path, found: list[str], monkeypatch: pytest.MonkeyPatch, find_here: Callable[[], None]
) -> None:
    monkeypatch.setattr("gossamer.results.search.build.PAGES_MIN", 1)
    documents: list[list[str]] = [[], []]
    put = IndexWriter.put

    def note(self: IndexWriter, page: IndexedPage) -> None:
        documents[-1].append(repr(page))
        put(self, page)

    def refuse(*_: object) -> Iterator[None]:
        raise AssertionError("a text is found again")

    monkeypatch.setattr(IndexWriter, "put", note)
    directory = tmp_path / "crawl"
    shutil.copytree(crawled, directory)
    build_index_of(directory)
    documents.append([])
    for name in ("isolated.contents.ContentProcesses.texts_of", "search.build.texts_of"):
        monkeypatch.setattr(f"gossamer.results.{name}", refuse)
    export_of(directory, "bulk,search,markdown", tmp_path / "all")
    assert len(found) == len(set(found)) > 40
    assert documents[-1] == documents[1]
    assert sorted(path.name for path in (tmp_path / "all").iterdir()) == ["bulk", "markdown"]
    find_here()
    for to in ("bulk", "markdown"):
        export_of(crawled, to, tmp_path / to)
        assert files_in(tmp_path / to) == files_in(tmp_path / "all" / to)
    with pytest.raises(ConfigError, match="--build` builds the index alone"):
        export_of(directory, "search", tmp_path / "none")
    with pytest.raises(ConfigError, match="the index has every page"):
        export_of(directory, "bulk,search", tmp_path / "none", where="depth = 0")


@pytest.mark.heavy
@pytest.mark.long
def test_one_that_was_interrupted_keeps_what_it_found(
    crawled: Path, tmp_path: Path, found: list[str], monkeypatch: pytest.MonkeyPatch, find_here: Callable[[], None]
) -> None:
    monkeypatch.setattr(several, "PAGES_A_COMMIT", 5)
    target = tmp_path / "all"

    shown = []

    def die(name: str, done: int, _rows: int) -> None:
        shown.append((name, done))
        if shown.count(shown[-1]) == 1 and shown[-1] in (("markdown: pages", 30), ("datasets: pages", 10)):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export_of(crawled, "markdown,datasets", target, progress=die)
    first = set(found[:20])
    found.clear()
    with pytest.raises(KeyboardInterrupt):
        export_of(crawled, "markdown,datasets", target, progress=die)
    assert found
    assert not first.intersection(found)
    assert not target.exists()
    with pytest.raises(ConfigError, match="unfinished export with other options"):
        export_of(crawled, "markdown,bulk", target)
    before = len(found)
    assert export_of(crawled, "markdown, datasets", target).resumed
    assert len(found) == before, "all was found by then"
    find_here()
    export_of(crawled, "markdown", tmp_path / "markdown")
    assert files_in(target / "markdown") == files_in(tmp_path / "markdown")


@pytest.mark.parametrize(
    ("to", "options", "says"),
    [
        ("markdown,docx", {}, "--to docx: expected parquet"),
        ("markdown,", {}, "--to : expected parquet"),
        ("markdown,parquet", {"dedupe": "exact"}, "--dedupe: parquet holds rows"),
        ("markdown,jsonl", {"table": "links"}, "--table links: markdown has no tables"),
    ],
)
def test_options_that_one_of_them_lacks_are_refused_first(
    crawled: Path, tmp_path: Path, to: str, options: dict[str, object], says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        export_of(crawled, to, tmp_path / "all", **options)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


SITE = {
    "/": b"<!doctype html><title>Home</title><meta name=author content='A. Potter'><p>"
    + b"Kilns are fired twice. " * 30
    + b"<a href=/de>to</a> <a href=/t>to</a> <a href=/m>to</a>",
    "/de": b"<!doctype html><html lang=de><title>Ofen</title><p>"
    + "Der Ofen wird zweimal geheizt, früh. ".encode() * 30,
    "/t": b"<!doctype html><title>Times</title><meta property=article:published_time content=2026-01-02T03:04:05+01:00>"
    b"<p hidden>" + b"unseen " * 20 + b"</p><p>" + b"What was fired is glazed. " * 30,
    "/m": b"<p>" + b"No head, and a \\ud800 mark. " * 30,
}  # fmt: skip


@pytest.mark.promise(
    "Files and exports", "Texts that the crawl's modules found are exported without reading the archive."
)
@pytest.mark.parametrize("to", ["markdown", "datasets"])
def test_what_the_crawl_found_is_not_found_again(
    tmp_path: Path, to: str, found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def crawl_site() -> None:
        async with Site(SITE) as site:
            crawler = Crawler(
                [site.root], output=tmp_path / "crawl", allow_private=True,
                settings={"process.modules": ["main_text", "markdown", "metadata"], "politeness.preset": "own"},
            )  # fmt: skip
            await crawler.run()

    asyncio.run(crawl_site())
    export_of(tmp_path / "crawl", to, tmp_path / "reused")
    assert not found
    monkeypatch.setattr("gossamer.results.export.plan._FOUND_COLUMNS", ("no such column",))
    export_of(tmp_path / "crawl", to, tmp_path / "parsed")
    assert len(found) == len(SITE)
    assert files_in(tmp_path / "reused") == files_in(tmp_path / "parsed")
