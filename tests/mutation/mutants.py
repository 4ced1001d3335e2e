"""Mutants: where an operator of cosmic-ray can act in the packages, a sample of the places, and the changed code."""

from __future__ import annotations

import ast
import random
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import MutationVisitor
from cosmic_ray.operators.provider import OperatorProvider

from tests.mutation import PACKAGES

SOURCE = Path(__file__).parents[2] / "src" / "gossamer"
APART = {"__init__.py", "options.py", "ray.py"}
"""Modules without mutants: declarations, and what runs in processes of Ray alone."""
LEFT_OUT = ("VariableReplacer", "VariableInserter", "RemoveDecorator")
"""Operators that make nonsense in typed code, or do not act in the body of a function."""


class Mutant:
    """One change: an operator of cosmic-ray at one of the places where it can act."""

    def __init__(self, file: Path, line: int, operator: str, occurrence: int) -> None:
        self.file, self.line, self.operator = file, line, operator
        self.text = file.read_text()
        self.mutated = _mutated(self.text, operator, occurrence)

    @property
    def changes(self) -> bool:
        """Whether the compiler sees a difference."""
        try:
            return _functions(self.mutated, self.file) != _functions(self.text, self.file)
        except SyntaxError:
            return False

    @property
    def name(self) -> str:
        """What a reader finds it by: package, module, and the line before and after."""
        before, after = self.text.splitlines(), self.mutated.splitlines()
        at = next(i for i, (one, other) in enumerate(zip(before, after, strict=True)) if one != other)
        return f"{self.file.parent.name}.{self.file.stem}: {before[at].strip()}  =>  {after[at].strip()}"

    def apply(self, alive: dict[tuple[str, str, int], list[FunctionType]]) -> int:
        """Give the functions that differ their new code; return how many there were."""
        before, after = _functions(self.text, self.file), _functions(self.mutated, self.file)
        changed = [(key, code) for key, code in after.items() if code != before[key]]
        found = [(function, code) for key, code in changed for function in alive.get((str(self.file), *key), ())]
        for function, code in found:
            function.__code__ = code
        return len(found)


def _mutated(text: str, operator: str, occurrence: int) -> str:
    try:
        return MutationVisitor(occurrence, OperatorProvider()[operator]()).walk(get_ast(text)).get_code()
    except AttributeError:  # ExceptionReplacer knows no dotted names.
        return text


def _functions(text: str, file: Path) -> dict[tuple[str, int], CodeType]:
    """The code of each function of a module, by its qualified name and first line."""
    with warnings.catch_warnings(action="ignore"):  # A mutant compares with `is`.
        found, left = {}, [compile(text, str(file), "exec", dont_inherit=True)]
    while left:
        code = left.pop()
        found[code.co_qualname, code.co_firstlineno] = code
        left.extend(inner for inner in code.co_consts if isinstance(inner, CodeType))
    return {key: code for key, code in found.items() if code.co_flags & 2}  # CO_NEWLOCALS: no module


def _places(file: Path) -> Iterator[tuple[tuple[int, int, int, int], str, int]]:
    """Where an operator can act in the body of a function: start and end, operator, occurrence."""
    text = file.read_text()
    nodes = list(ast.walk(ast.parse(text)))
    bodies = [(n.body[0].lineno, n.end_lineno) for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    notes = [getattr(n, field) for n in nodes for field in ("annotation", "returns") if getattr(n, field, None)]
    apart = [(n.lineno, n.col_offset, n.end_lineno, n.end_col_offset) for n in nodes if isinstance(n, ast.Assert)]
    apart += [(n.lineno, n.col_offset, n.end_lineno, n.end_col_offset) for n in notes]
    all_nodes, operators = list(ast_nodes(get_ast(text))), OperatorProvider()
    for name in operators:
        if name in LEFT_OUT:
            continue
        operator, occurrence = operators[name](), 0
        for node in all_nodes:
            for start, end in operator.mutation_positions(node):
                inside = any(a <= start[0] <= b for a, b in bodies)
                if inside and not any((a, b) <= start < (c, d) for a, b, c, d in apart):
                    yield (*start, *end), name, occurrence
                occurrence += 1


def sample(seed: int, count: int, of: str = "") -> Iterator[Mutant]:
    """The mutants: places drawn by chance in the packages, or in the one named, and one operator that fits there."""
    places: dict[tuple[str, tuple[int, int, int, int]], list[tuple[str, int]]] = {}
    for package in (of,) if of else PACKAGES:
        for file in sorted((SOURCE / package).glob("*.py")):
            if file.name not in APART:
                for place, operator, occurrence in _places(file):
                    places.setdefault((str(file), place), []).append((operator, occurrence))
    generator = random.Random(seed)
    print(f"{len(places)} places", flush=True)
    order = sorted(places)
    generator.shuffle(order)
    while order and count:
        file, place = order.pop(0)
        mutant = Mutant(Path(file), place[0], *generator.choice(places[file, place]))
        if mutant.changes:
            count -= 1
            yield mutant
