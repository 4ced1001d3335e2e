"""WACZ: a crawl as one file that ReplayWeb.page and other players open (Web Archive Collection Zipped, 1.1.1).

A ZIP of the WARC files as they are, stored uncompressed so that a player can fetch single records of a large file by
range, with a gzipped CDXJ, a list of pages with their text, and digests of everything. ZIP64 where sizes ask for it.
"""

import hashlib
import zipfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from isal import isal_zlib

from gossamer.model.decodable import decodable
from gossamer.model.errors import ConfigError, DamagedError
from gossamer.model.product import __version__
from gossamer.results.export.bodies import Means, RecordBodies, RecordPlace, encodable, require_members, require_whole
from gossamer.results.export.index import IndexProgress, sort_lines, unique_lines
from gossamer.results.export.permitted import FOLDER, LIST, copied_pieces
from gossamer.results.export.plan import Planned, make_plan, read_plan
from gossamer.results.export.source import RowSource
from gossamer.results.export.tables import Advance
from gossamer.results.export.work import ExportFolder, ExportInputs, ExportPiece
from gossamer.stages.archive.cdxj import UNCHANGED
from gossamer.stages.process.html import HTML_TYPES
from gossamer.world.files import publish, sync_file

LINES_A_BLOCK = 300
"""Of the index in each gzip member: what a player fetches to look up one address."""


class ZipMember(msgspec.Struct):
    """One file in the ZIP."""

    name: str
    header_offset: int
    size: int
    packed: int
    crc: int
    digest: str
    kind: int
    version: int
    """Of ZIP, that a reader needs: 45 when it is larger than 2 GB."""


class MainPage(msgspec.Struct, frozen=True):
    """The page with which a reader begins: the first one that was a seed, or the first one."""

    url: str = ""
    at: str = ""
    title: str = ""
    is_seed: bool = False


@decodable
class WaczProgress(msgspec.Struct):
    """Progress of a WACZ."""

    index: IndexProgress = msgspec.field(default_factory=IndexProgress)
    listed: bool = False
    """Whether the index and the list of pages are made."""
    main: MainPage = MainPage()
    members: list[ZipMember] = []
    length: int = 0
    """Bytes of the ZIP that hold these members."""


def export_wacz(
    work: ExportFolder, source: RowSource, name: str, means: Means, memory_bytes_max: int, advance: Advance
) -> None:
    """Write the WACZ of all finished WARC files. Goes on where it stopped: at worst one WARC file is copied again.
    Its title is that of its main page, else `name`.

    Costs a copy of the WARC files (their SHA-256 is most of it: about 2 ms a MB), about 20 µs a row of `pages`, and the
    reading of each page for its text. Raises ConfigError: the WARC files are of a kind that WACZ does not have, or one
    of them was cut short; OSError: the disk is full; what was noted stays done.
    """
    assert work.inputs is not None
    for piece in work.inputs.warcs:
        if not piece.name.endswith((".warc.gz", ".warc")):
            raise ConfigError(f"{piece.name} is no gzipped WARC file, and WACZ knows no others; import with --copy")
    step = work.step(WaczProgress)
    if not step.listed:
        if not work.inputs.running:
            require_whole(work.inputs.warcs, source)
        _list(work, step, source, means, memory_bytes_max, advance)
    with _open_at(work.out, step.length) as file:
        archive = _Zip(file, step.members, work.inputs.begun_at)
        try:
            done = {member.name for member in step.members}
            crcs = {f"archive/{piece.name}": piece.crc for piece in work.inputs.warcs}
            for name, path, begin, length, kind in _contents(work, work.inputs):
                if name not in done:
                    member = archive.add_file(name, path, length, kind, begin)
                    _require_as_written(member, path, crcs, source)
                    step.members.append(member)
                    step.length = file.tell()
                    file.flush()
                    sync_file(work.out)
                    work.save(step)
            package = _package(step.members, work.inputs, name, step.main)
            archive.add_bytes("datapackage.json", package)
            digest = {"path": "datapackage.json", "hash": f"sha256:{hashlib.sha256(package).hexdigest()}"}
            archive.add_bytes("datapackage-digest.json", msgspec.json.format(msgspec.json.encode(digest), indent=2))
            archive.close()
        finally:
            archive.leave()


def _require_as_written(member: ZipMember, path: Path, crcs: Mapping[str, int | None], source: RowSource) -> None:
    """Raise DamagedError for a copied WARC file that is not what was written, by its checksum, else by its records."""
    if member.name not in crcs or crcs[member.name] == member.crc or path.is_symlink():
        return  # What another crawler wrote is taken as it is.
    require_members(path, member.size, source)
    if crcs[member.name] is not None:
        raise DamagedError(
            f"{path} does not hold what was written into it (its CRC-32 differs, its records are sound); put a sound "
            "copy in its place"
        )


def _list(
    work: ExportFolder, step: WaczProgress, source: RowSource, means: Means, memory_bytes_max: int, advance: Advance
) -> None:
    def save(_: IndexProgress) -> None:
        work.save(step)

    assert work.inputs is not None
    held = _HeldWarcs(work.inputs.warcs, whole=not work.inputs.running)
    warcs = [msgspec.structs.replace(one, path=str(_where_now(Path(one.path)))) for one in work.inputs.warcs]
    sorter = sort_lines(work, step.index, save, source, memory_bytes_max, advance, held.rows, warcs)
    # Players refuse a record whose date is not that of its line, and show a 304 as an empty page. Without a line for
    # the instant of a visit they take the last one before it: that of the record that stood.
    lines = (line for block, _, _ in unique_lines(sorter, [], b"") for line in block if UNCHANGED not in line)
    _write_index(work.folder / "index.cdx.gz", work.folder / "index.idx", lines)
    plan = work.folder / "plan.parquet"
    make_plan(plan, work.inputs.tables["pages"], "", memory_bytes_max // 2, every=True)
    with RecordBodies(Path(warcs[0].path).parent if warcs else work.folder, means.decode) as bodies:
        step.main = _write_pages(work.folder / "pages.jsonl", plan, held, bodies, means)
    step.listed = True
    step.index.runs = []
    work.save(step)
    sorter.runs = []
    sorter.sweep()


class _HeldWarcs:
    """The WARC files that the export holds, and so the records that its lists may name."""

    def __init__(self, warcs: list[ExportPiece], *, whole: bool) -> None:
        """With `whole`, a row whose record is in no file is an error."""
        self._whole = whole
        self._names = pa.array([piece.name for piece in warcs], pa.string())
        self._lengths = pa.array([piece.length for piece in warcs], pa.int64())
        self._parts = [piece for piece in warcs if piece.archive]
        self._ends: dict[str, int] = {}
        for piece in warcs:
            self._ends[piece.file] = max(self._ends.get(piece.file, 0), piece.begin + piece.length)

    def has(self, place: RecordPlace) -> bool:
        """Return whether a record is held."""
        return place.offset + place.length <= self._ends.get(place.file, 0)

    def rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows with their places in the export. Raises ConfigError: a stopped crawl lacks a record."""
        batch = self._moved(batch)
        names = pc.cast(batch["warc_file"], pa.string())
        at = pc.index_in(names, self._names)
        if self._whole and (missing := names.filter(pc.and_(pc.is_null(at), pc.is_valid(batch["warc_offset"])))):
            raise ConfigError(f"warc/{missing[0].as_py()} is not here; copy it from the crawl's object store")
        ends = pc.add(batch["warc_offset"], batch["warc_length"])
        return batch.filter(pc.fill_null(pc.less_equal(ends, pc.take(self._lengths, at)), False))

    def _moved(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows with places in the archives of a package instead of places in the package."""
        before = pc.cast(batch["warc_file"], pa.string())
        names = before
        offsets = batch["warc_offset"]
        for piece in self._parts:
            at = pc.subtract(batch["warc_offset"], piece.begin)
            is_within = pc.and_(pc.greater_equal(at, 0), pc.less(at, piece.length))
            is_here = pc.fill_null(pc.and_(pc.equal(before, piece.file), is_within), False)
            names = pc.if_else(is_here, piece.archive, names)
            offsets = pc.if_else(is_here, at, offsets)
        for name, column in (("warc_file", names), ("warc_offset", offsets)):
            batch = batch.set_column(batch.schema.get_field_index(name), name, column)
        return batch


def _contents(work: ExportFolder, inputs: ExportInputs) -> Iterator[tuple[str, Path, int, int, int]]:
    lists = [("indexes/index.cdx.gz", zipfile.ZIP_STORED), ("indexes/index.idx", zipfile.ZIP_DEFLATED)]
    lists.append(("pages/pages.jsonl", zipfile.ZIP_DEFLATED))
    for piece in inputs.warcs:
        path = Path(piece.path)
        yield f"archive/{piece.name}", _where_now(path), piece.begin, piece.length, zipfile.ZIP_STORED
    for name, kind in lists:
        path = work.folder / name.rpartition("/")[2]
        yield name, path, 0, path.stat().st_size, kind
    listed = work.folder / FOLDER / LIST
    if listed.exists():
        yield f"usage/{LIST}", listed, 0, listed.stat().st_size, zipfile.ZIP_DEFLATED


def _where_now(path: Path) -> Path:
    return path if path.exists() else path.with_name(path.name.removesuffix(".open"))


def _write_index(target: Path, target_of_blocks: Path, lines: Iterator[bytes]) -> None:
    """Write the lines as gzip members of `LINES_A_BLOCK`, and the list of these members."""
    new, new_of_blocks = (path.with_name(path.name + ".new") for path in (target, target_of_blocks))
    with new.open("wb") as packed, new_of_blocks.open("wb") as blocks:
        blocks.write(b"!meta 0 " + msgspec.json.encode({"format": "cdxj-gzip-1.0", "filename": target.name}) + b"\n")
        offset = 0
        while some := list(islice(lines, LINES_A_BLOCK)):
            data = isal_zlib.compress(b"".join(some), 2, 31)
            packed.write(data)
            place = {"offset": offset, "length": len(data), "digest": "sha256:" + hashlib.sha256(data).hexdigest()}
            blocks.write(some[0][: some[0].find(b" {") + 1] + msgspec.json.encode(place) + b"\n")
            offset += len(data)
    publish(new, target)
    publish(new_of_blocks, target_of_blocks)


def _write_pages(target: Path, plan: Path, held: _HeldWarcs, bodies: RecordBodies, means: Means) -> MainPage:
    """Write the list of pages for players: fetched HTML and documents, each with its text; return the main page."""
    new = target.with_name(target.name + ".new")
    main = MainPage()
    with new.open("wb") as file:
        head = {"format": "json-pages-1.0", "id": "pages", "title": "All Pages", "hasText": True}
        file.write(msgspec.json.encode(head) + b"\n")
        for _, row in read_plan(plan):
            if not held.has(row.place) or not (row.document or row.media_type in HTML_TYPES):
                continue
            line = _page_line(row, row.document or _text(row, held, bodies, means))
            if not main.url or (line["seed"] and not main.is_seed):
                main = MainPage(row.url, line["ts"], row.title, line["seed"])
            file.write(msgspec.json.encode(line) + b"\n")
    publish(new, target)
    return main


def _page_line(row: Planned, text: str) -> dict[str, Any]:
    """Return a page as browsertrix-crawler lists it. Players look for a record of the second of `ts`."""
    at = row.fetched_at[:19] + "Z"
    return {
        "id": hashlib.sha256(f"{row.url} {at}".encode()).hexdigest()[:24],
        "url": row.url,
        "ts": at,
        "title": row.title or row.url,
        "text": text,
        "mime": row.media_type,
        "status": row.status,
        "depth": row.depth,
        "seed": row.depth == 0,
    }


def _text(row: Planned, held: _HeldWarcs, bodies: RecordBodies, means: Means) -> str:
    original = row.record.original
    if original is not None and not held.has(original):
        original = None
    page = bodies.page(msgspec.structs.replace(row.record, original=original))
    return encodable(means.text_of(page).text) if page is not None else ""


def _open_at(path: Path, length: int) -> BinaryIO:
    file = path.open("r+b" if path.exists() else "w+b")
    file.truncate(length)
    file.seek(length)
    return file


class _Zip:
    """The ZIP from its current end on: earlier members are known from the notes about them."""

    def __init__(self, file: BinaryIO, members: list[ZipMember], made_at: float) -> None:
        self._date = datetime.fromtimestamp(made_at, UTC).timetuple()[:6]
        self._zip = zipfile.ZipFile(file, "w", allowZip64=True)
        for member in members:
            info = self._info(member.name, member.kind)
            info.header_offset = member.header_offset
            info.CRC = member.crc
            info.file_size = member.size
            info.compress_size = member.packed
            info.create_version = info.extract_version = member.version
            self._zip.filelist.append(info)
            self._zip.NameToInfo[member.name] = info

    def close(self) -> None:
        """Write the ZIP's directory at its end."""
        self._zip.close()

    def leave(self) -> None:
        """Write nothing more, also after an error."""
        self._zip.fp = None

    def add_file(self, name: str, path: Path, length: int, kind: int, begin: int = 0) -> ZipMember:
        """Copy `length` bytes of a file and return what is to be noted of it."""
        info = self._info(name, kind)
        info.file_size = length  # It decides on ZIP64 before the first byte.
        digest = hashlib.sha256()
        with path.open("rb") as source, self._zip.open(info, "w") as target:
            source.seek(begin)
            for data in copied_pieces(source, length):
                digest.update(data)
                target.write(data)
        return ZipMember(
            name, info.header_offset, info.file_size, info.compress_size, info.CRC,
            "sha256:" + digest.hexdigest(), kind, info.extract_version,
        )  # fmt: skip

    def add_bytes(self, name: str, data: bytes) -> None:
        """Add a member from memory."""
        self._zip.writestr(self._info(name, zipfile.ZIP_DEFLATED), data)

    def _info(self, name: str, kind: int) -> zipfile.ZipInfo:
        info = zipfile.ZipInfo(name, self._date)
        info.compress_type = kind
        info.external_attr = 0o644 << 16
        return info


def _package(members: list[ZipMember], inputs: ExportInputs, name: str, main: MainPage) -> bytes:
    created = datetime.fromtimestamp(int(inputs.begun_at), UTC).isoformat().replace("+00:00", "Z")
    resources = [
        {"name": one.name.rpartition("/")[2].lower(), "path": one.name, "hash": one.digest, "bytes": one.size}
        for one in members
    ]
    package = {
        "profile": "data-package",
        "resources": resources,
        "wacz_version": "1.1.1",
        "software": f"gossamer/{__version__}",
        "title": main.title or name,
        "created": created,
        "modified": created,
    }
    if main.url:
        package |= {"mainPageUrl": main.url, "mainPageDate": main.at}
    return msgspec.json.format(msgspec.json.encode(package), indent=2)
