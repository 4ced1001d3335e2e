"""The tables' columns, as they stand in logs and Parquet files."""

from __future__ import annotations

import json
from collections.abc import Iterable

import msgspec
import pyarrow as pa

from gossamer.model.counters import Counters

_TEXT = pa.string()
FEW = pa.dictionary(pa.int32(), pa.string())
"""For columns that repeat few values."""

PAGES = pa.schema(
    [
        ("url", _TEXT),
        ("key", _TEXT),
        ("host", FEW),
        ("site", FEW),
        ("fetched_at", pa.timestamp("us", tz="UTC")),
        ("outcome", FEW),
        ("status", pa.int16()),
        ("media_type", FEW),
        ("charset", FEW),
        ("wire_bytes", pa.int64()),
        ("body_bytes", pa.int64()),
        ("truncated", FEW),
        ("digest", _TEXT),
        ("duplicate_of", _TEXT),
        ("title", _TEXT),
        ("depth", pa.int32()),
        ("referrer", _TEXT),
        ("link_type", FEW),
        ("redirect_to", _TEXT),
        ("ip", FEW),
        ("fetch_s", pa.float64()),
        ("attempt", pa.int32()),
        ("warc_file", FEW),
        ("warc_offset", pa.int64()),
        ("warc_length", pa.int64()),
        ("shard", pa.int32()),
        ("error", _TEXT),
        ("warc_type", FEW),
        ("near_duplicate_of", _TEXT),
        ("simhash", pa.uint64()),
        ("change", FEW),
        ("hops", pa.int32()),
        ("text_method", FEW),
    ]
)
"""One row per attempt: the fields of `PageRow`, in their order."""

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

EPOCHS = pa.schema(
    [
        ("epoch", pa.int64()),
        ("committed_at", pa.timestamp("us", tz="UTC")),
        ("took_s", pa.float64()),
        ("cut_s", pa.float64()),
        ("attempts", pa.int64()),
        ("pages", pa.int64()),
        ("wire_bytes", pa.int64()),
        ("shard", pa.int32()),
        ("queued", pa.int64()),
        ("hosts_with_work", pa.int64()),
        ("due", pa.int64()),
        *(
            (name, pa.float64() if isinstance(value, float) else pa.int64())
            for name, value in msgspec.structs.asdict(Counters()).items()
        ),
    ]
)
"""One row per commit: the fields of `EpochRow`, in their order, and those of its `counters`."""

TABLES = {"pages": PAGES, "links": LINKS, "epochs": EPOCHS}
"""By folder."""

KINDS = {
    "text": _TEXT,
    "int": pa.int64(),
    "float": pa.float64(),
    "bool": pa.bool_(),
    "time": pa.timestamp("us", tz="UTC"),
    "texts": pa.list_(_TEXT),
    "json": _TEXT,
}
"""What processing modules may add, by kind (`model.columns`)."""


def united(schemas: Iterable[pa.Schema], first: pa.Schema | None = None) -> pa.Schema:
    """Return one schema for frames of different ones: columns of `first`, then the others in order of appearance.

    Where two differ, the wider stands: whole numbers and fractions make fractions, all else text.
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


def fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch in a schema that `united` made of its own and others: what it lacks is null."""
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
