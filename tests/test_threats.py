"""The threat model: each test that it names exists, and each of its claims names one."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/explanation/threats.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`(tests/[\w/.]+\.py)(?:::(\w+))?`")


def functions(file: str) -> set[str]:
    module = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in module.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_each_test_that_is_named_exists() -> None:
    named = NAMED.findall(PAGE)
    assert len(named) > 40
    assert [f"{file}::{test}" for file, test in named if test and test not in functions(file)] == []


def test_each_claim_names_a_test() -> None:
    claims = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith(("| claim", "| ---"))]
    tables, parsers = PAGE.split("## Native parsers")
    assert [line for line in claims if line in tables and not NAMED.search(line)] == []
    assert parsers.count("\n| ") > 8
