"""Segment: a file of URLs to fetch, grouped by site, read and written as a stream.

It is a Parquet file, so that other tools can query it (`duckdb -c "FROM 'next.parquet' LIMIT 5"`). Rows are sorted by
`partition`, then `site`, then the order of fetching. A partition is a hash of the site, so that sites of one server,
which often have similar names, are apart. The metadata has the specification of the build under `gossamer.segment`, as
JSON. It contains no time: equal builds make equal files.
"""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gossamer.model.errors import ConfigError
from gossamer.model.links import Link
from gossamer.options import to_table
from gossamer.results.export.source import plain
from gossamer.stages.archive.schema import FEW
from gossamer.url.options import UrlOptions
from gossamer.url.site import PARTITIONS
from gossamer.url.url import Url
from gossamer.world.files import publish

VERSION = 1
"""Of the format; a reader refuses what is newer."""
ABOUT = b"gossamer.segment"
BATCH_ROWS = 8_192
GROUP_ROWS = 65_536
"""Of a row group: about 10 MB of what is held while it is written."""
VALUE_BYTES_MAX = 1 << 14
"""A longer text is refused: no URL is as long."""
TEXT_BYTES_MAX = 3 << 26
"""Of a row group: what it has more of does not fit in memory beside a crawl."""
_READ_BYTES = 1 << 18

SCHEMA = pa.schema(
    [
        ("partition", pa.uint16()),
        ("site", FEW),
        ("host", FEW),
        ("url", pa.string()),
        ("key", pa.string()),
        ("fingerprint", pa.uint64()),
        ("level", pa.uint8()),
        ("depth", pa.int32()),
        ("hops", pa.int32()),
        ("link_type", FEW),
        ("referrer", pa.string()),
        ("listed", pa.uint8()),
        ("seed", pa.uint8()),
    ]
)
"""`url` as written; `key` null where it is the URL itself; `level` from 0, the most urgent, to 7; `listed` is how often
the URL stood in a segment, this one included; `seed` as `Link.seed`. `referrer` is empty for a seed."""
_TEXTS = [field.name for field in SCHEMA if not pa.types.is_integer(field.type)]


class SegmentInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Description of a segment."""

    version: int = VERSION
    made_by: str = ""
    """Product, version and command."""
    urls: int = 0
    sites: int = 0
    part: int = 1
    parts: int = 1
    """Which of how many files that were made together; a site is in one of them."""
    rules: str = ""
    """How keys were made: the rules of the section `url` that are not the default, as JSON."""
    order: str = ""
    """The request, as JSON: repeating it finds this file done."""


class Rows(msgspec.Struct, frozen=True):
    """Some rows of a segment, as the crawl takes them. `links`, `levels` and `listed` are of one length."""

    end: int
    """The number of the row behind the last of them: where to go on."""
    links: list[Link]
    levels: list[int]
    listed: list[int]


class Segment:
    """Reads a segment; `close` it (`contextlib.closing`). In memory: a batch, and a page of each column."""

    def __init__(self, path: Path) -> None:
        """Open a file and read its header. Raises ConfigError: it cannot be read, was cut, or is no segment."""
        self.path = path
        try:
            metadata = pq.read_metadata(path)
            columns = {metadata.schema.column(at).path for at in range(metadata.num_columns)}
            self._file = pq.ParquetFile(
                path, metadata=metadata, buffer_size=_READ_BYTES, pre_buffer=False, page_checksum_verification=True,
                read_dictionary=columns.intersection(_TEXTS),  # A text that thousands of rows share is read once.
            )  # fmt: skip
        except FileNotFoundError as error:
            raise ConfigError(f"there is no file {path}; `gossamer segment build` makes one") from error
        except pa.ArrowInvalid as error:
            raise ConfigError(f"{path} is no segment, or was cut short: it has no end of a Parquet file") from error
        except OSError as error:
            raise ConfigError(f"cannot read the segment {path}: {_one_line(error)}") from error
        try:
            self.about = self._read_info()
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @property
    def rows(self) -> int:
        """How many URLs it holds."""
        count: int = self._file.metadata.num_rows
        return count

    def batches(self, start: int = 0, rows_max: int = BATCH_ROWS) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield rows from row `start` on, in order, each batch with the number of the row behind it.

        `key` is filled in, and columns are of the types of `SCHEMA`, whichever another program wrote. About 0.1 µs a
        row. Raises ConfigError: the file is damaged, or a row lacks a value or has one that does not fit.
        """
        at = 0
        try:
            for group in range(self._file.num_row_groups):
                held = self._file.metadata.row_group(group)
                if at + held.num_rows <= start:
                    at += held.num_rows
                    continue
                self._require_bounded(held)
                for batch in self._file.iter_batches(rows_max, row_groups=[group]):
                    self._require_short(batch)
                    skipped = max(0, min(start - at, batch.num_rows))
                    at += batch.num_rows
                    if at > start:
                        yield at, self._whole(batch.slice(skipped))
        except (pa.ArrowException, OSError) as error:
            raise ConfigError(f"the segment {self.path} is damaged: {_one_line(error)}; make it again") from error

    def batches_in_order(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield all rows. Raises ConfigError: as `batches`, and where rows do not come by partition and site."""
        last = (-1, "")
        for at, batch in self.batches():
            places = [(batch["partition"][row].as_py(), batch["site"][row].as_py()) for row in (0, -1)]
            falls = pc.any(pc.less(batch["partition"][1:], batch["partition"][:-1])).as_py()
            if falls or not last <= places[0] <= places[1]:
                raise ConfigError(
                    f"the segment {self.path} is not sorted: write it again with ORDER BY partition, site"
                )
            last = places[1]
            yield at, batch

    def links(self, start: int = 0, rows_max: int = BATCH_ROWS) -> Iterator[Rows]:
        """Yield rows from row `start` on as links. About 0.5 µs each. Raises ConfigError: the file is damaged."""
        for end, batch in self.batches(start, rows_max):
            partitions, sites, hosts, urls, keys, prints, levels, depths, hops, kinds, referrers, listed, seeds = (
                values_of(column) for column in batch.columns
            )
            named = map(Url, urls, keys, prints, hosts, sites, partitions)
            yield Rows(end, list(map(Link, named, kinds, depths, hops, referrers, seeds)), levels, listed)

    def _require_bounded(self, group: Any) -> None:
        """Refuse a row group, by its metadata, whose text does not fit in memory."""
        chunks = map(group.column, range(group.num_columns))
        held = sum(chunk.total_uncompressed_size for chunk in chunks if chunk.path_in_schema in _TEXTS)
        if held > min(TEXT_BYTES_MAX, (256 + group.num_rows) * 4_096):  # 4 KiB is much for the mean of URLs.
            said = f"{held:,} bytes of text in a row group of {group.num_rows:,} rows"
            raise ConfigError(f"the segment {self.path} has {said}; write it with shorter values or smaller row groups")

    def _require_short(self, batch: pa.RecordBatch) -> None:
        """Refuse rows with a text that is longer than a URL, before the texts that they share are copied."""
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            values = column.dictionary if pa.types.is_dictionary(column.type) else column
            longest = pc.max(pc.binary_length(values)).as_py() if name in _TEXTS else None
            if longest is not None and longest > VALUE_BYTES_MAX:
                said = f"a {name} of {longest:,} bytes; {VALUE_BYTES_MAX:,} is the most"
                raise ConfigError(f"the segment {self.path} has {said}")

    def _whole(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns in order and of their types, keys filled in."""
        columns = []
        for field in SCHEMA:
            column = batch.column(field.name)
            if field.name == "key":
                column = pc.coalesce(decode(column).cast(field.type), decode(batch.column("url")).cast(field.type))
            if column.type != field.type:
                try:
                    column = decode(column).cast(plain(field.type))
                except pa.ArrowInvalid as error:
                    said = f"a {field.name} that does not fit: {_one_line(error)}"
                    raise ConfigError(f"the segment {self.path} has {said}; make it again") from error
                column = column.dictionary_encode() if field.type == FEW else column
            if column.null_count or (field.type == FEW and column.dictionary.null_count):
                raise ConfigError(f"the segment {self.path} has rows without {field.name}; make it without them")
            columns.append(column)
        return pa.record_batch(columns, names=SCHEMA.names)

    def _read_info(self) -> SegmentInfo:
        said = (self._file.schema_arrow.metadata or {}).get(ABOUT) or (self._file.metadata.metadata or {}).get(ABOUT)
        if said is None:
            raise ConfigError(f"{self.path} is a Parquet file, but no segment; `gossamer segment build` makes one")
        try:
            about = msgspec.json.decode(said, type=SegmentInfo)
        except msgspec.MsgspecError as error:
            raise ConfigError(f"{self.path} is no segment that can be read here: {error}") from error
        missing = [name for name in SCHEMA.names if name not in self._file.schema_arrow.names]
        if about.version > VERSION or missing:
            lacks = f"lacks {', '.join(missing)}" if missing else f"is of version {about.version}, newer than {VERSION}"
            raise ConfigError(f"the segment {self.path} {lacks}; make it with this version of gossamer")
        for field in SCHEMA:
            kind = plain(self._file.schema_arrow.field(field.name).type)
            if not (pa.types.is_integer if pa.types.is_integer(field.type) else _is_text)(kind):
                wanted = "whole numbers" if pa.types.is_integer(field.type) else "text"
                raise ConfigError(f"the segment {self.path}: the column {field.name} is of {kind}; write {wanted}")
        return about


class SegmentWriter(AbstractContextManager["SegmentWriter"]):
    """Writes a segment: aside first, and under its name once it is whole and synced. Use as a context.

    Rows come sorted by partition and site; what is held is one row group. A block that raises leaves nothing.
    """

    def __init__(self, path: Path, about: SegmentInfo) -> None:
        """Begin a segment. Raises OSError where nothing can be written."""
        self.path = path
        self._about = about
        self._aside = path.with_name(f".{path.name}.new")
        self._writer = pq.ParquetWriter(
            self._aside, SCHEMA, compression="zstd", write_page_checksum=True, use_dictionary=_DICTIONARIES
        )
        self._held: list[pa.Table] = []
        self._held_rows = 0
        self._last: tuple[int, str] = (-1, "")
        self.urls = 0
        self.sites = 0

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if kind is None:
            self.finish()
        else:
            self.drop()

    def write(self, rows: pa.Table) -> None:
        """Take rows that follow those that were written. `key` may be as the URL; it is left out then."""
        if not rows.num_rows:
            return
        rows = pa.table([_fit_column(rows, field) for field in SCHEMA], schema=SCHEMA)
        self._count(rows)
        self._held.append(rows)
        self._held_rows += rows.num_rows
        if self._held_rows >= GROUP_ROWS:
            self._flush(GROUP_ROWS)

    def write_links(self, links: list[Link], levels: list[int], listed: list[int]) -> None:
        """Take links that follow those that were written."""
        self.write(table_of(links, levels, listed))

    def finish(self) -> SegmentInfo:
        """Write what is held, and give the file its name. Blocks for a sync."""
        self._flush(1)
        about = msgspec.structs.replace(self._about, urls=self.urls, sites=self.sites)
        self._writer.add_key_value_metadata({ABOUT: msgspec.json.encode(about)})
        self._writer.close()
        publish(self._aside, self.path)
        return about

    def drop(self) -> None:
        """Leave nothing of it."""
        self._writer.close()
        self._aside.unlink(missing_ok=True)

    def _flush(self, rows_min: int) -> None:
        if self._held_rows < rows_min:
            return
        table = pa.concat_tables(self._held).unify_dictionaries()
        whole = table.num_rows if rows_min == 1 else table.num_rows // GROUP_ROWS * GROUP_ROWS
        self._writer.write_table(table.slice(0, whole), row_group_size=GROUP_ROWS)
        # A copy: a slice would hold on to all of what was written.
        rest = table.slice(whole).take(pa.array(range(table.num_rows - whole), pa.int32()))
        self._held = [rest] if rest.num_rows else []
        self._held_rows = rest.num_rows

    def _count(self, rows: pa.Table) -> None:
        """Count URLs and sites, and see that they are in order."""
        partitions = rows["partition"].combine_chunks()
        sites = decode(rows["site"].combine_chunks())
        first = (partitions[0].as_py(), sites[0].as_py())
        last = (partitions[-1].as_py(), sites[-1].as_py())
        changes = pc.or_(
            pc.not_equal(sites.slice(1), sites.slice(0, len(sites) - 1)),
            pc.not_equal(partitions.slice(1), partitions.slice(0, len(partitions) - 1)),
        )
        assert self._last <= first <= last < (PARTITIONS, ""), "a segment's rows come by partition and site"
        self.urls += rows.num_rows
        self.sites += (pc.sum(changes).as_py() or 0) + (first != self._last)
        self._last = last


_DICTIONARIES = ["site", "host", "link_type", "partition", "level", "depth", "hops", "listed", "seed", "referrer"]
"""Columns that repeat themselves within a site."""


def table_of(links: list[Link], levels: list[int], listed: list[int]) -> pa.Table:
    """Return links as rows of a segment, in their order. About 2 µs each."""
    urls = [link.url for link in links]
    values = {
        "partition": [url.partition for url in urls],
        "site": [url.site for url in urls],
        "host": [url.host for url in urls],
        "url": [url.text for url in urls],
        "key": [None if url.key == url.text else url.key for url in urls],
        "fingerprint": [url.fingerprint for url in urls],
        "level": levels,
        "depth": [link.depth for link in links],
        "hops": [link.hops for link in links],
        "link_type": [link.link_type for link in links],
        "referrer": [link.referrer for link in links],
        "listed": listed,
        "seed": [link.seed for link in links],
    }
    return pa.table([pa.array(values[field.name], plain(field.type)) for field in SCHEMA], names=SCHEMA.names)


def values_of(column: pa.Array) -> list[Any]:
    """Return a column's values, none of them null; by way of NumPy, ten times as fast as `to_pylist`."""
    if pa.types.is_dictionary(column.type):
        named = values_of(column.dictionary)
        return [named[index] for index in column.indices.to_numpy().tolist()]
    values: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
    return values


def decode(column: pa.Array) -> pa.Array:
    """Return a column without its dictionary, if it has one."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def rules_of(options: UrlOptions) -> str:
    """Return how keys are made, as segments say it: what of the section `url` is not as it is by default."""
    return json.dumps({"rules": options.rules, **to_table(options)})


def _fit_column(rows: pa.Table, field: pa.Field) -> pa.ChunkedArray:
    column = rows[field.name]
    if field.name == "key":
        return pc.if_else(pc.fill_null(pc.equal(column, rows["url"]), True), pa.scalar(None, pa.string()), column)
    if column.type == field.type:
        return column
    return column.dictionary_encode() if field.type == FEW else column.cast(field.type)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
