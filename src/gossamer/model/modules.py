"""Modules: counts and errors of processing modules, and what modules may add to the tables."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from typing import Final, Literal, TypeVar

import msgspec

from gossamer.model.counters import total
from gossamer.model.words import counted

INVALID: Final = "invalid"


class ModuleError(msgspec.Struct, frozen=True):
    """A processing module failed on a page; the others went on."""

    module: str
    error: str
    """The exception, as `Type: text`, or how its process ended."""
    kind: Literal["failed", "timeout", "died", "invalid"] = "failed"
    """`invalid`: a page's value does not fit a field of an item; `module` is `items/NAME.FIELD`."""

    def __str__(self) -> str:
        return f"{self.module}: {self.error}"


class ModuleCounts(msgspec.Struct):
    """Counts of one processing module in a crawl, over all runs."""

    pages: int = 0
    """Pages that the module processed."""
    failed: int = 0
    """Pages on which it failed, including `timeouts` and `died`."""
    timeouts: int = 0
    died: int = 0
    error: str = ""
    """The last error."""
    url: str = ""
    """The page of the last error."""
    found: int = 0
    """Pages on which a rule for items found some."""

    def says(self, name: str) -> str:
        """Return a sentence about a module that failed; empty for one that did not."""
        if not self.failed:
            return ""
        how = ((self.timeouts, "timed out"), (self.died, "died"))
        parts = [f"{count} {what}" for count, what in how if count]
        among = f" ({', '.join(parts)})" if parts else ""
        what = f"field {name} is missing or invalid" if "/" in name else f"module {name} failed"
        return f"{what} on {self.failed} of {self.pages} pages{among}: {self.error}, last on {self.url}"

    def lacks(self, name: str) -> str:
        """Return a sentence about a rule for items that found none; empty for others."""
        is_rule = "/" in name and "." not in name
        how = f"rule {name} found no item on {counted(self.pages, 'page')}: see its selector and urls"
        return how if is_rule and not self.found else ""


def module_facts(counts: Mapping[str, ModuleCounts]) -> dict[str, dict[str, object]]:
    """Return the counts of each module as a status shows them."""
    facts = {name: msgspec.structs.asdict(one) for name, one in counts.items()}
    return {name: {**facts[name], "says": one.says(name), "unmatched": one.lacks(name)} for name, one in counts.items()}


def sum_modules(shards: list[Mapping[str, object]]) -> dict[str, dict[str, object]]:
    """Return the sums of what `module_facts` returned in several shards."""
    sums: dict[str, ModuleCounts] = {}
    for facts in shards:
        for name, one in facts.items():
            sums[name] = total(sums.get(name, ModuleCounts()), msgspec.convert(one, ModuleCounts))
    return module_facts(sums)


KINDS = ("text", "int", "float", "bool", "time", "texts", "json")
"""Kinds of value: `time` is wall time in seconds or a datetime, `texts` a list of texts, `json` any JSON value."""
NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
"""Valid names of columns and tables."""
RESERVED = frozenset(("pages", "links", "epochs", "warc", "state", "logs", "search", "checkpoints", "index", "items"))
"""Names that a module may not use: they have another meaning in a crawl's directory."""
ROWS_MAX = 10_000
"""Rows that one page may add to one table."""

One = TypeVar("One")


def whole(slices: Generator[None, None, One]) -> One:
    """Run work that can pause between slices to its end; return its result."""
    while True:
        try:
            next(slices)
        except StopIteration as end:
            result: One = end.value
            return result
