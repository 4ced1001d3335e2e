"""Behaviors: the odd things that synthetic hosts do: declared by name, with the pages that show them.

Takes    a Place: the host, its address, other hosts, words
Gives    BEHAVIORS (`declared`); the pages of each behavior, by path
Keeps    nothing
Imports  the values and the Sheet of simweb
Touches  nothing
Never    depends on anything but the options
"""

import pkgutil
import tomllib
from typing import Any, Literal, NamedTuple

Kind = Literal["robots", "host", "pages", "trap"]


class Behavior(NamedTuple):
    """One way to be odd."""

    name: str
    kind: Kind
    """A host has one kind of robots.txt, any traits of its own, and any pages and traps, each below `/NAME/`."""
    share: float
    """Of all hosts; at least one host shows it while there are hosts enough."""
    what: str
    right: str
    """The result of a correct crawl."""


def read(file: str) -> dict[str, Any]:
    """Return the tables of a file of this package."""
    return tomllib.loads((pkgutil.get_data("gossamer.lab.simweb.behaviors", file) or b"").decode())


BEHAVIORS = tuple(Behavior(name, **fields) for name, fields in read("declared.toml").items())
SHARES = {each.name: each.share for each in BEHAVIORS}
ROBOTS = tuple(each.name for each in BEHAVIORS if each.kind == "robots")
PAGED = tuple(each.name for each in BEHAVIORS if each.kind in ("pages", "trap"))
TRAPS = frozenset(each.name for each in BEHAVIORS if each.kind == "trap") | {"robots_endless"}
"""Behaviors that are off by default."""
RULED = frozenset(ROBOTS) - {"robots_404", "robots_allow"}
"""Kinds of robots.txt whose hosts get the pages of `private`, which most of them close."""
