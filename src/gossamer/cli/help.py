"""Help: how commands show what they take: plain text without Python's types, and `-h` beside `--help`."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand

from gossamer.model.errors import ConfigError

COMPLETE = "_GOSSAMER_COMPLETE"
"""Set by the completion scripts when they run the program to ask for words."""
SHELLS = ("bash", "zsh", "fish")
HELP = {"help_option_names": ["-h", "--help"]}


class Command(TyperCommand):
    """A command whose help names arguments and options without the types of the code."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write two lists: arguments and options."""
        for title, kind in (("Arguments", "argument"), ("Options", "option")):
            found = [one.get_help_record(ctx) for one in self.get_params(ctx) if one.param_type_name == kind]
            records = [(record[0].partition(" <")[0], record[1]) for record in found if record is not None]
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def completion_script(shell: str) -> str:
    """Return the script that completes commands, options and files in a shell. Raises ConfigError: it is unknown."""
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    if shell not in SHELLS:
        raise ConfigError(f"completion {shell}: expected {', '.join(SHELLS[:-1])} or {SHELLS[-1]}")
    return get_completion_script(prog_name="gossamer", complete_var=COMPLETE, shell=shell)


def made_plain(app: typer.Typer) -> typer.Typer:
    """Return a tree of commands, each of which shows its help in this way."""
    for command in app.registered_commands:
        command.cls, command.context_settings = Command, HELP
    app.info.context_settings, app.rich_markup_mode = HELP, None
    return app
