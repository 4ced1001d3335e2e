"""Views: read a crawl's directory, whether it runs or not: its configuration, its report, its index."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from gossamer.config.gather import reopen
from gossamer.config.secret import redact
from gossamer.config.sections import key_of
from gossamer.config.toml import to_toml
from gossamer.console.directory import CrawlStamp, stamp_of_crawl
from gossamer.model.archived import OFFSET_MAX, ROWS_MAX, HostHistory, ItemList, PageVersions
from gossamer.model.errors import ConfigError
from gossamer.model.product import LOCK
from gossamer.model.verbs import ConflictError, Nothing, Text, VerbRequest, Why
from gossamer.options import to_table
from gossamer.results.isolated.reads import ReadHost, ReadItems, ReadVersions
from gossamer.world.process import DirectoryLock, child_environment
from gossamer.world.workers import end_process

if TYPE_CHECKING:
    from gossamer.config import Config
    from gossamer.console.service import Service

REPORT_S_MAX = 80.0
REPORT_KEPT_S = 10.0


class Query(VerbRequest, frozen=True):
    """A full-text query."""

    q: Annotated[Text, Meta(description='Words, "phrases", -without, title:word.')]
    n: Annotated[int, Meta(ge=1, le=100, description="Maximum number of pages.")] = 10
    host: Annotated[str, Meta(max_length=300, description="Only pages of this host.")] = ""
    site: Annotated[str, Meta(max_length=300, description="Only pages of this domain.")] = ""
    language: Annotated[str, Meta(max_length=30, description="Only pages that say so: en, de.")] = ""


class ItemsOf(VerbRequest, frozen=True):
    """Which items."""

    kind: Annotated[str, Meta(max_length=200, description="Name of the items; empty: the first kind.")] = ""
    n: Annotated[int, Meta(ge=1, le=ROWS_MAX, description="Maximum number of items.")] = 20
    offset: Annotated[int, Meta(ge=0, le=OFFSET_MAX, description="Leave out as many of the newest.")] = 0


class HistoryOf(VerbRequest, frozen=True):
    """Which host."""

    host: Annotated[str, Meta(min_length=1, max_length=300, description="Its name, as in a URL, without port.")]


class ConfigKey(msgspec.Struct, frozen=True, kw_only=True):
    """One key of the configuration."""

    key: Annotated[str, Meta(description="Section and name.")]
    value: Annotated[Any, Meta(description="null: not set.")]
    text: Annotated[str, Meta(description="The value as in TOML; empty if it is not set.")]
    origin: Annotated[str, Meta(description="Where the value came from.")]
    live: Annotated[bool, Meta(description="It may change while the crawl runs.")]
    says: Annotated[str, Meta(description="What it is.")]


class Configuration(msgspec.Struct, frozen=True):
    """Configuration of the running crawl."""

    keys: tuple[ConfigKey, ...]


class Views:
    """Reads for one crawl, one of a kind at a time: `Operation` bounds the wait."""

    def __init__(self, directory: Path, service: Service) -> None:
        self._directory = directory
        self._service = service
        self._configuring = asyncio.Lock()
        self._reporting = asyncio.Lock()
        self._report: tuple[float, CrawlStamp | None, dict[str, object]] | None = None

    async def configuration(self, _: Nothing) -> object:
        """Return all keys. About 30 ms, in a thread."""
        async with self._configuring:
            try:
                return await asyncio.to_thread(lambda: describe_keys(reopen(self._directory / "crawl.toml")))
            except ConfigError as error:
                raise ConflictError(str(error)) from error

    async def search(self, query: Query) -> object:
        """Return the pages that answer best. Raises as `Searches.search`."""
        return await self._service.searches.search(
            self._directory, query.q, limit=query.n, host=query.host, site=query.site, language=query.language
        )

    async def report(self, _: Nothing) -> object:
        """Return the statistics: made in a process of their own, whose memory is its own. Those of a running crawl are
        at most some seconds old, and those of another are made once.
        """
        now = asyncio.get_running_loop().time
        async with self._reporting:
            stamp = None if DirectoryLock.is_held(self._directory / LOCK) else stamp_of_crawl(self._directory)
            kept = self._report
            if kept is None or (now() - kept[0] > REPORT_KEPT_S and (stamp is None or stamp != kept[1])):
                kept = self._report = (now(), stamp, await _make_report(self._directory))
            return kept[2]

    async def versions(self, asked: Why) -> object:
        """Return the attempts at a page, each with the path on which it is replayed. Raises as `Reads.read`."""
        question = ReadVersions(self._directory.resolve().name, asked.url, self._service.replay.secret)
        found = await self._service.reads.read(self._directory, question, PageVersions)
        at = self._service.replay
        return msgspec.structs.replace(found, replay_port=at.port, replay_url=at.public_url, public_host=at.public_host)

    async def items(self, asked: ItemsOf) -> object:
        """Return a part of the items. Raises as `Reads.read`."""
        return await self._service.reads.read(self._directory, ReadItems(asked.kind, asked.n, asked.offset), ItemList)

    async def history(self, asked: HistoryOf) -> object:
        """Return how requests to a host ended, over time. Raises as `Reads.read`."""
        return await self._service.reads.read(self._directory, ReadHost(asked.host), HostHistory)


def describe_keys(config: Config) -> Configuration:
    """Return all keys of a configuration, credentials redacted."""
    found = []
    for key in config.all_keys():
        value = redact(key, to_table(config.value(key)))
        text = "none" if value is None else to_toml(value)
        live = key_of(key).live
        says = key_of(key).what
        found.append(ConfigKey(key=key, value=value, text=text, origin=config.origin(key), live=live, says=says))
    return Configuration(tuple(found))


async def _make_report(directory: Path) -> dict[str, object]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "gossamer", "report", str(directory), "--json",
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        env=child_environment(),
    )  # fmt: skip
    try:
        async with asyncio.timeout(REPORT_S_MAX):
            out, complaint = await process.communicate()
    finally:
        if process.returncode is None:
            await end_process(process)
    if process.returncode:
        says = complaint.decode(errors="replace").strip().removeprefix("gossamer: ")
        raise ConflictError(says or f"the report ended with status {process.returncode}")
    return msgspec.json.decode(out, type=dict[str, object])
