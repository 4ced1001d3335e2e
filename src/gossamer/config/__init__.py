"""Config: the configuration, gathered from file, flags and `--set`.

Takes    TOML, options by name, `key=value`
Gives    Config, frozen and checked; each value knows where it came from
Keeps    nothing
Imports  archive, cluster, engine, fetch, frontier, logins, mentions, model, options, process, proxies, quantities,
         render, resolve, revisit, robots, scope, seen, state, url, world
Touches  the files that the configuration names
Never    guesses: an unknown key is an error that names the nearest known one
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gossamer.config.gather import configure as configure
    from gossamer.config.gather import reopen as reopen
    from gossamer.config.sections import Config as Config
    from gossamer.config.toml import effective_toml as effective_toml

__all__ = ["Config", "configure", "effective_toml", "reopen"]
_HOMES = {"Config": "sections", "configure": "gather", "effective_toml": "toml", "reopen": "gather"}


if not TYPE_CHECKING:  # A type checker would take any name.

    def __getattr__(name: str) -> object:
        # Lazily: the table of options is needed to print help, the sections are not.
        if name in _HOMES:
            return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
