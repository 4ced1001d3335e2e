"""Views: what exports and search need of a crawl and of the rooms."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import cast

from gossamer.archive.views.export import Committed, Crawl
from gossamer.archive.views.means import Means
from gossamer.assembly.home import Home, homes
from gossamer.assembly.parts import stored
from gossamer.config import Config
from gossamer.config.gather import reopen
from gossamer.crawl.commit import MANIFEST
from gossamer.fetch.decoding import BoundedDecoder
from gossamer.model.errors import ConfigError
from gossamer.model.visits import Page
from gossamer.plugins import build
from gossamer.ports import ProcessingModule
from gossamer.process.chain import Modules
from gossamer.process.registry import MODULES, NEEDED
from gossamer.process.text import TitleAndText
from gossamer.state.journals import Entry
from gossamer.state.store import Store
from gossamer.world.clock import WallClock
from gossamer.world.process import DirectoryLock

_LOGS, _SUFFIX = "state/tables/", ".journal"
_WARCS = "warc/"


def committed_files(config: Config, directory: Path) -> list[tuple[Entry, Path]] | None:
    """Return the manifest of a crawl that does not run, all its shards', with where each file lies; or None of one that
    runs, whose stores are its own.

    A crawl that ended in order has no logs left, and its stores are not opened.
    """
    lock = DirectoryLock(directory / "state/lock", reading=True)
    try:
        if not lock.acquire(0.0):
            return None
        all_homes = homes(directory, config.cluster.workers)
        growing = [log for home in all_homes for log in (home.state / "tables").glob("*")]
        if not growing and not any((directory / "warc").glob("*.open")):
            return []
        return [
            file
            for home in all_homes
            if home.is_there
            for file in _committed_files(config, home, writable=lock.writable)
        ]
    finally:
        lock.release()


def _committed_files(config: Config, home: Home, *, writable: bool) -> list[tuple[Entry, Path]]:
    store = Store(home.store, config.state.cache_bytes, config.state.write_buffer_bytes, writable=writable)
    try:
        manifest: list[Entry] = stored(store, MANIFEST, list[Entry], [])
    finally:
        store.close()
    journals = home.journals()
    return [(entry, journals.path(entry.name)) for entry in manifest]


def crawl_in(directory: Path) -> Crawl:
    """Return a crawl as it stands, for views of it.

    Raises:
        ConfigError: there is none.
    """
    if not (directory / "crawl.toml").exists():
        raise ConfigError(f"{directory} holds no crawl (it has no crawl.toml)")
    now = WallClock().now()
    entries = committed_files(reopen(directory / "crawl.toml"), directory)
    if entries is None:
        return Crawl(directory, running=True, now=now)
    logs = []
    for entry, path in entries:
        if entry.name.startswith(_LOGS):
            stem = entry.name.removeprefix(_LOGS).removesuffix(_SUFFIX)
            table = stem.partition("-")[0]
            path = path if path.exists() else path.with_name(path.name + ".open")
            logs.append(Committed(path, entry.length, table, directory / table / f"{stem}.parquet"))
    warcs = [(entry.name, entry.length) for entry, _ in entries if entry.name.startswith(_WARCS)]
    return Crawl(directory, running=False, logs=logs, warc_lengths=warcs or None, now=now)


def export_means(config: Config) -> Means:
    """Return what exports need to read pages: the decoder of content codings, and what makes text of a page."""
    options = config.process.model_copy(update={"text": True})
    reading = Modules([TitleAndText(options)], options)
    main = reading
    needed = NEEDED.get("markdown")
    if needed is None or find_spec(needed) is not None:  # Without it Markdown is the visible text.
        module = cast("ProcessingModule", build(MODULES["markdown"], "process.modules", options=options))
        main = Modules([module], options)

    def text(page: Page) -> str:
        return reading.process(page).findings.text

    def content(page: Page) -> tuple[str, str]:
        findings = main.process(page).findings
        if "markdown" not in findings.columns:
            # The whole visible text, then: its lines are the page's blocks.
            findings = reading.process(page).findings
            return "\n\n".join(line for line in findings.text.splitlines() if line.strip()), findings.text_method
        return str(findings.columns["markdown"]), findings.text_method

    return Means(BoundedDecoder(config.fetch), content, text)
