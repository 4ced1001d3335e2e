"""Reading: what the files of a crawl hold, whether it runs or not: a page as Markdown, what appeared, changed and
vanished, the history of a robots.txt, and the faults of a site.
"""

import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from heapq import merge
from operator import attrgetter
from pathlib import Path

import msgspec

from gossamer.api.given import directory_of
from gossamer.assembly.schemes import namer_for
from gossamer.config.gather import reopen
from gossamer.model.errors import ConfigError
from gossamer.model.words import iso_time
from gossamer.quantities import read_quantity
from gossamer.results.export.bodies import RecordBodies
from gossamer.results.export.changes import (
    FieldChange,
    PageChange,
    RobotsVersion,
    changes_of,
    field_changes_of,
    robots_of,
    versions_of,
)
from gossamer.results.export.export import inputs_of, tables_of
from gossamer.results.export.faults import TABLES, SiteFault, faults_of_site
from gossamer.results.export.opening import crawl_in, export_means
from gossamer.results.export.plan import make_plan, read_plan
from gossamer.results.export.source import literal
from gossamer.stages.archive.schema import ITEMS
from gossamer.world.clock import WallClock

__all__ = [
    "FieldChange", "PageChange", "ReadPage", "RobotsVersion", "SiteFault", "changes", "faults_of", "page_of",
    "robots_history",
]  # fmt: skip

PLAN_BYTES_MAX = 128_000_000
"""Memory of the query over the table of pages."""


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
    Raises ConfigError: there is no crawl, or it archived no such page; DamagedError: a file of the crawl is not what
    was written.
    """
    directory = directory_of(directory)
    crawl = crawl_in(directory)
    config = reopen(directory / "crawl.toml")
    name = namer_for(config).name_typed(url)
    if name is None:
        raise ConfigError(f"{url} is not an address that can be visited")
    means = export_means(config)
    with tempfile.TemporaryDirectory(prefix="gossamer-read-") as folder:
        plan = Path(folder) / "plan.parquet"
        pages = inputs_of(crawl, ["pages"], Path(folder)).tables["pages"]
        make_plan(plan, pages, f"key = {literal(name.key)}", PLAN_BYTES_MAX)
        row = next((row for _, row in read_plan(plan)), None)
        if row is None:
            raise ConfigError(f"{directory} has no archived page {url}; `gossamer why` explains its state")
        with RecordBodies(directory / "warc", means.decode) as bodies:
            page = bodies.page(row.record)
    if page is None:
        raise ConfigError(f"{directory} has no content of {url}: the record of its first copy is not there")
    return ReadPage(row.url, row.title or "", row.fetched_at, row.media_type, means.content_of(page).markdown)


def changes(directory: Path, since: str = "", url: str = "") -> Iterator[PageChange | FieldChange]:
    """Yield what changed since an instant (ISO 8601, in UTC where it does not say; or a time ago, such as `12h`), pages
    and fields of items, in the order of time; with `url`, all attempts at that page since then. Raises ConfigError:
    there is no crawl, or `since` is no time.
    """
    since_s = instant_of(since) if since else 0.0
    with tempfile.TemporaryDirectory(prefix="gossamer-changes-") as name:
        folder = Path(name)
        crawl = crawl_in(directory)
        config = reopen(directory / "crawl.toml")
        items = [] if url else [name for name in tables_of(crawl, "parquet", "") if name.startswith(ITEMS)]
        tables = inputs_of(crawl, ["pages", *items], folder).tables
        pieces = tables["pages"]
        compared = config.revisit.change
        if not url:
            pages = (msgspec.structs.replace(one, compared=compared) for one in changes_of(pieces, since_s, folder))
            fields: list[Iterator[PageChange | FieldChange]] = [
                field_changes_of(tables[name], name.removeprefix(ITEMS), since_s, folder / str(number))
                for number, name in enumerate(items)
            ]
            found: Iterator[PageChange | FieldChange] = merge(pages, *fields, key=attrgetter("at"))
            yield from found
            return
        named = namer_for(config).name_typed(url)
        if named is None:
            raise ConfigError(f"--url {url}: it is not an address that can be visited")
        begin = iso_time(since_s, "microseconds")
        for one in versions_of(pieces, named.key, folder):
            if one.at >= begin:
                yield msgspec.structs.replace(one, compared=compared)


def robots_history(directory: Path, host: str) -> Iterator[RobotsVersion]:
    """Yield what a host answered for robots.txt, by time, from the WARC files of a crawl, all of which are read. Raises
    ConfigError: there is no crawl, or it archives no robots.txt; DamagedError: none is found, and WARC files are
    missing.
    """
    config = reopen(directory / "crawl.toml")
    if not (config.archive.warc and config.archive.warc_robots):
        raise ConfigError(f"{directory} has no robots.txt files: archive.warc or archive.warc_robots is false")
    found = False
    for version in robots_of(directory / "warc", host.lower(), export_means(config).decode):
        found = True
        yield version
    if not found:
        crawl_in(directory).require((), warcs=True)


def instant_of(text: str) -> float:
    """Return the wall time that a text names: a date, a date with a time, or how long ago. Raises ConfigError: it names
    none.
    """
    if text.strip()[-1:].isalpha() and (ago_s := read_quantity(text, "seconds")) is not None:
        return WallClock().now() - ago_s
    try:
        at = datetime.fromisoformat(text.strip())
        return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError) as error:
        raise ConfigError(
            f"--since {text}: expected a time such as 2026-01-31, 2026-01-31T12:00 or 12h (s, m, h, d, w ago)"
        ) from error


def faults_of(directory: str | Path) -> list[SiteFault]:
    """Return the faults of a site that was crawled, by kind, then by URL; at the end the links that were not checked.
    Raises ConfigError: there is no crawl; DamagedError: a file of its tables is not what was written.
    """
    directory = directory_of(directory)
    with tempfile.TemporaryDirectory(prefix="gossamer-faults-") as name:
        folder = Path(name)
        crawl = crawl_in(directory)
        tables = [table for table in tables_of(crawl, "parquet", "") if table in TABLES]
        return faults_of_site(inputs_of(crawl, tables, folder).tables, folder)
