"""Reading: what the files of a crawl hold: a page as Markdown, and the faults of a site."""

from __future__ import annotations

import tempfile
from pathlib import Path

import msgspec

from gossamer.api.given import directory_of
from gossamer.archive.views.bodies import RecordBodies
from gossamer.archive.views.export import inputs_of
from gossamer.archive.views.faults import KINDS, NOT_CHECKED, SiteFault, as_csv, as_html, faults_of_site
from gossamer.archive.views.plan import make_plan, planned
from gossamer.assembly.schemes import namer_for
from gossamer.assembly.views import crawl_in, export_means
from gossamer.config.gather import reopen
from gossamer.model.errors import ConfigError

__all__ = ["KINDS", "NOT_CHECKED", "ReadPage", "SiteFault", "as_csv", "as_html", "faults_of", "page_of"]

PLAN_BYTES_MAX = 128_000_000
"""Memory of the question to the table of pages."""


class ReadPage(msgspec.Struct, frozen=True):
    """The last archived version of a page."""

    url: str
    title: str
    fetched_at: str
    """As `2026-01-01T00:00:00Z`."""
    media_type: str
    markdown: str
    """The main content; empty for what has no text, such as an image."""


def page_of(directory: str | Path, url: str) -> ReadPage:
    """Return the last archived version of a page of a crawl, running or not. The cost grows with the table of pages.

    Raises:
        ConfigError: there is no crawl, or it archived no such page.
        DamagedError: a file of the crawl is not what was written.
    """
    directory = directory_of(directory)
    crawl, config = crawl_in(directory), reopen(directory / "crawl.toml")
    name = namer_for(config).name(url)
    if name is None:
        raise ConfigError(f"{url} is not an address that can be visited")
    means = export_means(config)
    with tempfile.TemporaryDirectory(prefix="gossamer-read-") as folder:
        plan = Path(folder) / "plan.parquet"
        key = name.key.replace("'", "''")
        make_plan(plan, inputs_of(crawl, ["pages"], Path(folder)).tables["pages"], f"key = '{key}'", PLAN_BYTES_MAX)
        row = next((row for _, row in planned(plan)), None)
        if row is None:
            raise ConfigError(f"{directory} has no archived page {url}; `gossamer why` explains its state")
        with RecordBodies(directory / "warc", means.decode) as bodies:
            page = bodies.page(row.place, row.original, row.url)
    if page is None:
        raise ConfigError(f"{directory} has no content of {url}: the record of its first copy is not there")
    page = msgspec.structs.replace(page, url=row.url, media_type=row.media_type)
    text = means.content_of(page).markdown
    return ReadPage(row.url, row.title or "", row.fetched_at, row.media_type, text)


def faults_of(directory: str | Path) -> list[SiteFault]:
    """Return the faults of a site that was crawled, by kind, then by URL; at the end the links that were not checked.

    Raises:
        ConfigError: there is no crawl.
        DamagedError: a file of its tables is not what was written.
    """
    directory = directory_of(directory)
    with tempfile.TemporaryDirectory(prefix="gossamer-faults-") as name:
        folder = Path(name)
        return faults_of_site(inputs_of(crawl_in(directory), ["pages", "links"], folder).tables, folder)
