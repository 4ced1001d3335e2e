"""Print the figures of the code's structure as a Markdown table: `make figures`.

Files and lines are those of `src/gossamer`. An import layer is a step of the longest chain of module-level imports;
modules that import each other count as one. A class implements a Protocol if it has all its public members, inherited
ones included.
"""

from __future__ import annotations

import ast
import statistics
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent / "src" / "gossamer"
LABORATORY = ("lab", "simweb", "simulate", "testing")
SMALL_LINES = 80
ARGUMENTS_MAX = 6
KEYS_PAGE = ROOT.parent.parent / "docs/reference/configuration.md"


def module_name(path: Path) -> str:
    """Return the dotted name of a module's file."""
    return ".".join(("gossamer", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")


@cache
def trees() -> dict[str, ast.Module]:
    """Return every module, parsed: about 3 s."""
    return {module_name(path): ast.parse(path.read_text(encoding="utf-8")) for path in sorted(ROOT.rglob("*.py"))}


LINES = {module_name(path): path.read_text(encoding="utf-8").count("\n") for path in sorted(ROOT.rglob("*.py"))}
PACKAGES = {module_name(path) for path in ROOT.rglob("__init__.py")}


def walked(node: ast.AST, *, functions: bool) -> Iterator[ast.AST]:
    """Yield the nodes below one, with or without those in functions; never what only type checkers read."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) and not functions:
            continue
        yield child
        yield from walked(child, functions=functions)


def imports() -> dict[str, set[str]]:
    """Return the modules that each module imports when it is imported."""
    found: dict[str, set[str]] = {name: set() for name in trees()}
    for name, tree in trees().items():
        for node in walked(tree, functions=False):
            if isinstance(node, ast.Import):
                found[name].update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                below = {f"{node.module}.{alias.name}" for alias in node.names} & trees().keys()
                found[name].update(below or {node.module})
    return {name: {one for one in named if one in trees() and one != name} for name, named in found.items()}


def layers() -> int:
    """Return the length of the longest chain of imports."""
    graph = imports()
    component = components(graph)
    members = defaultdict(set)
    for name, number in component.items():
        members[number].add(name)

    @cache
    def depth(number: int) -> int:
        below = {component[one] for name in members[number] for one in graph[name]} - {number}
        return 1 + max(map(depth, below), default=0)

    return max(map(depth, members))


def components(graph: dict[str, set[str]]) -> dict[str, int]:
    """Return for each module the number of its cycle of imports (Tarjan's strongly connected components)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: dict[str, int] = {}

    def visit(name: str) -> None:
        order[name] = low[name] = len(order)
        stack.append(name)
        for one in graph[name]:
            if one not in order:
                visit(one)
                low[name] = min(low[name], low[one])
            elif one not in found:
                low[name] = min(low[name], order[one])
        if low[name] == order[name]:
            while True:
                one = stack.pop()
                found[one] = order[name]
                if one == name:
                    break

    for name in graph:
        if name not in order:
            visit(name)
    return found


def classes() -> Iterator[ast.ClassDef]:
    """Yield every class."""
    for tree in trees().values():
        yield from (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


@cache
def classes_by_name() -> dict[str, list[ast.ClassDef]]:
    """Return the classes of each name."""
    found: dict[str, list[ast.ClassDef]] = defaultdict(list)
    for one in classes():
        found[one.name].append(one)
    return found


def is_protocol(node: ast.ClassDef) -> bool:
    """Say whether a class is a Protocol."""
    return any(base in ("Protocol", "typing.Protocol") for base in bases(node))


def bases(node: ast.ClassDef) -> list[str]:
    """Return the names of the classes that one derives from."""
    return [ast.unparse(base).split("[")[0] for base in node.bases]


@cache
def members(node: ast.ClassDef) -> set[str]:
    """Return the public members of a class, those set in its constructor included."""
    named = {one.name for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)}
    named |= {one.target.id for one in node.body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)}
    named |= {
        to.id for one in node.body if isinstance(one, ast.Assign) for to in one.targets if isinstance(to, ast.Name)
    }
    for one in ast.walk(node):
        if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store) and _is_self(one.value):
            named.add(one.attr)
    for base in bases(node):
        named |= set().union(*(members(one) for one in classes_by_name().get(base, ()) if one is not node))
    return {name for name in named if not name.startswith("_") or name == "__call__"}


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def protocols() -> tuple[int, int]:
    """Return the number of Protocols, and of those that exactly one class implements."""
    wanted = [members(node) for node in classes() if is_protocol(node)]
    have = [members(node) for node in classes() if not is_protocol(node)]
    return len(wanted), sum(sum(bool(one) and one <= other for other in have) == 1 for one in wanted)


def long_constructors() -> int:
    """Return the number of constructors that take more arguments than allowed."""
    constructors = (one for node in classes() for one in node.body if getattr(one, "name", "") == "__init__")
    taken = (one.args for one in constructors if isinstance(one, ast.FunctionDef))
    return sum(len(args.posonlyargs + args.args + args.kwonlyargs) - 1 > ARGUMENTS_MAX for args in taken)


def late_imports() -> int:
    """Return the number of imports inside functions."""
    return sum(
        isinstance(node, ast.Import | ast.ImportFrom)
        for tree in trees().values()
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in walked(function, functions=False)
    )


def documented_keys() -> list[int]:
    """Return the number of configuration keys that the reference lists, and of those that it lists for experts."""
    parts = KEYS_PAGE.read_text(encoding="utf-8").split("## Expert keys")
    return [part.count("\n| `") - part.count("\n| `gossamer ") for part in parts]  # Less the list of commands.


def rows() -> Iterator[tuple[str, str, str]]:
    """Yield each figure: its name, today's value, the goal."""
    modules = {name: lines for name, lines in LINES.items() if name not in PACKAGES}
    laboratory = {
        name: lines for name, lines in LINES.items() if name.split(".")[1:2] and name.split(".")[1] in LABORATORY
    }
    protocols_all, protocols_one = protocols()
    yield "product files / lines", f"{len(LINES)} / {sum(LINES.values()):,}", "≤ 340 / ≤ 50,000"
    yield "of these in the laboratory", f"{len(laboratory)} / {sum(laboratory.values()):,}", "≤ 8,500 lines"
    yield "median module, lines", f"{statistics.median(modules.values()):.0f}", "130 to 200"
    yield f"modules under {SMALL_LINES} lines", str(sum(lines < SMALL_LINES for lines in modules.values())), "few"
    yield "import layers (modules)", str(layers()), "≤ 16"
    yield "Protocols, with one implementer", f"{protocols_all}, {protocols_one}", "≤ 30, ≤ 5"
    yield f"constructors with more than {ARGUMENTS_MAX} arguments", str(long_constructors()), "≤ 3"
    yield "function-level imports", str(late_imports()), "only where start-up needs them"
    yield (
        "documented configuration keys, and experts'",
        ", ".join(map(str, documented_keys())),
        "≤ 120, and experts'",
    )


def main() -> None:
    """Print the table."""
    print("| figure | today | goal |\n| --- | --: | --: |")
    for name, value, goal in rows():
        print(f"| {name} | {value} | {goal} |")


if __name__ == "__main__":
    main()
