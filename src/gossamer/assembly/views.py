"""Views: what exports and search need of a crawl and of the rooms."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from gossamer.archive.views.bodies import Means, Written
from gossamer.archive.views.export import Committed, Crawl
from gossamer.assembly.home import Home, homes
from gossamer.assembly.integrity import lost, manifest_of, opened_store, running_store
from gossamer.config import Config
from gossamer.config.gather import reopen
from gossamer.fetch.decoding import BoundedDecoder
from gossamer.model.damage import Damage
from gossamer.model.errors import ConfigError
from gossamer.model.visits import Page
from gossamer.plugins import build
from gossamer.ports import ProcessingModule
from gossamer.process.chain import Modules
from gossamer.process.choice import MODULES
from gossamer.process.html import HTML_TYPES
from gossamer.process.options import ProcessOptions
from gossamer.process.text import TitleAndText
from gossamer.state.journals import Entry
from gossamer.state.store import Store
from gossamer.world.clock import WallClock
from gossamer.world.process import DirectoryLock

_LOGS, _SUFFIX = "state/tables/", ".journal"


def crawl_in(directory: Path) -> Crawl:
    """Return a crawl as it stands at its last commit, for views of it. Of one that does not run all files are looked
    for that the commit names; of one that lost its state, or keeps it elsewhere, finished files count.

    Raises:
        ConfigError: there is none.
        DamagedError: its store cannot be read.
    """
    if not (directory / "crawl.toml").exists():
        raise ConfigError(f"{directory} holds no crawl (it has no crawl.toml)")
    config, now = reopen(directory / "crawl.toml"), WallClock().now()
    lock, running = DirectoryLock(directory / "state/lock", reading=True), False
    try:
        running = not lock.acquire(0.0)
        every = [home for home in homes(directory, config.cluster.workers) if home.is_there]
        files: dict[str, Entry] = {}
        logs: list[Committed] = []
        found: list[Damage] = []
        for home in every:
            store = running_store(config, home) if running else opened_store(config, home, writable=lock.writable)
            manifest = _manifest_in(store)
            files |= {entry.name: entry for entry in manifest}
            found += [] if running else lost(config, home, manifest)
            logs += _logs(home, manifest)
    except OSError as error:
        if not running:
            raise
        return Crawl(directory, running=True, unread=str(error.strerror or error), now=now)
    finally:
        lock.release()
    return Crawl(directory, running, logs, files if every else None, found, now=now)


def _manifest_in(store: Store) -> list[Entry]:
    try:
        return manifest_of(store)
    finally:
        store.close()


def _logs(home: Home, manifest: list[Entry]) -> list[Committed]:
    """Return the logs of tables that are not Parquet files yet."""
    found = []
    for entry in manifest:
        if entry.name.startswith(_LOGS):
            stem = entry.name.removeprefix(_LOGS).removesuffix(_SUFFIX)
            table = stem.partition("-")[0]
            path = home.journals().path(entry.name)
            path = path if path.exists() else path.with_name(path.name + ".open")
            found.append(Committed(path, entry.length, table, home.directory / table / f"{stem}.parquet"))
    return found


def export_means(config: Config) -> Means:
    """Return what exports need to read pages: the decoder of content codings, and what makes text of a page."""
    options = config.process.model_copy(update={"text": True})
    reading = Modules([TitleAndText(options)], options)
    main = Modules([_module("markdown", options), _module("metadata", options)], options)

    def text(page: Page) -> str:
        return reading.process(page).findings.text

    def content(page: Page) -> Written:
        if page.media_type not in HTML_TYPES:
            findings = reading.process(page).findings
            lines = "\n\n".join(line for line in findings.text.splitlines() if line.strip())
            return Written(lines, findings.text_method)
        findings = main.process(page).findings
        return Written(str(findings.columns.get("markdown", "")), findings.text_method, _front(findings.columns))

    return Means(BoundedDecoder(config.fetch).decode, content, text)


def _module(name: str, options: ProcessOptions) -> ProcessingModule:
    return cast("ProcessingModule", build(MODULES[name], "process.modules", options=options))


_FRONT = {"declared_language": "language", "byline": "author", "published": "published", "modified": "modified",
          "license": "license"}  # fmt: skip


def _front(columns: Mapping[str, object]) -> dict[str, str]:
    """Return what the front matter holds of a page's metadata; times as ISO 8601 in UTC."""
    found = {}
    for column, name in _FRONT.items():
        value = columns.get(column)
        if isinstance(value, datetime):
            value = value.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        if value:
            found[name] = str(value)
    return found
