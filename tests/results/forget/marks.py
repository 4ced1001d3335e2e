"""Marks: a search, byte by byte, through all that a crawl keeps, unpacked as far as it is packed."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow.parquet as pq
import tantivy
import zstandard

from gossamer.assembly.home import homes
from gossamer.assembly.integrity import open_store
from gossamer.config.gather import reopen
from gossamer.results.search.index import open_index
from gossamer.stages.archive.logs import batches
from gossamer.state.schema import FAMILIES, LAST


def found(directory: Path, marks: Sequence[str]) -> list[str]:
    """Return the places of marks in all files below a directory: file, layer, mark."""
    wanted = [mark.encode() for mark in marks]
    return sorted({
        f"{path.relative_to(directory)} ({layer}): {mark.decode()}"
        for path in sorted(directory.rglob("*"))
        if path.is_file()
        for layer, data in _layers(path)
        for mark in wanted
        if mark in data
    })  # fmt: skip


def found_in_stores(directory: Path, marks: Sequence[str]) -> list[str]:
    """Return the places of marks in the stores of a crawl; and tables that a store keeps and does not list."""
    config = reopen(directory / "crawl.toml")
    told = []
    for home in homes(directory, config.cluster.workers):
        store = open_store(config, home)
        try:
            for family in FAMILIES:
                for key, value in store.scan(family, b"", LAST):
                    told += [f"{family}: {key!r} {mark}" for mark in marks if mark.encode() in key + value]
            live = {str(one["name"]).strip("/") for one in store._db.live_files()}
            told += [f"{path.name} is not listed" for path in home.store.glob("*.sst") if path.name not in live]
        finally:
            store.close()
    return told


def _layers(path: Path) -> Iterator[tuple[str, bytes]]:
    data = path.read_bytes()
    yield "bytes", data
    name = path.name.removesuffix(".open")
    if name.endswith(".gz"):
        yield "members", b"".join(_members(data))
    elif name.endswith(".warc.zst"):
        yield "frames", zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True).read()
    elif name.endswith(".parquet"):
        yield "rows", str(pq.read_table(path).to_pydict()).encode()
        with pq.ParquetFile(path) as file:
            groups = [str(file.metadata.row_group(n).to_dict()) for n in range(file.num_row_groups)]
            dictionaries = [
                str(chunk.dictionary) for column in file.read().columns for chunk in column.chunks
                if hasattr(chunk, "dictionary")
            ]  # fmt: skip
        yield "statistics and dictionaries", "".join(groups + dictionaries).encode()
    elif name.endswith(".journal") and "seen" not in path.parts:
        yield "frames", "".join(str(batch.to_pydict()) for batch in batches(path)).encode()
    elif name == "meta.json" and "search" in path.parts:
        yield "documents", _documents(path.parent)


def _members(data: bytes) -> Iterator[bytes]:
    while data:
        unpacker = zlib.decompressobj(31)
        yield unpacker.decompress(data)
        data = unpacker.unused_data


def _documents(folder: Path) -> bytes:
    searcher = open_index(folder).searcher()
    hits = searcher.search(tantivy.Query.all_query(), max(1, searcher.num_docs)).hits
    return "".join(str(searcher.doc(address).to_dict()) for _, address in hits).encode()
