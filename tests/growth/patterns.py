"""Patterns: the regular expressions of the package, and what in one can cost more than one pass over a text.

Read from the tree into which `re` parses a pattern. RE2's patterns are always linear and are left out.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterable, Iterator
from functools import reduce
from operator import or_
from pathlib import Path
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

_UNBOUNDED = 1_000
"""A repeat that may go on for so long counts as one without end."""
_ALL = (1 << 257) - 1
"""A set of characters: a bit for each of the first 256, and one for all others."""
_END = [(codes.AT, codes.AT_END_STRING)]
"""What is always there behind a repeat of any character."""
_SINGLE = (codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN, codes.CATEGORY)
_REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)
_ANCHORED = ("match", "fullmatch")
_SEARCHES = ("search", "findall", "finditer", "split", "sub", "subn")
_CATEGORIES = {
    codes.CATEGORY_DIGIT: r"\d", codes.CATEGORY_NOT_DIGIT: r"\D", codes.CATEGORY_SPACE: r"\s",
    codes.CATEGORY_NOT_SPACE: r"\S", codes.CATEGORY_WORD: r"\w", codes.CATEGORY_NOT_WORD: r"\W",
}  # fmt: skip


class Pattern(NamedTuple):
    """A regular expression of the package: where it is, itself, and whether a text is searched for it."""

    place: str
    compiled: re.Pattern[Any]
    searched: bool


def of_package(root: Path) -> Iterator[Pattern]:
    """Yield the patterns of all modules: values of their global names, and those written in calls of `re`."""
    for path in sorted(root.rglob("*.py")):
        if path.name == "__main__.py":
            continue
        text = path.read_text(encoding="utf-8")
        if not re.search(r"^import re$", text, re.MULTILINE):
            continue
        name = ".".join(("gossamer", *path.relative_to(root).with_suffix("").parts)).removesuffix(".__init__")
        module = importlib.import_module(name)
        yield from _of_names(name, vars(module), text)
        yield from _of_calls(name, vars(module), ast.parse(text))


def _of_names(module: str, names: dict[str, Any], text: str) -> Iterator[Pattern]:
    for name, value in names.items():
        uses = re.findall(rf"\b{name}\b(?:\[[^\]]*\])?(?! = |: )(.?\w*)", text)
        is_anchored = bool(uses) and all(use[1:] in _ANCHORED for use in uses)
        for one in value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else [value]:
            bound = getattr(one, "__self__", None)
            if isinstance(one, re.Pattern):
                yield Pattern(f"{module}.{name}", one, not is_anchored)
            elif isinstance(bound, re.Pattern):
                yield Pattern(f"{module}.{name}", bound, one.__name__ not in _ANCHORED)


def _of_calls(module: str, names: dict[str, Any], tree: ast.Module) -> Iterator[Pattern]:
    """Yield patterns that are written in a function, as far as they are made of global names."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=verb), args=[first, *_]) if verb in (
                *_ANCHORED, *_SEARCHES,
            ):  # fmt: skip
                try:
                    written = eval(compile(ast.Expression(first), module, "eval"), names)
                except NameError:
                    continue
                yield Pattern(f"{module}:{node.lineno}", re.compile(written), verb in _SEARCHES)


def faults(pattern: re.Pattern[Any] | str, *, searched: bool) -> list[str]:
    """Return what may cost more than one pass, or what Python 3.11.2 matches wrongly, in a pattern."""
    compiled = re.compile(pattern)
    tree = parser.parse(compiled.pattern, compiled.flags & ~(re.UNICODE if isinstance(compiled.pattern, bytes) else 0))
    found = [*_repeats(tree, within=False)]
    for sequence in _sequences(tree):
        found += _neighbours(sequence)
    if searched:
        for sequence in _spelled(list(tree)):
            found += _restarts(sequence)
    return list(dict.fromkeys(found))


def _inner(code: Any, argument: Any) -> list[Any]:
    """Return the sequences within an item."""
    if code in _REPEATS:
        return [argument[2]]
    if code is codes.SUBPATTERN:
        return [argument[3]]
    if code is codes.ATOMIC_GROUP:
        return [argument]
    if code is codes.BRANCH:
        return list(argument[1])
    if code in (codes.ASSERT, codes.ASSERT_NOT):
        return [argument[1]]
    return []


def _sequences(tree: Iterable[Any]) -> Iterator[list[Any]]:
    items = list(tree)
    yield items
    for code, argument in items:
        for inner in _inner(code, argument):
            yield from _sequences(inner)


def _repeats(tree: Iterable[Any], *, within: bool) -> Iterator[str]:
    """Yield faults of repeats by themselves; `within` one that can backtrack."""
    for code, argument in tree:
        repeats = code in _REPEATS and argument[1] >= _UNBOUNDED
        if code is codes.POSSESSIVE_REPEAT and not (len(argument[2]) == 1 and argument[2][0][0] in _SINGLE):
            yield "a possessive repeat of a group, which Python 3.11.2 matches wrongly: write (?>(?:…)*)"
        if repeats and within and code is not codes.POSSESSIVE_REPEAT:
            yield "a repeat within a repeat, both of which can go back"
        inside = code in (codes.MAX_REPEAT, codes.MIN_REPEAT) and repeats
        keeps = code not in (codes.ATOMIC_GROUP, codes.POSSESSIVE_REPEAT)
        for inner in _inner(code, argument):
            yield from _repeats(inner, within=keeps and (within or inside))


def _neighbours(items: list[Any]) -> Iterator[str]:
    """Yield a fault for two repeats that can divide one run of characters in several ways before something fails."""
    flat = _flat(items)
    for at, item in enumerate(flat):
        if not _goes_back(item):
            continue
        for to in range(at + 1, len(flat)):
            if _goes_back(flat[to]) and _first([flat[to]]) & _first([item]):
                if not all(_is_nullable(one) for one in flat[to + 1 :]):
                    yield "two repeats of the same characters, one after the other"
                break
            if not _is_nullable(flat[to]) and not _first([flat[to]]) & _first([item]):
                break


def _restarts(items: list[Any]) -> Iterator[str]:
    """Yield a fault for a repeat that may run over further beginnings of the same pattern and then fail."""
    flat = _flat(items)
    for at, (code, argument) in enumerate(flat):
        if code not in _REPEATS or argument[1] < _UNBOUNDED:
            continue
        if all(_is_nullable(one) for one in flat[at + 1 :]):
            continue
        runs = _all_of(argument[2])
        if all(_all_of([one]) & runs for one in flat[:at] if one[0] not in (codes.AT, codes.ASSERT, codes.ASSERT_NOT)):
            lookbehind = any(one[0] in (codes.ASSERT, codes.ASSERT_NOT) and one[1][0] < 0 for one in flat[:1])
            anchored = any(one[0] is codes.AT and one[1] is not codes.AT_BOUNDARY for one in flat[:1])
            if not anchored and not lookbehind:
                yield "a repeat that runs over other beginnings of a pattern that is searched"


def _spelled(items: list[Any]) -> Iterator[list[Any]]:
    """Yield a sequence once for each of the alternatives at its outermost level."""
    flat = _flat(items)
    for at, (code, argument) in enumerate(flat):
        if code is codes.BRANCH and not _is_nullable((code, argument)):
            for branch in argument[1]:
                yield from _spelled([*flat[:at], *branch, *flat[at + 1 :]])
            return
    yield flat


def _flat(items: Iterable[Any]) -> list[Any]:
    """Return the items of a sequence, groups opened."""
    out: list[Any] = []
    for code, argument in items:
        if code is codes.SUBPATTERN:
            out += _flat(argument[3])
        elif code is codes.ATOMIC_GROUP:
            out += [(inner[0], inner[1]) for inner in _flat(argument)]
        else:
            out.append((code, argument))
    return out


def _goes_back(item: Any) -> bool:
    code, argument = item
    return code in (codes.MAX_REPEAT, codes.MIN_REPEAT) and argument[1] >= _UNBOUNDED


def _is_nullable(item: Any) -> bool:
    """Say whether an item can always match the empty string."""
    code, argument = item
    if code in _REPEATS:
        return bool(argument[0] == 0)
    if code is codes.BRANCH:
        return any(all(map(_is_nullable, branch)) or list(branch) == _END for branch in argument[1])
    if code is codes.SUBPATTERN:
        return all(map(_is_nullable, argument[3]))
    return False


def _set(code: Any, argument: Any) -> int:
    """Return the characters that an item of one character matches."""
    if code is codes.LITERAL:
        return 1 << min(argument, 256)
    if code is codes.NOT_LITERAL:
        return _ALL & ~(1 << argument) if argument < 256 else _ALL
    if code is codes.RANGE:
        return reduce(
            or_,
            (1 << one for one in range(argument[0], min(argument[1], 256) + 1)),
            1 << 256 if argument[1] > 255 else 0,
        )
    if code is codes.CATEGORY:
        category = re.compile(_CATEGORIES[argument])
        return reduce(or_, (1 << one for one in range(257) if category.match(chr(min(256, one)))), 0)
    if code is codes.IN:
        members = reduce(or_, (_set(*one) for one in argument if one[0] is not codes.NEGATE), 0)
        return _ALL & ~members | 1 << 256 if argument[0][0] is codes.NEGATE else members
    return _ALL


def _first(items: Iterable[Any]) -> int:
    """Return the characters with which a sequence can begin."""
    found = 0
    for code, argument in items:
        if code in _SINGLE:
            return found | _set(code, argument)
        if code is codes.BRANCH:
            found |= reduce(or_, (_first(branch) for branch in argument[1]), 0)
        elif code in (codes.ASSERT, codes.ASSERT_NOT, codes.AT):
            continue
        else:
            found |= reduce(or_, (_first(inner) for inner in _inner(code, argument)), 0)
        if not _is_nullable((code, argument)):
            break
    return found


def _all_of(items: Iterable[Any]) -> int:
    """Return all characters that a sequence can match anywhere."""
    found = 0
    for code, argument in items:
        if code in _SINGLE:
            found |= _set(code, argument)
        elif code not in (codes.ASSERT, codes.ASSERT_NOT):
            found |= reduce(or_, (_all_of(inner) for inner in _inner(code, argument)), 0)
    return found
