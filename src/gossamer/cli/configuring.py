"""Configuring: the commands `init` and `config check|show|schema`."""

import json
from pathlib import Path
from typing import Annotated

from typer import Argument, Typer, echo

from gossamer.cli.arguments import Directory, PresetName
from gossamer.cli.output import Exit, complain, harmless
from gossamer.config.footprint import ORIGIN
from gossamer.config.gather import configure, mistakes, reopen
from gossamer.config.lists import check_lists
from gossamer.config.presets import ORIGIN as MODE
from gossamer.config.schema import schema as config_schema
from gossamer.config.secret import redact
from gossamer.config.sections import keys
from gossamer.config.toml import starter_toml, to_toml
from gossamer.model.errors import ConfigError

commands = Typer()
config_commands = Typer(help="Check and show configurations.")


@commands.command("init")
def init(
    file: Annotated[Path, Argument(metavar="FILE", help="File to write.")] = Path("gossamer.toml"),
    preset: PresetName = None,
) -> int:
    """Write a configuration file that explains its keys."""
    text = starter_toml(preset or "")
    if str(file) == "-":
        echo(text, nl=False)
        return 0
    try:
        with file.open("x", encoding="utf-8") as new:
            new.write(text)
    except FileExistsError as error:
        raise ConfigError(f"{file} exists; name another file, or remove it first") from error
    except OSError as error:
        raise ConfigError(f"cannot write {file}: {error.strerror}; name another file") from error
    echo(f"wrote {file}; gossamer crawl -c {file} URL uses it")
    return 0


@config_commands.command("check")
def check(file: Annotated[Path, Argument(metavar="FILE", help="The TOML file to check.")]) -> int:
    """Check a configuration file and list all mistakes."""
    if wrong := mistakes(file):
        for line in wrong:
            complain(line)
        return Exit.REFUSED
    config = configure(file)
    check_lists(config)
    from gossamer.assembly.parts import require_components  # `init` and `show` need no parts of a crawl.

    require_components(config)
    changed = sum(config.origin(key) not in {"default", ORIGIN, MODE} for key in keys())
    named = [key for key in config.all_keys() if key not in set(keys())]  # Rules for items, hosts, logins.
    echo(f"{file} is valid: {changed} of {len(keys())} keys set{', and ' if named else ''}{', '.join(named)}")
    return 0


@config_commands.command("show")
def show(directory: Directory) -> int:
    """Print the configuration of a crawl and the source of each value."""
    config = reopen(directory / "crawl.toml")
    values = {key: redact(key, config.value(key)) for key in config.all_keys()}
    shown = {key: "not set" if value is None else harmless(to_toml(value)) for key, value in values.items()}
    rows = [(key, value, config.origin(key)) for key, value in shown.items()]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for key, value, origin in rows:
        echo(f"{key:<{widths[0]}}  {value:<{min(widths[1], 40)}}  {origin}")
    return 0


@config_commands.command("schema")
def schema() -> int:
    """Print the JSON schema of the configuration."""
    echo(json.dumps(config_schema(), indent=2))
    return 0
