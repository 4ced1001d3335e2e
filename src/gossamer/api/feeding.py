"""Feeding: queues the URLs of segments in an offline crawl, batch by batch, each URL once, also after a crash; writes
what it leaves as a segment for the next one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from heapq import merge
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from xxhash import xxh3_128_hexdigest

from gossamer.assembly.home import Home
from gossamer.config import Config
from gossamer.config.seeds import Visitable
from gossamer.engine.explain import offer_test
from gossamer.model.errors import ConfigError
from gossamer.model.links import Link
from gossamer.model.product import PRODUCT, __version__
from gossamer.ports import UrlSeen
from gossamer.stages.frontier.overview import remaining
from gossamer.state.schema import SEGMENTS
from gossamer.state.store import Store
from gossamer.url.url import NameUrl
from gossamer.world.files import sync_directory

if TYPE_CHECKING:
    from gossamer.assembly.values import Shard
    from gossamer.results.offline.segment import Segment

URLS_A_STEP_MAX = 500
"""URLs that are queued before other tasks have a turn: about 5 ms."""
FOOTER_BYTES = 1 << 16
"""Bytes at the end of a file, which identify a segment: they have the length and range of each column."""
NAMES = ("[!.]*.segment", "[!.]*.parquet")
"""Names of segments in a directory that is watched."""
LEVEL_MAX = 7
"""The least urgent level."""
DONE = ".taken"
"""Suffix of a segment in that directory once it was taken in."""


class SegmentProgress(msgspec.Struct, array_like=True):
    """How far a segment was taken in: the stored form."""

    path: str
    rows: int
    at: int = 0
    """Rows that are in the queue, or were refused."""
    refused: int = 0

    @property
    def whole(self) -> bool:
        return self.at >= self.rows


_decode = msgspec.msgpack.Decoder(SegmentProgress).decode


class Feeding:
    """Takes in segments. How far it has come is durable with the URLs themselves, so that a restart goes on there.

    A segment is known by what is in it, not by its name: one that was taken in is passed over under any. In memory is a
    batch of one file; the queue is on disk. About 15 µs a URL.
    """

    def __init__(self, shard: Shard) -> None:
        telemetry = shard.controls.telemetry
        config = shard.controls.settings.config
        self._ring = shard.ring
        self._epochs = shard.kept.storage.epochs
        self._logs = telemetry.logs
        self._counters = telemetry.counters
        self._given = [Path(path) for path in config.seeds.segments]
        self._visitable = Visitable(config)
        self._exchange = shard.ring.pipeline.stages.exchange
        self._busy = bool(self._given)
        directory = config.seeds.watch_directory
        self._directory = Path(directory) if directory else None

    @property
    def watches(self) -> bool:
        """Whether further segments may appear in a directory."""
        return self._directory is not None

    def busy(self) -> bool:
        """Return whether URLs of the given segments remain to be taken in."""
        return self._busy

    async def run(self) -> None:
        """Take in the segments that were given, in order, giving way to the crawl; then wait to be cancelled."""
        for path in self._given:
            await self.take(path)
        self._busy = False
        self._ring.loop.stir()
        await asyncio.Event().wait()

    async def take(self, path: Path) -> int:
        """Take in a segment from where it was left; return how many URLs of it are new to the frontier. Raises
        ConfigError: the file is not a segment, or is damaged.
        """
        before = self._ring.frontier.counts.discovered
        key = SEGMENTS + identity(path)
        with closing(_segment(path)) as segment:
            taken = self._progress_of(key) or SegmentProgress(str(path), segment.rows)
            for rows in segment.links(taken.at, URLS_A_STEP_MAX):
                self._offer(rows.links, rows.levels, taken)
                taken.at = rows.end
                self._epochs.put("meta", key, msgspec.msgpack.encode(taken))  # In the same epoch as its URLs.
                self._ring.loop.stir()
                await self._ring.loop.commit_if_large()
                await asyncio.sleep(0)
            self._epochs.put("meta", key, msgspec.msgpack.encode(taken))
        found = self._ring.frontier.counts.discovered - before
        refused = f", {taken.refused:,} refused (logs/info.log names them)" if taken.refused else ""
        if found or refused:
            self._counters.note(f"took in {path}: {found:,} of {taken.rows:,} URLs are new here{refused}")
        return found

    async def take_next(self) -> bool:
        """Take in the first segment by name of the directory that is watched; return whether there was one.

        It is renamed once a commit has all its URLs in the queue. A file that cannot be read is renamed, too.
        """
        path = self._waiting()
        if path is None:
            return False
        self._busy = True
        try:
            await self.take(path)
            await self._ring.loop.commit()
            end = DONE
        except ConfigError as error:
            self._logs.critical("segment_refused", str(error), path=str(path))
            self._counters.note(f"{error}; it is set aside as {path.name}.refused")
            end = ".refused"
        finally:
            self._busy = False
        path.replace(path.with_name(path.name + end))
        sync_directory(path.parent)
        return True

    def remainders(self) -> list[Iterator[tuple[Link, int]]]:
        """Return, for each given segment, the links that were not taken in, with levels, in the file's order."""
        found: list[Iterator[tuple[Link, int]]] = []
        for path in self._given:
            taken = self._progress_of(SEGMENTS + identity(path))
            if taken is None or not taken.whole:
                rest = _rest(path, taken.at if taken is not None else 0)
                found.append((link, level) for link, level in rest if self._exchange.has(link.url))
        return found

    def _waiting(self) -> Path | None:
        if self._directory is None:
            return None
        return min({path for name in NAMES for path in self._directory.glob(name)}, default=None)

    def _offer(self, links: list[Link], levels: list[int], taken: SegmentProgress) -> None:
        """Queue URLs as seeds are read, under our own names: the file may be of other rules, or of another tool."""
        names = [self._ring.urls.namer.name_typed(link.url.text) for link in links]
        may = self._visitable.which(names)
        ours: list[Link] = []
        at: list[int] = []
        for link, level, url, visitable in zip(links, levels, names, may, strict=True):
            if url is None or not visitable:
                taken.refused += 1
                self._logs.info("segment_url_refused", url=link.url.text[:200])
                continue
            ours.append(Link(url, link.link_type, link.depth, link.hops, link.referrer, link.seed))
            at.append(min(level, LEVEL_MAX))
        self._counters.count_seeds([link.url.text for link in ours if self._exchange.has(link.url)])
        self._ring.pipeline.discovery.take_in(ours, at)

    def _progress_of(self, key: bytes) -> SegmentProgress | None:
        stored = self._epochs.get("meta", key)
        return None if stored is None else _decode(stored)


def check_segments(config: Config) -> None:
    """Raise ConfigError unless each segment that a configuration names is one."""
    for path in config.seeds.segments:
        _segment(Path(path)).close()


def _segment(path: Path) -> Segment:
    # It brings pyarrow.compute: only an offline crawl has a use for it.
    from gossamer.results.offline.segment import Segment  # noqa: PLC0415

    return Segment(path)


def _rest(path: Path, start: int) -> Iterator[tuple[Link, int]]:
    with closing(_segment(path)) as segment:
        for rows in segment.links(start, URLS_A_STEP_MAX):
            yield from zip(rows.links, rows.levels, strict=True)


def identity(path: Path) -> bytes:
    """Return the identity of a segment, by its content. Raises ConfigError when it cannot be read."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - FOOTER_BYTES))
            return f"{size}:{xxh3_128_hexdigest(file.read())}".encode()
    except OSError as error:
        raise ConfigError(f"cannot read the segment {path}: {error.strerror}; name a file that you can read") from error


REMAINDER = "remainder.parquet"


def remainder_of(home: Home) -> Path:
    """Return the path of the segment that a shard leaves; each of several shards has its own."""
    return home.directory / (REMAINDER if home.shards == 1 else f"remainder-{home.shard:03d}.parquet")


URLS_WRITTEN_AT_ONCE = 8_192

Left = Iterator[tuple[Link, int]]
"""Links with their levels, by partition and site."""


def write_remainder(
    path: Path, config: Config, store: Store, name_url: NameUrl, others: list[Left], url_seen: UrlSeen
) -> int:
    """Write to `path` the URLs in the queues of the last commit, and those of `others` that this crawl never saw;
    return their number. If there are none, there is no file. Blocks, for a thread: about 10 µs a URL; memory does not
    grow. Raises OSError: the disk refuses; there is no file then.
    """
    # It brings pyarrow.compute: only an offline crawl has a use for it.
    from gossamer.results.offline.segment import SegmentInfo, SegmentWriter, rules_of  # noqa: PLC0415

    was_offered = offer_test(url_seen)
    unseen = (((link, level) for link, level in left if not was_offered(link.url)) for left in others)
    rows = merge(remaining(store, name_url), *unseen, key=lambda row: (row[0].url.partition, row[0].url.site))
    first = next(rows, None)
    if first is None:
        path.unlink(missing_ok=True)
        return 0
    about = SegmentInfo(made_by=f"{PRODUCT} {__version__}: what {path.parent.name} left", rules=rules_of(config.url))
    with SegmentWriter(path, about) as writer:
        step = [first, *islice(rows, URLS_WRITTEN_AT_ONCE)]
        while step:
            writer.write_links([link for link, _ in step], [level for _, level in step], [1] * len(step))
            step = list(islice(rows, URLS_WRITTEN_AT_ONCE))
    return writer.urls
