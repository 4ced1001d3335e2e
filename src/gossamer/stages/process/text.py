"""Text: a page's title, its plain text where that is wanted, and the links that are whole addresses in plain text."""

import re
from collections.abc import Iterator, Mapping

from gossamer.model.pages import MARKED_TYPES, PLAIN_TYPES, Findings, Page
from gossamer.stages.process.html import HTML_TYPES, document_of
from gossamer.stages.process.links import Base, Links, collapse_spaces, cut
from gossamer.stages.process.options import ProcessOptions, TypedModule
from gossamer.stages.process.scan import ScannedMarkup

MAIN = "main"
VISIBLE = "visible"
PLAIN = "plain"
DOCUMENT = "document"
IMAGE = "image"
"""How the text of a page was found: its main content, its whole visible text, the page as it is, or in a document. Of
an image there is none: text in pictures is not recognized.
"""
_HEADING = re.compile(
    r"^(?:title:[ \t\"']*+([^\n\"']+)|#[ \t]++([^\n]+)|(?![\w-]+:[ \t])([^\s=#*~^+-][^\n]*)\n[=#*~^+-]{3,}[ \t]*$)",
    re.MULTILINE,
)
"""The title of Markdown or reStructuredText: of its front matter, or its first heading."""
_HEAD_CHARACTERS = 10_000
HIDDEN: Mapping[str, str] = {"hidden_chars": "int"}
"""Column of the characters in elements that a page hides from its readers."""


class TitleAndText(TypedModule):
    """Finds the title, white space collapsed, and with the option `text` the visible text, one line a block."""

    name = "title_and_text"

    def __init__(self, options: ProcessOptions | None = None) -> None:
        super().__init__(options)
        self.columns = HIDDEN if self._options.text else {}

    def wants(self, media_type: str) -> bool:
        return media_type in (*HTML_TYPES, *MARKED_TYPES) or (self._options.text and media_type in PLAIN_TYPES)

    def process(self, page: Page, findings: Findings) -> None:
        document = document_of(page, self._options)
        findings.charset = document.charset
        if page.media_type not in HTML_TYPES:
            text = document.characters()
            if page.media_type in MARKED_TYPES and (found := _HEADING.search(text[:_HEAD_CHARACTERS])) is not None:
                findings.title = collapse_spaces("".join(found.groups("")).strip(" #"), self._options.title_bytes_max)
            findings.text = cut(text, self._options.text_bytes_max)
            findings.text_method = PLAIN
            return
        findings.title = collapse_spaces(document.markup.title or "", self._options.title_bytes_max)
        if self._options.text:
            findings.text = cut(document.text(), self._options.text_bytes_max)
            findings.text_method = VISIBLE
            findings.emphasis = document.emphasis()
            findings.columns["hidden_chars"] = document.visible[1]


class VisibleText(TitleAndText):
    """Finds the visible text alone: no tree is built for it."""

    def process(self, page: Page, findings: Findings) -> None:
        if page.media_type not in HTML_TYPES:
            super().process(page, findings)
            return
        visible = ScannedMarkup(document_of(page, self._options).visible[0])
        findings.text = cut(visible.text(), self._options.text_bytes_max)
        findings.text_method = VISIBLE
        findings.emphasis = visible.emphasis()


_ADDRESS = re.compile(r"(?i:\b[a-z][a-z0-9]{1,30}://)[^\s<>\"'`{}|\\^\x00-\x20\x7f]++")
_CLOSING = {")": "(", "]": "["}


class TextLinks(TypedModule):
    """Finds complete addresses, scheme included, in plain text. About 1 µs a KB and 3 µs an address."""

    name = "text_links"
    media_types = (*PLAIN_TYPES, "text/csv")

    def process(self, page: Page, findings: Findings) -> None:
        document = document_of(page, self._options)
        findings.charset = document.charset
        links = Links(Base(page.url), self._options)
        for address in addresses(document.characters(), self._options.url_bytes_max + 1):
            links.add("anchor", address)
        findings.links.extend(links.take())


def addresses(text: str, length_max: int = 8_192) -> Iterator[str]:
    """Yield the whole addresses in a text."""
    return (trim_address(written[:length_max]) for written in _ADDRESS.findall(text))


def trim_address(address: str) -> str:
    """Return an address without the punctuation of the sentence around it; a bracket that it opened itself stays."""
    end = len(address)
    while end:
        last = address[end - 1]
        opening = _CLOSING.get(last)
        if opening is not None:
            if address.count(opening, 0, end) >= address.count(last, 0, end):
                break
        elif last not in ".,;:!?*_~":
            break
        end -= 1
    return address[:end]
