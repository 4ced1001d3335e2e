"""Scaling: `scale`: a stopped crawl gets another number of shards."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from gossamer.cli import door
from gossamer.cli.directory import require_crawl
from gossamer.cli.words import counted


def scale(directory: Path, workers: int, *, quiet: bool) -> int:
    """Move what must move, and print how evenly it lies then."""
    require_crawl(directory)
    scaled = door.scale_crawl(directory, workers, lambda note: None if quiet else print(note, file=sys.stderr))
    typer.echo(f"{directory}: {counted(scaled.before, 'shard')} became {scaled.after}")
    moved = counted(scaled.partitions_moved, "partition")
    typer.echo(f"moved        {moved} of 4,096 with {counted(scaled.keys_moved, 'key')}")
    for name, (most, mean) in (("partitions", scaled.partitions), ("hosts", scaled.hosts)):
        if mean:
            typer.echo(f"{name:<12} {most:,.0f} at most, {mean:,.1f} in the mean: {most / mean:.2f} times")
    return 0
