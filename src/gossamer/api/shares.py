"""Shares: exports and the search index of a crawl of several shards on a Ray cluster, with one task a shard."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import msgspec

from gossamer.api.engine import prepare_to_join
from gossamer.api.restoring import restore_of, stored_config
from gossamer.api.views import earlier_in, export_of
from gossamer.assembly.home import lock_directory
from gossamer.config import Config
from gossamer.config.gather import reopen
from gossamer.config.live import save
from gossamer.model.decodable import decodable
from gossamer.model.errors import ConfigError, StoreError
from gossamer.model.extras import require
from gossamer.model.paths import is_plain
from gossamer.model.words import iso_time
from gossamer.results.export import corpus, database
from gossamer.results.export.export import Exported, ExportRequest, check, earlier_of, is_read
from gossamer.results.export.index import merge_indexes
from gossamer.results.export.opening import export_means
from gossamer.results.export.several import FILES
from gossamer.results.export.work import ExportFolder, ExportInputs, ExportOrder, Progress, Share
from gossamer.results.search.folder import FOLDER, SHARD, remove_index
from gossamer.stages.archive.uploads import store_at
from gossamer.world.clock import WallClock

if TYPE_CHECKING:
    from gossamer.cluster.tasks import Note
    from gossamer.stages.archive.objectstore import ObjectStore

MANIFEST = "datapackage.json"
"""A Frictionless Data Package; of WACZ files the collection that ReplayWeb.page opens."""
INDEX = "search"
"""The format of an order that makes the crawl's full-text index."""
_ONE_FILE = frozenset(("cdxj", *database.FORMATS))
"""Formats whose parts become one file."""
_JOINED = _ONE_FILE | {"mirror"}


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
    against: tuple[str, ...] = ()
    """Earlier crawls and exports whose texts are left out."""

    @property
    def formats(self) -> list[str]:
        """The formats of the export."""
        return [one.strip() for one in self.to.split(",")]

    @property
    def is_joined(self) -> bool:
        """Whether the parts become one."""
        return self.to in _JOINED or bool(self.options.get("dedupe"))

    def name(self, number: int) -> str:
        """Return the name of a share in the target. No host's folder of a mirror begins so. The index of a share has
        the place of its shard's own, which follows that shard later.
        """
        if self.to == INDEX:
            return f"{SHARD}{number}"
        return ("." if self.is_joined else "") + f"shard-{number:03d}{Path(FILES.get(self.to, '')).suffix}"


class _ManifestFile(msgspec.Struct, frozen=True):
    path: str
    hash: str


@decodable
class _Manifest(msgspec.Struct, frozen=True):
    """The fields of a manifest that are read."""

    created: str
    resources: list[_ManifestFile]


@decodable
class SharePart(msgspec.Struct, frozen=True):
    """Result of a task, and its entries in the manifest."""

    order: ShareOrder
    number: int
    files: list[dict[str, str | int]]
    done: Exported


def export_on_cluster(order: ShareOrder, address: str, progress: Progress) -> Exported:
    """Make an export on the Ray cluster at `address`: each task brings what its share needs of a crawl in a store, or
    reads the directory, and writes its part of the target. The manifest ends the export. The same call resumes an
    export that was interrupted; finished parts stay. Raises ConfigError: a mistake that the operator can fix;
    CrawlFailedError: the cluster was lost.
    """
    require("ray", "--cluster")
    config = _config_of(order)
    options = order.options
    for to in order.formats:
        if to == INDEX:
            raise ConfigError(
                f"--cluster: --to {order.to} writes no index; gossamer search DIR --build --cluster {address} builds it"
            )
        if "," in order.to and msgspec.structs.replace(order, to=to).is_joined:
            raise ConfigError(f"--cluster: --to {order.to}: the shares become one {to}; export {to} alone")
        if to == "wacz" and options["permitted"]:
            raise ConfigError("--cluster: --to wacz --permitted needs all shards in one process; leave --cluster out")
        check(to, options["table"], options["where"], options["memory_bytes_max"])
        earlier = earlier_in(order.against)
        _ = ExportRequest(to, dedupe=options["dedupe"], against=earlier).copies  # Refuses what is unknown.
        for one in earlier:
            if isinstance(one, Path):
                corpus.earlier_export(one)
    order = msgspec.structs.replace(order, of=config.cluster.workers)
    if "://" in order.target:
        if order.to in _ONE_FILE or options["dedupe"]:
            raise ConfigError(
                f"-o {order.target}: one process writes the result; name a directory that all machines see with -o"
            )
        return _export(order, order.target, config, address, progress)
    with _work_of(order) as work:
        done = _export_to(work, order, config, address, progress)
        for path in work.out.glob(".shard-*"):
            if path.is_dir():  # Of a mirror.
                shutil.copytree(path, work.out, copy_function=shutil.move, dirs_exist_ok=True)
                shutil.rmtree(path)
            else:
                path.unlink()
        work.finish()
    return done


def build_index_on_cluster(directory: Path, address: str, progress: Progress) -> Exported:
    """Build the full-text index of a crawl on the Ray cluster at `address`: each task that of a share, in the
    directory, which all machines see. Together they replace the earlier index. The same call resumes an interrupted
    one. Raises ConfigError: a mistake that the operator can fix; CrawlFailedError: the cluster was lost.
    """
    require("ray", "--cluster")
    require("tantivy", INDEX)
    directory = directory.resolve()
    config = reopen(directory / "crawl.toml")
    if config.cluster.workers == 1:
        raise ConfigError(f"--cluster: {directory} has one shard, so one process builds its index; leave --cluster out")
    order = ShareOrder(str(directory), str(directory / FOLDER), INDEX, {}, of=config.cluster.workers)
    with _work_of(order, replaces=True) as work:
        done = _export_to(work, order, config, address, progress)
        with ExitStack() as stack:
            if config.search.enabled:  # A crawl may have begun meanwhile, which writes there.
                stack.callback(lock_directory(directory, 0.0).release)
            (work.out / MANIFEST).unlink(missing_ok=True)
            work.finish()
    return done


def build_index_in_store(uri: str, sets: tuple[str, ...], address: str, progress: Progress) -> Exported:
    """Build the full-text index of the crawl whose checkpoints are at `uri`, beside them, on the Ray cluster at
    `address`; empty: in this process, a shard after the other. An earlier index is removed first. The same call resumes
    an interrupted one. Raises ConfigError: a mistake that the operator can fix; CrawlFailedError: the cluster was lost.
    """
    if address:
        require("ray", "--cluster")
    require("tantivy", INDEX)
    config = asyncio.run(stored_config(uri, sets))
    order = ShareOrder(uri, f"{uri}/{FOLDER}", INDEX, {}, sets, config.cluster.workers)
    store = store_at(uri, config.archive, "--cluster")
    if asyncio.run(store.read(f"{FOLDER}/{MANIFEST}")) is not None:
        asyncio.run(remove_index(store))
    return _export(order, order.target, config, address, progress)


def bring_index(uri: str, directory: Path, sets: tuple[str, ...]) -> str:
    """Bring the index that `build_index_in_store` made at `uri`, if there is one, with the crawl's configuration;
    return when it was made. Raises ConfigError: there is no crawl, or the index cannot be read.
    """
    config = asyncio.run(stored_config(uri, sets))
    try:
        made = asyncio.run(_bring(store_at(uri, config.archive, "--cluster"), directory))
    except (StoreError, msgspec.MsgspecError) as error:
        raise ConfigError(f"cannot read the index at {uri}/{FOLDER}: {error}; build it again with --build") from error
    if made:
        save(config, directory)
    return made


async def _bring(store: ObjectStore, directory: Path) -> str:
    found = await store.read(f"{FOLDER}/{MANIFEST}")
    if found is None:
        return ""
    manifest = msgspec.json.decode(found, type=_Manifest)
    for file in manifest.resources:
        if not is_plain(file.path):
            raise StoreError(f"its list names a file {file.path[:200]!r}", lasting=True)
        name = f"{FOLDER}/{file.path}"
        await store.fetch(name, directory / name, file.hash.removeprefix("sha256:"))
    return manifest.created


def _work_of(order: ShareOrder, *, replaces: bool = False) -> ExportFolder:
    own = ExportOrder(
        order.source, f"{order.to} {order.options}", dedupe=" ".join(order.against), share=Share(0, order.of)
    )
    return ExportFolder(Path(order.target).resolve(), own, replaces=replaces)


def _export_to(work: ExportFolder, order: ShareOrder, config: Config, address: str, progress: Progress) -> Exported:
    """Make the missing parts of an export in the folder of an unfinished one."""
    if not work.is_complete:
        work.out.mkdir(exist_ok=True)
        if not (work.out / MANIFEST).exists():
            return _export(order, work.out.as_uri(), config, address, progress)
    return Exported({}, resumed=True, running=False, newer=0)


def _export(order: ShareOrder, place: str, config: Config, address: str, progress: Progress) -> Exported:
    store = store_at(place, config.archive, "--cluster")
    parts = asyncio.run(_finished_parts(store, order))
    is_resumed = bool(parts)
    if left := [number for number in range(order.of) if number not in parts]:
        for result in _results(order, place, left, config, address, partial(progress, "all shards")):
            part = msgspec.json.decode(result, type=SharePart)
            parts[part.number] = part
    # Each of a mirror has the index.
    files = {str(file["path"]): file for part in parts.values() for file in part.files}
    rows: dict[str, int] = {}
    for part in parts.values() if order.to != "mirror" else [parts[0]]:  # There each task has read all pages.
        rows |= {name: rows.get(name, 0) + number for name, number in part.done.rows.items()}
    done = replace(parts[0].done, rows=rows, resumed=is_resumed, newer=0)
    if order.to in _ONE_FILE or order.options.get("dedupe"):
        folder = _folder_at(place)
        done, files = _join(order, folder, [folder / order.name(number) for number in range(order.of)], config, done)
    asyncio.run(_conclude(store, order, [files[name] for name in sorted(files)]))
    return done


def _join(
    order: ShareOrder, folder: Path, shares: list[Path], config: Config, done: Exported
) -> tuple[Exported, dict[str, dict[str, str | int]]]:
    """Make one of all parts, in this process; return the result of the export, and its files by name."""
    if not order.options.get("dedupe"):
        target = folder / FILES[order.to]
        if order.to == "cdxj":
            merge_indexes(shares, target)
        else:
            database.join_databases(shares, target, order.to, order.options["memory_bytes_max"])
    elif not (target := folder / ".shard-joined").exists():
        earlier = earlier_in(order.against)
        copies = ExportRequest(order.to, dedupe=order.options["dedupe"], against=earlier).copies
        with ExportFolder(target, ExportOrder(order.source, order.to)) as work:
            if work.inputs is None:
                logs = work.folder / "logs"
                work.begin(ExportInputs({"pages": []}, earlier=[earlier_of(one, logs) for one in earlier]))
            means = export_means(config, markdown=order.to in corpus.OF_MARKDOWN)
            counts = corpus.join_corpora(shares, work, order.to, copies, means, order.options["memory_bytes_max"])
            work.finish()
        rows = {name: counts.pop(name) for name in [*counts] if name in ("texts", "chunks")}
        done = replace(done, rows=rows, removed=counts)
        for share in shares:
            shutil.rmtree(share)
    return done, {str(file["path"]): file for file in _files_below(target if target.is_dir() else folder, target)}


def _results(
    order: ShareOrder, place: str, numbers: list[int], config: Config, address: str, progress: Note
) -> Iterator[bytes]:
    """Yield what `make_share` returns for shares that are made on the cluster, or in this process."""
    work = partial(make_share, order, place)
    if not address:
        yield from (work(number, progress) for number in numbers)
        return
    prepare_to_join(address)
    from gossamer.cluster.tasks import run_tasks  # noqa: PLC0415 - it imports Ray

    yield from run_tasks(work, numbers, msgspec.structs.replace(config.cluster, address=address), progress)


def make_share(order: ShareOrder, place: str, number: int, note: Note) -> bytes:
    """Make one share of an export at `place`; return the part's description. On any machine of a cluster."""
    share = Share(number, order.of)
    config = _config_of(order)
    if scratch_root := config.cluster.work_directory or None:
        Path(scratch_root).mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="gossamer-share-", dir=scratch_root) as scratch:
        source = Path(order.source)
        if "://" in order.source:
            source = Path(scratch, "crawl", order.source.rstrip("/").rpartition("/")[2] or "crawl")
            restore_of([order.source], source, order.sets, partial(_is_wanted, order, share))
        is_sent = "://" in order.target
        folder = Path(scratch) if is_sent else _folder_at(place)
        target = folder / order.name(number)
        advance: Progress = lambda _, at, rows: note(at, rows)  # noqa: E731
        done = _make(order, source, target, share, advance)
        base = target if order.to == "mirror" else folder
        part = SharePart(order, number, _files_below(base, target), done)
        return asyncio.run(_keep(store_at(place, config.archive, "--cluster"), base if is_sent else None, part))


def _make(order: ShareOrder, source: Path, target: Path, share: Share, progress: Progress) -> Exported:
    if order.to != INDEX:
        return export_of(source, order.to, target, **order.options, share=share, progress=progress)
    from gossamer.api.search import build_index_of  # noqa: PLC0415 - of an extra

    built = build_index_of(source, advance=partial(progress, "pages"), target=target, share=share)
    return Exported({"pages": built.pages}, resumed=built.resumed, running=built.running, newer=0)


def _config_of(order: ShareOrder) -> Config:
    """Return the configuration of the crawl, with the options of the stores."""
    if "://" in order.source:
        return asyncio.run(stored_config(order.source, order.sets))
    return reopen(Path(order.source) / "crawl.toml", sets=order.sets)


def _folder_at(place: str) -> Path:
    return Path(url2pathname(urlsplit(place).path))


def _is_wanted(order: ShareOrder, share: Share, name: str) -> bool:
    table, _, file = name.rpartition("/")
    if order.to == INDEX:  # Links on other shards have anchor texts of its pages.
        return table in ("pages", "links")
    if table == "warc":
        return share.has(file) and "wacz" in order.formats
    return any(is_read(share, to, order.options["permitted"], table, file) for to in order.formats)


async def _finished_parts(store: ObjectStore, order: ShareOrder) -> dict[int, SharePart]:
    """Return the parts that an earlier call has finished. Raises ConfigError: they are another export's."""
    if await store.read(MANIFEST) is not None:
        raise ConfigError(f"{order.target} holds an export already; name another place with -o")
    receipts = [await store.read(f"part-{number:03d}.json") for number in range(order.of)]
    found = [msgspec.json.decode(one, type=SharePart) for one in receipts if one is not None]
    if any(part.order != order for part in found):
        raise ConfigError(f"{order.target} holds parts of an export with other options; name another place with -o")
    return {part.number: part for part in found}


def _files_below(base: Path, target: Path) -> list[dict[str, str | int]]:
    """Return the manifest's entries of the files of a part, by their names below `base`."""
    files: list[dict[str, str | int]] = []
    for path in sorted(one for one in [target, *target.rglob("*")] if one.is_file()):
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        name = path.relative_to(base).as_posix()
        files.append({"name": path.name, "path": name, "hash": f"sha256:{digest}", "bytes": path.stat().st_size})
    return files


async def _keep(store: ObjectStore, base: Path | None, part: SharePart) -> bytes:
    """Send the files of a part to an object store, unless they are in their place; then note that it is finished."""
    for name in [str(file["path"]) for file in part.files] if base is not None else ():
        await store.copy(Path(base or "", name), name, overwrite=True)  # A task that was lost may have sent it.
    encoded = msgspec.json.encode(part)
    await store.write(f"part-{part.number:03d}.json", encoded)
    return encoded


async def _conclude(store: ObjectStore, order: ShareOrder, files: list[dict[str, str | int]]) -> None:
    receipts = [f"part-{number:03d}.json" for number in range(order.of)]
    if order.to == INDEX and "://" in order.target:  # A task that was lost may have sent files of other names.
        known = {*receipts, *(file["path"] for file in files)}
        await store.remove([name for name in await store.names() if name not in known])
    profile = "multi-wacz-package" if order.to == "wacz" else "data-package"
    manifest = {"profile": profile, "format": order.to, "created": iso_time(WallClock().now()), "resources": files}
    await store.write(MANIFEST, msgspec.json.format(msgspec.json.encode(manifest), indent=1))
    await store.remove(receipts)
