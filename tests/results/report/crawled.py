"""Tables as a crawl leaves them, with rows of a test's own."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from gossamer.model.pages import EpochRow, PageRow
from gossamer.stages.archive.schema import EPOCHS, LINKS, PAGES

START = 1_767_225_600.0


def page(number: int, host: str = "a.example.org", **fields: object) -> PageRow:
    url = f"http://{host}/{number}"
    row = PageRow(url, url, host, "example.org", START + number, "fetched", 200, "text/html")
    usual: dict[str, object] = {"wire_bytes": 100, "body_bytes": 250, "fetch_s": 0.1, "warc_length": 50}
    fields = usual | {"depth": number % 3} | fields
    for name, value in fields.items():
        setattr(row, name, value)
    return row


def committed(directory: Path, rows: list[EpochRow]) -> None:
    """Write the table `epochs`."""
    (directory / "epochs").mkdir()
    dicts = [
        msgspec.structs.asdict(row)
        | msgspec.structs.asdict(row.counters)
        | {"committed_at": round(row.committed_at * 1e6)}
        for row in rows
    ]
    pq.write_table(pa.Table.from_pylist(dicts, EPOCHS), directory / "epochs" / "epochs-000-0001-000001.parquet")


def crawled(directory: Path, rows: list[PageRow], links: int = 0) -> Path:
    for folder in ("pages", "links"):
        (directory / folder).mkdir(exist_ok=True)
    half = len(rows) // 2
    for number, part in enumerate((rows[:half], rows[half:])):
        dicts = [msgspec.structs.asdict(row) | {"fetched_at": round(row.fetched_at * 1e6)} for row in part]
        plain = pa.schema([(f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type) for f in PAGES])
        table = pa.Table.from_pylist(dicts, plain).cast(PAGES)
        pq.write_table(table, directory / "pages" / f"pages-000-0001-{number:06d}.parquet")
    link = {"from_url": "http://a/", "to_url": "http://b/", "to_key": "http://b/", "link_type": "anchor"}
    link |= {"anchor_text": "b", "nofollow": False}  # type: ignore[dict-item]
    table = pa.table({name: [link[name]] * links for name in LINKS.names})
    pq.write_table(table.cast(pa.schema([(name, pa.bool_() if name == "nofollow" else pa.string()) for name in link])),
                   directory / "links" / "links-000-0001-000001.parquet")  # fmt: skip
    return directory


def assorted(directory: Path) -> Path:
    rows = [page(number) for number in range(6)]
    rows += [page(number, "b.example.com", fetch_s=2.0, wire_bytes=1000) for number in range(6, 9)]
    rows += [
        page(9, "[::1]", outcome="http_error", status=404, error="", fetch_s=0.5),
        page(10, "10.0.0.1", outcome="timeout", status=None, error="no byte for 30 s", fetch_s=30.0, warc_length=None),
        page(
            11,
            "b.example.com",
            outcome="timeout",
            status=None,
            error="later",
            fetch_s=31.0,
            warc_length=None,
            attempt=2,
        ),
        page(12, duplicate_of="http://a.example.org/1", media_type=""),
        page(13, truncated="length", media_type="image/png", outcome="redirected", status=301),
    ]
    return crawled(directory, rows, links=7)
