"""Faults of files: for every kind of file that a crawl keeps, where it is and how it can be damaged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

Damaging = Callable[[Path], None]


class Kind(NamedTuple):
    """Files of one kind."""

    crawl: str
    """Which of the made crawls has such files: `finished`, `killed` or `sharded`."""
    pattern: str
    """Of their paths in the crawl's directory."""
    named: str = ""
    """What a damage names instead of the file itself."""
    quick: bool = True
    """Loss is found without reading anything."""


KINDS = {
    "contacts": Kind("finished", "state/contacts"),
    "store": Kind("finished", "state/store/*.sst", "state/store"),
    "store log": Kind("killed", "state/store/*.log", "state/store"),
    "store manifest": Kind("finished", "state/store/MANIFEST-*", "state/store"),
    "store CURRENT": Kind("finished", "state/store/CURRENT", "state/store"),
    "store of a shard": Kind("sharded", "state/shard-1/store/*.sst", "state/shard-1/store"),
    "partitions": Kind("sharded", "state/partitions.json"),
    "table log": Kind("killed", "state/tables/*.open"),
    "search log": Kind("killed", "state/search/*"),
    "growing WARC": Kind("killed", "warc/*.open"),
    "WARC": Kind("finished", "warc/*.gz"),
    "pages": Kind("finished", "pages/*.parquet"),
    "links": Kind("finished", "links/*.parquet"),
    "epochs": Kind("finished", "epochs/*.parquet"),
    "index": Kind("finished", "index.cdxj"),
    "checksums of the index": Kind("finished", "state/index.json", "index.cdxj", quick=False),
    "search": Kind("finished", "search/*.term"),
    "search list": Kind("finished", "search/meta.json"),
    "checksums of the search": Kind("finished", "search/sums.json", quick=False),
    "checkpoint's WARC": Kind("checkpointed", "checkpoints/*/warc/*"),
    "checkpoint's store": Kind("checkpointed", "checkpoints/*/state/store/*.sst", "checkpoints"),
}


def flip(path: Path, at: int | None = None) -> None:
    """Change one bit, in the middle or at an offset."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2 if at is None else at] ^= 0x04
    path.unlink()  # A hard link's other names keep what they hold.
    path.write_bytes(data)


def cut(path: Path) -> None:
    """Keep the first half."""
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data[: len(data) // 2])


DAMAGES: dict[str, Damaging] = {"missing": Path.unlink, "truncated": cut, "a bit flipped": flip}


def largest(directory: Path, kind: Kind) -> Path:
    """Return the largest file of a kind."""
    return max(directory.glob(kind.pattern), key=lambda path: path.stat().st_size)
