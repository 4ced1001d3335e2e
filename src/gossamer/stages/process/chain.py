"""Chain: runs all modules for a page's media type, in order; a failing module does not stop the others. Reported values
are converted to the declared kinds, or left out with an error.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Literal, Protocol

import msgspec

from gossamer.model.errors import is_mistake
from gossamer.model.links import ANNOUNCING, SEED
from gossamer.model.modules import NAME, RESERVED, ROWS_MAX, ModuleError, whole
from gossamer.model.pages import Findings, Page, PageRow
from gossamer.ports import ProcessingModule
from gossamer.stages.process.html import HtmlDocument, HtmlPage
from gossamer.stages.process.options import ITEM_COLUMNS, ProcessOptions
from gossamer.stages.process.own import Kinds

NAMES_MAX = 256
"""Columns and tables that no module declared: their names may come from pages."""
_TAKEN = frozenset(PageRow.__struct_fields__)
_OF_TABLES = frozenset(("url",))
_OF_ITEMS = frozenset(ITEM_COLUMNS) - {"item"}
_INT_MAX = 2**63 - 1


class Fitting:
    """Checks names and values of columns and rows. Costs nothing if a module reports none."""

    def __init__(self, columns: Kinds, tables: Mapping[str, Kinds]) -> None:
        self._columns = dict(columns)
        self._tables = {name: dict(kinds) for name, kinds in tables.items()}
        self._undeclared: set[str] = set()

    def fit(self, findings: Findings) -> list[str]:
        """Convert columns and rows in place; return what was left out, and why."""
        problems: list[str] = []
        if findings.columns:
            self._row(findings.columns, self._columns, "column", _TAKEN, problems)
        for table in list(findings.rows):
            if not self._fits(table, self._tables, "table", RESERVED, problems):
                del findings.rows[table]
                continue
            kinds = self._tables.get(table, {})
            rows = findings.rows[table]
            if len(rows) > ROWS_MAX:
                problems.append(f"table {table!r}: {len(rows)} rows of one page, {ROWS_MAX} are kept")
                del rows[ROWS_MAX:]
            taken = _OF_ITEMS if "/" in table else _OF_TABLES
            for row in rows:
                self._row(row, kinds, f"column of {table}", taken, problems)
        return list(dict.fromkeys(problems))

    def _row(self, row: dict[str, object], kinds: Kinds, what: str, taken: frozenset[str], problems: list[str]) -> None:
        for name in list(row):
            if not self._fits(name, kinds, what, taken, problems):
                del row[name]
            elif name in kinds and row[name] is not None:
                try:
                    row[name] = _FITTED[kinds[name]](row[name])
                except (TypeError, ValueError, OverflowError, msgspec.MsgspecError, RecursionError) as error:
                    problems.append(f"{what} {name!r} is no {kinds[name]}: {error}"[:500])
                    del row[name]

    def _fits(
        self, name: str, declared: Mapping[str, object], what: str, taken: frozenset[str], problems: list[str]
    ) -> bool:
        if name in declared or f"{what} {name}" in self._undeclared:
            return True
        if not isinstance(name, str) or name in taken or not NAME.fullmatch(name):
            problems.append(f"no {what} can be called {str(name)[:80]!r}")
            return False
        if len(self._undeclared) >= NAMES_MAX:
            problems.append(f"{what} {name!r}: more than {NAMES_MAX} names that no module declared")
            return False
        self._undeclared.add(f"{what} {name}")
        return True


def _int(value: object) -> int:
    number = int(value)  # type: ignore[call-overload]
    if abs(number) > _INT_MAX:
        raise ValueError("more than 64 bits")
    return int(number)


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        raise TypeError("one text, not a list of them")
    return [str(one) for one in value]  # type: ignore[attr-defined]


_FITTED: Mapping[str, Callable[[object], object]] = {
    "text": str,
    "int": _int,
    "float": float,  # type: ignore[dict-item]
    "bool": bool,
    "time": lambda value: value.timestamp() if isinstance(value, datetime) else float(value),  # type: ignore[arg-type]
    "texts": _texts,
    "json": lambda value: msgspec.json.encode(value).decode(),
}


LARGE_BYTES = 65_536
"""Other work may run after each module that processes a larger page."""
CHOICES_MAX = 256
"""Media types whose modules are cached."""


class Processed(msgspec.Struct, frozen=True):
    """Results of all modules for one page."""

    findings: Findings
    errors: tuple[ModuleError, ...] = ()
    ran: tuple[str, ...] = ()
    """The modules that processed the page."""


Slices = Generator[None, None, Processed]


class Watch(Protocol):
    """Interrupts a module that takes too long, where that is possible."""

    def begin(self, spent_s: float = 0.0) -> None:
        """A page begins, or goes on after `pause`, which returned `spent_s`."""

    def resume(self) -> None:
        """A module begins; from now on it may be interrupted by `TimeoutError`."""

    def end(self) -> None:
        """The module is done, or has failed."""

    def pause(self) -> float:
        """Other work may run; return what the page has spent of its time."""


class Unwatched:
    """Does not limit modules, for use where the process as a whole is watched."""

    def begin(self, spent_s: float = 0.0) -> None:
        """Nothing happens."""

    resume = begin
    end = begin

    def pause(self) -> float:
        """Nothing happens."""
        return 0.0


class Modules:
    """Runs modules over pages. A page is decoded and parsed at most once, when the first module asks.

    `types` has the modules by media type (`text/html`, `image/*`, `*/*`): those of the exact type run first, each once.
    `modules` come after these, for the types that they want.
    """

    def __init__(
        self,
        modules: Sequence[ProcessingModule],
        options: ProcessOptions,
        types: Mapping[str, Sequence[ProcessingModule]] | None = None,
        watch: Watch | None = None,
        fitting: Fitting | None = None,
    ) -> None:
        self._modules = tuple(modules)
        self._options = options
        self._types = dict(types or {})
        self._watch = watch or Unwatched()
        self._chosen: dict[str, tuple[ProcessingModule, ...]] = {}
        self._named: dict[tuple[ProcessingModule, ...], tuple[str, ...]] = {}
        every = chain(*self._types.values(), self._modules)
        self._announcing = tuple(one for one in every if getattr(one, "reads_announced", False))
        self._fitting = fitting or Fitting({}, {})

    def wants(self, media_type: str) -> bool:
        """Return whether any module processes pages of a media type."""
        return bool(self.modules_for(media_type))

    def process(self, page: Page, findings: Findings | None = None, left_out: Sequence[int] = ()) -> Processed:
        """Return the findings of all modules, added to `findings`. A module that raises becomes an error in the list;
        the others still run, except those with an index in `left_out`.
        """
        return whole(self.process_in_slices(page, findings, left_out))

    def process_in_slices(self, page: Page, findings: Findings | None = None, left_out: Sequence[int] = ()) -> Slices:
        """As `process`. Yields where other work may run: within modules that have `process_in_slices`, and after each
        module that processes a large page. The modules share one time limit; short slices do not count.
        """
        carried: Page = HtmlPage(*msgspec.structs.astuple(page), document=HtmlDocument(page, self._options))
        findings = Findings() if findings is None else findings
        errors: list[ModuleError] = []
        chosen = self.modules_for(page.media_type, page.link_type)
        if left_out:
            chosen = tuple(module for place, module in enumerate(chosen) if place not in left_out)
        watch = self._watch
        is_large = page.body_bytes > LARGE_BYTES
        watch.begin()
        watch.end()
        for module in chosen:
            try:
                watch.resume()
                try:
                    if (sliced := getattr(module, "process_in_slices", None)) is None:
                        module.process(carried, findings)
                    else:
                        for _ in sliced(carried, findings):
                            spent_s = watch.pause()
                            yield
                            watch.begin(spent_s)
                finally:
                    watch.end()
            except BaseException as error:  # Any module's mistake is that module's alone.
                if not is_mistake(error):
                    raise
                kind: Literal["failed", "timeout"] = "timeout" if isinstance(error, TimeoutError) else "failed"
                errors.append(ModuleError(module.name, f"{type(error).__name__}: {error}", kind))
            if is_large:
                spent_s = watch.pause()
                yield
                watch.begin(spent_s)
                watch.end()
        if findings.columns or findings.rows:
            errors += [ModuleError("columns", problem) for problem in self._fitting.fit(findings)]
        names = self._named.get(chosen) or self._names(chosen)
        if findings.fields:
            errors += findings.invalid
            names = (*names, *findings.fields)
        return Processed(findings, tuple(errors), names)

    def modules_for(self, media_type: str, link_type: str = "") -> tuple[ProcessingModule, ...]:
        """Return the modules for a page of a media type to which a link of `link_type` led, in order."""
        chosen = self._chosen.get(media_type)
        if chosen is None:
            chosen = self._choose(media_type)
            if len(self._chosen) < CHOICES_MAX:  # Media types are what servers say they are.
                self._chosen[media_type] = chosen
        if link_type in ANNOUNCING or link_type == SEED:
            return tuple(dict.fromkeys((*self._announcing, *chosen)))  # One may read what another announces.
        return chosen

    def _choose(self, media_type: str) -> tuple[ProcessingModule, ...]:
        kind = media_type.partition("/")[0]
        found = [one for pattern in (media_type, f"{kind}/*", "*/*") for one in self._types.get(pattern, ())]
        found += [one for one in self._modules if one.wants(media_type)]
        return tuple(dict.fromkeys(found))

    def _names(self, chosen: tuple[ProcessingModule, ...]) -> tuple[str, ...]:
        names = tuple(module.name for module in chosen)
        if len(self._named) < CHOICES_MAX:  # Kinds of pages, most of which share their modules.
            self._named[chosen] = names
        return names
