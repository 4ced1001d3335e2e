"""Pdf: links and title of PDF documents, by pypdf. In a process of its own: one may take minutes and gigabytes."""

from __future__ import annotations

from typing import Any

from pypdf import PdfReader

from gossamer.model.visits import Findings, Page
from gossamer.process.links import Base, Links, collapsed
from gossamer.process.options import ProcessOptions

PAGES_MAX = 2_000
"""Pages of one document that are looked at."""


class PdfLinks:
    """Finds the addresses that a PDF's link annotations name (ISO 32000-1, section 12.6.4.7), and its title."""

    name = "pdf_links"
    isolated = True

    def __init__(self, options: ProcessOptions | None = None) -> None:
        self._options = options or ProcessOptions()

    def wants(self, media_type: str) -> bool:
        return media_type == "application/pdf"

    def process(self, page: Page, findings: Findings) -> None:
        reader = PdfReader(page.open())
        links = Links(Base(page.url), self._options)
        for number, leaf in enumerate(reader.pages):
            if number >= PAGES_MAX:
                break
            for annotation in leaf.get("/Annots") or ():
                address = _address(annotation.get_object())
                if address:
                    links.add("anchor", address)
        findings.links.extend(links.taken())
        title = reader.metadata.title if reader.metadata is not None else None
        if title and not findings.title:
            findings.title = collapsed(str(title), self._options.title_bytes_max)


def _address(annotation: Any) -> str:
    action = annotation.get("/A") if hasattr(annotation, "get") else None
    action = action.get_object() if action is not None else None
    if action is None or not hasattr(action, "get") or action.get("/S") != "/URI":
        return ""
    address = action.get("/URI")
    return address.decode("latin-1") if isinstance(address, bytes) else str(address or "")
