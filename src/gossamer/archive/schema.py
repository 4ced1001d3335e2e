"""The tables' columns, as they stand in logs and Parquet files."""

from __future__ import annotations

import pyarrow as pa

_TEXT = pa.string()
_FEW = pa.dictionary(pa.int32(), pa.string())
"""For columns that repeat few values."""

PAGES = pa.schema(
    [
        ("url", _TEXT),
        ("key", _TEXT),
        ("host", _FEW),
        ("site", _FEW),
        ("fetched_at", pa.timestamp("us", tz="UTC")),
        ("outcome", _FEW),
        ("status", pa.int16()),
        ("media_type", _FEW),
        ("charset", _FEW),
        ("wire_bytes", pa.int64()),
        ("body_bytes", pa.int64()),
        ("truncated", _FEW),
        ("digest", _TEXT),
        ("duplicate_of", _TEXT),
        ("title", _TEXT),
        ("depth", pa.int32()),
        ("referrer", _TEXT),
        ("link_type", _FEW),
        ("redirect_to", _TEXT),
        ("ip", _FEW),
        ("fetch_s", pa.float64()),
        ("attempt", pa.int32()),
        ("warc_file", _FEW),
        ("warc_offset", pa.int64()),
        ("warc_length", pa.int64()),
        ("shard", pa.int32()),
        ("error", _TEXT),
        ("near_duplicate_of", _TEXT),
        ("simhash", pa.uint64()),
    ]
)
"""One row per attempt: the fields of `PageRow`, in their order."""

LINKS = pa.schema(
    [
        ("from_url", _TEXT),
        ("to_url", _TEXT),
        ("to_key", _TEXT),
        ("link_type", _FEW),
        ("anchor_text", _TEXT),
        ("nofollow", pa.bool_()),
    ]
)
"""One row per link found."""
