"""Metadata: what a page says of itself to machines: Open Graph, JSON-LD, canonical address, description."""

from __future__ import annotations

import re

import msgspec

from gossamer.model.visits import Findings, Page
from gossamer.process.base import Base
from gossamer.process.html import HTML_TYPES, document_of
from gossamer.process.links import base_href, collapsed
from gossamer.process.options import ProcessOptions
from gossamer.process.walk import Walk

PROPERTIES_MAX = 200
"""Open Graph properties kept of one page."""
BLOCKS_MAX = 50
"""JSON-LD blocks kept of one page."""
_PREFIXES = ("og:", "article:", "book:", "profile:", "music:", "video:", "twitter:")
_WALK = Walk(("html",))
_JSON_LD = re.compile(r"[\t\n\f\r ]*application/ld\+json[\t\n\f\r ]*(?:;.*)?", re.IGNORECASE | re.DOTALL)


class Metadata:
    """Reads what pages tell search engines and social networks, as far as it is well-formed.

    The columns: `description`; `canonical`, absolute; `declared_language` (`html lang`); `open_graph`, one JSON object
    of properties to lists of values; `json_ld`, one JSON list of the page's blocks as they stand.
    """

    name = "metadata"
    columns = {  # noqa: RUF012 - declared once, never changed
        "description": "text",
        "canonical": "text",
        "declared_language": "text",
        "open_graph": "json",
        "json_ld": "json",
    }

    def __init__(self, options: ProcessOptions | None = None) -> None:
        self._options = options or ProcessOptions()

    def wants(self, media_type: str) -> bool:
        return media_type in HTML_TYPES

    def process(self, page: Page, findings: Findings) -> None:
        document, columns = document_of(page, self._options), findings.columns
        elements = document.markup.elements()
        graph: dict[str, list[str]] = {}
        for tag, found in elements:
            if tag == "meta":
                self._meta(found.get("property") or found.get("name") or "", found.get("content") or "", graph, columns)
            elif tag == "link" and "canonical" not in columns:
                href = found.get("href")
                if href and "canonical" in (found.get("rel") or "").lower().split():
                    joined = Base(page.url, base_href(elements), document.charset).join(href)
                    if joined is not None and len(joined) <= self._options.url_bytes_max:
                        columns["canonical"] = joined
        if graph:
            columns["open_graph"] = graph
        self._walked(document.utf8(), columns)

    def _meta(self, name: str, content: str, graph: dict[str, list[str]], columns: dict[str, object]) -> None:
        name = name.strip().lower()
        if name == "description":
            columns.setdefault("description", collapsed(content, self._options.title_bytes_max))
        elif name.startswith(_PREFIXES) and len(name) <= 64 and len(graph) < PROPERTIES_MAX:
            values = graph.setdefault(name, [])
            if len(values) < PROPERTIES_MAX:
                values.append(collapsed(content, self._options.title_bytes_max))

    def _walked(self, body: bytes, columns: dict[str, object]) -> None:
        blocks: list[object] = []
        room = self._options.text_bytes_max
        for name, found, start, end in _WALK.over(body):
            if name == "html" and found.get("lang"):
                columns.setdefault("declared_language", found["lang"].strip()[:35])
            elif name == "script" and _JSON_LD.fullmatch(found.get("type", "")) and end - start <= room:
                try:
                    blocks.append(msgspec.json.decode(body[start:end]))
                except (msgspec.DecodeError, RecursionError):
                    continue
                room -= end - start
                if len(blocks) == BLOCKS_MAX:
                    break
        if blocks:
            columns["json_ld"] = blocks
