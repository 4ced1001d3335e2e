"""Export: makes other formats of a crawl's last commit; an export that was interrupted goes on."""

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, get_args

import msgspec

from gossamer.config.synonyms import synonyms
from gossamer.model.errors import ConfigError, Damage, require_none
from gossamer.model.words import shell_word
from gossamer.options import nearest
from gossamer.results.export import corpus, database
from gossamer.results.export.bodies import Means, RecordBodies
from gossamer.results.export.card import Facts
from gossamer.results.export.chunks import TOKENS_MAX, TOKENS_MAX_LEAST
from gossamer.results.export.copies import Copies, How
from gossamer.results.export.index import export_index
from gossamer.results.export.mirror import NAMES, export_mirror
from gossamer.results.export.pages import export_markdown, export_pagefiles
from gossamer.results.export.permitted import BODIES_ONLY, FOLDER, LIST, Permission, narrow
from gossamer.results.export.plan import make_plan, rows_of
from gossamer.results.export.source import RowSource, pieces_of
from gossamer.results.export.tables import FORMS, export_parquet, export_rows, stream_rows
from gossamer.results.export.wacz import export_wacz
from gossamer.results.export.work import (
    PACKED,
    TEXT,
    ExportFolder,
    ExportInputs,
    ExportOrder,
    ExportPiece,
    KnownTexts,
    Progress,
    Share,
)
from gossamer.stages.archive.follower import make_parquet
from gossamer.stages.archive.packages import LINK_SUFFIX, stored_archives
from gossamer.stages.archive.schema import ITEMS
from gossamer.stages.archive.segments import files_of, missing_warc, stem_of, table_of, warcs_in
from gossamer.state.journals import ManifestEntry, Phase

FORMATS = (
    "parquet", "jsonl", "csv", "markdown", "cdxj", "wacz", "pagefiles", "mirror", *database.FORMATS, *corpus.FORMATS,
)  # fmt: skip
MEMORY_BYTES = 512_000_000
"""Budget of an export unless another is given: of what it holds beside the program itself."""
MEMORY_BYTES_MIN = 64_000_000
_OF_ALL_TABLES = ("parquet", *database.FORMATS)
"""Formats that hold all tables, unless one is named."""
_KEPT = (
    "runs-pages", "runs-links", "lines", "logs", "plan.parquet", "index.cdx.gz", "index.idx", "pages.jsonl", FOLDER,
    NAMES, TEXT, *corpus.KEPT, *database.KEPT,
)  # fmt: skip
NEED_WARCS = frozenset(("markdown", "wacz", "pagefiles", "mirror", *corpus.FORMATS))
_TABLES_OF = {"pagefiles": ["pages", "links"]} | {
    to: ["pages"] for to in ("markdown", "cdxj", "wacz", "mirror", *corpus.FORMATS)
}

_TEXTS = (*FORMS, "cdxj")
"""Formats that are one file of text."""
ONE_FILE = (*_TEXTS, "wacz", *database.FORMATS)
_ENDINGS = {".json": "jsonl", ".ndjson": "jsonl", ".zip": "wacz", ".md": "", ".html": "", ".parquet": "parquet"}
_ENDINGS |= {f".{to}": to for to in ONE_FILE}
"""Formats by the endings that say them; an empty text where none does that."""


def no_progress(_table: str, _done: int, _rows: int) -> None:
    """Report no progress."""


class CommittedLog(msgspec.Struct, frozen=True):
    """A log of a table that ended with its crawl's death: it is valid up to its committed length."""

    path: Path
    length: int
    table: str
    parquet: Path
    """The Parquet file that will be made of it."""


@dataclass(frozen=True, slots=True)
class ExportedCrawl:
    """The crawl to export, as of its last commit."""

    directory: Path
    running: bool
    """Whether the crawl runs: its files are renamed and converted while they are read."""
    logs: Sequence[CommittedLog] = ()
    files: Mapping[str, ManifestEntry] | None = None
    """The last commit's entry of each file, by name; None if it is not known: finished files count then."""
    lost: Sequence[Damage] = ()
    """Files that are missing or have another length than was committed. Not known of a crawl that runs."""
    unread: str = ""
    """Why the last commit of a crawl that runs could not be read."""
    now: float = 0.0
    about: Mapping[str, object] = field(default_factory=dict)
    """How it was configured, for the data card."""

    @property
    def is_here(self) -> bool:
        """Whether no record is in an object store alone."""
        return all(entry.phase < Phase.AWAY for entry in (self.files or {}).values())

    def require(self, tables: Sequence[str], *, warcs: bool) -> None:
        """Raise DamagedError where a file of these tables, or a WARC file where those are needed, is lost."""
        gone = [path for path in warcs_in(self.directory / "warc") if path.is_symlink() and not path.exists()]
        if gone and warcs:
            raise missing_warc(gone[0])
        folders = {str(self.directory / table) for table in tables}
        if warcs:
            folders.add(str(self.directory / "warc"))

        def is_needed(damage: Damage) -> bool:
            file = Path(damage.file)
            is_log = damage.kind == "journal" and table_of(file.name) in tables
            return is_log or str(file.parent) in folders

        require_none(list(filter(is_needed, self.lost)), f"gossamer verify {shell_word(self.directory)}")


@dataclass(frozen=True, slots=True)
class Exported:
    """Result of an export."""

    rows: dict[str, int]
    """Written, by table."""
    resumed: bool
    running: bool
    newer: int
    """Finished files that the crawl has by now and the export, begun earlier, has not."""
    unread: str = ""
    """Why the last commit of a running crawl could not be read: finished files count then."""
    answers: Mapping[str, int] = field(default_factory=dict)
    """Of an export of permitted pages: how many pages have which answer."""
    removed: Mapping[str, int] = field(default_factory=dict)
    """Of a corpus: how many texts were left out as `exact` and `near` copies."""


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """Contents of an export."""

    to: str
    """The format."""
    table: str = ""
    where: str = ""
    permitted: Permission | None = None
    dedupe: How = ""
    against: Sequence[ExportedCrawl | Path] = ()
    chunk_tokens: int = TOKENS_MAX
    memory_bytes_max: int = MEMORY_BYTES
    """Of what it holds beside the program, and again at most that for the processes that find texts."""
    share: Share | None = None
    """Part of the crawl; None: all of it."""
    limit: int | None = None
    """Rows at most; None: all."""

    @property
    def rows(self) -> int:
        """The limit; 0: none. Raises ConfigError: it is none, or the format or a share cannot have one."""
        if self.limit is not None and (self.to not in FORMS or self.share is not None):
            raise ConfigError("--limit: jsonl and csv of one process can be cut short; leave it out")
        if self.limit is not None and self.limit < 1:
            raise ConfigError(f"--limit {self.limit}: expected 1 or more")
        return self.limit or 0

    @property
    def copies(self) -> Copies:
        """How copies are found. Raises ConfigError: these options are unknown or cannot be combined."""
        if self.dedupe not in get_args(How):
            raise ConfigError(f"--dedupe {self.dedupe}: expected exact or near")
        if self.dedupe and self.to not in ("markdown", *corpus.FORMATS):
            raise ConfigError(
                f"--dedupe: {self.to} holds rows, not texts; markdown, datasets, chunks and bulk can leave copies out"
            )
        if self.against and not self.dedupe:
            raise ConfigError("--against: say which copies to leave out, with --dedupe exact or --dedupe near")
        places = [one if isinstance(one, Path) else one.directory for one in self.against]
        return Copies(self.dedupe, tuple(str(place.resolve()) for place in places))


def export(
    crawl: ExportedCrawl, request: ExportRequest, target: Path, means: Means, progress: Progress = no_progress
) -> Exported:
    """Make an export, of all or of a share, or resume one with the same request. Blocks.

    A kill leaves nothing under `target`, and another call resumes. An export of a running crawl has the content of the
    last commit. Raises ConfigError: a mistake that the operator can fix; OSError: the disk is full; another call goes
    on.
    """
    to = request.to
    permitted = request.permitted
    order = order_of(crawl, request, target)
    tables = tables_of(crawl, to, request.table)
    copies = request.copies
    crawl.require(tables, warcs=to in NEED_WARCS)
    with ExportFolder(target, order) as work:
        if work.is_complete:
            work.finish()
            return Exported({}, resumed=True, running=False, newer=0)
        if work.inputs is None:
            begun = _inputs_of(crawl, tables, request, work.folder)
            begun.earlier = [
                earlier_of(one, work.folder / "logs" / f"earlier-{number}")
                for number, one in enumerate(request.against, 1)
            ]
            work.begin(begun)
        inputs = work.inputs
        assert inputs is not None
        work.sweep(*_KEPT, *(f"runs-{stem_of(name)}" for name in tables))
        removed: dict[str, int] = {}
        if to in corpus.FORMATS or copies.how:
            facts = Facts(
                crawl.directory.resolve().name, inputs.begun_at, request.where, str(permitted or ""), copies,
                crawl.about, inputs.outcomes, inputs.answers, request.chunk_tokens,
            )  # fmt: skip
            removed = corpus.make_corpus(work, crawl.directory, to, facts, means, request.memory_bytes_max, progress)
            rows = {name: removed.pop(name) for name in [*removed] if name in ("texts", "chunks")}
        else:
            rows = _make(work, crawl, request, means, progress)
        if permitted is not None and to in BODIES_ONLY:
            shutil.copyfile(work.folder / FOLDER / LIST, work.out / LIST)
        work.finish()
    newer = 0
    if work.resumed and permitted is None:
        read = {Path(piece.path) for pieces in inputs.tables.values() for piece in pieces}
        newer = sum(len(set(files_of(crawl.directory, name)) - read) for name in tables)
    return Exported(rows, work.resumed, inputs.running, newer, inputs.unread, inputs.answers, removed)


def order_of(crawl: ExportedCrawl, request: ExportRequest, target: Path) -> ExportOrder:
    """Return the inputs and options of an export. Raises ConfigError: they are unknown or cannot be combined."""
    to = request.to
    tokens = request.chunk_tokens
    check(to, request.table, request.where, request.memory_bytes_max)
    _check_name(to, target)
    if tokens != TOKENS_MAX and to != "chunks":
        raise ConfigError(f"--chunk-tokens: {to} has no chunks; leave it out, or export --to chunks")
    if tokens < TOKENS_MAX_LEAST:
        raise ConfigError(f"--chunk-tokens {tokens}: at least {TOKENS_MAX_LEAST} are needed")
    copies = str(request.copies)
    tables_of(crawl, to, request.table)
    permission = str(request.permitted or "")
    directory = str(crawl.directory.resolve())
    return ExportOrder(
        directory, to, request.table, request.where, permission, copies, tokens, request.share, request.rows
    )


def _check_name(to: str, target: Path) -> None:
    """Raise ConfigError if the name of a target says another format, or a compression that this one does not have."""
    bare = target.with_suffix("") if target.suffix in PACKED else target
    if bare is not target and to not in _TEXTS:
        raise ConfigError(
            f"-o {target}: {to} is not compressed by its name, as jsonl, csv and cdxj are; name it {bare}"
        )
    says = _ENDINGS.get(bare.suffix.lower(), to)
    if says != to and to not in ONE_FILE:
        raise ConfigError(f"-o {target}: {to} makes a folder of files; name one, such as -o {bare.with_suffix('')}")
    if says != to:
        other = f"write --to {says}, or " if says else ""
        raise ConfigError(
            f"-o {target}: --to {to} makes another kind of file; {other}name it {bare.with_suffix('')}.{to}"
        )


def earlier_of(one: ExportedCrawl | Path, logs: Path) -> KnownTexts:
    """Return the texts of an earlier crawl or export. Raises ConfigError: it is neither, or lacks files."""
    if isinstance(one, Path):
        return corpus.earlier_export(one)
    one.require(["pages"], warcs=True)
    return KnownTexts(str(one.directory.resolve()), inputs_of(one, ["pages"], logs).tables["pages"])


def _inputs_of(crawl: ExportedCrawl, tables: Sequence[str], request: ExportRequest, folder: Path) -> ExportInputs:
    """Return the inputs of an export: with a permission, those of permitted pages only."""
    to = request.to
    permitted = request.permitted
    share = request.share
    inputs = inputs_of(crawl, list(dict.fromkeys(("pages", *tables))) if permitted else tables, folder / "logs")
    if share is not None:
        inputs.warcs = [piece for piece in inputs.warcs if share.has(piece.name)]
        for name, held in inputs.tables.items():
            inputs.tables[name] = [piece for piece in held if is_read(share, to, permitted, name, piece.name)]
    if to in ("markdown", *corpus.FORMATS):
        inputs.outcomes = corpus.counts_of(RowSource(inputs.tables["pages"], table="pages"), "outcome")
    if permitted is None:
        return inputs
    made = narrow(inputs, permitted, to, folder / FOLDER, request.memory_bytes_max)
    made.tables = {name: made.tables[name] for name in tables}
    return made


def is_read(share: Share, to: str, permitted: Permission | str | None, table: str, file: str) -> bool:
    """Return whether a share needs a table's file: its own, and of `pages` all where other shards' rows count."""
    needs_all = table == "pages" and (bool(permitted) or to in NEED_WARCS - {"wacz"})
    return needs_all or (share.has(file) and table in _TABLES_OF.get(to, [table]))


def stream(crawl: ExportedCrawl, request: ExportRequest, out: BinaryIO, folder: Path) -> Exported:
    """Write JSON lines or CSV to a stream; logs become Parquet in `folder`. Raises ConfigError: as `export`."""
    to = request.to
    check(to, request.table, request.where, request.memory_bytes_max)
    if to not in FORMS:
        raise ConfigError(f"-o: {to} cannot be written to standard output, a pipe or a device; jsonl and csv can")
    tables = tables_of(crawl, to, request.table)
    inputs = _inputs_of(crawl, tables, request, folder)
    source = RowSource(inputs.tables[tables[0]], request.where, tables[0])
    rows = {tables[0]: stream_rows(out, to, source, request.rows)}
    return Exported(rows, False, inputs.running, 0, inputs.unread, inputs.answers)


def check(to: str, table: str, where: str, memory_bytes_max: int) -> None:
    """Refuse options that are unknown or cannot be combined, before anything is written."""
    if to not in FORMATS:
        other = synonyms().formats.get(to.lower())
        hint = f"; {other}" if other else nearest(to, FORMATS)
        known = f"expected {', '.join(FORMATS[:-1])} or {FORMATS[-1]}"
        raise ConfigError(f"--to {to}: {known}{hint}")
    if memory_bytes_max < MEMORY_BYTES_MIN:
        raise ConfigError(f"--memory: at least {MEMORY_BYTES_MIN // 1_000_000} MB are needed")
    if table and to in _TABLES_OF:
        raise ConfigError(f"--table {table}: {to} has no tables; parquet, jsonl and csv have")
    if where and to in ("cdxj", "wacz"):
        raise ConfigError(
            f"--where: {to} holds every record; parquet, jsonl, csv, markdown, pagefiles and mirror can choose"
        )
    if where and to in _OF_ALL_TABLES and not table:
        raise ConfigError("--where: name the table with --table, for tables have different columns")


def tables_of(crawl: ExportedCrawl, to: str, table: str) -> list[str]:
    """Return the tables that an export reads."""
    if to in _TABLES_OF:
        return _TABLES_OF[to]
    known = table_names(crawl.directory, [*(crawl.files or ()), *(f"{log.table}/.parquet" for log in crawl.logs)])
    if table and table not in known:
        raise ConfigError(f"no table {table}: the crawl has {', '.join(known)}")
    if table:
        return [table]
    return known if to in _OF_ALL_TABLES else ["pages"]


def table_names(directory: Path, committed: Iterable[str] = ()) -> list[str]:
    """Return a crawl's tables: `pages`, `links`, those of modules, and those that `committed` names."""
    folders = [*directory.glob("*/"), *directory.glob(f"{ITEMS}*/")]
    more = {name for name in (str(folder.relative_to(directory)) for folder in folders) if files_of(directory, name)}
    more |= {name.rpartition("/")[0] for name in committed if name.endswith(".parquet")}
    return ["pages", "links", *sorted(more - {"pages", "links"})]


def _make(
    work: ExportFolder, crawl: ExportedCrawl, request: ExportRequest, means: Means, progress: Progress
) -> dict[str, int]:
    to = request.to
    where = request.where
    memory_bytes_max = request.memory_bytes_max
    inputs = work.inputs
    assert inputs is not None
    sources = {name: RowSource(pieces, table=name) for name, pieces in inputs.tables.items()}
    warc_folder = crawl.directory / "warc"

    def advance(name: str, rows: int) -> Callable[[int], None]:
        return lambda done: progress(name, done, rows)

    if to == "parquet" or to in FORMS or to in database.FORMATS:
        wanted = dict.fromkeys(inputs.tables, where)
        if work.order.share is not None and inputs.answers:  # Of all shards, in one file.
            wanted["pages"] = f"({where or 'true'}) AND {work.order.share.condition}"
        chosen_rows = {name: RowSource(pieces, wanted[name], name) for name, pieces in inputs.tables.items()}
        if to in database.FORMATS:
            return database.export_database(work, to, chosen_rows, memory_bytes_max, advance)
        written = {}
        for name, chosen in chosen_rows.items():
            shown = advance(name, chosen.rows)
            if to == "parquet":
                written[name] = export_parquet(work, name, chosen, memory_bytes_max, shown)
            else:
                written[name] = export_rows(work, to, chosen, shown)
        return written
    if to == "cdxj":
        pages = sources["pages"]
        export_index(work, pages, memory_bytes_max, advance("pages", pages.rows))
    elif to == "wacz":
        pages = sources["pages"]
        name = crawl.directory.resolve().name
        export_wacz(work, pages, name, means, memory_bytes_max, advance("pages", pages.rows))
    else:
        plan = work.folder / "plan.parquet"
        share = work.order.share if to != "mirror" else None  # A mirror's pages link to those of other shards.
        make_plan(plan, inputs.tables["pages"], where, memory_bytes_max // 2, contents=to == "markdown", share=share)
        rows = rows_of(plan)
        if to == "markdown":
            export_markdown(work, plan, warc_folder, means, advance("pages", rows))
            return {"pages": rows}
        if to == "mirror":
            export_mirror(work, plan, inputs.tables["pages"], warc_folder, means, advance("pages", rows))
        else:
            links = sources["links"]
            with RecordBodies(warc_folder, means.decode) as bodies:
                export_pagefiles(work, plan, links, bodies, advance("pages", rows), advance("links", links.rows))
        return {"pages": rows} | {name: source.rows for name, source in sources.items() if name != "pages"}
    return {name: source.rows for name, source in sources.items()}


def inputs_of(crawl: ExportedCrawl, tables: Sequence[str], logs_folder: Path) -> ExportInputs:
    """Return the files of the tables; logs become Parquet in `logs_folder`. Raises DamagedError: a file is lost."""
    crawl.require(tables, warcs=False)
    inputs = ExportInputs(running=crawl.running, unread=crawl.unread, begun_at=crawl.now)
    recorded = {name: entry.crc for name, entry in (crawl.files or {}).items()}
    for table in tables:
        # Logs first: one that becomes Parquet in between is found twice, and counts once.
        growing = {Path(piece.path).name: piece for piece in convert_logs(crawl, table, logs_folder)}
        pieces = pieces_of(files_of(crawl.directory, table), recorded)
        finished = {Path(piece.path).name for piece in pieces}
        inputs.tables[table] = [*pieces, *(piece for name, piece in growing.items() if name not in finished)]
    inputs.warcs = _warcs(crawl)
    return inputs


def convert_logs(crawl: ExportedCrawl, table: str, folder: Path) -> list[ExportPiece]:
    """Make Parquet files, in `folder`, of the rows of a table that the last commit holds in logs alone; a log's file
    has the name that the finished one will have. About 1 µs a row. Raises BrokenFrameError: a log is damaged.
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
                pieces += pieces_of([target], {f"{table}/{target.name}": sums.crc})
                break
    return pieces


def _warcs(crawl: ExportedCrawl) -> list[ExportPiece]:
    files = crawl.files or {}
    found = []
    for path in warcs_in(crawl.directory / "warc"):
        entry = files.get(f"warc/{path.name.removesuffix('.open')}")
        if path.suffix == LINK_SUFFIX:
            for number, one in enumerate(stored_archives(path), 1):
                name = f"{path.stem}-{number:03d}.warc{'.gz' if one.name.endswith('.gz') else ''}"
                found.append(ExportPiece(str(path), one.length, begin=one.begin, archive=name))
        elif entry is not None:
            found.append(ExportPiece(str(path), entry.length, crc=entry.crc))
        elif path.suffix != ".open" and path.exists():  # One that grows and is in no commit does not count.
            found.append(ExportPiece(str(path), path.stat().st_size))
    return found
