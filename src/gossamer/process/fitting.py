"""Fitting: what modules report is brought into the form that they declared, or left out with a word."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

import msgspec

from gossamer.model.columns import NAME, TABLES_TAKEN
from gossamer.model.visits import Findings, PageRow

ROWS_MAX = 10_000
"""Rows that one page may add to one table."""
NAMES_MAX = 256
"""Columns, and tables, that no module declared: names may come from what a page says."""
_TAKEN = frozenset(PageRow.__struct_fields__)
_INT_MAX = 2**63 - 1

Kinds = Mapping[str, str]


class Fitting:
    """Checks names and values of columns and rows. Costs nothing where a module reports none."""

    def __init__(self, columns: Kinds, tables: Mapping[str, Kinds]) -> None:
        self._columns = dict(columns)
        self._tables = {name: dict(kinds) for name, kinds in tables.items()}
        self._undeclared: set[str] = set()

    def fit(self, findings: Findings) -> list[str]:
        """Bring columns and rows into form, in place; return what had to be left out, and why."""
        problems: list[str] = []
        if findings.columns:
            self._row(findings.columns, self._columns, "column", _TAKEN, problems)
        for table in list(findings.rows):
            if not self._fits(table, self._tables, "table", TABLES_TAKEN, problems):
                del findings.rows[table]
                continue
            kinds = self._tables.get(table, {})
            rows = findings.rows[table]
            if len(rows) > ROWS_MAX:
                problems.append(f"table {table!r}: {len(rows)} rows of one page, {ROWS_MAX} are kept")
                del rows[ROWS_MAX:]
            for row in rows:
                self._row(row, kinds, f"column of {table}", frozenset(("url",)), problems)
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


def _time(value: object) -> float:
    return value.timestamp() if isinstance(value, datetime) else float(value)  # type: ignore[arg-type]


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        raise TypeError("one text, not a list of them")
    return [str(one) for one in value]  # type: ignore[attr-defined]


_FITTED: Mapping[str, Callable[[object], object]] = {
    "text": str,
    "int": _int,
    "float": float,  # type: ignore[dict-item]
    "bool": bool,
    "time": _time,
    "texts": _texts,
    "json": lambda value: msgspec.json.encode(value).decode(),
}
