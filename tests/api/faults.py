"""Faults of files: for every kind of file that a crawl keeps, where it is and how it can be damaged."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

Damaging = Callable[[Path], None]
Older = Callable[[Path, Path], None]
"""Takes the crawl's directory, and that of all made crawls."""


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
    "configuration": Kind("finished", "crawl.toml"),
    "slots": Kind("finished", "state/slots", quick=False),
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


def middle(path: Path, data: bytes) -> int:
    """Return where a file is damaged. In TOML it is the sign behind a key: elsewhere it could be within a comment."""
    half = len(data) // 2
    found = re.compile(rb"\n\w+ (=)").search(data, half) if path.suffix == ".toml" else None
    return found.start(1) if found is not None else half


def flip(path: Path, at: int | None = None) -> None:
    """Change one bit, in the middle or at an offset."""
    data = bytearray(path.read_bytes())
    data[middle(path, data) if at is None else at] ^= 0x04
    path.unlink()  # A hard link's other names keep what they hold.
    path.write_bytes(data)


def cut(path: Path) -> None:
    """Keep the first half."""
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data[: middle(path, data)])


def of_the_killed_crawl(name: str) -> Older:
    """Return what puts in place what the crawl had half-way."""

    def put(crawl: Path, made: Path) -> None:
        path = crawl / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        before = made / "killed" / name
        shutil.copytree(before, path) if before.is_dir() else shutil.copyfile(before, path)

    return put


def shorter(pattern: str) -> Older:
    """Return what cuts the last quarter of the lines, or of the bytes, that were written last."""

    def put(crawl: Path, _made: Path) -> None:
        path = max(crawl.glob(pattern), key=lambda path: path.stat().st_size)
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(lines[: len(lines) * 3 // 4]))

    return put


def with_one_segment_less(crawl: Path, _made: Path) -> None:
    """Have the list of the search index name one segment less."""
    path = crawl / "search/meta.json"
    listed = json.loads(path.read_bytes())
    listed["segments"] = listed["segments"][1:]
    path.write_text(json.dumps(listed))


OLDER: dict[str, Older] = {
    "store": of_the_killed_crawl("state/store"),
    "contacts": of_the_killed_crawl("state/contacts"),
    "slots": of_the_killed_crawl("state/slots"),
    "table log": shorter("state/tables/*.open"),
    "search log": shorter("state/search/*"),
    "growing WARC": shorter("warc/*.open"),
    "index": shorter("index.cdxj"),
    "search list": with_one_segment_less,
}
"""How an older copy takes the place of what is written more than once. Other files are written once."""

DAMAGES: dict[str, Damaging] = {"missing": Path.unlink, "truncated": cut, "a bit flipped": flip}


def largest(directory: Path, kind: Kind) -> Path:
    """Return the largest file of a kind."""
    return max(directory.glob(kind.pattern), key=lambda path: path.stat().st_size)
