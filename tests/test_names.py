"""Names that point elsewhere lead somewhere: those in docstrings, and imports of other libraries."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import packages_distributions

from tests.test_house import MODULES, REPOSITORY, name_of, nodes

NAMED = re.compile(r"`(\w+)\.([A-Z]\w*)`|`([A-Z]\w*)\.(\w+)`")
"""`module.Class` and `Class.member`."""
OTHERS = {"README", "StructInfo", "TaskGroup", "WACZ"}
"""What looks like a class of ours and is none."""
ENVIRONMENT = {"IPython"}
"""What an environment brings that Gossamer runs in."""


def defined(parts: Iterable[ast.AST]) -> set[str]:
    """Return all names that a part of a module defines, imports or takes."""
    found = set()
    for node in parts:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                found.add(name)
    return found


def docstrings(parts: Iterable[ast.AST]) -> Iterator[str]:
    for node in parts:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value


def test_names_in_docstrings_exist() -> None:
    classes: dict[str, ast.ClassDef] = {}
    modules: dict[str, set[str]] = {}
    for path in MODULES:
        modules.setdefault(path.stem, set()).update(defined(nodes(path)))
        classes |= {node.name: node for node in nodes(path) if isinstance(node, ast.ClassDef)}

    @cache
    def members(name: str) -> set[str]:
        return defined(ast.walk(classes[name]))

    def has(name: str, member: str) -> bool:
        kind = classes.get(name)
        bases = [] if kind is None else [ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in kind.bases]
        return kind is not None and (member in members(name) or any(has(base, member) for base in bases))

    lost = [
        f"{name_of(path)}: {module or kind}.{named or member}"
        for path in MODULES
        for text in docstrings(nodes(path))
        for module, named, kind, member in NAMED.findall(text)
        if not (named in modules.get(module, {named}) if module else kind in OTHERS or has(kind, member))
    ]
    assert lost == []


def test_imported_libraries_are_declared() -> None:
    """What another library happens to bring may go with its next version."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [one for name, some in project["optional-dependencies"].items() if name != "dev" for one in some]
    declared = {re.split(r"[\[>=<;]", one)[0] for one in [*project["dependencies"], *extras]}
    imported = {
        (node.module if isinstance(node, ast.ImportFrom) else one.name).partition(".")[0]
        for path in MODULES
        for node in nodes(path)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for one in node.names
    }
    libraries = imported - sys.stdlib_module_names - {"gossamer"} - ENVIRONMENT
    brought_by = {
        name: {one.lower().replace("_", "-") for one in some} for name, some in packages_distributions().items()
    }
    assert {name for name in libraries if not brought_by.get(name, set()) & declared} == set()
