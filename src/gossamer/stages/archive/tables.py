"""Tables: the rows of `pages`, `links` and `epochs`, one frame an epoch in each table's log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import msgspec
import pyarrow as pa

from gossamer.model.counters import values
from gossamer.model.links import EMBED
from gossamer.model.pages import Archived, EpochRow, PageRow, Visited
from gossamer.stages.archive.logs import Segments, frame, stem_of
from gossamer.stages.archive.options import ArchiveOptions
from gossamer.stages.archive.schema import EPOCHS, FEW, ITEM, ITEM_PLACES, ITEMS, LINKS, PAGES, MoreColumns, column_of
from gossamer.state.journals import Journals

LOG_FOLDER = "state/tables/"
LOG_SUFFIX = ".journal"

_FETCHED_AT = PageRow.__struct_fields__.index("fetched_at")


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
        self._shard = shard
        self._pages = PagesRows(columns or {})
        self._links = LinksRows()
        self._kinds = tables or {}
        self._own: dict[str, OwnRows] = {}
        self._log = partial(TableLog, options=options, journals=journals, shard=shard, incarnation=incarnation)
        self._epochs = EpochRows()
        self._segments_since: float | None = None
        self._logs = [
            self._log("pages", self._pages),
            self._log("links", self._links),
            self._log("epochs", self._epochs),
        ]
        for table in self._kinds:
            self._add_table(table)

    def add(self, visited: Visited) -> Archived:
        """Add the attempt's row and its links.

        Raises:
            OSError: the disk is full; the attempt's rows are kept for the next `cut`.
        """
        visited.row.shard = self._shard
        findings = visited.findings
        if findings is None:
            self._pages.add(visited.row)
        else:
            self._pages.add(visited.row, findings.columns)
            for table, rows in findings.rows.items():
                (self._own.get(table) or self._add_table(table)).add(visited.row, rows)
        if visited.links and self._options.links:
            self._links.add(visited)
        for log in self._logs:
            if log.rows.count >= self._options.table_frame_rows_max:
                log.cut()
        return Archived()

    def add_epoch(self, row: EpochRow) -> None:
        """Take the row of a commit; it is durable with the next. Finishes logs that have grown for long enough: what
        is in them becomes Parquet.
        """
        self._epochs.add(msgspec.structs.replace(row, shard=self._shard))
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
        kind = ItemRows if table.startswith(ITEMS) else OwnRows
        rows = self._own[table] = kind(self._kinds.get(table, {}))
        self._logs.append(self._log(table, rows))
        return rows


class TableLog:
    """The log of one table: a frame at each cut, a new segment when one is full."""

    def __init__(
        self, table: str, rows: Rows, options: ArchiveOptions, journals: Journals, shard: int, incarnation: int
    ) -> None:
        self.rows = rows
        self._options = options
        stem = stem_of(table)
        self._segments = Segments(journals, LOG_FOLDER + stem, LOG_SUFFIX, shard, incarnation, f"{table}/{stem}")
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


class PagesRows:
    """Rows of `pages`, held as rows until the cut."""

    def __init__(self, columns: Mapping[str, str] | None = None) -> None:
        self._rows: list[tuple[object, ...]] = []
        self._more = MoreColumns(columns or {})
        self.count = 0

    def add(self, row: PageRow, columns: Mapping[str, object] | None = None) -> None:
        if columns:
            self._more.add(len(self._rows), columns)
        self._rows.append(msgspec.structs.astuple(row))
        self.count += 1

    def batch(self) -> pa.RecordBatch:
        columns: list[Sequence[object]] = list(zip(*self._rows, strict=True))
        columns[_FETCHED_AT] = [round(row[_FETCHED_AT] * 1_000_000) for row in self._rows]  # type: ignore[operator]
        arrays = [column_of(values, field.type) for values, field in zip(columns, PAGES, strict=True)]
        more = self._more.arrays(len(self._rows))
        schema = pa.schema([*PAGES, *((name, array.type) for name, array in more)]) if more else PAGES
        return pa.record_batch([*arrays, *(array for _, array in more)], schema=schema)

    def clear(self) -> None:
        self._rows = []
        self.count = 0
        self._more.clear()


class EpochRows:
    """Rows of `epochs`."""

    def __init__(self) -> None:
        self._rows: list[EpochRow] = []
        self.count = 0

    def add(self, row: EpochRow) -> None:
        self._rows.append(msgspec.structs.replace(row, committed_at=round(row.committed_at * 1_000_000)))
        self.count += 1

    def batch(self) -> pa.RecordBatch:
        rows = ((*msgspec.structs.astuple(row)[:-1], *values(row.counters)) for row in self._rows)
        columns = zip(*rows, strict=True)
        return pa.record_batch([column_of(c, f.type) for c, f in zip(columns, EPOCHS, strict=True)], schema=EPOCHS)

    def clear(self) -> None:
        self._rows = []
        self.count = 0


class OwnRows:
    """Rows of a table of a module's own; its first column is the page's `url`."""

    def __init__(self, columns: Mapping[str, str]) -> None:
        self._urls: list[str] = []
        self._more = MoreColumns(columns)
        self.count = 0

    def add(self, page: PageRow, rows: Sequence[Mapping[str, object]]) -> None:
        for row in rows:
            self._more.add(len(self._urls), row)
            self._urls.append(page.url)
        self.count = len(self._urls)

    def batch(self) -> pa.RecordBatch:
        more = [*self._of_pages(), *self._more.arrays(len(self._urls))]
        arrays = [column_of(self._urls, FEW), *(array for _, array in more)]
        return pa.record_batch(arrays, names=["url", *(name for name, _ in more)])

    def clear(self) -> None:
        self._urls = []
        self.count = 0
        self._more.clear()

    def _of_pages(self) -> list[tuple[str, pa.Array]]:
        return []


class ItemRows(OwnRows):
    """Rows of a table of items: behind `url` the page's `key`, `fetched_at` and what identifies the item on it: its
    own `item`, else its number.
    """

    def __init__(self, columns: Mapping[str, str]) -> None:
        super().__init__(columns)
        self._places: list[tuple[str, int, str]] = []

    def add(self, page: PageRow, rows: Sequence[Mapping[str, object]]) -> None:
        at = round(page.fetched_at * 1_000_000)
        self._places += ((page.key, at, str(row.get(ITEM, number))) for number, row in enumerate(rows))
        super().add(page, [{name: row[name] for name in row if name != ITEM} for row in rows])

    def clear(self) -> None:
        super().clear()
        self._places = []

    def _of_pages(self) -> list[tuple[str, pa.Array]]:
        columns = [[place[n] for place in self._places] for n in range(len(ITEM_PLACES))]
        return [
            (name, column_of(values, kind)) for (name, kind), values in zip(ITEM_PLACES.items(), columns, strict=True)
        ]


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
        columns = [column_of(self._columns[field.name], field.type) for field in LINKS]
        return pa.record_batch(columns, schema=LINKS)

    def clear(self) -> None:
        self.count = 0
        self._columns: dict[str, list[object]] = {name: [] for name in LINKS.names}


Rows = PagesRows | EpochRows | OwnRows | LinksRows
"""Rows of one table that wait for the next frame."""
