"""Views: builds the access to a crawl for exports and search."""

from collections.abc import Callable
from contextlib import closing
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import cast

from msgspec.structs import replace

from gossamer.assembly.home import Home, homes
from gossamer.assembly.integrity import losses, manifest_of, open_store, running_store
from gossamer.assembly.schemes import namer_for
from gossamer.config import Config
from gossamer.config.gather import reopen
from gossamer.model.errors import Damage
from gossamer.model.pages import MARKED_TYPES, Page
from gossamer.model.product import LOCK
from gossamer.plugins import build
from gossamer.ports import ProcessingModule
from gossamer.results.export.bodies import MarkdownPage, Means, PageText, front_of
from gossamer.results.export.export import CommittedLog, ExportedCrawl
from gossamer.stages.archive.segments import table_of
from gossamer.stages.archive.tables import LOG_FOLDER, LOG_SUFFIX
from gossamer.stages.fetch.decoding import BoundedDecoder
from gossamer.stages.process.chain import Modules
from gossamer.stages.process.choice import LANGUAGE, MODULES, NEEDED
from gossamer.stages.process.html import HTML_TYPES
from gossamer.stages.process.rewriting import rewritten
from gossamer.stages.process.text import VisibleText
from gossamer.stages.seen.shingles import signature
from gossamer.state.journals import ManifestEntry
from gossamer.state.store import Store
from gossamer.world.clock import WallClock
from gossamer.world.process import DirectoryLock

LIKELY_MIN = 0.5  # Of a language with a lower score nothing is said.
READERS_S = 10.0
"""Time in which exports of other shares have read the last commit, and release the crawl's directory."""


def crawl_in(directory: Path, *, is_shared: bool = False) -> ExportedCrawl:
    """Return a crawl as of its last commit, for exports and search. If the crawl does not run, all files of the commit
    must exist; if its state is lost or elsewhere, all finished files are used. A crawl that another process reads at
    this moment counts as running; if it `is_shared` by exports of other shares, only after `READERS_S`. Raises
    ConfigError: there is no crawl; DamagedError: its store cannot be read.
    """
    config = reopen(directory / "crawl.toml")
    now = WallClock().now()
    lock = DirectoryLock(directory / LOCK, reading=True)
    running = False
    try:
        running = not lock.acquire(READERS_S if is_shared else 0.0)
        every = [home for home in homes(directory, config.cluster.workers) if home.is_there]
        files: dict[str, ManifestEntry] = {}
        logs: list[CommittedLog] = []
        found: list[Damage] = []
        for home in every:
            store = running_store(config, home) if running else open_store(config, home, writable=lock.writable)
            manifest = _manifest_in(store)
            files |= {entry.name: entry for entry in manifest}
            found += [] if running else losses(config, home, manifest)
            logs += _logs(home, manifest)
    except OSError as error:
        if not running:
            raise
        unread = str(error.strerror or error)
        return ExportedCrawl(directory, running=True, unread=unread, now=now, about=_about(config))
    finally:
        lock.release()
    return ExportedCrawl(directory, running, logs, files if every else None, found, now=now, about=_about(config))


def files_of_commit(config: Config, home: Home) -> list[ManifestEntry]:
    """Return the files of a running shard's last commit, within 5 s. Raises OSError: the store cannot be read."""
    return _manifest_in(running_store(config, home))


SEEDS_MAX = 100
"""Largest number of seeds in a data card."""


def _about(config: Config) -> dict[str, object]:
    """Return the part of a data card about a crawl's configuration."""
    robots = "obeyed" if config.robots.obey else "not obeyed"
    return {
        "seeds": list(config.seeds.urls[:SEEDS_MAX]),
        "seeds_file": Path(config.seeds.file).name,
        "scope": config.scope.scope,
        "include": list(config.scope.include),
        "exclude": list(config.scope.exclude),
        "media_types": list(config.scope.media_types),
        "contact": config.operator.contact,
        "purpose": list(config.operator.purpose),
        "robots": f"{robots}, as {config.robots.product_token}",
    }


def _manifest_in(store: Store) -> list[ManifestEntry]:
    with closing(store):
        return manifest_of(store)


def _logs(home: Home, manifest: list[ManifestEntry]) -> list[CommittedLog]:
    found = []
    for entry in manifest:
        if entry.name.startswith(LOG_FOLDER):
            stem = entry.name.removeprefix(LOG_FOLDER).removesuffix(LOG_SUFFIX)
            table = table_of(stem)
            path = home.journals().path(entry.name)
            path = path if path.exists() else path.with_name(path.name + ".open")
            found.append(CommittedLog(path, entry.length, table, home.directory / table / f"{stem}.parquet"))
    return found


def export_means(config: Config, *, markdown: bool = True) -> Means:
    """Return an export's dependencies: the decoder, and functions from a page to text and, if wanted, `markdown`."""
    options = replace(config.process, text=True)
    reading = Modules([VisibleText(options)], options)
    names = ("main_text", "markdown", "metadata") if markdown else ("main_text", "metadata")
    made = [cast("ProcessingModule", build(MODULES[name], "process.modules", options=options)) for name in names]
    main = Modules(made, options)

    def text(page: Page) -> PageText:
        findings = reading.process(page).findings
        return PageText(findings.text, findings.emphasis)

    def content(page: Page) -> MarkdownPage:
        if page.media_type not in HTML_TYPES:
            findings = reading.process(page).findings
            text = findings.text
            if page.media_type not in MARKED_TYPES:
                text = "\n\n".join(line for line in text.splitlines() if line.strip())
            return MarkdownPage(text, findings.text_method, text=findings.text)
        findings = main.process(page).findings
        markdown = str(findings.columns.get("markdown", ""))
        front = front_of(findings.columns)
        if "language" not in front and (language := _language_of(findings.text)):
            front["language"] = language
        ids = str(findings.columns.get("heading_ids", ""))
        return MarkdownPage(markdown, findings.text_method, front, findings.text, heading_ids=ids)

    namer = namer_for(config)

    def key(url: str) -> str:
        named = namer.name(url)
        return named.key if named is not None else ""

    return Means(BoundedDecoder(config.fetch).decode, content, text, signature, key, rewritten, _language_of)


def _language_of(text: str) -> str:
    """Return the language of a text; empty where it is not certain, or what detects it is not installed."""
    found = _detector()(text)
    return found[0] if found is not None and found[1] >= LIKELY_MIN else ""


@cache
def _detector() -> Callable[[str], tuple[str, float] | None]:
    if find_spec(NEEDED[LANGUAGE]) is None:
        return lambda _: None
    from gossamer.stages.process.language import LanguageModule

    return LanguageModule().detect
