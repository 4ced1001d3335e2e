"""Mistakes: what the command line's parser rejects, in one line with the remedy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from typer.exceptions import TyperException


def one_line(error: TyperException) -> str:
    """Return a parser's complaint as one line that names the command and the nearest thing that is right."""
    context = getattr(error, "ctx", None)
    command = str(getattr(context, "command_path", "gossamer"))
    message = " ".join(error.format_message().split())
    option = getattr(error, "option_name", None)
    # The parser's own messages are all it tells; there is no type for an unknown command.
    if option and message.startswith("No such option"):
        known = [name for parameter in context.command.params for name in parameter.opts] if context else []
        return f"no option {option} for {command}{near(option, known)}; {command} --help lists them"
    if message.startswith("No such command"):
        name = message.split("'")[1]
        known = list(getattr(getattr(context, "command", None), "commands", {}))
        return f"no command {name!r}{near(name, known)}; {command} --help lists them"
    message = message.rstrip(".")
    return f"{message[:1].lower()}{message[1:]}; {command} --help says more"


def near(name: str, known: Iterable[str]) -> str:
    """Return `: did you mean …?`, or nothing."""
    found = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f": did you mean {found[0]}?" if found else ""
