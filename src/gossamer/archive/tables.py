"""Tables: the rows of `pages` and `links`, one frame an epoch in each table's log."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Protocol

import msgspec
import pyarrow as pa

from gossamer.archive.frames import frame
from gossamer.archive.options import ArchiveOptions
from gossamer.archive.schema import LINKS, PAGES
from gossamer.archive.segments import Segments
from gossamer.model.visits import Archived, PageRow, Visited
from gossamer.state.journals import Journals

LOG_FOLDER = "state/tables/"
LOG_SUFFIX = ".journal"

_FETCHED_AT = PageRow.__struct_fields__.index("fetched_at")


class Tables:
    """Takes the rows of each attempt; durable with the epoch.

    Costs about 5 µs a page and 0.4 µs a link, the work of `cut` included. In memory: at most
    `table_frame_rows_max` rows of each table, and those of one page.
    """

    def __init__(self, options: ArchiveOptions, journals: Journals, shard: int = 0, incarnation: int = 1) -> None:
        self._options = options
        self._pages = PagesRows()
        self._links = LinksRows()
        self._logs = [
            TableLog("pages", self._pages, options, journals, shard, incarnation),
            TableLog("links", self._links, options, journals, shard, incarnation),
        ]

    def add(self, visited: Visited) -> Archived:
        """Take the attempt's row and its links.

        Raises:
            OSError: the disk is full; the attempt's rows are kept for the next `cut`.
        """
        self._pages.add(visited.row)
        if visited.links and self._options.links:
            self._links.add(visited)
        for log in self._logs:
            if log.rows.count >= self._options.table_frame_rows_max:
                log.cut()
        return Archived()

    def cut(self) -> None:
        """Write what is buffered as one frame per table."""
        for log in self._logs:
            log.cut()

    def close(self) -> None:
        """Write what is buffered and finish both logs; once committed, the follower makes Parquet of them."""
        for log in self._logs:
            log.cut()
            log.finish()


class Rows(Protocol):
    """Rows of one table that wait for the next frame."""

    @property
    def count(self) -> int:
        """How many wait."""
        ...

    def batch(self) -> pa.RecordBatch:
        """Return what waits."""
        ...

    def clear(self) -> None:
        """Let go of what waits."""
        ...


class TableLog:
    """The log of one table: a frame at each cut, a new segment when one is full."""

    def __init__(
        self, table: str, rows: Rows, options: ArchiveOptions, journals: Journals, shard: int, incarnation: int
    ) -> None:
        self.rows = rows
        self._options = options
        self._segments = Segments(journals, LOG_FOLDER + table, LOG_SUFFIX, shard, incarnation, f"{table}/{table}")
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

    def __init__(self) -> None:
        self._rows: list[tuple[object, ...]] = []

    @property
    def count(self) -> int:
        return len(self._rows)

    def add(self, row: PageRow) -> None:
        self._rows.append(msgspec.structs.astuple(row))

    def batch(self) -> pa.RecordBatch:
        columns: list[Sequence[object]] = list(zip(*self._rows, strict=True))
        columns[_FETCHED_AT] = [round(row[_FETCHED_AT] * 1_000_000) for row in self._rows]  # type: ignore[operator]
        return pa.record_batch(
            [column_of(values, field.type) for values, field in zip(columns, PAGES, strict=True)], schema=PAGES
        )

    def clear(self) -> None:
        self._rows = []


class LinksRows:
    """Rows of `links`, held as columns: a page's links are appended to each in one call."""

    def __init__(self) -> None:
        self.clear()

    @property
    def count(self) -> int:
        return len(self._to_key)

    def add(self, visited: Visited) -> None:
        links = visited.links
        assert len(links) == len(visited.link_keys), "every link has its key"
        self._from.extend([len(self._from_urls)] * len(links))
        self._from_urls.append(visited.url.text)
        self._to_url += [link.url for link in links]
        self._to_key += visited.link_keys
        self._link_type += [link.link_type for link in links]
        self._anchor_text += [link.anchor_text for link in links]
        self._nofollow += [link.nofollow for link in links]

    def batch(self) -> pa.RecordBatch:
        indices = pa.Array.from_buffers(pa.int32(), len(self._from), [None, pa.py_buffer(self._from)])
        from_url = pa.DictionaryArray.from_arrays(indices, column_of(self._from_urls, pa.string()))
        others: tuple[Sequence[object], ...] = (
            self._to_url,
            self._to_key,
            self._link_type,
            self._anchor_text,
            self._nofollow,
        )
        columns = [column_of(values, field.type) for values, field in zip(others, list(LINKS)[1:], strict=True)]
        return pa.record_batch([from_url.dictionary_decode(), *columns], schema=LINKS)

    def clear(self) -> None:
        self._from = array("i")
        self._from_urls: list[str] = []
        self._to_url: list[str] = []
        self._to_key: list[str] = []
        self._link_type: list[str] = []
        self._anchor_text: list[str] = []
        self._nofollow: list[bool] = []


def column_of(values: Sequence[object], kind: pa.DataType) -> pa.Array:
    """Return the values as one column; text that is no Unicode (lone surrogates) loses only those marks."""
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    try:
        column = pa.array(values, plain)
    except UnicodeEncodeError:
        column = pa.array([_encodable(value) for value in values], plain)
    return column.dictionary_encode() if plain is not kind else column


def _encodable(value: object) -> object:
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
