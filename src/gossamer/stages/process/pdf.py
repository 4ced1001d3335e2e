"""Pdf: links, title and text of PDF files, by pypdf, in a separate process: a file may take minutes and gigabytes."""

import io
import re
from collections.abc import Iterator
from datetime import datetime
from statistics import median
from typing import Any, BinaryIO

from pypdf import PageObject, PdfReader
from pypdf.errors import DependencyError, FileNotDecryptedError, PyPdfError
from pypdf.generic import IndirectObject

from gossamer.model.pages import Findings, Page
from gossamer.stages.process.documents import COLUMNS, CUT, DAMAGED, ENCRYPTED, WHOLE, Gathered, gather
from gossamer.stages.process.links import Base, Links, collapse_spaces
from gossamer.stages.process.options import TypedModule
from gossamer.stages.process.text import IMAGE

PAGES_MAX = 2_000
"""Pages of one document that are read."""
OBJECTS_MAX = 50_000
"""Objects of a damaged document that are searched for links."""
CONTENT_BYTES_MAX = 8_000_000
"""Unpacked instructions of one document that are read for its text: about 0.6 s a MB."""
_SHORT_CHARACTERS = 24
_LINES_MIN = 12
"""A page of `_LINES_MIN` lines or more is a table or a form, whose columns are kept, if half of them are shorter."""
_END = b"\nstartxref\n0\n%%EOF"
"""An end that makes pypdf search a document for its objects."""
_WHOLE = re.compile(r"https?://", re.IGNORECASE)
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
        if not findings.text and findings.columns["document"] == WHOLE:
            findings.text_method = IMAGE


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
    """Finds the addresses that a PDF's link annotations name (ISO 32000-1, section 12.6.4.7), and its title.

    Of a document that is cut or damaged, all objects are searched for whole addresses.
    """

    name = "pdf_links"
    media_types = ("application/pdf",)
    isolated = True

    def process(self, page: Page, findings: Findings) -> None:
        addresses: list[str] = []
        title = ""
        try:
            reader = PdfReader(page.open())
            title = _metadata_value(reader, "title")
            for number, leaf in enumerate(reader.pages):
                if number >= PAGES_MAX:
                    break
                addresses += _addresses(leaf)
        except _SENSELESS:
            known = set(addresses)
            addresses += (one for one in _addresses_of_damaged(page.open()) if one not in known)
        links = Links(Base(page.url), self._options)
        for address in addresses:
            links.add("anchor", address)
        findings.links.extend(links.take())
        if title and not findings.title:
            findings.title = collapse_spaces(title, self._options.title_bytes_max)


def _addresses(leaf: Any) -> Iterator[str]:
    for annotation in leaf.get("/Annots") or ():
        if address := _address(annotation.get_object()):
            yield address


def _addresses_of_damaged(file: BinaryIO) -> Iterator[str]:
    """Yield the addresses in a document without its end, where the list of its objects and pages would be.

    Only whole addresses: of an encrypted document that lacks its end, the others are noise.
    """
    try:
        reader = PdfReader(io.BytesIO(file.read() + _END))
        numbers = [(number, kind) for kind, places in reader.xref.items() for number in places]
        numbers += [(number, 0) for number in reader.xref_objStm]
    except _SENSELESS:
        return
    for number, generation in sorted(numbers)[:OBJECTS_MAX]:
        try:
            found: Any = IndirectObject(number, generation, reader).get_object()
            within = (found.get("/Annots") or ()) if isinstance(found, dict) else ()
            addresses = [_address(one) for one in (found, *within) if not isinstance(one, IndirectObject)]
        except _SENSELESS:
            continue
        yield from (one for one in addresses if one.isascii() and _WHOLE.match(one))


def _address(annotation: Any) -> str:
    action = annotation.get("/A") if hasattr(annotation, "get") else None
    action = action.get_object() if action is not None else None
    if action is None or not hasattr(action, "get") or action.get("/S") != "/URI":
        return ""
    address = action.get("/URI")
    return address.decode("latin-1") if isinstance(address, bytes) else str(address or "")
