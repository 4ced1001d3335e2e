"""Reading: what the files of a crawl hold: a page as Markdown, faults of a site, cookies, pages of a walk."""

from __future__ import annotations

import tempfile
from pathlib import Path

import msgspec

from gossamer.api.given import directory_of
from gossamer.archive.views.bodies import RecordBodies
from gossamer.archive.views.export import inputs_of
from gossamer.archive.views.faults import KINDS, NOT_CHECKED, SiteFault, as_csv, as_html, faults_of_site
from gossamer.archive.views.plan import make_plan, planned
from gossamer.assembly import homes, namer_for, open_stopped
from gossamer.assembly.sessions import netscape_file
from gossamer.assembly.views import crawl_in, export_means
from gossamer.config.gather import reopen
from gossamer.frontier.walked import sample
from gossamer.model.errors import ConfigError
from gossamer.state.epoch import Epochs
from gossamer.world.dice import Dice

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


__all__ = ["KINDS", "NOT_CHECKED", "SiteFault", "as_csv", "as_html", "faults_of"]


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


def cookies_of(directory: str | Path) -> str:
    """Return the cookies of a crawl that does not run, as a file in Netscape format. They are credentials.

    Raises:
        ConfigError: there is no crawl in `directory`, or it runs.
    """
    directory = directory_of(directory)
    config = reopen(directory / "crawl.toml")
    return netscape_file(config, homes(directory, config.cluster.workers))


def sample_of(directory: str | Path, size: int, seed: int | None = None) -> list[dict[str, object]]:
    """Return pages of a walk that does not run, each with `url`, `visits` and `weight`; the same ones for one `seed`.

    Raises:
        ConfigError: there is no crawl, a process holds it, or it did not walk.
    """
    directory = directory_of(directory)
    config = reopen(directory / "crawl.toml")
    if config.frontier.strategy != "walk":
        raise ConfigError(
            f"{directory} did not walk; begin a crawl with --set frontier.strategy=walk to draw samples from it"
        )
    opened = open_stopped(config, directory)
    try:
        namer = namer_for(config)
        drawn = sample(Epochs(opened.store), size, config.walk.restart_share, namer.name, Dice(seed))
    finally:
        opened.close()
    return [{"url": page.url, "visits": page.visits, "weight": page.weight} for page in drawn]
