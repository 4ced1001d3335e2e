"""Settings: `init` and the `config` commands."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from gossamer.cli.directory import require_crawl
from gossamer.cli.exits import Exit, complain
from gossamer.config.footprint import ORIGIN
from gossamer.config.gather import configure, mistakes, reopen
from gossamer.config.lists import check_lists
from gossamer.config.mode import ORIGIN as MODE
from gossamer.config.secret import redacted
from gossamer.config.sections import Config, keys
from gossamer.config.toml import starter_toml, written
from gossamer.model.errors import ConfigError


def init(file: Path, preset: str = "") -> int:
    """Write a configuration that explains itself; an existing file is left alone."""
    text = starter_toml(preset)
    try:
        with file.open("x", encoding="utf-8") as new:
            new.write(text)
    except FileExistsError as error:
        raise ConfigError(f"{file} exists; name another file, or remove it first") from error
    except OSError as error:
        raise ConfigError(f"cannot write {file}: {error.strerror}; name another file") from error
    typer.echo(f"wrote {file}; gossamer crawl -c {file} URL uses it")
    return 0


def check(file: Path) -> int:
    """Say whether a configuration file is right, and how much it sets; else write all its mistakes, a line each."""
    if wrong := mistakes(file):
        for line in wrong:
            complain(line)
        return Exit.REFUSED
    config = configure(file)
    check_lists(config)
    changed = sum(config.origin(key) not in {"default", ORIGIN, MODE} for key in keys())
    typer.echo(f"{file} is right: {changed} of {len(keys())} keys set")
    return 0


def show(directory: Path) -> int:
    """Print what a crawl runs with, and where each value came from."""
    require_crawl(directory)
    config = reopen(directory / "crawl.toml")
    rows = [(key, _shown(redacted(key, config.value(key))), config.origin(key)) for key in keys()]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for key, value, origin in rows:
        typer.echo(f"{key:<{widths[0]}}  {value:<{min(widths[1], 40)}}  {origin}")
    return 0


def schema(*, markdown: bool) -> int:
    """Print the JSON schema of the configuration, or the page about its keys."""
    if markdown:
        from gossamer.config.reference import markdown as page

        typer.echo(page(), nl=False)
    else:
        typer.echo(json.dumps(Config.model_json_schema(), indent=2))
    return 0


def _shown(value: object) -> str:
    from gossamer.cli.words import harmless

    return "not set" if value is None else harmless(written(value))
