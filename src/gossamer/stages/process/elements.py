"""Elements: the tree of an XML document, for CSS and XPath, with names as it writes them (`entry`, `dc:creator`)."""

from collections.abc import Mapping
from typing import Any

from selectolax.lexbor import LexborHTMLParser, LexborNode

from gossamer.model.modules import whole
from gossamer.model.pages import Page
from gossamer.stages.process.charset import PRESCAN_BYTES_MAX, codec_of
from gossamer.stages.process.expressions import SelectError, qualify
from gossamer.stages.process.html import HTML_TYPES
from gossamer.stages.process.xml import read_xml


def is_xml(media_type: str) -> bool:
    """Return whether a media type is of XML that is not XHTML."""
    return media_type.endswith(("/xml", "+xml")) and media_type not in HTML_TYPES


class CssBuilder:
    """Builds a tree of lexbor's. The document's root is the only child of `root`."""

    def __init__(self) -> None:
        self._tree = LexborHTMLParser("<xml>")
        self.root: LexborNode = self._tree.css("xml")[0]
        self._open = [self.root]

    def start(self, name: str, attributes: Mapping[str, str], depth: int) -> None:
        node = self._tree.create_node(name)
        for key, value in attributes.items():
            node.attrs[key] = value
        self._open[-1].insert_child(node)
        inserted = self._open[-1].last_child  # A copy of the node.
        assert inserted is not None
        self._open.append(inserted)

    def characters(self, text: str) -> None:
        self._open[-1].insert_child(text)

    def end(self, name: str, text: str, depth: int) -> None:
        self._open.pop()


class XPathBuilder:
    """Builds a tree of libxml2's. Prefixes are not resolved: each is a namespace (`qualify`)."""

    def __init__(self) -> None:
        from lxml import etree  # noqa: PLC0415 - only where XPath is used

        self._builder = etree.TreeBuilder()
        self.characters = self._builder.data
        self.root: Any = None

    def start(self, name: str, attributes: Mapping[str, str], depth: int) -> None:
        named = {qualify(key): value for key, value in attributes.items() if key.partition(":")[0] != "xmlns"}
        element = self._builder.start(qualify(name), named)
        self.root = element if self.root is None else self.root

    def end(self, name: str, text: str, depth: int) -> None:
        self._builder.end(qualify(name))


def read_tree(page: Page, builder: type[CssBuilder | XPathBuilder], elements_max: int) -> Any:
    """Return the root of a document's tree. Raises SelectError if a part of it cannot be read."""
    builders: list[CssBuilder | XPathBuilder] = []

    def begin() -> CssBuilder | XPathBuilder:  # A document with an error is read twice.
        builders.append(builder())
        return builders[-1]

    if error := whole(read_xml(page.open, codec_of(page.body[:PRESCAN_BYTES_MAX], page.charset), begin, elements_max)):
        raise SelectError(error)
    return builders[-1].root
