"""Configuring: the commands `config check`, `show` and `schema`, as they are typed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

config_app = typer.Typer(help="Check and show configurations.")


@config_app.command("check")
def config_check(file: Annotated[Path, typer.Argument(metavar="FILE", help="The TOML file to check.")]) -> None:
    """Check a configuration file and list all mistakes."""
    from gossamer.cli import settings

    raise typer.Exit(settings.check(file))


@config_app.command("show")
def config_show(directory: Annotated[Path, typer.Argument(metavar="DIR", help="The crawl's directory.")]) -> None:
    """Print the configuration of a crawl and the source of each value."""
    from gossamer.cli import settings

    raise typer.Exit(settings.show(directory))


@config_app.command("schema")
def config_schema(
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the reference page docs/configuration.md.")
    ] = False,
) -> None:
    """Print the JSON schema of the configuration."""
    from gossamer.cli import settings

    raise typer.Exit(settings.schema(markdown=markdown))
