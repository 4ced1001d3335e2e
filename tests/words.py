"""Words that must not come back: what is counted, and where. `python -m tests.words` writes the baseline."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path

import typer
from click import Command, Context, Group

from gossamer.cli.main import tree

ROOT = Path(__file__).parents[1]
LIST = ROOT / "tests/words.toml"
SOURCE = ROOT / "src/gossamer"
GENERATED = "docs/reference/configuration.md"
"""Made from descriptions in the source, so it has a baseline as the source has."""


@cache
def listed() -> dict[str, object]:
    """Return what the list says."""
    return tomllib.loads(LIST.read_text(encoding="utf-8"))


@cache
def pattern() -> re.Pattern[str]:
    """Return what finds any of the words."""
    words = listed()["words"]
    assert isinstance(words, list)
    return re.compile(rf"\b(?:{'|'.join(words)})\b".replace(" ", r"\s+"), re.IGNORECASE)


def read_by_people(source: str) -> str:
    """Return the comments and the texts of a module: docstrings and messages."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = [token.string for token in tokens if token.type == tokenize.COMMENT]
    texts = [node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)]
    return "\n".join([*comments, *(text for text in texts if isinstance(text, str))])


def help_of(command: Command, name: str = "gossamer") -> str:
    """Return the help of a command and of all below it."""
    context = Context(command, info_name=name)
    inner = command.commands.items() if isinstance(command, Group) else ()
    return "\n".join([command.get_help(context), *(help_of(one, f"{name} {under}") for under, one in inner)])


def counts() -> dict[str, int]:
    """Return how many of the words each package, the generated page, the help and the decisions have."""
    found: Counter[str] = Counter()
    for path in SOURCE.rglob("*.py"):
        package = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        found[f"gossamer.{package}"] += len(pattern().findall(read_by_people(path.read_text(encoding="utf-8"))))
    for path in (ROOT / "docs/decisions").glob("*.md"):
        found["docs/decisions"] += len(pattern().findall(path.read_text(encoding="utf-8")))
    found[GENERATED] = len(pattern().findall((ROOT / GENERATED).read_text(encoding="utf-8")))
    found["gossamer --help"] = len(pattern().findall(help_of(typer.main.get_command(tree()))))
    return {place: number for place, number in sorted(found.items()) if number}


def main() -> None:
    """Write the counts of today as the baseline."""
    head, _, _ = LIST.read_text(encoding="utf-8").partition("[baseline]\n")
    lines = "".join(f'"{place}" = {number}\n' for place, number in counts().items())
    LIST.write_text(f"{head}[baseline]\n{lines}", encoding="utf-8")


if __name__ == "__main__":
    main()
