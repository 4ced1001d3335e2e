"""Tables of the documentation that are made from the code: `python -m tests.tables` writes them into their pages.

A table is between `<!-- table: NAME -->` and `<!-- end -->`; the rest of the page is written by people.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from gossamer.lab.simulate.options import SimulateOptions
from gossamer.lab.simweb.behaviors import BEHAVIORS
from gossamer.options import DeclaredKey, Section, keys_of
from tests.ports import PORTS, members_of, types_of

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "docs/reference/simulate.md", ROOT / "docs/reference/simweb.md", ROOT / "docs/how-to/components.md")
OF_A_CRAWL = ("preset", "politeness", "frontier", "seen", "simweb")
"""Fields of a simulation that other pages describe."""


def _behaviors() -> Iterator[str]:
    yield "| name | kind | share | what | correct crawl |\n| --- | --- | --: | --- | --- |"
    for one in BEHAVIORS:
        yield f"| `{one.name}` | {one.kind} | {one.share:g} | {one.what} | {one.right} |"


def _keys(model: type[Section], within: str = "") -> Iterator[str]:
    for name, field in keys_of(model).items():
        kind = field.type
        if isinstance(kind, type) and issubclass(kind, Section):
            yield from () if name in OF_A_CRAWL else _keys(kind, f"{name}.")
        elif name not in OF_A_CRAWL:
            yield f"| `{within}{name}` | {_value(field)} | {field.key.what} |"


def _value(field: DeclaredKey) -> str:
    value = field.default
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    return f"{value:_}" if isinstance(value, int) else f"{value:g}"


def _simulation() -> Iterator[str]:
    yield "| key | default | meaning |\n| --- | --- | --- |"
    yield from _keys(SimulateOptions)


def _port(name: str) -> Callable[[], Iterator[str]]:
    def lines() -> Iterator[str]:
        yield "| member | types | when it is used | what it must hold |\n| --- | --- | --- | --- |"
        for one in members_of(name):
            yield f"| `{one.name}` | `{one.types}` | {one.when} | {one.says} |"

    return lines


def _types() -> Iterator[str]:
    yield "| type | import it from | fields |\n| --- | --- | --- |"
    for kind in types_of():
        fields = ", ".join(f"`{field}`" for field in kind.fields)
        yield f"| `{kind.name}` | `{kind.module}` | {fields} |"


TABLES: Mapping[str, Callable[[], Iterator[str]]] = {
    **{name: _port(name) for name in PORTS},
    "types": _types,
    "behaviors": _behaviors,
    "simulation": _simulation,
}


def made(text: str) -> str:
    """Return a page with its tables as the code has them."""
    return re.sub(
        r"(<!-- table: (\w+) -->\n\n).*?(\n\n<!-- end -->)",
        lambda found: found[1] + "\n".join(TABLES[found[2]]()) + found[3],
        text,
        flags=re.DOTALL,
    )


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(made(page.read_text(encoding="utf-8")), encoding="utf-8")
