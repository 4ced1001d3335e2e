"""Threads that are the first to decode a type at once do not end the process."""

from __future__ import annotations

import ast
import gc
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import get_args, get_type_hints

import msgspec
import pytest

import gossamer
from gossamer.model.verbs import VERBS

PASSED_ON = {"load": 2, "step": 0, "_asked": 2}
"""Functions that decode a type which is passed to them, and which of their arguments it is."""
AT_START = {"Config"}
"""Types that a command decodes before there is an event loop, and imports only there."""
TYPE = re.compile(r"_?[A-Z]|(dict|list|tuple)\[")
"""How a type begins, as such an argument; in a function that decodes, it is a parameter."""


def decoded(module: ModuleType) -> Iterator[object]:
    """Return the types that the functions of a module decode."""
    for call in ast.walk(ast.parse(inspect.getsource(module))):
        if not isinstance(call, ast.Call):
            continue
        name = ast.unparse(call.func).rpartition(".")[2]
        wanted = [keyword.value for keyword in call.keywords if keyword.arg == "type"] if name == "decode" else []
        place = 1 if ast.unparse(call.func) == "msgspec.convert" else PASSED_ON.get(name)
        if place is not None and len(call.args) > place:
            wanted = [call.args[place]]
        for one in map(ast.unparse, wanted):
            if TYPE.match(one) and one not in AT_START:
                yield eval(one, vars(module))


def structs(kind: object) -> Iterator[type[msgspec.Struct]]:
    """Return the structs that a type consists of."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        yield kind
    for part in get_args(kind):
        yield from structs(part)


def holds_structs(kind: type[msgspec.Struct]) -> bool:
    return any(list(structs(field)) for field in get_type_hints(kind).values())


def is_ready(kind: type[msgspec.Struct]) -> bool:
    return any(type(one).__name__ == "StructInfo" for one in gc.get_referents(kind))


def look() -> None:
    """Print each type of the package that is decoded, with whether it holds structs and is ready for it."""
    names = [one.name for one in pkgutil.walk_packages(gossamer.__path__, "gossamer.") if "__main__" not in one.name]
    kinds = {kind for name in names for one in decoded(importlib.import_module(name)) for kind in structs(one)}
    kinds |= {verb.takes for verb in VERBS.values()}
    waiting = list(kinds)
    while waiting:
        inner = {part for field in get_type_hints(waiting.pop()).values() for part in structs(field)} - kinds
        kinds |= inner
        waiting += inner
    for kind in kinds:
        sys.stdout.write(f"{kind.__module__}.{kind.__name__} {holds_structs(kind)} {is_ready(kind)}\n")


@pytest.mark.heavy
@pytest.mark.long
def test_types_that_hold_structs_are_ready_to_be_decoded_when_they_are_imported() -> None:
    code = "from tests.model.test_decodable import look; look()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found = [line.split() for line in done.stdout.splitlines()]
    holding = {name: is_ready for name, holds, is_ready in found if holds == "True"}
    assert {"gossamer.engine.counters.Totals", "gossamer.model.status.Status"} <= holding.keys()
    assert {is_ready for _, holds, is_ready in found if holds == "False"} == {"True", "False"}, "both are recognized"
    assert [name for name, is_ready in holding.items() if is_ready == "False"] == [], "add @decodable"
