"""Rows: a table as lines of text: JSON lines, or CSV as RFC 4180 has it."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO, Protocol

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from gossamer.archive.views.parquet import Advance
from gossamer.archive.views.source import Source
from gossamer.archive.views.work import CHECKPOINT_BYTES, Work
from gossamer.world.files import AppendFile

_JSON = msgspec.json.Encoder()


class Written(msgspec.Struct):
    """How far a file of lines is: rows read, bytes that stand on disk."""

    position: int = 0
    length: int = 0


class Format(Protocol):
    """One way to write rows."""

    def head(self, names: Sequence[str], /) -> bytes:
        """Return what stands before the first row."""
        ...

    def lines(self, batch: pa.RecordBatch) -> bytes:
        """Return the rows of a batch."""
        ...


class JsonLines:
    """One object a row, in UTF-8; times are text as `2026-01-01T00:00:00.250000Z`. About 10 µs a row of `pages`."""

    def head(self, _names: Sequence[str]) -> bytes:
        """Return nothing: each row names its columns."""
        return b""

    def lines(self, batch: pa.RecordBatch) -> bytes:
        """Return one line for each row."""
        names = batch.schema.names
        encode = _JSON.encode
        return b"".join([encode(dict(zip(names, row, strict=True))) + b"\n" for row in _rows(batch)])


class Csv:
    """A head line, then one record a row (RFC 4180): CRLF, quotes where they are needed, null as nothing.

    Values are as they were found; whoever opens the file in a spreadsheet should have columns taken as text.
    """

    def head(self, names: Sequence[str]) -> bytes:
        """Return the line of column names."""
        return _records([names])

    def lines(self, batch: pa.RecordBatch) -> bytes:
        """Return one record for each row."""
        return _records(_csv_rows(batch))


def export_rows(work: Work, form: Format, source: Source, advance: Advance) -> None:
    """Write the table into one file. In memory: one batch and its text.

    Raises:
        OSError: the disk is full; what was noted stays done.
    """
    step = work.step(Written)
    file = AppendFile(work.out, step.length)
    try:
        noted = step.length
        if not step.position:
            step.length = _append(file, form.head(source.schema.names), 0)
        for position, batch in source.batches(step.position):
            step.length = _append(file, form.lines(batch), step.length)
            step.position = position
            if step.length - noted >= CHECKPOINT_BYTES:
                file.sync()
                work.save(step)
                noted = step.length
            advance(position)
        file.sync()
        work.save(step)
    finally:
        file.close()


def stream_rows(out: BinaryIO, form: Format, source: Source, advance: Advance) -> None:
    """Write the table to whoever reads us."""
    out.write(form.head(source.schema.names))
    for position, batch in source.batches():
        out.write(form.lines(batch))
        advance(position)
    out.flush()


def _append(file: AppendFile, data: bytes, length: int) -> int:
    file.write(data)
    return length + len(data)


def _rows(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    columns = [_values(column) for column in batch.columns]
    return zip(*columns, strict=True)


def _values(column: pa.Array) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        column = pc.strftime(column, "%Y-%m-%dT%H:%M:%SZ")
    elif pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    values: list[Any] = column.to_pylist()
    return values


def _csv_rows(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    columns = []
    for column in batch.columns:
        values = _values(column)
        if pa.types.is_boolean(column.type):
            values = [None if value is None else str(value).lower() for value in values]
        elif pa.types.is_nested(column.type) or pa.types.is_binary(column.type):
            values = [None if value is None else _JSON.encode(value).decode() for value in values]
        columns.append(values)
    return zip(*columns, strict=True)


def _records(rows: Any) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows(rows)
    return text.getvalue().encode()


FORMS: dict[str, Callable[[], Format]] = {"jsonl": JsonLines, "csv": Csv}
