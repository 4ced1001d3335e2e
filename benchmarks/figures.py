"""Print the figures of the code's structure as a Markdown table: `make figures`.

Lines of files are all of their lines; figures per 1,000 lines count lines that are not blank. A circle is a set of
files that import each other, with imports in functions and for type checkers. A class implements a Protocol if it has
all its public members, inherited ones included.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent / "src" / "gossamer"
FEATURES = {
    "features of a visit": ("features", "api.identity"),
    "several shards": (
        "cluster",
        "api.cluster",
        "api.cluster_queries",
        "api.engine",
        "api.following",
        "api.growing",
        "api.member",
        "api.shards",
        "assembly.exchanging",
        "assembly.mapping",
        "assembly.moving",
        "assembly.scaling",
        "cli.job",
    ),
    "results": (
        "results",
        "api.extracting",
        "api.maintenance",
        "api.reading",
        "api.search",
        "api.shares",
        "api.views",
        "cli.exporting",
        "cli.segment",
    ),
    "the laboratory": ("lab", "testing", "cli.demo", "cli.simulating"),
    "the dashboard and server": ("console", "cli.serving"),
}
"""What the core does without: packages and modules below `gossamer`, by what they do."""
ASSEMBLING = ("assembly", "config", "api")
"""Packages of the core that join features to it. Commands are not counted: each belongs to what it commands."""
ENGINE = "engine"
"""The package that leads a visit through its stages."""
IRREGULAR = {
    "begun", "bound", "bought", "broken", "brought", "built", "caught", "chosen", "done", "drawn", "fed",
    "forgotten", "found", "given", "gone", "heard", "held", "hidden", "kept", "known", "laid", "led", "left", "lent",
    "lost", "made", "meant", "met", "paid", "proven", "said", "seen", "sent", "shown", "sold", "spent", "spoken",
    "stolen", "struck", "taken", "taught", "thrown", "told", "understood", "won", "worn", "written",
}  # fmt: skip
"""Participles that do not end in `ed`."""
REGULAR = {"bed", "embed", "feed", "heed", "need", "red", "seed", "speed"}
"""Words in `ed` that are no participles."""


def module_name(path: Path) -> str:
    """Return the dotted name of a module's file."""
    return ".".join(("gossamer", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")


TEXTS = {module_name(path): path.read_text(encoding="utf-8") for path in sorted(ROOT.rglob("*.py"))}
LINES = {name: text.count("\n") for name, text in TEXTS.items()}


@cache
def trees() -> dict[str, ast.Module]:
    """Return every module, parsed: about 3 s."""
    return {name: ast.parse(text) for name, text in TEXTS.items()}


def is_below(name: str, places: tuple[str, ...]) -> bool:
    """Say whether a module is one of some, or in one of some packages, that are named without `gossamer`."""
    inner = name.removeprefix("gossamer.") + "."
    return any(inner.startswith(f"{place}.") for place in places)


def is_feature(name: str) -> bool:
    """Say whether the core does without a module."""
    return any(is_below(name, places) for places in FEATURES.values())


def walk_import(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below one that run when it is imported."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        yield child
        yield from walk_import(child)


def imports(*, every: bool = False) -> dict[str, set[str]]:
    """Return the modules that each module imports: when it is imported, or ever, type checkers included."""
    found: dict[str, set[str]] = {name: set() for name in trees()}
    for name, tree in trees().items():
        for node in ast.walk(tree) if every else walk_import(tree):
            if isinstance(node, ast.Import):
                found[name].update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                below = {f"{node.module}.{alias.name}" for alias in node.names} & trees().keys()
                found[name].update(below or {node.module})
    return {name: {one for one in named if one in trees() and one != name} for name, named in found.items()}


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


def circles() -> list[list[str]]:
    """Return the groups of modules that import each other, be it in functions or for types alone."""
    members = defaultdict(list)
    for name, number in components(imports(every=True)).items():
        members[number].append(name)
    return sorted(sorted(names) for names in members.values() if len(names) > 1)


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


def importers_of_features() -> list[str]:
    """Return the files of the core that import what it does without."""
    core = {name: named for name, named in imports(every=True).items() if not is_feature(name)}
    return [name for name, named in core.items() if any(map(is_feature, named)) and not is_below(name, ("cli",))]


def per_thousand(count: int, names: list[str]) -> str:
    """Return a count per 1,000 lines of some modules that are not blank."""
    lines = sum(bool(line.strip()) for name in names for line in TEXTS[name].splitlines())
    return f"{1000 * count / lines:.1f}"


def is_none_test(node: ast.AST) -> bool:
    """Say whether a node compares something with None."""
    return (
        isinstance(node, ast.Compare)
        and isinstance(node.ops[0], ast.Is | ast.IsNot)
        and isinstance(node.comparators[0], ast.Constant)
        and node.comparators[0].value is None
    )


def is_packed(node: ast.AST) -> bool:
    """Say whether a node assigns several values, each to a target of its own: `a, b = x, y`."""
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Tuple)
        and isinstance(node.value, ast.Tuple)
        and len(node.targets[0].elts) == len(node.value.elts)
    )


def is_participle(name: str) -> bool:
    """Say whether a function's name begins with a participle, such as `checked` or `made_row`."""
    first = name.strip("_").partition("_")[0]
    return first in IRREGULAR or (first.endswith("ed") and first not in REGULAR)


def optional_stages() -> int:
    """Return the number of fields of `Stages` that may be None."""
    fields = (node for one in classes_by_name().get("Stages", ()) for node in one.body)
    return sum(isinstance(node, ast.AnnAssign) and "None" in ast.unparse(node.annotation) for node in fields)


def rows() -> Iterator[tuple[str, str, str]]:
    """Yield each figure: its name, today's value, the goal."""
    nodes = [node for tree in trees().values() for node in ast.walk(tree)]
    engine = [name for name in trees() if is_below(name, (ENGINE,))]
    tests = sum(is_none_test(node) for name in engine for node in ast.walk(trees()[name]))
    functions = [node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    importers = importers_of_features()
    core = sum(lines for name, lines in LINES.items() if not is_feature(name))
    yield "lines of the core", f"{core:,}", "≤ 50,000"
    for feature, places in FEATURES.items():
        yield f"lines of {feature}", f"{sum(LINES[name] for name in LINES if is_below(name, places)):,}", ""
    yield "all product lines", f"{sum(LINES.values()):,}", "≤ 105,000"
    yield "folders on the top level", str(len(list(ROOT.glob("*/__init__.py")))), "≤ 16"
    yield "core files that import a feature", str(len(importers)), "0"
    yield "of these where nothing is joined", str(sum(not is_below(name, ASSEMBLING) for name in importers)), "0"
    yield f"None tests per 1,000 lines of `{ENGINE}`", per_thousand(tests, engine), "≤ 24"
    yield "optional fields of `Stages`", str(optional_stages()), "0"
    yield "circles of files", str(len(circles())), "0"
    yield "packed assignments per 1,000 lines", per_thousand(sum(map(is_packed, nodes)), list(trees())), "≤ 1"
    yield "functions named by a participle", f"{sum(map(is_participle, functions)) / len(functions):.1%}", "≤ 3 %"


def main() -> None:
    """Print the table."""
    print("| figure | today | goal |\n| --- | --: | --: |")
    for name, value, goal in rows():
        print(f"| {name} | {value} | {goal} |")


if __name__ == "__main__":
    main()
