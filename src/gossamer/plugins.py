"""Plugins: components that other packages bring, found by the name that the configuration gives."""

from __future__ import annotations

import difflib
import importlib
from importlib.metadata import entry_points

from gossamer.model.errors import ConfigError

GROUP = "gossamer.components"


def component(name: str, key: str) -> object:
    """Return what `name` names: `module:Name`, or an entry point of the group `gossamer.components`.

    The module is imported now; only `assembly` asks, and only for what the configuration names.

    Raises:
        ConfigError: there is no such module or name; the line begins with `key`, the configuration key that asks.
    """
    module_name, colon, attribute = name.partition(":")
    if colon:
        return _imported(name, module_name, attribute, key)
    offered = {point.name: point for point in entry_points(group=GROUP)}
    if name in offered:
        return _imported(name, offered[name].module, offered[name].attr, key)
    near = difflib.get_close_matches(name, offered, n=1)
    hint = f"did you mean {near[0]}?" if near else f"write module:Name, or install the package that brings {name}"
    raise ConfigError(f"{key}: no component {name!r}; {hint}")


def _imported(name: str, module_name: str, attribute: str, key: str) -> object:
    try:
        found: object = importlib.import_module(module_name)
    except (ImportError, ValueError) as error:
        raise ConfigError(f"{key}: cannot import {name!r}: {' '.join(str(error).split())}") from error
    for part in attribute.split("."):
        if not hasattr(found, part):
            near = difflib.get_close_matches(part, dir(found), n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ConfigError(f"{key}: {module_name} has no {attribute!r}{hint}")
        found = getattr(found, part)
    return found
