"""Tree: what the HTML standard's tree of a page holds, by lexbor.

Cost: about 5 µs per KB of ordinary markup, but it grows with the square of nesting, and misnested formatting multiplies
nodes (50 KB of `<font size=N><p>`: 2 million nodes, 900 MB). `html` decides which pages may come here.
"""

from __future__ import annotations

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode

from gossamer.process.scan import Element, ScannedMarkup

_OPTIONS = int(LexborDocumentOptions.WO_EVENTS)
_ELEMENTS = "area,frame,iframe,link,base,meta,title,blockquote[cite],q[cite],ins[cite],del[cite]"
_FOREIGN = ("svg", "math")


class TreeMarkup:
    """What a page's tree holds that modules ask for. Contents of `<template>` are not in it."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._tree = LexborHTMLParser(body, options=_OPTIONS)
        self._anchors: list[tuple[str, str, LexborNode]] | None = None
        self._elements: list[Element] = []
        self._title = ""
        titled = False
        for node in self._tree.css(_ELEMENTS):
            tag = node.tag
            if tag == "title":
                if not titled and _in_html(node):
                    self._title, titled = node.text(), True
            elif tag is not None:
                self._elements.append((tag, node.attributes))

    def anchors(self) -> list[tuple[str, str, LexborNode]]:
        """Return every `a` that has an href, in order: href, rel, the node."""
        if self._anchors is None:
            self._anchors = anchors = []
            for node in self._tree.tags("a"):
                attributes = node.attrs
                href = attributes.get("href", _ABSENT)
                if href is _ABSENT:
                    continue
                anchors.append((href or "", attributes.get("rel") or "", node))
        return self._anchors

    def anchor_text(self, within: LexborNode) -> str:
        """Return the text of an anchor as it stands, or the alt text of its first image that has one."""
        text = within.text()
        return text if text and not text.isspace() else _alternative(within)

    def elements(self) -> list[Element]:
        """Return every area, frame, iframe, link, base and meta, and every quotation and edit with a cite, in order."""
        return self._elements

    def title(self) -> str:
        """Return the text of the first title as it stands."""
        return self._title

    def text(self) -> str:
        """Return the visible text, one line a block."""
        # The tree knows no line breaks; the scan does, and is quicker than walking nodes from here.
        return ScannedMarkup(self._body).text()


_ABSENT = "\0"
"""No attribute holds it: the tokenizer replaces it."""


def _in_html(node: LexborNode) -> bool:
    parent = node.parent
    return parent is None or parent.tag not in _FOREIGN


def _alternative(node: LexborNode) -> str:
    """Return the alt text of the first image that has one, for an anchor that has no text."""
    if node.first_child is None:
        return ""
    for image in node.css("img[alt]"):
        text = image.attrs.get("alt")
        if text:
            return text
    return ""
