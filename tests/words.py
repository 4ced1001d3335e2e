"""Words that must not come back: `tests/words.toml` lists them, this finds them."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import typer
from typer import Context
from typer.core import TyperCommand, TyperGroup

from gossamer.cli.main import tree

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src/gossamer"


@cache
def pattern() -> re.Pattern[str]:
    """Return the pattern that finds any of the words, except in host names and e-mail addresses."""
    words = tomllib.loads((ROOT / "tests/words.toml").read_text(encoding="utf-8"))["words"]
    return re.compile(rf"\b(?:{'|'.join(words)})\b(?![.@]\w)".replace(" ", r"\s+"), re.IGNORECASE)


def read_by_people(source: str) -> str:
    """Return the comments and the texts of a module: docstrings and messages. What follows a # in a text counts twice:
    finding the comments alone takes as long as all else here.
    """
    comments = [line.partition("#")[2] for line in source.splitlines() if "#" in line]
    texts = [node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)]
    return "\n".join([*comments, *(text for text in texts if isinstance(text, str))])


def help_of(command: TyperCommand | TyperGroup, name: str = "gossamer") -> str:
    """Return the help of a command and of all below it."""
    context = Context(command, info_name=name)
    inner = command.commands.items() if isinstance(command, TyperGroup) else ()
    return "\n".join([command.get_help(context), *(help_of(one, f"{name} {under}") for under, one in inner)])


def texts() -> Iterator[tuple[str, str]]:
    """Yield places and their texts: pages, examples, the source, the help."""
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").iterdir()]:
        yield str(page.relative_to(ROOT)), page.read_text(encoding="utf-8")
    for path in SOURCE.rglob("*.py"):
        yield str(path.relative_to(ROOT)), read_by_people(path.read_text(encoding="utf-8"))
    yield "gossamer --help", help_of(typer.main.get_command(tree()))
