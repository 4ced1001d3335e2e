"""All that Gossamer says to people, in one file to be read in one sitting: `python -m tests.strings` writes it.

Collected are texts of at least two words in the source (help, messages, labels, explanations, log lines), without
docstrings and comments, and those of the dashboard's pages. What a text is filled with stands as `{…}`.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src/gossamer"
CATALOGUE = ROOT / "tests/strings.txt"
LEFT_OUT = ("lab",)
"""The laboratory talks to developers."""
_WORDS = re.compile(r"[A-Za-z]{2,}[,:;.]? [a-z]")
_CODE = re.compile(r"\b(?:SELECT|CREATE|COPY|PRAGMA)\b|<!doctype|[{};]\s*\n")
_SCRIPT = re.compile(r"//[^\n]*|/\*.*?\*/|\"([^\"\n]*)\"|'([^'\n]*)'|`([^`]*)`", re.DOTALL)
_FILLED = re.compile(r"\$\{[^}]*\}")


class _Texts(ast.NodeVisitor):
    """Collects texts of a module, f-strings whole, docstrings not."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        parts = [one.value if isinstance(one, ast.Constant) else "{…}" for one in node.values]
        self.found.append("".join(map(str, parts)))
        for one in node.values:
            if isinstance(one, ast.FormattedValue):
                self.visit(one.value)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self.found.append(node.value)


class _Page(HTMLParser):
    """Collects texts of a page of the dashboard, and those of its attributes that people read."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = tag
        self.found += [
            value for name, value in attrs if value and name in ("title", "alt", "placeholder", "aria-label")
        ]

    def handle_data(self, data: str) -> None:
        if self._inside not in ("style", "script"):
            self.found.append(data)


def texts_of(path: Path) -> Iterator[str]:
    """Yield what a file says to people, in its order, each text once."""
    content = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        visitor = _Texts()
        visitor.visit(ast.parse(content))
        found = visitor.found
    elif path.suffix == ".toml":
        found = list(_leaves(tomllib.loads(content)))
    elif path.suffix == ".html":
        page = _Page()
        page.feed(content)
        found = page.found
    else:
        found = [_FILLED.sub("{…}", next(filter(None, match.groups()), "")) for match in _SCRIPT.finditer(content)]
    for text in dict.fromkeys(" ".join(one.split()) for one in found if not _CODE.search(one)):
        if _WORDS.search(text):
            yield text


def _leaves(value: object) -> Iterator[str]:
    """Yield the keys and texts of tables and lists, in their order."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield key
            yield from _leaves(one)
    elif isinstance(value, list):
        for one in value:
            yield from _leaves(one)
    else:
        yield str(value)


def catalogue() -> str:
    """Return the whole catalogue."""
    lines = []
    paths = [path for suffix in ("py", "html", "js") for path in SOURCE.rglob(f"*.{suffix}")]
    named = ["api/metrics", "cli/simulating", "config/presets", "config/synonyms", "console/problems"]
    paths += [SOURCE / f"{name}.toml" for name in (*named, "results/export/columns")]
    for path in sorted(paths):
        place = path.relative_to(SOURCE)
        if place.parts[0] not in LEFT_OUT and (texts := list(texts_of(path))):
            lines += [f"# {place}", *texts, ""]
    return "\n".join(lines)


if __name__ == "__main__":
    CATALOGUE.write_text(catalogue(), encoding="utf-8")
