"""Verifying: `verify` and `restore`: what is wrong with the files of a crawl, and its way back from a checkpoint."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from gossamer.cli import door
from gossamer.cli.directory import require_crawl
from gossamer.cli.exits import Exit
from gossamer.cli.words import counted, harmless, size
from gossamer.model.errors import ConfigError


def verify(directory: Path, *, deep: bool, accept_loss: bool, as_json: bool) -> int:
    """Print what is wrong, one line each; status 0 when nothing is, else 1."""
    require_crawl(directory)
    if accept_loss and deep:
        raise ConfigError("--accept-loss: takes out what is missing, which is known without --deep; leave out one")
    accepted = door.accept_loss_of(directory) if accept_loss else ()

    found = door.verify_of(directory, deep=deep, each=_ignored if as_json else _printed)
    if as_json:
        typer.echo(json.dumps({**found, "accepted": list(accepted)}))
    else:
        for name in accepted:
            typer.echo(f"{harmless(name)} is lost and no longer expected")
        for note in found["notes"]:
            typer.echo(harmless(note))
        typer.echo(_last_line(directory, found))
    return Exit.FINISHED if found["sound"] else Exit.FAILED


def restore(source: str, directory: Path, sets: Sequence[str]) -> int:
    """Make a crawl in a new directory of a checkpoint, and say what was restored."""
    typer.echo(harmless(door.restore_of(source, directory, sets)))
    typer.echo(f"gossamer verify {harmless(directory)} checks it; gossamer resume {harmless(directory)} continues it")
    return Exit.FINISHED


def _ignored(_line: str) -> None:
    return


def _printed(line: str) -> None:
    typer.echo(harmless(line))


def _last_line(directory: Path, found: Mapping[str, Any]) -> str:
    looked = "presence and sizes"
    if found["deep"]:
        looked = f"{counted(found['files'], 'file')}, {size(found['bytes'])} read"
    if found["running"]:
        looked += "; it runs: the files of its last commit"
    if found["sound"]:
        return f"{harmless(directory)} is sound ({looked})"
    return f"{harmless(directory)} is damaged: {counted(found['damages'], 'damage')} ({looked})"
