"""Mistakes: what the command line's parser rejects, in one line with the remedy."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable

from typer.exceptions import TyperException

NEAR = 0.8
"""Similarity of two words (difflib) from which on one is taken for a misprint of the other."""


def one_line(error: TyperException) -> str:
    """Return a parser's complaint as one line that names the command and the nearest thing that is right."""
    context = getattr(error, "ctx", None)
    command = str(getattr(context, "command_path", "gossamer"))
    message = " ".join(error.format_message().split())
    option = getattr(error, "option_name", None)
    # The parser's own messages are all it tells; there is no type for an unknown command.
    if option and message.startswith("No such option"):
        names = [name for parameter in context.command.params for name in parameter.opts] if context else []
        known = [name for name in names if name.startswith("-")]
        found = near(option, known) or meaning(option, known)
        return f"no option {option} for {command}{found}; {command} --help lists them"
    if message.startswith("No such command"):
        name = message.split("'")[1]
        known = list(getattr(getattr(context, "command", None), "commands", {}))
        return f"no command {name!r}{near(name, known)}; {command} --help lists them"
    message = message.rstrip(".")
    return f"{message[:1].lower()}{message[1:]}; {command} --help says more"


def near(name: str, known: Iterable[str]) -> str:
    """Return `: did you mean …?` for a misprint, or nothing."""
    found = difflib.get_close_matches(name, list(known), n=1, cutoff=NEAR)
    return f": did you mean {found[0]}?" if found else ""


def meaning(option: str, known: Collection[str]) -> str:
    """Return what to type instead of an option of another program, or nothing where the command does not take it."""
    from gossamer.config.synonyms import meant

    if "--set" not in known:
        return ""
    found = meant(option.lstrip("-").partition("=")[0], as_option=True)
    takes = not found.startswith("use --") or found.split()[1] in known
    return f": {found}" if found and takes else ""
