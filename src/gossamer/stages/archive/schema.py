"""The tables' columns in logs and Parquet files, and the values of rows as such columns."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, get_args

import msgspec
import pyarrow as pa

from gossamer.model.pages import EpochRow, PageRow

_TEXT = pa.string()
FEW = pa.dictionary(pa.int32(), pa.string())
"""For columns that repeat few values."""
TIME = pa.timestamp("us", tz="UTC")
_OF_TYPES = {str: _TEXT, int: pa.int64(), float: pa.float64(), bool: pa.bool_()}


def schema_of(row: type[msgspec.Struct], kinds: Mapping[str, pa.DataType]) -> pa.Schema:
    """Return the schema of a table of rows: the fields of `row`, in their order, and in place of a struct those of it.
    `kinds` has the columns, by name, that are not of the widest kind for the type of their field.
    """
    columns: list[pa.Field] = []
    for field in msgspec.structs.fields(row):
        first = next(iter(get_args(field.type)), field.type)  # Of `int | None`: the other is the null.
        if issubclass(first, msgspec.Struct):
            columns += schema_of(first, kinds)
        else:
            columns.append(pa.field(field.name, kinds[field.name] if field.name in kinds else _OF_TYPES[first]))
    return pa.schema(columns)


_FEW_IN_PAGES = (
    "host", "site", "outcome", "media_type", "charset", "truncated", "link_type", "ip", "warc_file", "warc_type",
    "change", "text_method", "usage_search", "usage_ai_train", "usage_ai_input", "usage_archive", "usage_reason",
    "usage_statements", "wall", "rendered", "render_reason", "sent_type",
)  # fmt: skip
PAGES = schema_of(
    PageRow,
    {
        "fetched_at": TIME,
        "status": pa.int16(),
        "simhash": pa.uint64(),
        **dict.fromkeys(("depth", "attempt", "shard", "hops"), pa.int32()),
        **dict.fromkeys(_FEW_IN_PAGES, FEW),
    },
)
"""One row per attempt."""

LINKS = pa.schema(
    [
        ("from_url", _TEXT),
        ("to_url", _TEXT),
        ("to_key", _TEXT),
        ("link_type", FEW),
        ("anchor_text", _TEXT),
        ("nofollow", pa.bool_()),
    ]
)
"""One row per link found."""

EPOCHS = schema_of(EpochRow, {"committed_at": TIME, "shard": pa.int32()})
"""One row per commit."""
ITEMS = "items/"
"""Prefix of the names of tables of items: `items/NAME` is a folder in a folder."""
ITEM = "item"
ITEM_PLACES = {"key": _TEXT, "fetched_at": TIME, ITEM: _TEXT}
"""Columns of tables of items, behind `url`."""
TABLES = {"pages": PAGES, "links": LINKS, "epochs": EPOCHS}
"""By folder."""
KINDS = {
    "text": _TEXT, "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_(), "time": TIME, "texts": pa.list_(_TEXT),
    "json": _TEXT,
}  # fmt: skip
"""Types of columns that processing modules may add, by kind (`model.columns`)."""


def unify_schemas(schemas: Iterable[pa.Schema], first: pa.Schema | None = None) -> pa.Schema:
    """Return one schema for frames of different ones: columns of `first`, then the others in order of appearance.

    Of two types the wider one is taken: integers and floats make floats, all else text.
    """
    fields: dict[str, pa.DataType] = {field.name: field.type for field in first or ()}
    fixed = set(fields)
    for schema in schemas:
        for field in schema:
            known = fields.setdefault(field.name, field.type)
            if known != field.type and field.name not in fixed:
                numbers = all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in (known, field.type))
                fields[field.name] = pa.float64() if numbers else _TEXT
    return pa.schema(list(fields.items()))


def fit_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Convert a batch to a schema from `unify_schemas` that covers its own: missing columns are null."""
    if batch.schema.equals(schema):
        return batch
    columns = []
    for field in schema:
        index = batch.schema.get_field_index(field.name)
        if index < 0:
            columns.append(pa.nulls(batch.num_rows, field.type))
        elif pa.types.is_nested(batch.schema.field(index).type) and field.type == _TEXT:
            values = batch.column(index).to_pylist()
            columns.append(pa.array([None if value is None else json.dumps(value) for value in values], _TEXT))
        else:
            columns.append(batch.column(index).cast(field.type))
    return pa.record_batch(columns, schema=schema)


_INT_MAX = 2**63 - 1
_to_json = msgspec.json.Encoder(enc_hook=str).encode


class MoreColumns:
    """Columns that modules add to rows; a row without a value has a null.

    Declared columns are in every batch, with the declared kind. Others appear with their first value and have the type
    that all values of the batch share, else JSON.
    """

    def __init__(self, declared: Mapping[str, str]) -> None:
        self._declared = dict(declared)
        self._values: dict[str, dict[int, object]] = {}

    def add(self, index: int, values: Mapping[str, object]) -> None:
        """Add the values of a row."""
        for name, value in values.items():
            if value is not None:
                self._values.setdefault(name, {})[index] = value

    def arrays(self, rows: int) -> list[tuple[str, pa.Array]]:
        """Return the columns over `rows` rows, declared ones first, the others by name."""
        names = [*self._declared, *sorted(self._values.keys() - self._declared.keys())]
        return [(name, self._array(name, rows)) for name in names]

    def clear(self) -> None:
        """Drop all values."""
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


def columns_of(columns: Sequence[Sequence[Any]], schema: pa.Schema) -> list[pa.Array]:
    """Return the columns of a schema by their values; times are in seconds."""
    return [
        column_of([round(at * 1_000_000) for at in values] if kind == TIME else values, kind)
        for values, kind in zip(columns, schema.types, strict=True)
    ]


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
