"""Toml: the configuration as text, and the line of a key."""

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta

from gossamer.config.presets import PRESETS, preset_values
from gossamer.config.sections import Config, sections
from gossamer.model.errors import ConfigError
from gossamer.model.product import FORMAT
from gossamer.options import Section, keys_of, to_table
from gossamer.quantities import read_float

HEADER = re.compile(r"^\s*\[\s*([^\[\]]+?)\s*\]\s*(#.*)?$")
ASSIGNMENT = re.compile(r"^\s*([A-Za-z0-9_\-.\"' ]+?)\s*=")
EXPERT_PAGE = "docs/reference/configuration.md#expert-keys"
BARE = re.compile(r"[A-Za-z0-9_-]+")
ORIGIN = re.compile(r"  # from ([^\"']+)$")
NESTED = "too many values within each other; no key takes such a value"
_UNWRITABLE = re.compile(r"[\"'\x00-\x1f\x7f]")


def effective_toml(config: Config, *, shown: Callable[[str, object], object] = lambda _, value: value) -> str:
    """Return every key with its value, and where it came from as a comment. `reopen` reads both back.

    `shown` returns what is written for the value of a dotted key: `config.secret.redact` for readers other than us.
    """
    lines = [
        "# The configuration of this crawl, as it runs. Changes here take effect with `gossamer resume`;",
        "# those of `gossamer set` at once.",
        f"format = {FORMAT}  # of this directory, not to be changed",
    ]
    origins = {key: _UNWRITABLE.sub("?", origin) for key, origin in config.origins.items()}
    for section in sections():
        lines += ["", f"[{section}]"]
        for key in config.keys_of(section):
            value = shown(f"{section}.{key}", config.value(f"{section}.{key}"))
            if value is None:
                lines.append(f"# {key} is not set")
                continue
            origin = origins.get(f"{section}.{key}", "default")
            name = key if BARE.fullmatch(key) else to_toml(key)
            lines.append(f"{name} = {to_toml(value)}" + ("" if origin == "default" else f"  # from {origin}"))
    return "\n".join(lines) + "\n"


def starter_toml(preset: str = "") -> str:
    """Return a file that explains the keys which operators set, and sets none but a preset's: what `init` writes."""
    lines = [
        "# Configuration of Gossamer. Commented keys have their defaults. To check: gossamer config check FILE",
        f"# Expert keys are not listed here: {EXPERT_PAGE}",
    ]
    values = preset_values(preset) if preset else {}
    if preset:
        lines += [f"# What is set is the preset {preset!r}: {PRESETS[preset].summary}"]
    for section, model in sections().items():
        shown = {key: one for key, one in keys_of(model).items() if one.key.basic or f"{section}.{key}" in values}
        if shown:
            lines += ["", f"# {summary(model)}", f"[{section}]"]
        for key, field in shown.items():
            lines.append(f"# {field.key.what}")
            if f"{section}.{key}" in values:
                lines.append(f"{key} = {to_toml(values[f'{section}.{key}'])}")
            else:
                lines.append(f"# {key} =" if field.default is None else f"# {key} = {to_toml(field.default)}")
    return "\n".join(lines) + "\n"


def summary(model: type[Section]) -> str:
    """Return the first sentence about a section."""
    return (model.__doc__ or "").strip().split("\n")[0]


def to_toml(value: object) -> str:
    """Return a value as TOML (version 1.0), on one line."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            # JSON's escapes are TOML's, except for DEL, which TOML wants escaped as well.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case list() | tuple() | set() | frozenset():
            return "[" + ", ".join(to_toml(item) for item in value) + "]"
        case dict():
            return "{" + ", ".join(f"{to_toml(str(name))} = {to_toml(item)}" for name, item in value.items()) + "}"
        case Section():
            return to_toml(to_table(value))
        case timedelta():
            return to_toml(value.total_seconds())
        case _:
            return to_toml(str(value))


def read_value(text: str, place: str) -> object:
    """Return the value that a text is in TOML; None for `none`. Raises ValueError: it is none; ConfigError: nested."""
    try:
        return None if text.strip() == "none" else tomllib.loads(f"value = {text}", parse_float=read_float)["value"]
    except RecursionError:
        raise ConfigError(f"{place}: {NESTED}") from None


def read_assignment(text: str, mistake: str) -> tuple[str, object]:
    """Return the key and the value of `key=value`: what it is in TOML, else the text. Raises ConfigError: `mistake`."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(mistake)
    try:
        return key.strip(), read_value(value, key.strip())
    except ValueError:
        return key.strip(), value.strip()


def as_assignments(values: Mapping[str, object]) -> list[str]:
    """Return dotted keys and values, as JSON has them, as `--set` takes them; None unsets a key. Raises ConfigError:
    there is nothing (null) within a value.
    """
    return [f"{key}={'none' if value is None else json_as_toml(key, value)}" for key, value in values.items()]


def json_as_toml(key: str, value: object) -> str:
    """Return a value of JSON as TOML. Raises ConfigError: there is nothing (null) within it."""
    if _has_gaps(value):
        raise ConfigError(f"{key}: null may stand for a key, not within its value")
    return to_toml(value)


def _has_gaps(value: object) -> bool:
    if isinstance(value, Mapping):
        value = list(value.values())
    return any(one is None or _has_gaps(one) for one in value) if isinstance(value, list) else False


def assignments(text: str) -> Iterator[tuple[str, int, str]]:
    """Yield (dotted key, line number, line) of each assignment and header, by a look at each line.

    Good enough to name a line to a person: inside multi-line strings it may see what is not there.
    """
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := HEADER.match(line):
            table = bare(header[1])
            yield table, number, line
        elif assignment := ASSIGNMENT.match(line):
            yield (f"{table}." if table else "") + bare(assignment[1]), number, line


def bare(dotted: str) -> str:
    """Return a dotted key without quotes and spaces around its parts."""
    return ".".join(part.strip().strip("\"'") for part in dotted.split("."))


def line_numbers(text: str) -> dict[str, int]:
    """Return the number of the line that sets each key or opens each section, the first of several."""
    return {name: number for name, number, _ in reversed(list(assignments(text)))}


def read_origins(text: str) -> dict[str, str]:
    """Return the origins that `effective_toml` wrote as comments, by dotted key."""
    return {key: found[1] for key, _, line in assignments(text) if (found := ORIGIN.search(line))}
