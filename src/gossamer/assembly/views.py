"""Views: what exports and search need of a crawl and of the rooms."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import cast

from gossamer.archive.views.bodies import Means
from gossamer.archive.views.export import Committed, Crawl
from gossamer.assembly.home import Home, homes
from gossamer.assembly.integrity import lost, manifest_of, opened_store
from gossamer.config import Config
from gossamer.config.gather import reopen
from gossamer.fetch.decoding import BoundedDecoder
from gossamer.model.damage import Damage
from gossamer.model.errors import ConfigError
from gossamer.model.visits import Page
from gossamer.plugins import build
from gossamer.ports import ProcessingModule
from gossamer.process.chain import Modules
from gossamer.process.choice import MODULES, NEEDED
from gossamer.process.text import TitleAndText
from gossamer.state.journals import Entry
from gossamer.world.clock import WallClock
from gossamer.world.process import DirectoryLock

_LOGS, _SUFFIX = "state/tables/", ".journal"


def crawl_in(directory: Path) -> Crawl:
    """Return a crawl as it stands, for views of it. Of one that does not run all files are looked for that its last
    commit names; of one that lost its state, or keeps it elsewhere, finished files count as they are found.

    Raises:
        ConfigError: there is none.
        DamagedError: its store cannot be read.
    """
    if not (directory / "crawl.toml").exists():
        raise ConfigError(f"{directory} holds no crawl (it has no crawl.toml)")
    config, now = reopen(directory / "crawl.toml"), WallClock().now()
    lock = DirectoryLock(directory / "state/lock", reading=True)
    try:
        if not lock.acquire(0.0):
            return Crawl(directory, running=True, now=now)
        every = [home for home in homes(directory, config.cluster.workers) if home.is_there]
        files: dict[str, Entry] = {}
        logs: list[Committed] = []
        found: list[Damage] = []
        for home in every:
            manifest = _manifest_in(config, home, writable=lock.writable)
            files |= {entry.name: entry for entry in manifest}
            found += lost(config, home, manifest)
            logs += _logs(home, manifest)
    finally:
        lock.release()
    return Crawl(directory, running=False, logs=logs, files=files if every else None, lost=found, now=now)


def _manifest_in(config: Config, home: Home, *, writable: bool) -> list[Entry]:
    store = opened_store(config, home, writable=writable)
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

    return Means(BoundedDecoder(config.fetch).decode, content, text)
