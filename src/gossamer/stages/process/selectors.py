"""Selectors: CSS, XPath, JSONPath and regular expressions over one page, each with a bound on its cost.

CSS runs on lexbor's tree, XPath on libxml2's, which is at most 256 elements deep; both are native code that nothing
interrupts, so the bounds are on the page and on the expression. Regular expressions are RE2's, linear. JSONPath is
Python code that the module's time limit interrupts.
"""

from collections.abc import Iterable
from functools import cached_property
from itertools import islice
from typing import Any

import msgspec
from selectolax.lexbor import LexborNode

from gossamer.model.pages import Page
from gossamer.stages.process import expressions
from gossamer.stages.process.elements import CssBuilder, XPathBuilder, is_xml, read_tree
from gossamer.stages.process.html import HTML_TYPES, document_of
from gossamer.stages.process.links import Base, base_href
from gossamer.stages.process.metadata import json_ld
from gossamer.stages.process.options import ProcessOptions

CSS_ELEMENTS_MAX = 200_000
"""An XML document with more elements is not read by CSS: a tree of these takes 1 s."""
VALUES_MAX = 10_000
"""Elements or values that one selector may find on one page."""
XPATH_ELEMENTS_MAX = 20_000
"""A page with more start tags is not read by XPath: a sibling axis may visit the square of it, 1 s at this number."""


class SelectorSource:
    """One page, parsed when a selector first needs it. Elements are nodes of lexbor's or of libxml2's tree."""

    def __init__(self, page: Page, options: ProcessOptions) -> None:
        self.page = page
        self._options = options
        self._document = document_of(page, options)

    def select(self, kind: str, selector: str, within: object = None) -> list[object]:
        """Return the matches of a selector on the page or in an element, at most `VALUES_MAX`. Raises SelectError: the
        page is too large or too deeply nested for it, or is no JSON.
        """
        found: Iterable[object]
        match kind:
            case "css":
                found = self._css(expressions.css_of(selector), within)
            case "xpath":
                if within is not None:
                    expressions.require_relative(selector)
                result = expressions.xpath_of(selector)(self._xpath_root if within is None else within)
                found = result if isinstance(result, list) else [] if result == "" else [result]
            case _:
                found = expressions.jsonpath_of(selector)(self.data if within is None else within)
        return list(islice(found, VALUES_MAX))

    def _css(self, selector: str, within: object) -> list[LexborNode]:
        place: LexborNode = within if isinstance(within, LexborNode) else self._css_root
        if expressions.SCOPE not in selector:
            return place.css(selector)
        place.attrs[expressions.SCOPE] = "here"
        try:
            return [one for one in place.css(selector) if one.mem_id != place.mem_id]
        finally:
            del place.attrs[expressions.SCOPE]

    @cached_property
    def _css_root(self) -> Any:
        if self._is_short_xml():
            return read_tree(self.page, CssBuilder, CSS_ELEMENTS_MAX)
        tree = self._document.tree if self.page.media_type in HTML_TYPES else None
        if tree is None or tree.root is None:
            raise expressions.SelectError(f"no tree is made of it: {self._why_no_tree()}")
        return tree.root

    def _is_short_xml(self) -> bool:
        return is_xml(self.page.media_type) and self.page.body_bytes <= self._options.items_bytes_max

    @cached_property
    def _xpath_root(self) -> Any:
        if self._is_short_xml():
            return read_tree(self.page, XPathBuilder, XPATH_ELEMENTS_MAX)
        from lxml import etree  # noqa: PLC0415 - as above

        body = self._document.utf8()
        if self.page.media_type not in HTML_TYPES or len(body) > self._options.items_bytes_max:
            raise expressions.SelectError(f"no tree is made of it: {self._why_no_tree()}")
        if (tags := body.count(b"<") - body.count(b"</")) > XPATH_ELEMENTS_MAX:
            raise expressions.SelectError(f"{tags} start tags; at most {XPATH_ELEMENTS_MAX} are searched by XPath")
        parser = etree.HTMLParser(encoding="utf-8", no_network=True, remove_comments=True, remove_pis=True)
        try:
            root = etree.fromstring(body or b"<p>", parser)
        except etree.XMLSyntaxError as error:
            raise expressions.SelectError(str(error)) from None
        return etree.Element("html") if root is None else root

    def _why_no_tree(self) -> str:
        if self.page.media_type not in HTML_TYPES and not is_xml(self.page.media_type):
            return f"{self.page.media_type or 'its type'} is neither HTML nor XML"
        large = max(self.page.body_bytes, len(self._document.utf8())) > self._options.items_bytes_max
        return f"longer than {self._options.items_bytes_max} bytes" if large else "nested too deeply, or wrongly"

    @cached_property
    def data(self) -> object:
        """A JSON document; of an HTML page the list of its JSON-LD blocks. Raises SelectError: it is no JSON."""
        body = self._document.utf8()
        if self.page.media_type in HTML_TYPES:
            return json_ld(body, self._options.text_bytes_max)
        try:
            return msgspec.json.decode(body)
        except (msgspec.DecodeError, RecursionError) as error:
            raise expressions.SelectError(f"no JSON: {error}") from None

    def characters(self) -> str:
        """Return the page as it was sent, decoded."""
        return self._document.characters()

    def join(self, href: str) -> str | None:
        """Return an absolute address by the page's base, None if it cannot be fetched."""
        return self._base.join(href.strip())

    @cached_property
    def _base(self) -> Base:
        elements = self._document.markup.elements if self.page.media_type in HTML_TYPES else []
        return Base(self.page.url, base_href(elements), self._document.charset)


def text_of(value: object) -> str:
    """Return the text of an element, spaces collapsed; a text as it is; any other value as JSON."""
    if isinstance(value, str):
        text = value
    elif isinstance(value, LexborNode):
        text = value.text()
    elif hasattr(value, "itertext"):
        text = "".join(value.itertext())
    else:
        text = msgspec.json.encode(value).decode()
    return " ".join(text.split())


def html_of(value: object) -> str:
    """Return the markup of an element; of any other value its text."""
    if isinstance(value, LexborNode):
        return value.html or ""
    if hasattr(value, "itertext"):
        from lxml import etree  # noqa: PLC0415 - as above

        return str(etree.tostring(value, encoding="unicode", method="html", with_tail=False))
    return text_of(value)


def attribute_of(value: object, name: str) -> str | None:
    """Return an attribute of an element, None if it has none. Names in lexbor's trees are in lower case."""
    if isinstance(value, LexborNode):
        attributes = value.attributes
        name = name.lower()
        return (attributes[name] or "") if name in attributes else None
    element: Any = value
    found = element.get(expressions.qualify(name)) if hasattr(element, "itertext") else None
    return found if isinstance(found, str) else None


def address_of(value: object) -> str:
    """Return what an element refers to (`href`, `src`, `url`), as it is written, even ""; of other values the text."""
    for name in ("href", "src", "url"):
        if (found := attribute_of(value, name)) is not None:
            return found
    return text_of(value)
