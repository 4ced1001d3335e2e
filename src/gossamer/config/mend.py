"""Mend: describes an operator's mistake in one line: place, error, and the nearest valid name."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import get_args

from gossamer.config.sections import key_of, keys_named, sections
from gossamer.config.synonyms import equivalent_of, synonyms
from gossamer.options import Mistake, NamedSection, Section, keys_of, nearest, rule_type
from gossamer.quantities import plain_decimal, plain_digits, whole_number
from gossamer.stages.fetch.credentials import REDACTED
from gossamer.stages.process.options import FieldRule

SHOWN_CHARACTERS_MAX = 60
TRUTHS = {"true": "true", "yes": "true", "on": "true", "false": "false", "no": "false", "off": "false"}
"""Words that people write for the two values of a switch, in lower case, and TOML's value for each."""
_PLAIN = str.maketrans("\u2212\u2013\u2014", "---", "\u201c\u201d\u201e\u00ab\u00bb\u2018\u2019")
"""Dashes of word processors, and quotation marks, which are left out."""
_WORDS = re.compile(r"[\w.-]++(?:,\s*+[\w.-]++)+").fullmatch
_SEPARATOR = re.compile(r",\s*")
_BETWEEN = '", "'
_UNLIMITED = re.compile(r"-?\d+|-?inf\w*|nan|all|any|max|none?|null|never|off|forever|unlimited|∞", re.ASCII).fullmatch
"""Matches what other programs take for no limit, where it is no number that a limit can have."""


def lines_of(mistakes: Iterable[Mistake], origins: Mapping[str, str]) -> list[str]:
    """Return mistakes, each as a line for the operator."""
    return list(dict.fromkeys(_line(mistake, origins) for mistake in mistakes))


def _line(mistake: Mistake, origins: Mapping[str, str]) -> str:
    path = mistake.path
    message = mistake.message
    place = _place(path, origins) or _place_of_section(mistake, origins)
    where = f"{place}: " if place else ""
    if not message:
        return where + _unknown(path)
    is_option = place.startswith("--") and place != "--set"
    given = _show(REDACTED if key_of(".".join(path[:2])).secret else mistake.given)
    if isinstance(mistake.given, str) and message.startswith("expected a list") and REDACTED not in given:
        entries = _SEPARATOR.sub(_BETWEEN, given) if _WORDS(mistake.given) else given
        message += f"; write [{entries}]"
    if path == ("seeds",) and isinstance(mistake.given, list):
        message = "expected a section; write the list as urls = [\u2026] below a line [seeds]"
    if message == "expected true or false" and (truth := TRUTHS.get(str(mistake.given).lower())):
        message += f"; write {truth}"
    plain = str(mistake.given).translate(_PLAIN).strip()
    is_pasted = isinstance(mistake.given, str) and plain != mistake.given
    word = "" if is_pasted and plain.isdecimal() else plain.lower().removesuffix(".0")
    if (path[0] == "limits" or path[:2] == ("scope", "depth_max")) and len(path) > 1 and _UNLIMITED(word):
        message += f"; {'write none' if place == '--set' else 'leave it out'} for no limit"
    elif meant := synonyms().values.get(".".join(path), {}).get(word.replace("_", "-").replace(" ", "-")):
        message = message.partition("; did you mean")[0] + f"; {meant}"
    elif message.startswith("expected a ") and (decimal := plain_decimal(plain)):
        is_fraction = message == "expected a whole number" and whole_number(decimal, "") is None
        message += "" if is_fraction else f"; write {decimal}"
    elif message.startswith("expected a " if not {",", "."} & set(plain) else "expected a whole") and plain_digits(
        plain
    ):
        message += f"; write {plain_digits(plain)}"
    elif message.startswith("expected a ") and is_pasted and plain.isprintable():
        message += f"; write {plain}"
    if not message.startswith("expected "):  # A package's own sentence, which names the value.
        return where + message if is_option else f"{where}{'.'.join(path)}: {message}"
    return f"{place} {given}: {message}" if is_option else f"{where}{'.'.join(path)} is {given}, {message}"


def _place(path: Sequence[str], origins: Mapping[str, str]) -> str:
    """Return where a key was written; in a file, the line of the innermost table or key around the mistake."""
    key = origins.get(".".join(path[:2]), "")
    file = key.rpartition(" line ")[0]
    inner = (origins.get(".".join(path[:length]), "") for length in range(len(path), 2, -1))
    return next((one for one in inner if file and one.rpartition(" line ")[0] == file), key)


def _place_of_section(mistake: Mistake, origins: Mapping[str, str]) -> str:
    """Return where a section that is wrong as a whole was written: the keys that the message names, or any of its."""
    inside = [at for at in origins if at.partition(".")[0] == mistake.path[0]]
    named = [at for at in inside if at.partition(".")[2] in mistake.message]
    if mistake.message and not mistake.message.startswith("expected "):
        inside = []
    return next((origins[at] for at in [*named, *inside]), "")


def _unknown(path: Sequence[str]) -> str:
    if len(path) > 2:
        return f"no key {'.'.join(path)}{_nearest_inside(path)}"
    name = path[-1]
    same = keys_named(name)
    elsewhere = nearest(name, [name], write=lambda _: same[0]) if same else ""
    meaning = equivalent_of(name, as_option=False)
    if len(path) == 1:
        if elsewhere:
            return f"{name} is outside its section{elsewhere}"
        hint = nearest(name, sections())
        if meaning and not hint:
            return f"no section or key {name}; {meaning}"
        return f"no section [{name}]" + (hint or f"; there are {', '.join(sections())}")
    section = path[0]
    inside = keys_of(sections()[section])
    table, dot, within = name.partition(".")
    if dot and table in inside:
        return f"no key {section}.{name}; names in a table are written at once: '{section}.{table}={{{within} = …}}'"
    others = meaning or f"[{section}] has {', '.join(inside)}"
    return f"no key {section}.{name}" + (elsewhere or nearest(name, inside, others, f"{section}.{{}}".format))


def _nearest_inside(path: Sequence[str]) -> str:
    section = sections().get(path[0])
    if section is None:
        return ""
    if issubclass(section, NamedSection):
        kinds: list[type[Section]] = [FieldRule if path[0] == "extract" and len(path) > 3 else rule_type(section)]
    else:
        hint = keys_of(section)[path[1]].type if path[1] in keys_of(section) else None
        kinds = [one for one in (hint, *get_args(hint)) if isinstance(one, type) and issubclass(one, Section)]
    known = [key for kind in kinds for key in keys_of(kind)]
    return nearest(path[-1], known, f"there are {', '.join(known)}" if known else "")


def _show(value: object) -> str:
    text = json.dumps(value, ensure_ascii=True, default=str)
    return text if len(text) <= SHOWN_CHARACTERS_MAX else text[: SHOWN_CHARACTERS_MAX - 1] + "…"
