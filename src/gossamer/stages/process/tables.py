"""Tables: cells of an HTML table in a grid, spanning ones included, and which tables only place things."""

import re
from collections.abc import Callable

from gossamer.stages.process.kept import Element

COLUMNS_MAX = 100
CELLS_MAX = 50_000
"""Cells of one table, those that others span included; further rows are left out."""
_PARTS = frozenset(("thead", "tbody", "tfoot"))
_CELLS = frozenset(("td", "th"))
_TEXT_ALIGN = re.compile(r"text-align[ \t]*:[ \t]*(left|right|center)", re.IGNORECASE)
_LARGE = frozenset(("table", "h1", "h2", "h3"))


def rows_of(table: Element) -> list[list[Element]]:
    """Return the cells of each row, as they stand."""
    return [
        [cell for cell in row.elements() if cell.name in _CELLS]
        for part in table.elements()
        for row in (part.elements() if part.name in _PARTS or part.name == "" else (part,))
        if row.name == "tr"
    ]


def is_layout(table: Element) -> bool:
    """Return whether a table places things on the page: tables, headings, an equation of LaTeXML, or one cell a row."""
    if table.attributes.get("role") in ("presentation", "none"):
        return True
    rows = [row for row in rows_of(table) if row]
    if not rows or "ltx_eqn" in table.rest or max(sum(cell.children != [] for cell in row) for row in rows) < 2:
        return True
    preformatted = 0
    for one in table.walk():
        if isinstance(one, Element):
            if one.name in _LARGE:
                return True
            preformatted += one.name == "pre"
    return preformatted > 0 and len(rows) == 1


def cells_of(table: Element, written: Callable[[Element], str]) -> list[list[str]]:
    """Return the cells of a table as a grid with equal rows, none without any text.

    A cell that spans rows is repeated in each; one that spans columns is in the first.
    """
    grid: list[list[str]] = []
    below: dict[int, tuple[int, str]] = {}
    """Of each column how many further rows its cell spans, and its text."""
    count = 0
    for row in rows_of(table):
        line: list[str] = []
        cells = iter(row)
        while len(line) < COLUMNS_MAX:
            column = len(line)
            if column in below:
                rest, text = below.pop(column)
                if rest > 1:
                    below[column] = (rest - 1, text)
                line.append(text)
                continue
            cell = next(cells, None)
            if cell is None:
                if not any(one > column for one in below):
                    break
                line.append("")
                continue
            text = written(cell)
            spanned = _span(cell, "colspan")
            down = _span(cell, "rowspan")
            for at in range(column, min(column + spanned, COLUMNS_MAX)):
                line.append(text if at == column else "")
                if down > 1:
                    below[at] = (down - 1, text if at == column else "")
        count += len(line)
        if count > CELLS_MAX:
            break
        if any(line):
            grid.append(line)
    width = max((len(line) for line in grid), default=0)
    return [line + [""] * (width - len(line)) for line in grid]


def alignments(table: Element, columns: int) -> list[str]:
    """Return the alignment of each column (`left`, `right`, `center` or empty), by its head, else by its first row."""
    rows = [row for row in rows_of(table) if row][:2]
    found = [""] * columns
    for row in rows:
        at = 0
        for cell in row:
            if at < columns:
                found[at] = found[at] or _alignment(cell)
            at += _span(cell, "colspan")
    return found


def _alignment(cell: Element) -> str:
    styled = _TEXT_ALIGN.search(cell.attributes.get("style", ""))
    stated = (styled[1] if styled is not None else cell.attributes.get("align", "")).strip().lower()
    return stated if stated in ("left", "right", "center") else ""


def _span(cell: Element, name: str) -> int:
    value = cell.attributes.get(name, "").strip()
    return max(1, min(int(value), 1_000)) if value.isascii() and value.isdecimal() and len(value) < 6 else 1
