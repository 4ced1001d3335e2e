"""Arrays: values of rows as columns of a record batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec
import pyarrow as pa

from gossamer.archive.schema import KINDS

_INT_MAX = 2**63 - 1
_to_json = msgspec.json.Encoder(enc_hook=str).encode


class MoreColumns:
    """Columns that modules add to rows; a row that has nothing to say there has a null.

    Those that were declared are in every batch, by the kind that was declared. Others are as their values are, and
    appear with the first: a type that all values of the batch share, else JSON.
    """

    def __init__(self, declared: Mapping[str, str]) -> None:
        self._declared = dict(declared)
        self._values: dict[str, dict[int, object]] = {}

    def add(self, index: int, values: Mapping[str, object]) -> None:
        """Take what a row says."""
        for name, value in values.items():
            if value is not None:
                self._values.setdefault(name, {})[index] = value

    def arrays(self, rows: int) -> list[tuple[str, pa.Array]]:
        """Return the columns over so many rows, declared ones first, the others by name."""
        names = [*self._declared, *sorted(self._values.keys() - self._declared.keys())]
        return [(name, self._array(name, rows)) for name in names]

    def clear(self) -> None:
        """Let go of all values."""
        self._values = {}

    def _array(self, name: str, rows: int) -> pa.Array:
        values = self._values.get(name, {})
        kind = self._declared.get(name) or kind_of(list(values.values()))
        column = [values.get(index) for index in range(rows)]
        return column_of([_as(kind, value) for value in column], KINDS[kind])


def kind_of(values: Sequence[object]) -> str:
    """Return the kind that fits all of the values."""
    kinds = {_kind(value) for value in values}
    if kinds == {"int", "float"}:
        return "float"
    return kinds.pop() if len(kinds) == 1 else "json"


def column_of(values: Sequence[object], kind: pa.DataType) -> pa.Array:
    """Return the values as one column; text that is no Unicode (lone surrogates) loses only those marks."""
    # A column with a dictionary is built with it. To make one of a plain column is a third quicker, 0.6 µs a page, and
    # takes pyarrow.compute, 0.02 s of every crawl.
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:
        return pa.array([_encodable(value) for value in values], kind)


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int" if abs(value) <= _INT_MAX else "json"
    if isinstance(value, float):
        return "float"
    if isinstance(value, str):
        return "text"
    if isinstance(value, datetime):
        return "time"
    if isinstance(value, list | tuple) and value and all(isinstance(one, str) for one in value):
        return "texts"
    return "json"


def _as(kind: str, value: object) -> object:
    if value is None:
        return None
    if kind == "json" and not isinstance(value, str):
        return _to_json(value).decode()
    if kind == "time":
        seconds = value.timestamp() if isinstance(value, datetime) else float(value)  # type: ignore[arg-type]
        return round(seconds * 1_000_000)
    return list(value) if kind == "texts" else value  # type: ignore[call-overload]


def _encodable(value: object) -> object:
    if isinstance(value, list):
        return [_encodable(one) for one in value]
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
