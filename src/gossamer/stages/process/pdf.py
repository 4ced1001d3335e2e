"""Pdf: links, title and text of PDF files, by pypdf, in a separate process, because a file may take minutes and
gigabytes.
"""

from __future__ import annotations

from datetime import datetime
from statistics import median
from typing import Any, BinaryIO

from pypdf import PageObject, PdfReader
from pypdf.errors import DependencyError, FileNotDecryptedError, PyPdfError

from gossamer.model.pages import Findings, Page
from gossamer.stages.process.documents import COLUMNS, CUT, DAMAGED, ENCRYPTED, Gathered, gather
from gossamer.stages.process.links import Base, Links, collapse_spaces
from gossamer.stages.process.options import TypedModule

PAGES_MAX = 2_000
"""Pages of one document that are read."""
CONTENT_BYTES_MAX = 8_000_000
"""Unpacked instructions of one document that are read for its text: about 0.6 s a MB."""
_SHORT_CHARACTERS = 24
_LINES_MIN = 12
"""A page is a table or a form, whose columns are kept, if half of its lines are shorter and it has at least
`_LINES_MIN`.
"""

_SENSELESS = (PyPdfError, RecursionError, ValueError, TypeError, LookupError, AttributeError)
"""Exceptions of pypdf for invalid content."""
_FACTS = {"title": "title", "byline": "author", "published": "creation_date", "modified": "modification_date"}


class PdfText(TypedModule):
    """Finds the text of PDF documents, page after page, and title, author and dates. Pages of short lines, such as
    tables, keep their columns, divided by spaces. Scanned pages have no text: nothing is recognized in pictures.
    """

    name = "pdf_text"
    media_types = ("application/pdf",)
    isolated = True
    columns = COLUMNS

    def process(self, page: Page, findings: Findings) -> None:
        gather(_read_text, page, findings, self._options)


def _read_text(file: BinaryIO, found: Gathered) -> None:
    try:
        reader = PdfReader(file)
        if reader.is_encrypted and not reader.decrypt(""):
            raise FileNotDecryptedError
        for fact, name in _FACTS.items():
            found.fact(fact, _metadata_value(reader, name))
        left = CONTENT_BYTES_MAX
        for number, leaf in enumerate(reader.pages):
            contents = leaf.get_contents()
            left -= len(contents.get_data()) if contents is not None else 0
            if number >= PAGES_MAX or left < 0:
                found.outcome = CUT
                return
            found.add(_text_of(leaf) + "\n")
    except (FileNotDecryptedError, DependencyError):
        found.outcome = ENCRYPTED
    except _SENSELESS as error:
        # Not every version that we take names its limits.
        found.outcome = CUT if type(error).__name__ == "LimitReachedError" else DAMAGED


def _metadata_value(reader: PdfReader, name: str) -> str:
    """Return a metadata value of a document; empty if it is invalid, like the dates of many programs."""
    try:
        value = getattr(reader.metadata, name, None)
    except _SENSELESS:
        return ""
    if isinstance(value, datetime):
        return value.isoformat()
    return value if isinstance(value, str) else ""


def _text_of(leaf: PageObject) -> str:
    text = leaf.extract_text()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) >= _LINES_MIN and median(map(len, lines)) < _SHORT_CHARACTERS:
        return leaf.extract_text(extraction_mode="layout", layout_mode_space_vertically=False)
    return text


class PdfLinks(TypedModule):
    """Finds the addresses that a PDF's link annotations name (ISO 32000-1, section 12.6.4.7), and its title."""

    name = "pdf_links"
    media_types = ("application/pdf",)
    isolated = True

    def process(self, page: Page, findings: Findings) -> None:
        links = Links(Base(page.url), self._options)
        title = ""
        try:
            reader = PdfReader(page.open())
            title = _metadata_value(reader, "title")
            for number, leaf in enumerate(reader.pages):
                if number >= PAGES_MAX:
                    break
                for annotation in leaf.get("/Annots") or ():
                    address = _address(annotation.get_object())
                    if address:
                        links.add("anchor", address)
        except _SENSELESS:
            pass  # What came before is kept, as of its text.
        findings.links.extend(links.take())
        if title and not findings.title:
            findings.title = collapse_spaces(title, self._options.title_bytes_max)


def _address(annotation: Any) -> str:
    action = annotation.get("/A") if hasattr(annotation, "get") else None
    action = action.get_object() if action is not None else None
    if action is None or not hasattr(action, "get") or action.get("/S") != "/URI":
        return ""
    address = action.get("/URI")
    return address.decode("latin-1") if isinstance(address, bytes) else str(address or "")
