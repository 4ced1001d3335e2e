"""Html: a page made readable once, for all modules that look at it: by one scan, or as the tree of the HTML standard.

The tree is lexbor's. It costs about 5 µs per KB of ordinary markup, but the cost grows with the square of nesting, and
misnested formatting multiplies nodes (50 KB of `<font size=N><p>`: 2 million nodes, 900 MB), so not every page may have
one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode

from gossamer.model.visits import Page
from gossamer.process.charset import to_utf8
from gossamer.process.options import ProcessOptions
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


HTML_TYPES = frozenset(("text/html", "application/xhtml+xml"))


class Markup(Protocol):
    """What a page's markup says, however it was read."""

    def anchors(self) -> Sequence[tuple[str, str, Any]]:
        """Return every `a` that has an href, in order: href, rel, and what `anchor_text` takes."""
        ...

    def anchor_text(self, within: Any) -> str:
        """Return an anchor's text as it stands, an image's alt if it has none. As dear as the rest of a link: asked
        for once for each address.
        """
        ...

    def elements(self) -> list[Element]:
        """Return every area, frame, iframe, link, base and meta, and every quotation and edit with a cite, in order."""
        ...

    def title(self) -> str:
        """Return the text of the first title as it stands."""
        ...

    def text(self) -> str:
        """Return the visible text, one line a block."""
        ...


class Document:
    """A page's characters and markup, made when first asked for."""

    def __init__(self, page: Page, options: ProcessOptions) -> None:
        self._page = page
        self._options = options
        self._decoded: tuple[bytes, str] | None = None
        self._markup: Markup | None = None
        self.main: tuple[Any] | None = None
        """What `process.content` found, for the next of its modules."""

    @property
    def charset(self) -> str:
        """The encoding that was used, by its WHATWG name in lower case."""
        return self._decode()[1]

    @property
    def markup(self) -> Markup:
        """The page's markup. The first call pays for all."""
        if self._markup is None:
            body = self._decode()[0]
            self._markup = TreeMarkup(body) if bears_tree(body, self._options) else ScannedMarkup(body)
        return self._markup

    def characters(self) -> str:
        """Return the page's characters, for modules that want no markup."""
        return self._decode()[0].decode("utf-8", "replace")

    def utf8(self) -> bytes:
        """Return the page's bytes in UTF-8; what was broken in a page that said it is UTF-8 still is."""
        return self._decode()[0]

    def _decode(self) -> tuple[bytes, str]:
        if self._decoded is None:
            self._decoded = to_utf8(self._bytes(), self._page.charset)
        return self._decoded

    def _bytes(self) -> bytes:
        """Return the page's bytes; of one that is too large for memory as many as may be read at once."""
        if self._page.file is None:
            return self._page.body
        with self._page.open() as file:
            return file.read(self._options.markup_bytes_max)


class HtmlPage(Page, frozen=True, kw_only=True):
    """A page that carries its document from module to module."""

    document: Document


def document_of(page: Page, options: ProcessOptions) -> Document:
    """Return the document that the page carries, or one of its own."""
    return page.document if isinstance(page, HtmlPage) else Document(page, options)


def bears_tree(body: bytes, options: ProcessOptions) -> bool:
    """Say whether a tree of this page is cheap whatever the page holds.

    End tags prove nothing (they may be misnamed, misnested or in a comment), so the bounds are on all start tags, and
    on attributes by the page's length. At the defaults the worst page known costs about 0.1 s and 70 MB. Costs two
    counts: about 0.4 µs per KB.
    """
    if len(body) > options.tree_bytes_max:
        return False
    tags = body.count(b"<")
    return tags <= options.tree_tags_max or tags - body.count(b"</") <= options.tree_tags_max
