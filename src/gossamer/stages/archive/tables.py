"""Tables: the rows of `pages`, `links` and `epochs`, one frame an epoch in each table's log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import pyarrow as pa

from gossamer.model.links import EMBED
from gossamer.model.pages import Archived, EpochRow, PageRow, Visited
from gossamer.stages.archive.logs import frame
from gossamer.stages.archive.options import ArchiveOptions
from gossamer.stages.archive.schema import EPOCHS, FEW, ITEM, ITEM_PLACES, ITEMS, LINKS, PAGES, MoreColumns, columns_of
from gossamer.stages.archive.segments import Segments, stem_of
from gossamer.state.journals import Journals

LOG_FOLDER = "state/tables/"
LOG_SUFFIX = ".journal"


class TableWriters:
    """Writes the rows of each attempt; durable with the epoch.

    Costs about 5 µs a page and 0.4 µs a link, the work of `cut` included. In memory: at most
    `table_frame_rows_max` rows of each table, and those of one page.
    """

    def __init__(
        self,
        options: ArchiveOptions,
        journals: Journals,
        shard: int = 0,
        incarnation: int = 1,
        columns: Mapping[str, str] | None = None,
        tables: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        """`columns` are those that processing modules declare for `pages`, and `tables` their own, by kind."""
        self._options = options
        self._journals = journals
        self._shard = shard
        self._incarnation = incarnation
        self._pages = TableRows(PAGES, columns)
        self._links = LinksRows()
        self._kinds = tables or {}
        self._own: dict[str, OwnRows] = {}
        self._epochs = TableRows(EPOCHS)
        self._segments_since: float | None = None
        log = self._log
        self._logs = [log("pages", self._pages), log("links", self._links), log("epochs", self._epochs)]
        for table in self._kinds:
            self._add_table(table)

    def add(self, visited: Visited) -> Archived:
        """Add the attempt's row and links. Raises OSError: the disk is full; the next `cut` has the rows."""
        visited.row.shard = self._shard
        findings = visited.findings
        self._pages.append(msgspec.structs.astuple(visited.row), findings.columns if findings is not None else None)
        if findings is not None:
            for table, rows in findings.rows.items():
                (self._own.get(table) or self._add_table(table)).add(visited.row, rows)
        if visited.links and self._options.links:
            self._links.add(visited)
        for log in self._logs:
            if log.rows.count >= self._options.table_frame_rows_max:
                log.cut()
        return Archived()

    def add_epoch(self, row: EpochRow) -> None:
        """Take the row of a commit, durable with the next. Logs that have grown for long enough become Parquet."""
        fields = msgspec.structs.astuple(msgspec.structs.replace(row, shard=self._shard))
        self._epochs.append((*fields[:-1], *msgspec.structs.astuple(row.counters)))
        if self._segments_since is None:
            self._segments_since = row.committed_at
        if row.committed_at - self._segments_since >= self._options.table_segment_s_max:
            self._segments_since = row.committed_at
            self.close()

    def cut(self) -> None:
        """Write what is buffered as one frame per table."""
        for log in self._logs:
            log.cut()

    def close(self) -> None:
        """Write what is buffered and finish both logs; once committed, the follower makes Parquet of them."""
        for log in self._logs:
            log.cut()
            log.finish()

    def _add_table(self, table: str) -> OwnRows:
        rows = self._own[table] = OwnRows(table, self._kinds.get(table, {}))
        self._logs.append(self._log(table, rows))
        return rows

    def _log(self, table: str, rows: TableRows | LinksRows) -> TableLog:
        stem = stem_of(table)
        made = f"{table}/{stem}"
        segments = Segments(self._journals, LOG_FOLDER + stem, LOG_SUFFIX, self._shard, self._incarnation, made)
        return TableLog(rows, segments, self._options)


class TableLog:
    """The log of one table: a frame at each cut, a new segment when one is full."""

    def __init__(self, rows: TableRows | LinksRows, segments: Segments, options: ArchiveOptions) -> None:
        self.rows = rows
        self._segments = segments
        self._options = options
        self._segment_rows = 0

    def cut(self) -> None:
        if not self.rows.count:
            return
        data = frame(self.rows.batch())
        journal = self._segments.journal or self._segments.begin()
        journal.append(data)
        self._segment_rows += self.rows.count
        self.rows.clear()
        options = self._options
        if self._segment_rows >= options.table_segment_rows_max or journal.length >= options.table_segment_bytes_max:
            self.finish()

    def finish(self) -> None:
        self._segments.finish()
        self._segment_rows = 0


class TableRows:
    """Rows of one table that wait for the next frame: values of `schema`, times in seconds, and of what modules add."""

    def __init__(self, schema: pa.Schema, columns: Mapping[str, str] | None = None) -> None:
        """`columns` are those that modules declare, by kind."""
        self._schema = schema
        self._rows: list[tuple[object, ...]] = []
        self._more = MoreColumns(columns or {})
        self.count = 0

    def append(self, row: tuple[object, ...], more: Mapping[str, object] | None = None) -> None:
        if more:
            self._more.add(self.count, more)
        self._rows.append(row)
        self.count += 1

    def batch(self) -> pa.RecordBatch:
        arrays = columns_of(list(zip(*self._rows, strict=True)) or [()] * len(self._schema), self._schema)
        more = self._more.arrays(len(self._rows))
        schema = pa.schema([*self._schema, *((name, array.type) for name, array in more)]) if more else self._schema
        return pa.record_batch([*arrays, *(array for _, array in more)], schema=schema)

    def clear(self) -> None:
        self._rows = []
        self._more.clear()
        self.count = 0


class OwnRows(TableRows):
    """Rows of a table of a module's own; its first column is the page's `url`. In a table of items the page's `key`,
    `fetched_at` and what identifies the item on it follow: its own `item`, else its number.
    """

    def __init__(self, table: str, columns: Mapping[str, str]) -> None:
        self._of_items = table.startswith(ITEMS)
        super().__init__(pa.schema({"url": FEW, **(ITEM_PLACES if self._of_items else {})}), columns)

    def add(self, page: PageRow, rows: Sequence[Mapping[str, object]]) -> None:
        for number, row in enumerate(rows):
            if self._of_items:
                place = (page.url, page.key, page.fetched_at, str(row.get(ITEM, number)))
                self.append(place, {name: row[name] for name in row if name != ITEM})
            else:
                self.append((page.url,), row)


class LinksRows:
    """Rows of `links`, held as columns: a page's links are appended to each in one call."""

    def __init__(self) -> None:
        self.clear()

    def add(self, visited: Visited) -> None:
        links = visited.links
        assert len(links) == len(visited.link_keys), "every link has its key"
        columns = self._columns
        columns["from_url"] += [visited.url.text] * len(links)
        columns["to_url"] += [link.url for link in links]
        columns["to_key"] += visited.link_keys
        columns["link_type"] += [link.link_type for link in links]
        columns["anchor_text"] += [link.anchor_text for link in links]
        if visited.findings is not None and visited.findings.nofollow:
            columns["nofollow"] += [link.nofollow or link.link_type != EMBED for link in links]
        else:
            columns["nofollow"] += [link.nofollow for link in links]
        self.count += len(links)

    def batch(self) -> pa.RecordBatch:
        return pa.record_batch(columns_of(list(self._columns.values()), LINKS), schema=LINKS)

    def clear(self) -> None:
        self.count = 0
        self._columns: dict[str, list[object]] = {name: [] for name in LINKS.names}
