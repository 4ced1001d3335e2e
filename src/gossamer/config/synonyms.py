"""Synonyms: what other crawlers call an option, a key or a command, and what it is here.

The words are data (`synonyms.toml`), which are read when one is typed.
"""

import pkgutil
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from gossamer.config.flags import FLAGS
from gossamer.options import nearest

_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")


class Synonyms(NamedTuple):
    """Meanings of the words of other programs, by word: the tables of `synonyms.toml`, which says what each has."""

    keys: Mapping[str, str]
    clauses: Mapping[str, str]
    commands: Mapping[str, str]
    of: Mapping[str, Mapping[str, str]]
    formats: Mapping[str, str]
    arguments: Mapping[str, str]
    attributes: Mapping[str, Mapping[str, str]]
    operations: Mapping[str, str]
    examples: Mapping[str, str]
    values: Mapping[str, Mapping[str, str]]


@cache
def synonyms() -> Synonyms:
    """Return the synonyms. Its first call takes about 2 ms."""
    tables = tomllib.loads((pkgutil.get_data("gossamer.config", "synonyms.toml") or b"").decode())
    by_word = {name: _by_word(tables[name]) for name in ("keys", "clauses", "commands", "formats", "arguments")}
    by_word["keys"] = {flag.option: flag.key for flag in FLAGS} | by_word["keys"]
    attributes = {name: _by_word(table) for name, table in tables["attributes"].items()}
    of = {name: _by_word(table) for name, table in tables["of"].items()}
    values = {key: _by_word(table) for key, table in tables["values"].items()}
    read = {name: tables[name] for name in ("operations", "examples")}
    return Synonyms(**by_word, **read, of=of, attributes=attributes, values=values)


def _by_word(table: Mapping[str, str]) -> dict[str, str]:
    return {word: meaning for meaning, words in table.items() for word in words.split()}


def argument_for(name: str) -> str:
    """Return the argument that sets what another library calls `name`, as a clause; empty if it is not known."""
    said = equivalent_of(name, as_option=False)
    key = said.removeprefix("the key is ")
    if key == said:
        return said
    option = next((one.name for one in FLAGS if one.key == key), "")
    return f"use {option}" if option else f'use settings={{"{key}": …}}'


def missing_attribute(owner: object, name: str, table: str, what: str = "") -> AttributeError:
    """Return the error about an attribute that an object lacks. It names what to write instead, from the `table` of
    attributes or by a similar name. `what` describes the object.
    """
    message = f"{what or repr(type(owner).__name__) + ' object'} has no attribute {name!r}"
    if name.startswith("_"):  # Programs ask for these, people do not.
        return AttributeError(message, name=name, obj=owner)
    known = [one for one in dir(owner) if not one.startswith("_")]
    said = synonyms().attributes[table].get(name, "")
    return AttributeError(message + (f"; {said}" if said else nearest(name, known)))


def equivalent_of(name: str, *, as_option: bool) -> str:
    """Return the equivalent of another program's option or key, as a clause; empty if it is not known.

    `name` is without dashes and section. `as_option`: the clause names an option instead of a key.
    """
    known = synonyms()
    word = name if len(name) == 1 else name.lower().replace("_", "-")
    spaced = name if len(name) == 1 else _HUMP.sub("-", name).lower().replace("_", "-")
    stems = [one.removesuffix(end) for one in (word, spaced) for end in ("", "-s", "-ms", "-max", "-min", "-seconds")]
    for stem in stems:
        if stem in known.clauses:
            return known.clauses[stem]
        if stem in known.keys:
            key = known.keys[stem]
            if not as_option:
                return f"the key is {key}"
            option = next((f"--{one.option} {one.metavar}".rstrip() for one in FLAGS if one.key == key), "")
            return f"use {option}" if option else f"use --set {known.examples.get(key, f'{key}=VALUE')}"
    return ""
