"""Options: the signature of a command, made from the table of flags."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar

import typer

from gossamer.config.flags import FLAGS, Flag

Command = TypeVar("Command", bound=Callable[..., None])


SERVE_PORT = "8817"


def with_port(arguments: Sequence[str]) -> list[str]:
    """Return a command line in which `--serve` has a value: its port may be left out."""
    found = list(arguments)
    for at, word in enumerate(arguments):
        if word == "--":
            break
        if word == "--serve" and not "".join(arguments[at + 1 : at + 2]).isdigit():
            found[at] = f"--serve={SERVE_PORT}"
    return found


def with_flags(*, resumable_only: bool = False) -> Callable[[Command], Command]:
    """Return a decorator that puts an option for each flag in the place of a command's `**options`.

    The command is called with each flag's name; a switch is False and a value None where it was not given.
    """
    flags = [flag for flag in FLAGS if flag.resumable or not resumable_only]

    def decorate(command: Command) -> Command:
        own = inspect.signature(command, eval_str=True).parameters.values()
        fixed = [parameter for parameter in own if parameter.kind is not inspect.Parameter.VAR_KEYWORD]
        made = [_parameter(flag) for flag in flags]
        command.__signature__ = inspect.Signature([*fixed, *made])  # type: ignore[attr-defined]
        return command

    return decorate


def _parameter(flag: Flag) -> inspect.Parameter:
    names = [f"--{flag.option}", *([f"-{flag.short}"] if flag.short else [])]
    option = typer.Option(*names, help=flag.help, metavar=flag.metavar or None, show_default=False)
    # Numbers come as text: the configuration says what is wrong with them, whoever gave them.
    annotation: Any = bool if flag.kind is bool else list[str] | None if flag.many else str | None
    default = False if flag.kind is bool else None
    return inspect.Parameter(
        flag.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[annotation, option]
    )
