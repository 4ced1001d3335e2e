"""Reference: the page about every key, and the configuration as JSON Schema (draft 2020-12) for editors and other
programs; both are made from the models, so that they cannot drift.
"""

from collections.abc import Iterator, Mapping
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from msgspec import NODEFAULT

from gossamer.config.flags import FLAGS
from gossamer.config.sections import Config, key_of, sections
from gossamer.config.toml import summary, to_toml
from gossamer.options import DeclaredKey, Key, NamedSection, Section, keys_of, rule_type, split_annotation, to_table

HEAD = """\
# Configuration

A crawl takes its values from a TOML file (`--config FILE`), from options, and from `--set section.key=value`; later
ones override earlier ones. Repeatable options replace the file's list. Relative paths in a file are relative to its
directory. Times and sizes may have [units](commands.md#units). `--set section.key=none` unsets a key. An unknown key is
an error that names the line and the nearest valid name.

| command | purpose |
| --- | --- |
| `gossamer init` | write a file that explains the most important keys |
| `gossamer config check FILE` | check a file |
| `gossamer config show DIR` | show the values of a crawl, and where each comes from |
| `gossamer config schema` | print the JSON schema |

Keys marked *live* can change while the crawl runs: `gossamer set DIR section.key=value`
([guide](../how-to/monitoring.md#change-keys-of-a-running-crawl)). `make docs` writes this page from the code.

[Expert keys](#expert-keys) are limits, intervals and sizes that crawls rarely need to change.
"""
EXPERT = """\
## Expert keys

Set them like other keys. Their defaults are measured or follow a standard; a crawl rarely needs other values.
"""


TABLE = "| key | default | live | meaning | option |\n| --- | --- | --- | --- | --- |"
HOSTS = """\
Each key is a host's name as in a URL, its value a table; all keys are live (`gossamer host DIR HOST delay_s=5`):

```toml
[host."example.org"]
delay_s = 0.2
per_host = 4
```
"""
REQUESTS = """\
If several rules cover a URL, the most specific one wins, for each value separately: a longer path before a shorter
one, then `example.org`, then `.example.org`. A key without scheme covers http and https, and sends secrets over https
only
([guide](../how-to/login.md)).

```toml
[request."https://example.org/reports/"]
basic = { user = "crawler", password = "env:REPORTS_PASSWORD" }
```
"""
LOGINS = """\
[Behind a login](../how-to/login.md) has examples.
"""
RULES = {"host": HOSTS, "request": REQUESTS, "login": LOGINS}
"""Text of the page for sections whose keys are names."""
EXTRACT = """\
[Items](items.md) lists the keys of each table. For example:

```toml
[extract.book]
urls = ["/catalogue/"]
fields = { title = "h1", price = { css = ".price", type = "number" } }
```
"""


def markdown() -> str:
    """Return docs/reference/configuration.md."""
    return "\n".join([HEAD, *_sections("##", expert=False), EXPERT, *_sections("###", expert=True)])


def _sections(heading: str, *, expert: bool) -> Iterator[str]:
    """Yield each section with its keys for experts, or its other keys."""
    options = {flag.key: f"`--{flag.option}`" for flag in FLAGS if flag.key != "progress.style"}
    for section, model in sections().items():
        about = summary(model)
        if section in RULES and issubclass(model, NamedSection):
            about = f"{about}\n\n{RULES[section]}".rstrip()
            model = rule_type(model)
        if section == "extract" and not expert:
            yield f"{heading} `[{section}]`\n\n{about}\n\n{EXTRACT}"
        fields = {key: field for key, field in keys_of(model).items() if field.key.basic != expert}
        if not fields:
            continue
        yield f"{heading} `[{section}]`" + (" for experts" if expert else f"\n\n{about}") + "\n"
        yield TABLE
        for key, field in fields.items():
            what = field.key.what.replace("|", "\\|")
            what += "." if field.choices and not what.endswith(".") else ""
            choices = f" One of {', '.join(f'`{value}`' for value in field.choices)}." if field.choices else ""
            live = "live" if key_of(f"{section}.{key}").live else ""
            option = options.get(f"{section}.{key}", "")
            yield f"| `{key}` | {_default(field)} | {live} | {what}{choices} | {option} |"
        yield ""


def _default(field: DeclaredKey) -> str:
    if field.default is NODEFAULT:
        return "required"
    return "" if field.default is None else f"`{to_toml(field.default)}`".replace("|", "\\|")


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
