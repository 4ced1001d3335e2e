"""Write `docs/promises.md` from the marks on tests: `python -m tests.promises`.

A test that proves a promise has the mark `promise("Area", "Sentence.")`; a module whose tests prove one together has it
in `pytestmark`. Tests that prove the same promise repeat its sentence.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "promises.md"
AREAS = (
    "Crash safety", "Politeness", "What is fetched", "Order and fairness", "Files and exports", "Continuous crawls",
    "Offline crawls", "Several shards", "Bounds", "Operation", "Console", "Identity", "Components and Python",
    "Simulation",
)  # fmt: skip
HEAD = """\
# Promises

What you can rely on. Each promise is the mark of the tests behind it, and this page is made from those marks by
`make docs`: a promise that no test proves cannot be listed. `make test` runs the quick tests; `make acceptance` runs
those in `tests/acceptance`, heavy ones and further cases, but of long ones each day a seventh; `make nightly` runs all.
"""


class Promise(NamedTuple):
    """A mark: what is promised, and the test or module that proves it."""

    area: str
    sentence: str
    file: str
    test: str
    """Empty for all tests of the file."""


def promises() -> list[Promise]:
    """Return all marks, by file and line. Raises ValueError where something else than a test has one."""
    found = []
    for path in sorted(TESTS.rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if "mark.promise(" not in text:
            continue
        module = ast.parse(text)
        marks = list(_marks(path.relative_to(TESTS.parent).as_posix(), module))
        if len(marks) != sum(map(_is_mark, ast.walk(module))):
            raise ValueError(f"{path}: `promise` marks a test function, or its module through `pytestmark`")
        found += marks
    return found


def page(found: list[Promise]) -> str:
    """Return the page's text."""
    lines = [HEAD]
    for area in AREAS:
        proofs: dict[str, list[str]] = {}
        for one in found:
            if one.area == area:
                name = f"{one.file.removeprefix('tests/')}{'::' if one.test else ''}{one.test}"
                proofs.setdefault(one.sentence, []).append(f"  - [`{name}`](../{one.file})")
        lines.append(f"## {area}\n")
        for sentence in sorted(proofs):
            lines += [f"- {sentence}", *proofs[sentence]]
        lines.append("")
    return "\n".join(lines)


def _marks(file: str, module: ast.Module) -> Iterator[Promise]:
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            marks, test = node.decorator_list, node.name
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
            marks, test = node.value.elts if isinstance(node.value, ast.List) else [node.value], ""
        else:
            continue
        for mark in marks:
            if isinstance(mark, ast.Call) and _is_mark(mark):
                area, sentence = map(ast.literal_eval, mark.args)
                yield Promise(area, sentence, file, test)


def _is_mark(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.promise"


if __name__ == "__main__":
    PAGE.write_text(page(promises()), encoding="utf-8")
