"""One made crawl for all, and ways to export it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gossamer.model.pages import Page
from gossamer.results.export.bodies import MarkdownPage, Means, PageText
from gossamer.results.export.export import Exported, ExportedCrawl, ExportRequest, export, no_progress
from gossamer.stages.fetch.decoding import BoundedDecoder
from gossamer.stages.fetch.options import FetchOptions
from gossamer.stages.process.rewriting import rewritten
from gossamer.stages.seen.shingles import signature
from tests.results.export.crawled import crawl


def characters(page: Page) -> str:
    return page.body.decode("utf-8", "replace")


def text(page: Page) -> PageText:
    return PageText(characters(page))


def content(page: Page) -> MarkdownPage:
    return MarkdownPage(characters(page), "plain", text=characters(page))


MEANS = Means(BoundedDecoder(FetchOptions()).decode, content, text, signature, str, rewritten)
NOW = 1_767_225_600.0


@pytest.fixture(scope="session")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return crawl(tmp_path_factory.mktemp("made") / "crawl")


Exporting = Callable[..., Exported]


@pytest.fixture
def exporting(crawled: Path) -> Exporting:
    def make(to: str, target: Path, directory: Path = crawled, **options: object) -> Exported:
        options = {"running": False, "logs": (), "files": None, **options}
        crawl = ExportedCrawl(
            directory,
            bool(options.pop("running")),
            options.pop("logs"),
            options.pop("files"),
            now=NOW,  # type: ignore[arg-type]
        )
        progress = options.pop("progress", no_progress)
        return export(crawl, ExportRequest(to, **options), target, MEANS, progress)  # type: ignore[arg-type]

    return make
