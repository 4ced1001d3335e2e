"""Exports that can be killed at each of their steps (`tests.crash.forks`); bytes appended are steps too."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gossamer.model.pages import Page
from gossamer.results.export import export as views
from gossamer.results.export import several, work
from gossamer.results.export.bodies import MarkdownPage, Means, PageText
from gossamer.results.export.source import RowSource
from gossamer.results.export.work import ExportOrder
from gossamer.stages.fetch.decoding import BoundedDecoder
from gossamer.stages.fetch.options import FetchOptions
from gossamer.stages.process.rewriting import rewritten
from gossamer.stages.seen.shingles import signature
from gossamer.world.files import AppendFile
from tests.crash.forks import Steps, answer

BOUNDS = (
    "BATCH_ROWS", "CHECKPOINT_BYTES", "SEGMENT_BYTES_MAX", "PAGES_A_CHECKPOINT", "MEMORY_BYTES_MIN", "FILE_ROWS_MAX",
    "PAGES_A_PART", "PAGES_A_COMMIT", "SHARD_BYTES", "BULK_BYTES_MAX",
)  # fmt: skip


def count_appends(steps: Steps) -> None:
    """Have each write at a file's end be a step; at the fatal one half of its bytes are written."""
    write = AppendFile.write

    def counted(file: AppendFile, data: Any) -> None:
        steps.step(lambda: os.write(file._fd, bytes(data)[: len(data) // 2]))
        write(file, data)

    AppendFile.write = counted  # type: ignore[method-assign]


def count_batches(steps: Steps) -> None:
    """Have each batch of rows that is read be a step: a database writes without our knowing."""
    batches = RowSource.batches

    def counted(source: RowSource, *arguments: Any) -> Iterator[Any]:
        for one in batches(source, *arguments):
            steps.step(lambda: None)
            yield one

    RowSource.batches = counted  # type: ignore[method-assign]


def characters(page: Page) -> str:
    return page.body.decode("utf-8", "replace")


def text(page: Page) -> PageText:
    return PageText(characters(page))


def content(page: Page) -> MarkdownPage:
    return MarkdownPage(characters(page), "plain", text=characters(page))


def run(job: dict[str, Any], steps: Steps) -> None:
    """Make one export, with the bounds of the job."""
    work.CHECKPOINT_BYTES = job["checkpoint_bytes"]
    for module in list(sys.modules.values()):
        for name in BOUNDS:
            if str(getattr(module, "__name__", "")).startswith("gossamer.results.export") and hasattr(module, name):
                setattr(module, name, job[name.lower()])
    means = Means(BoundedDecoder(FetchOptions()).decode, content, text, signature, str, rewritten)
    count_appends(steps)
    if job["to"] in ("duckdb", "sqlite"):
        count_batches(steps)
    crawl = views.ExportedCrawl(Path(job["crawl"]), running=False, now=1_767_225_600.0)

    def make(to: str, target: Path, means: Means, progress: views.Progress) -> views.Exported:
        request = views.ExportRequest(to, memory_bytes_max=job["memory_bytes_max"])
        return views.export(crawl, request, target, means, progress)

    target = Path(job["target"])
    if "," in job["to"]:
        orders = [ExportOrder(job["crawl"], to) for to in job["to"].split(",")]
        several.export_several(target, orders, means, make, views.no_progress, None)
    else:
        make(job["to"], target, means, views.no_progress)


if __name__ == "__main__":
    answer(run)
