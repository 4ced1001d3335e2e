"""Serving: `serve`: the console of one crawl, or of a folder of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import typer

from gossamer.cli import consoles
from gossamer.cli.directory import holds_crawl, require_crawl
from gossamer.cli.exits import Exit, complain
from gossamer.config.gather import configure, reopen
from gossamer.model.errors import ConfigError
from gossamer.world.loop import loop_factory

PORT = 8817
PORT_MAX = 65_535


def serve(
    directory: Path | None, *, folder: Path | None, port: str, address: str, file: Path | None, sets: Sequence[str]
) -> int:
    """Serve until a signal comes; return the exit status.

    Raises:
        ConfigError: something that the operator can mend.
    """
    number = port_of(port)
    given = [*sets, *([f'console.address="{address}"'] if address else [])]
    if directory is not None:
        if folder is not None or file is not None:
            raise ConfigError(
                f"serve {directory}: --folder and --config are for a server of many crawls; leave out DIR"
            )
        require_crawl(directory)
        options = reopen(directory / "crawl.toml", sets=given).console
        work = consoles.serve_crawl(directory, options, number, typer.echo, complain)
    else:
        path = folder if folder is not None else Path()
        if holds_crawl(path):
            raise ConfigError(f"{path} is a crawl itself: gossamer serve {path} serves it; --folder names one of many")
        work = consoles.serve_folder(path.resolve(), configure(file, sets=given).console, number, typer.echo, complain)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(work)
    return Exit.FINISHED


def port_of(text: str) -> int:
    """Return the port that a text names. Raises ConfigError: it names none."""
    if not text:
        return PORT
    if not text.isdecimal() or int(text) > PORT_MAX:
        raise ConfigError(f"--port {text}: expected a number up to {PORT_MAX}; 0 takes any")
    return int(text)
