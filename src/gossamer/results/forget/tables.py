"""Tables: rows of forgotten pages leave Parquet files, and logs that still become such or part of the search index.

Files that a crawl derives from its tables go with them: index, search index, logs, exports.
"""

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gossamer.assembly.home import IMPORTS
from gossamer.config import Config
from gossamer.model.errors import ConfigError, DamagedError
from gossamer.model.extras import require
from gossamer.model.paths import is_file_name, is_plain, is_warc
from gossamer.model.product import FORGOTTEN
from gossamer.results.export.source import naming
from gossamer.results.forget.holdings import ASIDE, ForgottenPages, Holdings
from gossamer.results.search.folder import LOG_FOLDER as SEARCH_LOGS
from gossamer.results.search.folder import SUMS, faults, index_folders
from gossamer.stages.archive.cdxj import write_index_of
from gossamer.stages.archive.follower import ROW_GROUP_ROWS_MAX
from gossamer.stages.archive.logs import batches, frame
from gossamer.stages.archive.seals import INDEX
from gossamer.stages.archive.tables import LOG_FOLDER as TABLE_LOGS
from gossamer.stages.frontier.priority import RANKS_FILE
from gossamer.state import slots
from gossamer.state.journals import ManifestEntry
from gossamer.world.files import publish, sync_directory, write_whole

OF_PAGE = ("url", "from_url")
"""Columns that say whose row it is."""
_PLACE = ("warc_file", "warc_offset", "warc_length", "warc_type", "duplicate_of")


class Moved(msgspec.Struct, frozen=True):
    """Where the record of a kept page is now."""

    warc_file: str
    warc_offset: int
    warc_length: int
    warc_type: str
    duplicate_of: str
    """Another kept page that has its payload; empty if it has its own."""


Moves = Mapping[tuple[str, int], Moved]
"""By file and offset of the record that they replace."""


def count_rows(holdings: Holdings, pages: ForgottenPages) -> tuple[dict[str, int], bool]:
    """Return how many rows of each table, and pages, are to be forgotten; and whether those are all pages. Changes
    nothing; about 2 µs a page, and 0.1 µs a row of links.
    """
    counts: dict[str, int] = {}
    urls: set[str] = set()
    every = True
    for entry in _entries(holdings):
        for batch in _batches(holdings, entry):
            mask = rows_to_keep(batch, pages)
            every = every and (entry_table(entry) != "pages" or (mask is not None and not pc.any(mask).as_py()))
            if mask is None:
                continue
            gone = batch.filter(pc.invert(mask))
            table = entry_table(entry)
            counts[table] = counts.get(table, 0) + gone.num_rows
            if table == "pages":
                urls.update(gone["key"].to_pylist())
    return counts | {"pages": len(urls), "rows": counts.get("pages", 0)}, every


def remove(holdings: Holdings, pages: ForgottenPages, moves: Moves) -> None:
    """Rewrite each file that has rows of forgotten pages, or of moved records. A pass over all rows,
    2 µs a page and 0.1 µs a row of links, and about 1 µs a row of the files that are rewritten.
    """
    for entry in _entries(holdings):
        own = moves if entry_table(entry) == "pages" else {}
        if any(_change(batch, pages, own) is not batch for batch in _batches(holdings, entry)):
            path = holdings.path(entry.name)
            aside = path.with_name(path.name + ASIDE)
            write = _write_parquet if path.suffix == ".parquet" else _write_log
            write(path, aside, (_compact(_change(batch, pages, own)) for batch in _batches(holdings, entry)))
            holdings.replace(entry.name, aside)


def rows_to_keep(batch: pa.RecordBatch, pages: ForgottenPages) -> pa.Array | None:
    """Return which rows stay; None if all do."""
    name = next((name for name in OF_PAGE if name in batch.schema.names), None)
    if name is None or not batch.num_rows:
        return None
    column = batch.column(name)
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    gone = [place for place, url in enumerate(encoded.dictionary.to_pylist()) if url is not None and pages.has(url)]
    if not gone:
        return None
    mask = pc.invert(pc.is_in(encoded.indices, value_set=pa.array(gone, encoded.indices.type)))
    return mask if pc.any(pc.invert(mask)).as_py() else None


def entry_table(entry: ManifestEntry) -> str:
    """Return which table a file belongs to."""
    if entry.name.startswith(SEARCH_LOGS):
        return "search"
    return entry.name.removeprefix(TABLE_LOGS).partition("-")[0].partition("/")[0]


def _entries(holdings: Holdings) -> list[ManifestEntry]:
    logs = holdings.finals(TABLE_LOGS) + holdings.finals(SEARCH_LOGS)
    tables = [entry for entry in holdings.finals("") if entry.name.endswith(".parquet")]
    return [entry for entry in logs + tables if entry_table(entry) != "epochs"]


def _batches(holdings: Holdings, entry: ManifestEntry) -> Iterator[pa.RecordBatch]:
    """Yield a file's rows. Raises DamagedError."""
    path = holdings.path(entry.name)
    if path.suffix != ".parquet":
        yield from batches(path if path.exists() else path.with_name(path.name + ".open"), entry.length)
        return
    with naming(path), pq.ParquetFile(path, page_checksum_verification=True) as file:
        for number in range(file.num_row_groups):
            yield from file.read_row_group(number).combine_chunks().to_batches()


def _change(batch: pa.RecordBatch, pages: ForgottenPages, moves: Moves) -> pa.RecordBatch:
    """Return the new rows of a batch; the same batch where nothing changes."""
    if (mask := rows_to_keep(batch, pages)) is not None:
        batch = _compact(batch.filter(mask))
    if not moves:
        return batch
    places = zip(batch["warc_file"].to_pylist(), batch["warc_offset"].to_pylist(), strict=True)
    found = {row: moves[place] for row, place in enumerate(places) if place in moves}
    if not found:
        return batch
    for name in _PLACE:
        at = batch.schema.get_field_index(name)
        values = batch.column(at).to_pylist()
        for row, moved in found.items():
            values[row] = getattr(moved, name)
        batch = batch.set_column(at, batch.schema.field(at), pa.array(values, batch.schema.field(at).type))
    return batch


def _compact(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch whose dictionaries hold what its rows use, and nothing else."""
    for at, field in enumerate(batch.schema):
        if pa.types.is_dictionary(field.type):
            plain = batch.column(at).cast(field.type.value_type)
            batch = batch.set_column(at, field, plain.dictionary_encode().cast(field.type))
    return batch


def _write_parquet(source: Path, target: Path, rows: Iterable[pa.RecordBatch]) -> None:
    schema = pq.read_schema(source)
    with pq.ParquetWriter(target, schema, compression="zstd", write_page_checksum=True) as writer:
        for batch in rows:
            table = pa.Table.from_batches([batch.cast(schema)])
            if table.num_rows:
                writer.write_table(table, row_group_size=ROW_GROUP_ROWS_MAX)


def _write_log(_source: Path, target: Path, rows: Iterable[pa.RecordBatch]) -> None:
    with target.open("wb") as log:
        for batch in rows:
            if batch.num_rows:
                log.write(frame(batch))


EXPORTS: Final = frozenset((".parquet", ".jsonl", ".csv", ".cdxj", ".wacz"))
"""Extensions of files of exports."""
IN_FOLDERS: Final = EXPORTS | {".md", ".pfl", ".ndjson", ".html"}
"""Extensions of files in the folders that exports make."""
_OWN: Final = frozenset(("warc", "state", "logs", "search", "checkpoints", INDEX, IMPORTS, "crawl.toml", FORGOTTEN))
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,31}+://[^\s\"'<>\\]+")
_NEW = "search.forgetting"
_READY = "ready.json"


def rewrite_index(directory: Path, config: Config) -> None:
    """Rewrite `index.cdxj` from the tables, where there is one."""
    for stray in directory.glob(f".{INDEX}-*"):
        shutil.rmtree(stray)
    if (directory / INDEX).exists():
        write_index_of(directory, config.archive.index_sort_bytes_max)


def rewrite_search(directory: Path, config: Config, pages: ForgottenPages) -> list[str]:
    """Rewrite the search indexes without forgotten pages, about 0.1 ms a page of 500 words. Anchor texts leave an
    index: some stood on forgotten pages. A damaged index is removed, for it may hold them; return the names of those.
    """
    removed = []
    for folder in index_folders(directory):
        if not _rewrite_search(directory, folder, config, pages):
            for path in sorted(folder.iterdir(), key=lambda path: path.name == "meta.json"):  # It names the others.
                if path.is_file():
                    path.unlink()
            removed.append(str(folder.relative_to(directory)))
    return removed


def _rewrite_search(directory: Path, folder: Path, config: Config, pages: ForgottenPages) -> bool:
    """Return whether the index is sound."""
    require("tantivy", "search.enabled")
    from gossamer.results.search.build import rewrite  # noqa: PLC0415

    aside = directory / _NEW
    ready = aside / _READY
    if not ready.exists():
        shutil.rmtree(aside, ignore_errors=True)
        try:
            if any(faults(folder, deep=True)):
                return False
            gone = rewrite(folder, aside, config.search.memory_bytes_max, pages.has)
        except ConfigError:
            return False
        if gone:
            names = sorted(path.name for path in aside.iterdir() if path.is_file() and not path.name.endswith(".lock"))
            write_whole(ready, msgspec.json.encode((str(folder.relative_to(directory)), names)))
    if ready.exists():
        named, names = msgspec.json.decode(ready.read_bytes(), type=tuple[str, list[str]])
        if not (is_plain(named) and all(map(is_file_name, names))):
            raise DamagedError(f"{ready} names files outside of an index; remove {aside}, then repeat the command")
        _take_place(directory / named, aside, names)
    shutil.rmtree(aside, ignore_errors=True)
    return True


def _take_place(folder: Path, aside: Path, names: list[str]) -> None:
    """Replace the files of an index by those of the new one. May be repeated from any step."""
    for name in [*(name for name in names if name != SUMS), SUMS]:
        if (aside / name).exists():
            publish(aside / name, folder / name)
    for path in folder.iterdir():
        if path.is_file() and path.name not in names:
            path.unlink()
    sync_directory(folder)


def thin_logs(directory: Path, pages: ForgottenPages) -> None:
    """Take lines that name forgotten pages out of the logs, and such names out of the slots."""
    for path in (directory / "state").rglob(slots.FILE):
        slots.erase_page(path.parent, lambda says: any(map(pages.has, _addresses(says.encode()))))
    for path in sorted((directory / "logs").rglob("*.log*")):
        if path.name.endswith((ASIDE, ".new")):
            path.unlink(missing_ok=True)  # A kill left it.
            continue
        lines = path.read_bytes().splitlines(keepends=True)
        left = [line for line in lines if not any(map(pages.has, _addresses(line)))]
        if len(left) < len(lines):
            write_whole(path, b"".join(left))


def _addresses(line: bytes) -> Iterator[str]:
    for found in _ADDRESS.finditer(line.decode("utf-8", "replace")):
        yield found[0].rstrip(".,;:)]")
        yield found[0]


def remove_exports(directory: Path, named: set[str]) -> tuple[list[str], list[str]]:
    """Remove the exports that are in a crawl's directory, finished or not, and items that `gossamer extract` made;
    return their names, and those of other files, which were not changed. `named` are the files of the crawl.
    """
    removed = []
    others = []
    tables = {name.partition("/")[0] for name in named} - {"state"}
    for path in sorted(path for folder in tables for path in (directory / folder).rglob("*") if path.is_file()):
        name = str(path.relative_to(directory))
        if name in named or is_warc(path.name):
            continue
        if path.suffix == ".parquet":
            path.unlink()
            removed.append(name)
        else:
            others.append(name)
    for path in sorted(directory.iterdir()):
        if path.name in _OWN | tables or path.name.startswith(_NEW):
            continue
        if _is_export(path):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
            removed.append(path.name)
        else:
            others.append(path.name)
    return removed, others


def _is_export(path: Path) -> bool:
    if path.is_symlink():
        return False  # What it leads to is elsewhere.
    if path.is_file():
        return path.suffix in EXPORTS or path.name == RANKS_FILE
    begun = path.name.endswith(".part") and (path / "state.json").exists()
    return begun or any(inner.suffix in IN_FOLDERS for inner in path.rglob("*") if inner.is_file())
