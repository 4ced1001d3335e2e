"""Maintenance: the commands `verify`, `restore` and `scale`, for a crawl that does not run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gossamer.cli.arguments import Directory, Json, Quiet, Sets
from gossamer.cli.directory import require_crawl
from gossamer.cli.output import Exit, counted, harmless, size
from gossamer.model.errors import ConfigError

if TYPE_CHECKING:
    from gossamer.api.maintenance import Verified
    from gossamer.model.damage import Damage

commands = typer.Typer()


@commands.command("verify")
def verify(
    directory: Directory,
    deep: Annotated[bool, typer.Option("--deep", help="Read every file and compare all checksums.")] = False,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="Go on without the files that are missing, for good.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Check a crawl's files for loss and damage."""
    from gossamer import api

    require_crawl(directory)
    if accept_loss and deep:
        raise ConfigError("--accept-loss: takes out what is missing, which is known without --deep; leave out one")
    accepted = api.accept_loss_of(directory) if accept_loss else []

    def show(damage: Damage) -> None:
        if not as_json:
            typer.echo(harmless(damage.says()))

    found = api.verify_of(directory, deep=deep, each=show)
    if as_json:
        typer.echo(json.dumps({**found.as_object(), "accepted": accepted}))
    else:
        for name in accepted:
            typer.echo(f"{harmless(name)} is lost and no longer expected")
        for note in found.notes:
            typer.echo(harmless(note))
        typer.echo(_last_line(directory, found))
    return Exit.FAILED if found.damages else Exit.FINISHED


@commands.command("restore")
def restore(
    source: Annotated[
        str, typer.Argument(metavar="FROM", help="A checkpoint's directory, or a URI as in state.checkpoint_uri.")
    ],
    directory: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="A new directory for the crawl.")],
    sets: Sets = None,
) -> int:
    """Restore a crawl from a checkpoint into a new directory."""
    from gossamer.api.restoring import restore_of

    typer.echo(harmless(restore_of(source, directory, sets or ())))
    typer.echo(f"gossamer verify {harmless(directory)} checks it; gossamer resume {harmless(directory)} continues it")
    return Exit.FINISHED


@commands.command("scale")
def scale(
    directory: Directory,
    workers: Annotated[int, typer.Option("--workers", metavar="N", help="New number of shards.")],
    *,
    quiet: Quiet = False,
) -> int:
    """Change the number of shards of a stopped crawl.

    Repeat the command to finish a change that was interrupted.
    """
    from gossamer import api

    require_crawl(directory)
    scaled = api.scale_crawl(directory, workers, lambda note: None if quiet else print(note, file=sys.stderr))
    typer.echo(f"{directory}: {counted(scaled.before, 'shard')} became {scaled.after}")
    moved = counted(scaled.partitions_moved, "partition")
    typer.echo(f"moved        {moved} of 4,096 with {counted(scaled.keys_moved, 'key')}")
    for name, (most, mean) in (("partitions", scaled.partitions), ("hosts", scaled.hosts)):
        if mean:
            typer.echo(f"{name:<12} {most:,.0f} at most, {mean:,.1f} in the mean: {most / mean:.2f} times")
    return 0


def _last_line(directory: Path, found: Verified) -> str:
    looked = "presence and sizes"
    if found.deep:
        looked = f"{counted(found.files, 'file')}, {size(found.bytes)} read"
    if found.running:
        looked += "; it runs: the files of its last commit"
    if not found.damages:
        return f"{harmless(directory)} is sound ({looked})"
    return f"{harmless(directory)} is damaged: {counted(found.damages, 'damage')} ({looked})"
