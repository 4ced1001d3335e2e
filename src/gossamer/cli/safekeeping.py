"""Safekeeping: the commands that check a crawl's files and restore a crawl from a checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

safekeeping = typer.Typer()


@safekeeping.command("verify")
def verify(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The crawl's directory.")],
    deep: Annotated[bool, typer.Option("--deep", help="Read every file and compare all checksums.")] = False,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="Go on without the files that are missing, for good.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check a crawl's files for loss and damage."""
    from gossamer.cli import verifying

    raise typer.Exit(verifying.verify(directory, deep=deep, accept_loss=accept_loss, as_json=as_json))


@safekeeping.command("restore")
def restore(
    source: Annotated[
        str, typer.Argument(metavar="FROM", help="A checkpoint's directory, or a URI as in state.checkpoint_uri.")
    ],
    directory: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="A new directory for the crawl.")],
    sets: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Set any configuration key (repeatable).")
    ] = None,
) -> None:
    """Restore a crawl from a checkpoint into a new directory."""
    from gossamer.cli import verifying

    raise typer.Exit(verifying.restore(source, directory, sets or ()))
