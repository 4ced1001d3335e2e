"""Shares: exports of a crawl of several shards on a Ray cluster, one task a shard, and the manifest of them all."""

from __future__ import annotations

import asyncio
import hashlib
import platform
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import msgspec
from msgspec.structs import replace

from gossamer.api.engine import prepare_to_join
from gossamer.api.restoring import restore_of, stored_config
from gossamer.api.views import export_of
from gossamer.config import Config
from gossamer.config.gather import reopen
from gossamer.model.errors import ConfigError
from gossamer.model.extras import require
from gossamer.results.export.export import Exported, check, needs_all_pages, reads
from gossamer.results.export.permitted import permission
from gossamer.results.export.several import FILES
from gossamer.results.export.work import ExportFolder, ExportOrder, Share
from gossamer.world.process import DirectoryLock

if TYPE_CHECKING:
    from gossamer.cluster.tasks import Note
    from gossamer.stages.archive.objectstore import ObjectStore

MANIFEST = "datapackage.json"
"""A Frictionless Data Package; of WACZ files the collection that ReplayWeb.page opens."""
LOST_S_MAX = 60.0
"""Time in which a task ends itself whose machine its cluster takes for lost."""
_URI = "://"
_NOT_DIVISIBLE = frozenset(("duckdb", "sqlite", "cdxj"))
"""Formats that are one file, and made of tables alone."""


class ShareOrder(msgspec.Struct, frozen=True):
    """An export of which each task makes a share."""

    source: str
    """The crawl's directory, which all machines see, or the URI of its checkpoints."""
    target: str
    """A directory that all machines see, or the URI of an object store."""
    to: str
    options: dict[str, Any]
    """Other arguments of `export_of`."""
    sets: tuple[str, ...] = ()
    """Configuration keys for the object stores."""
    of: int = 0
    """Number of shares: that of the crawl's shards."""

    @property
    def formats(self) -> list[str]:
        """The formats of the export."""
        return [one.strip() for one in self.to.split(",")]

    def name(self, number: int) -> str:
        """Return the name of a share in the target. Those of a mirror become one; no host's folder begins so."""
        return ("." if self.to == "mirror" else "") + f"shard-{number:03d}{Path(FILES.get(self.to, '')).suffix}"


class ShareFile(msgspec.Struct, frozen=True):
    """A file of an export, as the manifest lists it."""

    name: str
    path: str
    hash: str
    bytes: int


class SharePart(msgspec.Struct, frozen=True):
    """Result of a task."""

    order: ShareOrder
    number: int
    rows: dict[str, int]
    files: list[ShareFile]
    answers: dict[str, int]
    running: bool
    unread: str


_part = msgspec.json.Decoder(SharePart).decode


def export_on_cluster(order: ShareOrder, address: str, progress: Callable[[str, int, int], None]) -> Exported:
    """Make an export on the Ray cluster at `address`: each task brings what its share needs of a crawl in a store, or
    reads the directory, and writes its part of the target. The manifest ends the export. The same call resumes an
    export that was interrupted; finished parts stay.

    Raises:
        ConfigError: a mistake that the operator can fix.
        CrawlFailedError: the cluster was lost.
    """
    require("ray", "--cluster")
    config = _config_of(order)
    order = replace(order, of=config.cluster.workers)
    options = order.options
    for to in order.formats:
        check(to, options["table"], options["where"], options["memory_bytes_max"])
        permission(options["permitted"], unknown=options["unknown"], to=to)
        if to in _NOT_DIVISIBLE or (to == "mirror" and len(order.formats) > 1):
            raise ConfigError(f"--cluster: {to} becomes one whole of all shards; export it alone, without --cluster")
        if to == "wacz" and options["permitted"]:
            raise ConfigError("--cluster: wacz with --permitted needs records of all shards; leave --cluster out")
    if _URI in order.target:
        return _export(order, order.target, config, address, progress)
    own = ExportOrder(order.source, f"{order.to} {options}", share=Share(0, order.of))
    with ExportFolder(Path(order.target).resolve(), own) as work:
        done = Exported({}, resumed=True, running=False, newer=0)
        if not work.is_complete:
            work.out.mkdir(exist_ok=True)
            if not (work.out / MANIFEST).exists():
                done = _export(order, work.out.as_uri(), config, address, progress)
        for path in work.out.glob(".shard-*"):  # Of a mirror.
            shutil.copytree(path, work.out, copy_function=shutil.move, dirs_exist_ok=True)
            shutil.rmtree(path)
        work.finish()
    return done


def _export(
    order: ShareOrder, place: str, config: Config, address: str, progress: Callable[[str, int, int], None]
) -> Exported:
    """Make what is missing of an export at `place`."""
    store = _store_at(config, place)
    parts = asyncio.run(_finished_parts(store, order))
    is_resumed = bool(parts)
    if left := [number for number in range(order.of) if number not in parts]:
        prepare_to_join(address)
        from gossamer.cluster.tasks import run_tasks  # noqa: PLC0415 - it imports Ray

        work = partial(make_share, order, place)
        cluster = replace(config.cluster, address=address)
        for result in run_tasks(work, left, cluster, lambda done, rows: progress("all shards", done, rows)):
            part = _part(result)
            parts[part.number] = part
    found = [parts[number] for number in sorted(parts)]
    asyncio.run(_conclude(store, order, found))
    rows: dict[str, int] = {}
    for part in found:
        rows |= {name: rows.get(name, 0) + number for name, number in part.rows.items()}
    running = any(part.running for part in found)
    unread = max(part.unread for part in found)
    return Exported(rows, is_resumed, running, 0, unread, found[0].answers)  # Each task counts all answers.


def make_share(order: ShareOrder, place: str, number: int, note: Note) -> bytes:
    """Make one share of an export at `place`; return the part's description. On any machine of a cluster."""
    share = Share(number, order.of)
    config = _config_of(order)
    store = _store_at(config, place)
    if scratch_root := config.cluster.work_directory or None:
        Path(scratch_root).mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="gossamer-share-", dir=scratch_root) as scratch:
        source = Path(order.source)
        if _URI in order.source:
            source = Path(scratch, "crawl", order.source.rstrip("/").rpartition("/")[2] or "crawl")
            restore_of([order.source], source, order.sets, partial(_is_wanted, order, share))
        is_sent = _URI in order.target
        folder = Path(scratch) if is_sent else Path(url2pathname(urlsplit(place).path))
        if not folder.is_dir():
            raise ConfigError(f"-o: {platform.node()} has no {folder.parent}; name a directory that all machines see")
        target = folder / order.name(number)
        DirectoryLock.is_held(target.with_name(target.name + ".part") / "lock", LOST_S_MAX)
        done = export_of(
            source, order.to, target, **order.options, share=share, progress=lambda _, at, rows: note(at, rows)
        )
        base = target if order.to == "mirror" else folder
        files = _files_below(base, target)
        part = SharePart(order, number, done.rows, files, dict(done.answers), done.running, done.unread)
        encoded = msgspec.json.encode(part)
        asyncio.run(_keep(store, base if is_sent else None, files, number, encoded))
    return encoded


def _config_of(order: ShareOrder) -> Config:
    """Return the configuration of the crawl, with the options of the stores."""
    if _URI in order.source:
        return asyncio.run(stored_config(order.source, order.sets))
    file = Path(order.source) / "crawl.toml"
    if not file.exists():
        raise ConfigError(f"{platform.node()} has no crawl at {order.source}; all machines must see its directory")
    return reopen(file, sets=order.sets)


def _store_at(config: Config, place: str) -> ObjectStore:
    require("obstore", "--cluster")
    from gossamer.stages.archive.objectstore import ObjectStore  # noqa: PLC0415

    return ObjectStore(replace(config.archive, store=place))


def _is_wanted(order: ShareOrder, share: Share, name: str) -> bool:
    """Say whether a share is made of a file of the crawl."""
    table, _, file = name.rpartition("/")
    if table == "warc":
        return share.has(file) and "wacz" in order.formats
    is_all = table == "pages" and any(needs_all_pages(to, order.options["permitted"]) for to in order.formats)
    return is_all or (share.has(file) and any(reads(to, table) for to in order.formats))


def _receipt(number: int) -> str:
    return f"part-{number:03d}.json"


async def _finished_parts(store: ObjectStore, order: ShareOrder) -> dict[int, SharePart]:
    """Return the parts that an earlier call has finished. Raises ConfigError: they are another export's."""
    if await store.read(MANIFEST) is not None:
        raise ConfigError(f"{order.target} holds an export already; name another place with -o")
    receipts = [await store.read(_receipt(number)) for number in range(order.of)]
    found = [_part(receipt) for receipt in receipts if receipt is not None]
    if any(part.order != order for part in found):
        raise ConfigError(f"{order.target} holds parts of an export with other options; name another place with -o")
    return {part.number: part for part in found}


def _files_below(base: Path, target: Path) -> list[ShareFile]:
    """Return the files of a part, by their names below `base`, with digests."""
    files = []
    for path in sorted(target.rglob("*")) if target.is_dir() else [target]:
        if path.is_file():
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            name = path.relative_to(base).as_posix()
            files.append(ShareFile(path.name, name, f"sha256:{digest}", path.stat().st_size))
    return files


async def _keep(store: ObjectStore, base: Path | None, files: list[ShareFile], number: int, receipt: bytes) -> None:
    """Send the files of a part to an object store, unless they are in their place; then note that it is finished."""
    for file in files if base is not None else ():
        assert base is not None
        await store.copy(base / file.path, file.path, overwrite=True)  # A task that was lost may have sent it.
    await store.write(_receipt(number), receipt)


async def _conclude(store: ObjectStore, order: ShareOrder, parts: list[SharePart]) -> None:
    files = {file.path: file for part in parts for file in part.files}  # Each part of a mirror has the index.
    profile = "multi-wacz-package" if order.to == "wacz" else "data-package"
    manifest = {"profile": profile, "format": order.to, "resources": list(files.values())}
    await store.write(MANIFEST, msgspec.json.format(msgspec.json.encode(manifest), indent=1))
    await store.remove([_receipt(part.number) for part in parts])
