"""Office: text of workbooks and of RTF files, by libraries that read a whole file, for separate processes."""

import re
from collections.abc import Iterator
from typing import IO

from python_calamine import CalamineError, CalamineWorkbook, SheetVisibleEnum
from striprtf.striprtf import rtf_to_text

_HIDDEN = re.compile(r"\{\\v(?![a-z0-9])[^{}]*\}")


def workbook_lines(file: IO[bytes]) -> Iterator[str]:
    """Yield of each visible sheet its name, and a line for each row, cells divided by tabs. Raises ValueError."""
    try:
        with CalamineWorkbook.from_filelike(file) as book:
            for sheet in book.sheets_metadata:
                if sheet.visible is SheetVisibleEnum.Visible:
                    yield sheet.name
                    for row in book.get_sheet_by_name(sheet.name).iter_rows():
                        cells = (str(one).removesuffix(".0") if isinstance(one, float) else str(one) for one in row)
                        yield "\t".join(" ".join(cell.split()) for cell in cells).rstrip()
    except CalamineError as error:
        raise ValueError(str(error)) from error


def rtf_text(data: bytes) -> str:
    """Return the text of an RTF file, without what is marked as hidden. Raises ValueError."""
    if not data.startswith(b"{\\rtf"):
        raise ValueError("no RTF")
    return str(rtf_to_text(_HIDDEN.sub("", data.decode("latin-1")), errors="replace"))  # type: ignore[no-untyped-call]
