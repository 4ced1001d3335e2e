"""Folders: where a crawl's indexes lie. Who only asks whether there is one needs nothing that reads it."""

from __future__ import annotations

from pathlib import Path

FOLDER = "search"
SHARD = "shard-"
"""What the folder of each of several shards' indexes is called, its number behind it."""


def indexes_of(directory: Path) -> list[Path]:
    """Return a crawl's indexes: one that was made of all, and those that several shards keep."""
    whole = directory / FOLDER
    return [path.parent for path in (whole / "meta.json", *sorted(whole.glob(f"{SHARD}*/meta.json"))) if path.exists()]


def no_index(directory: Path) -> str:
    """Return what to say of a crawl that has no index."""
    return (
        f"{directory} has no search index; `gossamer search {directory} --build` makes one of what was crawled, "
        "`--set search.enabled=true` has a crawl keep one"
    )
