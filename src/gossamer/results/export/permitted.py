"""Permitted: the part of a crawl whose owners allow a use, made once before an export, which then reads nothing else.

The last fetch of each page decides. `permitted.jsonl` has a line for each page: its address, the answer, the statement
that decided, and whether the page is in the export.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import BinaryIO

import duckdb
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from isal import isal_zlib

from gossamer.model.errors import ConfigError
from gossamer.model.usage import ALLOWED, PURPOSES, SYNONYMS, UNKNOWN
from gossamer.results.export.bodies import cut_error, is_zstd
from gossamer.results.export.plan import ORIGINAL
from gossamer.results.export.source import (
    BATCH_ROWS,
    RowSource,
    first_line,
    literal,
    open_database,
    open_view,
    pieces_of,
    require_sound,
)
from gossamer.results.export.work import ExportInputs, ExportPiece
from gossamer.results.report.tables import queries
from gossamer.stages.archive.members import members_of
from gossamer.stages.archive.unpack import MARK

_SQL = queries(__package__, "permitted.sql")
FOLDER = "permitted"
LIST = "permitted.jsonl"
BODIES_ONLY = frozenset(("markdown", "pagefiles", "mirror", "datasets", "bulk"))
"""Formats made of bodies: a copy's may be in the record of another page."""


class Permission(msgspec.Struct, frozen=True):
    """The use that pages must permit."""

    purpose: str
    unknown: bool = False
    """Whether pages about which nothing is stated are included."""

    def __str__(self) -> str:
        return f"{self.purpose} or unknown" if self.unknown else self.purpose

    @property
    def column(self) -> str:
        """Where `pages` has the answer."""
        return "usage_" + self.purpose.replace("-", "_")


def permission(purpose: str, *, unknown: bool, to: str) -> Permission | None:
    """Return the permission of these options; None without a purpose. Raises ConfigError."""
    if not purpose:
        if unknown:
            raise ConfigError("--unknown: name the purpose with --permitted")
        return None
    purpose = SYNONYMS.get(purpose, purpose)
    if purpose not in PURPOSES:
        raise ConfigError(f"--permitted {purpose}: no purpose is called so; known are {', '.join(PURPOSES)}")
    if to == "cdxj":
        raise ConfigError(
            "--permitted: cdxj is an index of the crawl's own files; wacz, markdown and others can choose"
        )
    return Permission(purpose, unknown)


def narrow(inputs: ExportInputs, wanted: Permission, to: str, folder: Path, memory_bytes_max: int) -> ExportInputs:
    """Return the permitted part of what an export reads, made in `folder`. About 10 µs a row of `pages`, and for WACZ
    a copy of the permitted records.

    Raises:
        ConfigError: the tables need more memory.
        DamagedError: a WARC file was cut short.
        OSError: the disk is full.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pages = inputs.tables["pages"]
    require_sound([piece for pieces in inputs.tables.values() for piece in pieces])
    answers = ", ".join(f"'{one}'" for one in (ALLOWED, *([UNKNOWN] if wanted.unknown else [])))
    names = {"latest": _SQL["latest"], "column": wanted.column, "original": ORIGINAL}
    names["written"] = _SQL["written"].format(column=wanted.column, answers=answers)
    made = msgspec.structs.replace(inputs, tables={name: [] for name in inputs.tables})
    (folder / LIST).write_bytes(b"")
    if not any(piece.rows for piece in pages):
        return made
    try:
        with open_database(memory_bytes_max // 2, folder / "spilled", threads=2) as tables:
            open_view(tables, "pages", pages)
            chosen = folder / "chosen.parquet"
            tables.execute(_SQL["chosen"].format(target=literal(chosen), **names))
            tables.read_parquet(str(chosen)).create_view("chosen")
            made.answers = _list(tables, _SQL["listed"].format(**names), folder / LIST)
            for name, pieces in inputs.tables.items():
                target = folder / name / f"{name}-000001.parquet"
                target.parent.mkdir(exist_ok=True)
                if name == "pages" and to in BODIES_ONLY:
                    tables.execute(_SQL["with_places"].format(target=literal(target), **names))
                elif name == "pages" and to == "wacz":
                    tables.execute(_SQL["with_originals"].format(target=literal(target), **names))
                elif name == "pages":
                    target = chosen
                elif (files := [piece.path for piece in pieces if piece.rows]) and name != "epochs":
                    column = "from_url" if name == "links" else "url"
                    tables.execute(
                        _SQL["of_chosen"].format(target=literal(target), column=column, files=literal(files))
                    )
                made.tables[name] = pieces_of([target] if target.exists() else [])
        if "epochs" in made.tables:  # Its rows are of commits, not of pages.
            made.tables["epochs"] = inputs.tables["epochs"]
    except duckdb.OutOfMemoryException as error:
        raise ConfigError(f"--memory: the tables need more to be put in order; {first_line(str(error))}") from error
    except duckdb.BinderException as error:
        raise ConfigError("--permitted: these tables were written before statements were kept; crawl again") from error
    if to == "wacz":
        made.tables["pages"], made.warcs = _copy_records(made.tables["pages"], inputs.warcs, folder)
    return made


def _list(tables: duckdb.DuckDBPyConnection, question: str, target: Path) -> dict[str, int]:
    """Write the list of pages with their answers, and count these."""
    counts: dict[str, int] = {}
    found = tables.execute(question)
    with target.open("wb") as file:
        while rows := found.fetchmany(BATCH_ROWS):
            for url, answer, reason, written in rows:
                counts[answer] = counts.get(answer, 0) + 1
                line = {"url": url, "answer": answer, "reason": reason, "exported": written}
                file.write(msgspec.json.encode(line) + b"\n")
    return counts


def _copy_records(
    pages: Sequence[ExportPiece], warcs: Sequence[ExportPiece], folder: Path
) -> tuple[list[ExportPiece], list[ExportPiece]]:
    """Copy the records of the rows to WARC files of their own; return the rows with their new places, and the files."""
    source = RowSource(pages, table="pages")
    lengths: dict[str, int] = {}
    target = folder / "copied" / "pages-000001.parquet"
    for name in ("warc", "copied"):
        (folder / name).mkdir(exist_ok=True)
    with ExitStack() as stack:
        tables = stack.enter_context(pq.ParquetWriter(target, source.schema, compression="zstd"))
        copying = stack.enter_context(_Copying({piece.file: piece for piece in warcs}, folder / "warc", lengths))
        for _, batch in source.batches():
            names = ("warc_file", "warc_offset", "warc_length")
            places = zip(*(batch[name].to_pylist() for name in names), strict=True)
            moved = [copying.record(*place) for place in places]
            rows = batch
            for name, values in zip(names, zip(*moved, strict=True), strict=False):  # A batch may be empty.
                column = pa.array(values, source.schema.field(name).type)
                rows = rows.set_column(rows.schema.get_field_index(name), name, column)
            tables.write_batch(rows)
    found = [ExportPiece(str(folder / "warc" / name), length) for name, length in sorted(lengths.items())]
    return pieces_of([target]), found


class _Copying(AbstractContextManager["_Copying"]):
    """Copies records, which come in the order of their files; each file begins with its warcinfo record."""

    def __init__(self, warcs: Mapping[str, ExportPiece], folder: Path, lengths: dict[str, int]) -> None:
        self._warcs = warcs
        self._folder = folder
        self._lengths = lengths
        self._name = ""
        self._copy_name = ""
        self._files: list[BinaryIO] = []

    def __exit__(self, *_: object) -> None:
        for file in self._files:
            file.close()
        self._files = []

    def record(self, name: str, offset: int, length: int) -> tuple[str, int, int]:
        """Copy one record; return its new file, offset and length."""
        if name != self._name:
            self._open(name)
        now = self._lengths[self._copy_name]
        self._copy(offset, length)
        return self._copy_name, now, self._lengths[self._copy_name] - now

    def _open(self, name: str) -> None:
        self.__exit__()
        piece = self._warcs.get(name)
        if piece is None:
            raise ConfigError(f"warc/{name} is not here; copy it from the crawl's object store")
        path = Path(piece.path)
        path = path if path.exists() else path.with_name(name)
        is_packed = name.endswith((".gz", ".zst"))
        self._name = name
        self._copy_name = name if is_packed else f"{Path(name).stem}.warc.gz"
        self._lengths[self._copy_name] = 0
        self._files = [path.open("rb"), (self._folder / self._copy_name).open("wb")]
        if not is_packed:
            return
        info = next(members_of(self._files[0], piece.length, zstd=is_zstd(path)), None)
        if info is not None and info.record_type == "warcinfo":
            self._copy(info.offset, info.length)

    def _copy(self, offset: int, length: int) -> None:
        source, target = self._files
        source.seek(offset)
        is_packed = source.read(len(MARK)) != MARK
        source.seek(offset)
        pack = None if is_packed else isal_zlib.compressobj(2, wbits=31)
        for piece in copied_pieces(source, length):
            target.write(piece if pack is None else pack.compress(piece))
        if pack is not None:
            target.write(pack.flush())
        self._lengths[self._copy_name] = target.tell()


def copied_pieces(source: BinaryIO, length: int) -> Iterator[bytes]:
    """Yield the next bytes of a file. Raises DamagedError: it ends early."""
    while length:
        piece = source.read(min(length, 1 << 20))
        if not piece:
            raise cut_error(Path(source.name))
        length -= len(piece)
        yield piece
