"""Mend: describes an operator's mistake in one line: place, error, and the nearest valid name."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from typing import get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from gossamer.config.secret import may_be_secret
from gossamer.config.sections import keys, sections
from gossamer.config.synonyms import meant
from gossamer.crawl.options import LoginRule
from gossamer.fetch.credentials import REDACTED
from gossamer.fetch.options import RequestRule
from gossamer.frontier.options import HostOverride
from gossamer.process.options import FieldRule, ItemRule

SHOWN_CHARACTERS_MAX = 60
NAMED: Mapping[str, type[BaseModel]] = {
    "host": HostOverride, "request": RequestRule, "login": LoginRule, "extract": ItemRule,
}  # fmt: skip
"""What a value is in sections whose keys are names."""
NEAR = 0.75
"""Similarity of two words (difflib) from which on one is taken for a misprint of the other."""


BEGINNING_MIN = 3
"""Characters from which on the beginning of a name is taken for it."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean …?` for a misprint or the beginning of one name, or nothing when nothing is near."""
    known = list(known)
    begins = [one for one in known if len(name) >= BEGINNING_MIN and one.startswith(name)]
    found = difflib.get_close_matches(name, known, n=1, cutoff=NEAR) or (begins if len(begins) == 1 else [])
    return f"; did you mean {found[0]}?" if found else ""


def lines_of(error: ValidationError, origins: Mapping[str, str]) -> list[str]:
    """Return the mistakes that pydantic found, each as a line for the operator."""
    return list(dict.fromkeys(_line(mistake, origins) for mistake in error.errors(include_url=False)))


def _line(mistake: ErrorDetails, origins: Mapping[str, str]) -> str:
    path = [str(part) for part in mistake["loc"]]
    key = ".".join(path[:2])
    place = _place(path, origins) or _place_of_section(path[0], mistake, origins)
    where = f"{place}: " if place else ""
    if mistake["type"] == "extra_forbidden":
        return where + _unknown(path)
    is_option = place.startswith("--") and place != "--set"
    given, message = _shown(REDACTED if may_be_secret(key) else mistake["input"]), _message(mistake["msg"])
    message += " of seconds" if message == "expected a number" and SECONDS.search(path[-1]) else ""
    if not message.startswith("expected "):  # A package's own sentence, which names the value.
        return where + message if is_option else f"{where}{'.'.join(path)}: {message}"
    return f"{place} {given}: {message}" if is_option else f"{where}{'.'.join(path)} is {given}, {message}"


def _place(path: list[str], origins: Mapping[str, str]) -> str:
    """Return where a key was written; in a file, the line of the innermost table or key around the mistake."""
    key = origins.get(".".join(path[:2]), "")
    file = key.rpartition(" line ")[0]
    inner = (origins.get(".".join(path[:length]), "") for length in range(len(path), 2, -1))
    return next((one for one in inner if file and one.rpartition(" line ")[0] == file), key)


def _place_of_section(section: str, mistake: ErrorDetails, origins: Mapping[str, str]) -> str:
    """Return where a section that is wrong as a whole was written: the keys that the message names, or any of its."""
    inside = [at for at in origins if at.partition(".")[0] == section]
    named = [at for at in inside if at.partition(".")[2] in mistake["msg"]]
    if mistake["type"] == "value_error":
        inside = []
    return next((origins[at] for at in [*named, *inside]), "")


def _unknown(path: list[str]) -> str:
    if len(path) == 1:
        name = path[0]
        home = [key for key in keys() if key.partition(".")[2] == name]
        if home:
            return f"{name} is outside its section; did you mean {home[0]}?"
        near, meaning = nearest(name, sections()), meant(name, as_option=False)
        if meaning and not near:
            return f"no section or key {name}; {meaning}"
        return f"no section [{name}]" + (near or f"; there are {', '.join(sections())}")
    if len(path) > 2:
        return f"no key {'.'.join(path)}{_nearest_inside(path)}"
    section, name = path[0], path[1]
    inside = {key.partition(".")[2]: key for key in keys() if key.startswith(f"{section}.")}
    elsewhere = [key for key in keys() if key.partition(".")[2] == name]
    misprint = difflib.get_close_matches(name, list(inside), n=1, cutoff=NEAR)
    meaning = meant(name, as_option=False)
    hint = (
        (f"; did you mean {elsewhere[0]}?" if elsewhere else "")
        or (f"; did you mean {inside[misprint[0]]}?" if misprint else "")
        or (f"; {meaning}" if meaning else "")
        or f"; [{section}] has {', '.join(inside)}"
    )
    return f"no key {section}.{name}{hint}"


def _nearest_inside(path: list[str]) -> str:
    """Return a hint for a key of a table inside a section."""
    field = sections()[path[0]].model_fields.get(path[1]) if path[0] in sections() else None
    rule = FieldRule if path[0] == "extract" and len(path) > 3 else NAMED.get(path[0])
    if rule is not None:
        known = list(rule.model_fields)
        return nearest(path[-1], known) or f"; there are {', '.join(known)}"
    kinds = [field.annotation, *get_args(field.annotation)] if field is not None else []
    known = [
        key for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel) for key in kind.model_fields
    ]
    return nearest(path[-1], known) or (f"; there are {', '.join(known)}" if known else "")


SECONDS = re.compile(r"_s(_(min|max|mean|first))?$")
"""The end of a key whose unit is the second."""
WORDS = {
    "a valid integer": "a whole number",
    "a valid number": "a number",
    "a valid string": 'a text, such as "a"',
    "a valid array": 'a list, such as ["a", "b"]',
    "a valid tuple": 'a list, such as ["a", "b"]',
    "a valid boolean": "true or false",
    "an object": "a section of keys",
    "have at least 1 character": "a text that is not empty",
}


BOUNDS = (
    (re.compile(r"greater than or equal to (\S+)"), r"\1 or more"),
    (re.compile(r"less than or equal to (\S+)"), r"\1 or less"),
    (re.compile(r"greater than (\S+)"), r"more than \1"),
)


def _message(message: str) -> str:
    """Return a validator's message as a clause that begins with `expected`, or as the sentence it is."""
    if message.startswith("Value error, "):
        return message.removeprefix("Value error, ")
    for start in ("Input should be ", "Input should ", "String should "):
        if message.startswith(start):
            message = message.removeprefix(start)
            break
    for pattern, words in BOUNDS:
        message = pattern.sub(words, message)
    return f"expected {WORDS.get(message, message)}"


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=True, default=str)
    return text if len(text) <= SHOWN_CHARACTERS_MAX else text[: SHOWN_CHARACTERS_MAX - 1] + "…"
