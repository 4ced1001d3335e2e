"""Schema: the configuration as JSON Schema (draft 2020-12) for editors and other programs, made from the models."""

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from msgspec import NODEFAULT

from gossamer.config.sections import Config
from gossamer.options import DeclaredKey, Key, NamedSection, Section, keys_of, rule_type, split_annotation, to_table

KINDS: Mapping[Any, str] = {bool: "boolean", int: "integer", float: "number", str: "string"}
BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum", "pattern": "pattern"}
MARKS = ("basic", "live", "secret")


def schema() -> dict[str, object]:
    """Return the schema of the whole configuration."""
    found: dict[str, dict[str, object]] = {}
    whole = _of_section(Config, found)
    return {"$defs": dict(sorted(found.items())), **whole}


def _of_section(section: type[Section], found: dict[str, dict[str, object]]) -> dict[str, object]:
    about = {"type": "object", "title": section.__name__, "description": (section.__doc__ or "").strip()}
    if issubclass(section, NamedSection):
        return about | {"additionalProperties": _of_type(rule_type(section), found)}
    keys = keys_of(section)
    required = [name for name, one in keys.items() if one.default is NODEFAULT]
    properties = {name: _of_key(one, found) for name, one in keys.items()}
    described = about | {"properties": properties, "additionalProperties": False}
    return described | ({"required": required} if required else {})


def _of_key(one: DeclaredKey, found: dict[str, dict[str, object]]) -> dict[str, object]:
    kind = _of_type(one.type, found, one.key)
    marks = {mark: True for mark in MARKS if getattr(one.key, mark)}
    default = {} if one.default is NODEFAULT else {"default": to_table(one.default, defaults=True)}
    return kind | ({"description": one.key.what} if one.key.what else {}) | default | marks


def _of_type(hint: Any, found: dict[str, dict[str, object]], key: Key | None = None) -> dict[str, object]:
    hint, key = split_annotation(hint, key or Key())
    origin = get_origin(hint)
    inner = get_args(hint)
    if origin in (UnionType, Union):
        return {"anyOf": [{"type": "null"} if kind is NoneType else _of_type(kind, found, key) for kind in inner]}
    if origin is Literal:
        return {"type": "string", "enum": list(inner)}
    if origin is tuple:
        return {"type": "array", "items": _of_type(inner[0], found)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _of_type(inner[1], found)}
    if issubclass(hint, Section):
        if hint.__name__ not in found:
            found[hint.__name__] = {}  # It may have itself within it.
            found[hint.__name__] = _of_section(hint, found)
        return {"$ref": f"#/$defs/{hint.__name__}"}
    bounds = {name: at for word, name in BOUNDS.items() if (at := getattr(key, word)) not in (None, "")}
    length = {"minLength": key.min_length} if key.min_length else {}
    kind = [KINDS[hint], "string"] if key.unit and hint in (int, float) else KINDS[hint]
    return {"type": kind} | bounds | length
