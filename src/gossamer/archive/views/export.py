"""Export: makes other formats of a crawl's last commit; an export that was interrupted goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import msgspec

from gossamer.archive.follower import make_parquet
from gossamer.archive.views.bodies import Bodies, Means
from gossamer.archive.views.index import export_index
from gossamer.archive.views.pages import export_markdown, export_pagefiles
from gossamer.archive.views.plan import make_plan, rows_of
from gossamer.archive.views.source import Source, pieces_of
from gossamer.archive.views.tables import FORMS, export_parquet, export_rows, stream_rows
from gossamer.archive.views.wacz import export_wacz
from gossamer.archive.views.work import Inputs, Order, Piece, Work
from gossamer.model.damage import Damage, require_none
from gossamer.model.errors import ConfigError
from gossamer.state.journals import Entry

FORMATS = ("parquet", "jsonl", "csv", "markdown", "cdxj", "wacz", "pagefiles")
MEMORY_BYTES = 512_000_000
"""Budget of an export unless another is given: of what it holds beside the program itself."""
MEMORY_BYTES_MIN = 64_000_000
_KEPT = (
    "runs-pages", "runs-links", "lines", "logs", "plan.parquet", "index.cdx.gz", "index.idx", "pages.jsonl",
)  # fmt: skip
NEED_WARCS = frozenset(("markdown", "wacz", "pagefiles"))
_TABLES_OF = {"markdown": ["pages"], "cdxj": ["pages"], "wacz": ["pages"], "pagefiles": ["pages", "links"]}

Progress = Callable[[str, int, int], None]
"""Called with the table, the rows done, and their number."""


def untold(_table: str, _done: int, _rows: int) -> None:
    """Report no progress."""


class Committed(msgspec.Struct, frozen=True):
    """A log of a table that ended with its crawl's death: it counts up to its committed length."""

    path: Path
    length: int
    table: str
    parquet: Path
    """What will be made of it."""


@dataclass(frozen=True, slots=True)
class Crawl:
    """The crawl that is exported, as it stands."""

    directory: Path
    running: bool
    """It goes on: files are renamed and converted while they are read."""
    logs: Sequence[Committed] = ()
    files: Mapping[str, Entry] | None = None
    """What the last commit says of each file, by name; None where it is not known: finished files count then."""
    lost: Sequence[Damage] = ()
    """Files that are missing or have another length than was committed. Not known of a crawl that runs."""
    unread: str = ""
    """Why the last commit of a crawl that runs could not be read."""
    now: float = 0.0

    def require(self, tables: Sequence[str], *, warcs: bool) -> None:
        """Raise DamagedError where a file of these tables, or a WARC file where those are needed, is lost."""
        wanted = {str(self.directory / table) for table in tables} | (
            {str(self.directory / "warc")} if warcs else set()
        )
        wanted |= {f"{table}-" for table in tables}
        require_none(
            [
                damage
                for damage in self.lost
                if str(Path(damage.file).parent) in wanted
                or (damage.kind == "journal" and Path(damage.file).name.partition("-")[0] + "-" in wanted)
            ],
            f"gossamer verify {self.directory}",
        )


@dataclass(frozen=True, slots=True)
class Exported:
    """What came of it."""

    rows: dict[str, int]
    """Read, by table; of a format that writes pages, those written."""
    resumed: bool
    running: bool
    newer: int
    """Finished files that the crawl has by now and the export, begun earlier, has not."""
    unread: str = ""
    """Why the last commit of a running crawl could not be read: finished files count then."""


def export(
    crawl: Crawl,
    to: str,
    target: Path,
    means: Means,
    *,
    table: str = "",
    where: str = "",
    memory_bytes_max: int = MEMORY_BYTES,
    progress: Progress = untold,
) -> Exported:
    """Make an export, or finish the one that was begun with the same words. Blocks.

    Whenever it is killed, nothing stands under `target`, and another call goes on where it was. In memory: at most
    `memory_bytes_max` beside the program. Of a running crawl it holds what the last commit holds.

    Raises:
        ConfigError: what the operator can mend.
        OSError: the disk is full; another call goes on.
    """
    check(to, table, where, memory_bytes_max)
    tables = tables_of(crawl, to, table)
    crawl.require(tables, warcs=to in NEED_WARCS)
    order = Order(str(crawl.directory.resolve()), to, table, where)
    with Work(target, order) as work:
        if work.is_complete:
            work.finish()
            return Exported({}, resumed=True, running=False, newer=0)
        if work.inputs is None:
            work.begin(inputs_of(crawl, tables, work.folder / "logs"))
        inputs = work.inputs
        assert inputs is not None
        work.sweep(*_KEPT, *(f"runs-{name}" for name in tables))
        rows = _make(work, crawl, to, where, means, memory_bytes_max, progress)
        work.finish()
    newer = sum(
        len(set(_files(crawl.directory, name)) - {Path(piece.path) for piece in inputs.tables[name]}) for name in tables
    )
    return Exported(rows, work.resumed, inputs.running, newer if work.resumed else 0, inputs.unread)


def stream(crawl: Crawl, to: str, out: BinaryIO, folder: Path, *, table: str = "", where: str = "") -> Exported:
    """Write JSON lines or CSV to a stream. Logs of a crawl that died become Parquet in `folder` first.

    Raises:
        ConfigError: as `export`, and other formats need a file.
    """
    if to not in FORMS:
        raise ConfigError(f"-o -: {to} cannot be written to standard output; jsonl and csv can")
    check(to, table, where, MEMORY_BYTES)
    tables = tables_of(crawl, to, table)
    inputs = inputs_of(crawl, tables, folder)
    source = Source(inputs.tables[tables[0]], where, tables[0])
    stream_rows(out, FORMS[to](), source, lambda _: None)
    return Exported({tables[0]: source.rows}, resumed=False, running=inputs.running, newer=0, unread=inputs.unread)


def check(to: str, table: str, where: str, memory_bytes_max: int) -> None:
    """Refuse what cannot be done, before anything is written."""
    if to not in FORMATS:
        raise ConfigError(f"--to {to}: expected {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")
    if memory_bytes_max < MEMORY_BYTES_MIN:
        raise ConfigError(f"--memory: at least {MEMORY_BYTES_MIN // 1_000_000} MB are needed")
    if table and to in _TABLES_OF:
        raise ConfigError(f"--table {table}: {to} has no tables; parquet, jsonl and csv have")
    if where and to in ("cdxj", "wacz"):
        raise ConfigError(f"--where: {to} holds every record; parquet, jsonl, csv, markdown and pagefiles can choose")
    if where and to == "parquet" and not table:
        raise ConfigError("--where: name the table with --table, for the two have different columns")


def tables_of(crawl: Crawl, to: str, table: str) -> list[str]:
    """Return the tables that an export reads."""
    if to in _TABLES_OF:
        return _TABLES_OF[to]
    known = known_tables(crawl.directory, [*(crawl.files or ()), *(f"{log.table}/.parquet" for log in crawl.logs)])
    if table and table not in known:
        raise ConfigError(f"--table {table}: the crawl has {', '.join(known)}")
    if table:
        return [table]
    return known if to == "parquet" else ["pages"]


def known_tables(directory: Path, committed: Iterable[str] = ()) -> list[str]:
    """Return the tables that a crawl has: `pages`, `links`, and those of its modules; also one of which all files are
    gone, where `committed` names them.
    """
    more = {path.parent.name for path in directory.glob("*/*.parquet")}
    more |= {name.partition("/")[0] for name in committed if name.endswith(".parquet")}
    return ["pages", "links", *sorted(more - {"pages", "links"})]


def _make(
    work: Work, crawl: Crawl, to: str, where: str, means: Means, memory_bytes_max: int, progress: Progress
) -> dict[str, int]:
    inputs = work.inputs
    assert inputs is not None
    sources = {name: Source(pieces, table=name) for name, pieces in inputs.tables.items()}
    warc_folder = crawl.directory / "warc"

    def advance(name: str, rows: int) -> Callable[[int], None]:
        return lambda done: progress(name, done, rows)

    if to == "parquet":
        for name, pieces in inputs.tables.items():
            chosen = Source(pieces, where, name)
            export_parquet(work, name, chosen, memory_bytes_max, advance(name, chosen.rows))
    elif to in FORMS:
        [(name, pieces)] = inputs.tables.items()
        chosen = Source(pieces, where, name)
        export_rows(work, FORMS[to](), chosen, advance(name, chosen.rows))
    elif to == "cdxj":
        pages = sources["pages"]
        export_index(work, pages, memory_bytes_max, advance("pages", pages.rows))
    elif to == "wacz":
        pages = sources["pages"]
        export_wacz(work, pages, crawl.directory.resolve().name, memory_bytes_max, advance("pages", pages.rows))
    else:
        plan = work.folder / "plan.parquet"
        make_plan(plan, inputs.tables["pages"], where, memory_bytes_max // 2)
        rows = rows_of(plan)
        with ExitStack() as stack:
            bodies = stack.enter_context(Bodies(warc_folder, means.decode))
            if to == "markdown":
                export_markdown(work, plan, bodies, means.content_of, advance("pages", rows))
            else:
                export_pagefiles(work, plan, sources["links"], bodies, advance("pages", rows))
        return {"pages": rows} | {name: source.rows for name, source in sources.items() if name != "pages"}
    return {name: source.rows for name, source in sources.items()}


def inputs_of(crawl: Crawl, tables: Sequence[str], logs_folder: Path) -> Inputs:
    """Return the files that hold the tables now; what is in logs alone becomes Parquet in `logs_folder`.

    Raises:
        DamagedError: a file of the tables is missing, or is not what was written.
    """
    crawl.require(tables, warcs=False)
    inputs = Inputs(running=crawl.running, unread=crawl.unread, begun_at=crawl.now)
    recorded = {name: entry.crc for name, entry in (crawl.files or {}).items()}
    for table in tables:
        # Logs first: one that becomes Parquet in between is found twice, and counts once.
        growing = {Path(piece.path).name: piece for piece in committed_logs(crawl, table, logs_folder)}
        pieces = pieces_of(crawl.directory / table, recorded)
        finished = {Path(piece.path).name for piece in pieces}
        inputs.tables[table] = [*pieces, *(piece for name, piece in growing.items() if name not in finished)]
    inputs.warcs = _warcs(crawl)
    return inputs


def committed_logs(crawl: Crawl, table: str, folder: Path) -> list[Piece]:
    """Make Parquet files, in `folder`, of the rows of a table that the last commit holds in logs alone; a log's file
    has the name that the finished one will have. About 1 µs a row.

    Raises:
        BrokenFrameError: a log is damaged.
    """
    pieces = []
    for log in crawl.logs:
        target = folder / table / log.parquet.name
        if log.table != table or log.parquet.exists():
            continue
        # Of a crawl that runs it may be finished and renamed by now, or have become Parquet.
        for path in (log.path, log.path.with_name(log.path.name.removesuffix(".open"))):
            with suppress(FileNotFoundError):
                sums = make_parquet(path, target, log.length)
                pieces += pieces_of(target.parent, {f"{table}/{target.name}": sums.crc}, target.name)
                break
    return pieces


def _warcs(crawl: Crawl) -> list[Piece]:
    folder, files = crawl.directory / "warc", crawl.files or {}
    known = {name: entry for name, entry in files.items() if name.startswith("warc/")}
    found = []
    for path in sorted(folder.glob("*.warc*")):
        entry = known.get(f"warc/{path.name.removesuffix('.open')}")
        if entry is not None:
            found.append(Piece(str(path), entry.length, crc=entry.crc))
        elif path.suffix != ".open":  # One that grows and is in no commit does not count.
            found.append(Piece(str(path), path.stat().st_size))
    return found


def _files(directory: Path, table: str) -> list[Path]:
    return [path for path in (directory / table).glob("*.parquet") if not path.name.startswith(".")]
