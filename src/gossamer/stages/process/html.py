"""Html: decodes and parses a page once for all modules, by one scan or as the tree of the HTML standard.

The tree is lexbor's. It costs about 5 µs per KB of ordinary markup, but grows with the square of nesting, and misnested
formatting multiplies nodes (50 KB of `<font size=N><p>`: 2 million nodes, 900 MB), so not every page gets a tree.
"""

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode

from gossamer.model.pages import Page
from gossamer.stages.process.charset import to_utf8
from gossamer.stages.process.hidden import without_hidden
from gossamer.stages.process.options import ProcessOptions
from gossamer.stages.process.raw import RAW
from gossamer.stages.process.scan import (
    XLINK_HREF,
    Element,
    ScannedMarkup,
    anchor_text_of,
    automaton,
    divides,
    is_shadow_root,
)
from gossamer.stages.process.tokens import NEEDED, VOID
from gossamer.stages.process.walk import ElementWalk

_OPTIONS = int(LexborDocumentOptions.WO_EVENTS)
# Names alone: six of them with attributes (`q[cite]`) take 15 µs more for 25 KB.
_USUAL = "link,base,meta,title,svg,math"
_RARE = ("area", "frame", "iframe", "noframes", "template", *NEEDED)
_ELEMENTS = ",".join((_USUAL, *_RARE))
"""Each name is compared with each element of a page, so pages are searched for rare ones before."""
_HAS_RARE = automaton(f"(?i)<(?:{'|'.join(_RARE)})").search
_ROOTS = frozenset(("svg", "math"))
_LEAVING = frozenset(("meta", "blockquote", "frame"))
"""Of these elements those that are never SVG's or MathML's."""
_HTML_WITHIN = frozenset(("foreignObject", "desc", "title", "annotation-xml"))


class TreeMarkup:
    """The parts of a page's tree that modules need. Contents of `<template>` are not included."""

    def __init__(self, body: bytes) -> None:
        self.tree = LexborHTMLParser(body, options=_OPTIONS)
        """The tree itself, for selectors."""
        self.elements: list[Element] = []
        """Every area, frame, iframe, link, base and meta, and every quotation and edit with a cite, in order."""
        self.title: str | None = None
        """The text of the first title, unchanged."""
        self.hides = False
        """Whether the page has links that are not in the tree: within `<noframes>`, or in a shadow root."""
        is_drawn = False
        for node in self.tree.css(_USUAL if _HAS_RARE(body) is None else _ELEMENTS):
            tag = node.tag
            if tag in _ROOTS:
                is_drawn = True
            elif is_drawn and tag not in _LEAVING and _is_foreign(node):
                continue
            elif tag == "title":
                if self.title is None:
                    self.title = node.text()
            elif tag in ("noframes", "template"):
                self.hides = self.hides or tag == "noframes" or is_shadow_root(node.attributes)
            elif tag is not None:
                attributes = node.attributes
                if tag not in NEEDED or NEEDED[tag] in attributes:
                    self.elements.append((tag, attributes))

    @cached_property
    def anchors(self) -> list[tuple[str, str, Any]]:
        """Every `a` that has an href, in order: href, rel, the node."""
        return [
            (attributes[name] or "", (attributes["rel"] or "") if "rel" in attributes else "", node)
            for node in self.tree.tags("a")
            if (name := "href" if "href" in (attributes := node.attributes) else XLINK_HREF) in attributes
        ]

    def anchor_text(self, within: Any) -> str:
        """Return an anchor's text, else an image's `alt`, its `aria-label` or its `title`. Call it once an address."""
        text: str = within.inner_html or ""
        if "<" in text or "&" in text:
            markup = text
            text = within.text()
            if "<" in markup and (not text or text.isspace() or divides(markup)):
                text = anchor_text_of(markup.encode("utf-8", "replace"))
        if text and not text.isspace():
            return text
        label: str = within.attrs.get("aria-label") or within.attrs.get("title") or text
        return label


def _is_foreign(node: LexborNode) -> bool:
    """Return whether an element within a root of SVG or MathML is theirs, and not HTML's."""
    parent = node.parent
    while parent is not None and (tag := parent.tag or "") not in ("svg", "math"):
        if tag in _HTML_WITHIN:
            return False
        parent = parent.parent
    return parent is not None


XHTML = "application/xhtml+xml"
HTML_TYPES = frozenset(("text/html", XHTML))
_XML = re.compile(
    rb"<!--.*?(?:-->|\Z)|<!\[CDATA\[(.*?)(?:\]\]>|\Z)"
    rb"|<(script|style|title|textarea|iframe|template|xmp|noembed|noframes|noscript|select)"
    rb"((?>(?:[^<>\"'/]|\"[^<\"]*+\"|'[^<']*+'|/(?!>))*))/>",
    re.DOTALL,
)
"""In XML these tags are elements without content, of which HTML would take the rest of the page; it has no CDATA."""
_NUMBERED = (b"line-n", b"linen", b"source-line", b'"ln', b".4em")
_NUMBER = re.compile(rb"<span([^<>]*+)>(?>(?:<a[^<>]*+>)?)\s*+\d{1,6}+\s*+(?>(?:</a>)?)</span>")
_NUMBERING = re.compile(rb"line-?n(?:o|um)|[\"' ]lnt?[\"' ]|margin-right:0?\.4em;padding:0 0?\.4em")
"""What pages with them contain, the number of a line of code, and how Pygments, Doxygen and Chroma write such."""
_NULL = re.compile(rb"<[^<>\0]*\0[^<>]*>|\0")
"""A NUL in text is nothing, in a tag a replacement character (HTML standard, sections 13.2.6.4.7 and 13.2.5.33)."""
_NULLS_MAX = 1_000
"""With more of them a page is no text, and all are dropped: each that is looked at costs 0.5 µs."""
_REPLACEMENT = "\ufffd".encode()


Markup = ScannedMarkup | TreeMarkup
"""A page's markup, by scan or tree: with equal anchors, elements and title."""


class HtmlDocument:
    """A page's characters and markup, computed on first use."""

    def __init__(self, page: Page, options: ProcessOptions) -> None:
        self._page = page
        self._options = options
        self._decoded: tuple[bytes, str] | None = None
        self._markup: Markup | None = None
        self._overrun: TimeoutError | None = None
        """The interruption of the scan, which no further module begins again."""
        self.main: tuple[Any] | None = None
        """The main content that `process.content` found, for its other modules."""

    @property
    def charset(self) -> str:
        """The encoding that was used, by its WHATWG name in lower case."""
        return (self._decoded or self._decode())[1]

    @property
    def markup(self) -> Markup:
        """The page's markup. Only the first call has a cost."""
        if self._markup is None:
            for _ in self.read():
                pass
        assert self._markup is not None
        return self._markup

    def read(self) -> Iterator[None]:
        """Make the markup, if there is none yet, in slices of a few milliseconds."""
        if self._markup is not None:
            return
        if self._overrun is not None:  # Another attempt would be interrupted, too.
            raise TimeoutError(f"the page's markup was not read: {self._overrun}")
        try:
            body = self.utf8()
            # The tree has no line breaks, and the text of a page costs a scan anyway.
            if not self._options.text and bears_tree(body, self._options):
                tree = TreeMarkup(body)
                self._markup = None if tree.hides else tree
            if self._markup is None:
                yield
                markup = ScannedMarkup(body, scanned=False)
                yield from markup.scan()
                self._markup = markup
        except TimeoutError as error:
            self._overrun = error
            raise

    @cached_property
    def tree(self) -> LexborHTMLParser | None:
        """The page's tree, for selectors; None if it could cost too much."""
        if isinstance(self._markup, TreeMarkup):
            return self._markup.tree
        body = self.utf8()
        if bears_tree(body, self._options) or (len(body) <= self._options.items_bytes_max and is_regular(body)):
            return LexborHTMLParser(body, options=_OPTIONS)
        return None

    def characters(self) -> str:
        """Return the page's characters, for modules that want no markup."""
        return self.utf8().decode("utf-8", "replace")

    def text(self) -> str:
        """Return the visible text, one line a block."""
        return self._visible_markup.text()

    def emphasis(self) -> str:
        """Return the visible headings and bold text."""
        return self._visible_markup.emphasis()

    @cached_property
    def _visible_markup(self) -> ScannedMarkup:
        body = self.visible[0]
        read = self._markup
        return read if isinstance(read, ScannedMarkup) and body is self.utf8() else ScannedMarkup(body)

    @cached_property
    def visible(self) -> tuple[bytes, int]:
        """The page in UTF-8 without hidden elements and numbers of lines, and how many characters are in the hidden."""
        body, characters = without_hidden(self.utf8())
        is_code = b"<pre" in body or b"<!-- fragment" in body
        if is_code and any(mark in body for mark in _NUMBERED):
            body = _NUMBER.sub(lambda one: one[0] if _NUMBERING.search(one[1]) is None else b"", body)
        return body, characters

    def utf8(self) -> bytes:
        """Return the page's bytes in UTF-8; errors in a page that declares UTF-8 are still there."""
        return (self._decoded or self._decode())[0]

    def _decode(self) -> tuple[bytes, str]:
        body, name = to_utf8(self._bytes(), self._page.charset)
        self._decoded = _without_nulls(as_html(body) if self._page.media_type == XHTML else body), name
        return self._decoded

    def _bytes(self) -> bytes:
        """Return the page's bytes; if it is too large for memory, only its first `markup_bytes_max`."""
        if self._page.file is None:
            return self._page.body
        with self._page.open() as file:
            return file.read(self._options.markup_bytes_max)


def as_html(xhtml: bytes) -> bytes:
    """Return XHTML in UTF-8 as HTML: empty elements with both tags, CDATA sections as text."""

    def rewrite(found: re.Match[bytes]) -> bytes:
        if found[2] is not None:
            return b"<%b%b></%b>" % (found[2], found[3], found[2])
        return found[0] if found[1] is None else found[1].replace(b"&", b"&amp;").replace(b"<", b"&lt;")

    return _XML.sub(rewrite, xhtml)


class HtmlPage(Page, frozen=True, kw_only=True):
    """A page that carries its document from module to module."""

    document: HtmlDocument


def document_of(page: Page, options: ProcessOptions) -> HtmlDocument:
    """Return the document that a page carries, or a new one."""
    return page.document if isinstance(page, HtmlPage) else HtmlDocument(page, options)


def bears_tree(body: bytes, options: ProcessOptions) -> bool:
    """Return whether a tree of this page is certainly cheap.

    End tags prove nothing (they may be misnamed, misnested or in a comment), so the bounds are on the number of all
    start tags and, for attributes, on the page's length. At the defaults the worst page known costs about 0.1 s and 70
    MB. Costs two counts: about 0.4 µs per KB.
    """
    if len(body) > options.tree_bytes_max:
        return False
    tags = body.count(b"<")
    return tags <= options.tree_tags_max or tags - body.count(b"</") <= options.tree_tags_max


OPEN_MAX = 400
"""Nesting depth of a long page for which a tree is built."""
WRONG_MAX = 200
"""Irregular tags of a long page for which a tree is built: odd ones, and end tags of other elements than the last."""
TAG_BYTES_MAX = 8_192
_TAG = re.compile(rb"<(/?)([a-z][^\t\n\f\r />]{0,63})([^>]*)")
_VOID = frozenset(map(str.encode, VOID))
_IMPLIED = frozenset(
    (b"p", b"li", b"dt", b"dd", b"option", b"optgroup", b"tr", b"td", b"th", b"thead", b"tbody", b"tfoot", b"colgroup",
     b"rp", b"rt")
)  # fmt: skip
"""Elements with optional end tags."""


def _without_nulls(body: bytes) -> bytes:
    if b"\0" not in body:  # A search, which is a hundred times as quick as counting.
        return body
    if body.count(b"\0") > _NULLS_MAX:
        return body.replace(b"\0", b"")
    return _NULL.sub(lambda one: one[0].replace(b"\0", _REPLACEMENT if one[0] != b"\0" else b""), body)


def _end_earlier(open_: list[bytes], name: bytes) -> None:
    """Close an open element with the name that begins now, and those within it, if their end tags are optional."""
    for at in range(len(open_) - 1, -1, -1):
        if open_[at] == name:
            del open_[at:]
            return
        if open_[at] not in _IMPLIED:
            return


def is_regular(body: bytes) -> bool:
    """Return whether a long page is nested regularly, so that the cost of its tree is linear. 1 µs a tag."""
    open_: list[bytes] = []
    wrong = 0
    body = body.lower().replace(b"<template", b"<templat_").replace(b"</template", b"</templat_")  # Part of the tree.
    for step in ElementWalk(()).over(body, len(body)):  # To the end: what is not looked at proves nothing.
        wrong += step.name != "" and step.name not in RAW
        for closes, name, rest in () if step.name else _TAG.findall(body, step.start, step.end):
            if len(rest) > TAG_BYTES_MAX:
                return False
            if not closes and name not in _VOID:
                if name in _IMPLIED:
                    _end_earlier(open_, name)
                open_.append(name)
            elif closes:
                while open_ and open_[-1] != name and open_[-1] in _IMPLIED:
                    open_.pop()
                if open_ and open_[-1] == name:
                    open_.pop()
                else:  # Nothing is closed: what stays open counts.
                    wrong += 1
        if len(open_) > OPEN_MAX or wrong > WRONG_MAX:
            return False
    return True
