"""Forms of a corpus: Markdown files, Parquet for Hugging Face, bulk requests of Elasticsearch and OpenSearch."""

import hashlib
import pkgutil
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gossamer.results.export.bodies import MarkdownPage
from gossamer.results.export.chunks import chunks_of
from gossamer.results.export.pages import file_name, front_matter
from gossamer.results.export.quality import Quality, quality_of, tokens_of
from gossamer.world.files import AppendFile, sync_everything, sync_file

SHARD_BYTES = 256_000_000
"""Bytes of rows, before compression, after which a Parquet file is finished."""
BULK_BYTES_MAX = 10_000_000
"""Of one request: servers take 100 MB at most by default, and work best with 5 to 15."""
TIMES = ("fetched_at", "published", "modified")
_TIME = pa.timestamp("us", tz="UTC")
_TEXTS = (
    "text", "markdown", "url", "title", "language", "host", "site", "media_type", "author", "license", "text_method",
    "digest", "usage_search", "usage_ai_train", "usage_ai_input", "usage_archive", "usage_reason",
)  # fmt: skip
COLUMNS: Mapping[str, pa.DataType] = {**dict.fromkeys(_TEXTS, pa.string()), **dict.fromkeys(TIMES, _TIME)}
"""Of a row for Hugging Face, before those of `Quality`."""
_KINDS = {int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
FIGURES: Mapping[str, pa.DataType] = {field.name: _KINDS[field.type] for field in msgspec.structs.fields(Quality)}
_OF_PAGE = [name for name in COLUMNS if name not in ("text", "markdown", "text_method")]
CHUNK_COLUMNS: Mapping[str, pa.DataType] = {
    "id": pa.string(),
    "text": pa.string(),
    "headings": pa.list_(pa.string()),
    "fragment": pa.string(),
    "tokens": pa.int64(),
    "chunk": pa.int64(),
    "chunks": pa.int64(),
    **{name: COLUMNS[name] for name in _OF_PAGE},
}
"""Of a row of `chunks`."""
MAPPINGS = pkgutil.get_data("gossamer.results.export", "mappings.json") or b""
"""Body of the request that makes an index for the documents."""


def features(to: str) -> dict[str, Any]:
    """Return the columns of a format as `datasets.Features` are written; none for one that has no rows."""
    columns = {"datasets": {**COLUMNS, **FIGURES}, "chunks": CHUNK_COLUMNS}.get(to, {})
    return {name: _feature(kind) for name, kind in columns.items()}


def _feature(kind: pa.DataType) -> dict[str, Any]:
    if pa.types.is_list(kind):
        return {"feature": _feature(kind.value_type), "_type": "List"}
    names = {pa.string(): "string", _TIME: "timestamp[us, tz=UTC]", pa.int64(): "int64", pa.float64(): "float64"}
    return {"dtype": names.get(kind, "bool"), "_type": "Value"}


class MarkdownFiles:
    """`HOST/NAME.md` for each text."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.files = self.length = 0

    def add(self, texts: pa.RecordBatch) -> None:
        """Write the files of these texts."""
        for row in texts.to_pylist():
            facts = {name: row[name] for name in ("language", "author", "published", "modified", "license")}
            written = MarkdownPage(row["markdown"], row["text_method"], {k: v for k, v in facts.items() if v})
            path = self._folder / file_name(row["host"], row["url"], row["key"])
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(front_matter(row, written).encode("utf-8", "replace"))

    def settle(self) -> bool:
        """Make the added rows durable; return whether they are."""
        sync_everything()
        return True

    def close(self) -> None:
        """Do nothing: no file is open."""


class ParquetShards:
    """`data/train-00001.parquet` and so on; what a column holds is in the metadata, as `datasets` reads it."""

    to = "datasets"
    columns: Mapping[str, pa.DataType] = MappingProxyType({**COLUMNS, **FIGURES})

    def __init__(self, folder: Path, files: int) -> None:
        self._folder = folder / "data"
        self._folder.mkdir(exist_ok=True)
        self.files = files
        self.length = 0
        self._bytes = 0
        about = {"huggingface": msgspec.json.encode({"info": {"features": features(self.to)}}).decode()}
        self._schema = pa.schema(list(self.columns.items()), metadata=about)
        self._writer: pq.ParquetWriter | None = None

    @property
    def _path(self) -> Path:
        return self._folder / f"train-{self.files + 1:05d}.parquet"

    def add(self, texts: pa.RecordBatch) -> None:
        """Add rows to the shard."""
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._path, self._schema, compression="zstd", write_page_checksum=True)
        batch = pa.record_batch(self._rows(texts), schema=self._schema)
        self._bytes += batch.nbytes
        if batch.num_rows:
            self._writer.write_batch(batch)

    def _rows(self, texts: pa.RecordBatch) -> list[pa.Array]:
        columns = [_cast(texts[name], kind) for name, kind in COLUMNS.items()]
        figures = [msgspec.structs.astuple(quality_of(text)) for text in texts["text"].to_pylist()]
        return columns + [pa.array([row[at] for row in figures], kind) for at, kind in enumerate(FIGURES.values())]

    def settle(self) -> bool:
        """Finish the shard where it is large enough, and return whether all that was added is on disk."""
        if self._bytes >= SHARD_BYTES:
            self._finish()
        return self._writer is None

    def close(self) -> None:
        """Finish the last shard; without texts it has the columns alone."""
        if self._writer is None and not self.files:
            names = (*COLUMNS, "key", "heading_ids")
            self.add(pa.RecordBatch.from_pydict({name: pa.array([], pa.string()) for name in names}))
        self._finish()

    def _finish(self) -> None:
        if self._writer is not None:
            self._writer.close()
            sync_file(self._path)
            self._writer = None
            self._bytes = 0
            self.files += 1


class ChunkShards(ParquetShards):
    """The same files with a row for each chunk of a text."""

    to = "chunks"
    columns = CHUNK_COLUMNS

    def __init__(self, folder: Path, files: int, tokens_max: int) -> None:
        super().__init__(folder, files)
        self._tokens_max = tokens_max

    def _rows(self, texts: pa.RecordBatch) -> list[pa.Array]:
        found: list[tuple[str, str, tuple[str, ...], str, int, int, int]] = []
        pages: list[int] = []
        keys = texts["key"].to_pylist()
        ids = texts["heading_ids"].to_pylist()
        for page, markdown in enumerate(texts["markdown"].to_pylist()):
            chunks = chunks_of(markdown, self._tokens_max, ids[page].split("\n"))
            pages += [page] * len(chunks)
            found += [
                (_id(keys[page], at), one.text, one.headings, one.fragment, tokens_of(one.text), at, len(chunks))
                for at, one in enumerate(chunks)
            ]
        own = [(name, kind) for name, kind in CHUNK_COLUMNS.items() if name not in _OF_PAGE]
        columns = [pa.array([row[at] for row in found], kind) for at, (_, kind) in enumerate(own)]
        of_page = pa.array(pages, pa.int64())
        return columns + [_cast(texts[name].take(of_page), COLUMNS[name]) for name in _OF_PAGE]


class BulkRequests:
    """`bulk-00001.ndjson` and so on: each is the body of one `_bulk` request, two lines a document.

    A document's `_id` follows from its URL: sent again, it takes the place of the old one.
    """

    def __init__(self, folder: Path, files: int, length: int) -> None:
        self._folder = folder
        self.files = max(files, 1)
        self.length = length
        (folder / "mappings.json").write_bytes(MAPPINGS)
        self._file = self._open()

    def _open(self) -> AppendFile:
        return AppendFile(self._folder / f"bulk-{self.files:05d}.ndjson", self.length)

    def add(self, texts: pa.RecordBatch) -> None:
        """Add two lines for each text; begin another file where one would become too long."""
        held: list[bytes] = []
        size = 0
        for row in texts.to_pylist():
            lines = _lines(row)
            if self.length + size and self.length + size + len(lines) > BULK_BYTES_MAX:
                self._append(held)
                self.settle()
                self._file.close()
                self.files = self.files + 1
                self.length = 0
                held = []
                size = 0
                self._file = self._open()
            held.append(lines)
            size += len(lines)
        self._append(held)

    def _append(self, lines: list[bytes]) -> None:
        data = b"".join(lines)
        self._file.write(data)
        self.length += len(data)

    def settle(self) -> bool:
        """Make the added rows durable; return whether they are."""
        self._file.sync()
        return True

    def close(self) -> None:
        """Close the last file."""
        self._file.sync()
        self._file.close()


Form = MarkdownFiles | ParquetShards | BulkRequests


def form_of(to: str, folder: Path, files: int, length: int, tokens_max: int) -> Form:
    """Return the form of a format, to go on behind `files` files, the last of which has `length` bytes."""
    if to == "markdown":
        return MarkdownFiles(folder)
    if to == "chunks":
        return ChunkShards(folder, files, tokens_max)
    return ParquetShards(folder, files) if to == "datasets" else BulkRequests(folder, files, length)


def _id(key: str, chunk: int | None = None) -> str:
    """Return an identifier of a page, or of one of its chunks, that is the same in a later export."""
    name = hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()[:40]
    return name if chunk is None else f"{name}-{chunk}"


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Convert a column of text to its type; an unknown value becomes null."""
    known = pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)
    return known.cast(kind) if kind != pa.string() else known


def _lines(row: Mapping[str, Any]) -> bytes:
    name = _id(row["key"])
    held = {one: row[one] for one in COLUMNS if one != "markdown" and row[one]}
    return msgspec.json.encode({"index": {"_id": name}}) + b"\n" + msgspec.json.encode(held) + b"\n"
