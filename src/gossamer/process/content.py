"""Content: what a page says beside its navigation, as text or as Markdown, by Resiliparse."""

from __future__ import annotations

import html
import re
from collections.abc import Callable

from resiliparse.extract.html2text import extract_plain_text

from gossamer.model.visits import Findings, Page
from gossamer.process.flat import flattened
from gossamer.process.html import HTML_TYPES, bears_tree, document_of
from gossamer.process.options import ProcessOptions
from gossamer.process.text import MAIN, VISIBLE, cut

_TAG = re.compile(r"<(/?)(h[1-6]|p|ul|ol|li|pre|br|a)\b([^>]*)>", re.IGNORECASE)
_HREF = re.compile(r"href=\"([^\"]*)\"")
_BLANK = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")
_SPECIAL = re.compile(r"([\\`*_\[\]<>])")
_LINE_START = re.compile(r"^(#{1,6} |[-+] |\d+[.)] )", re.MULTILINE)


class MainText:
    """Finds the main text of HTML pages, in `Findings.text` and in the column `main_text`.

    About 0.7 ms for a page of 28 KB (trafilatura: 14 ms; docs/decisions/0009-processing-modules.md). A page with more
    than `process.open_tags_max` elements open at once gives its whole visible text; `Findings.text_method` says which.
    """

    name = "main_text"
    columns = {"main_text": "text"}  # noqa: RUF012 - declared once, never changed

    def __init__(self, options: ProcessOptions | None = None) -> None:
        self._options = options or ProcessOptions()

    def wants(self, media_type: str) -> bool:
        return media_type in HTML_TYPES

    def process(self, page: Page, findings: Findings) -> None:
        text, findings.text_method = _extracted(page, self._options, formatting=True)
        findings.text = findings.columns["main_text"] = cut(text, self._options.text_bytes_max)


class Markdown:
    """Writes the main content of HTML pages as Markdown, in the column `markdown`: headings, lists, links, code."""

    name = "markdown"
    columns = {"markdown": "text"}  # noqa: RUF012 - as above

    def __init__(self, options: ProcessOptions | None = None) -> None:
        self._options = options or ProcessOptions()

    def wants(self, media_type: str) -> bool:
        return media_type in HTML_TYPES

    def process(self, page: Page, findings: Findings) -> None:
        text, findings.text_method = _extracted(page, self._options, formatting="minimal_html")
        findings.columns["markdown"] = cut(as_markdown(text), self._options.text_bytes_max)


def _extracted(page: Page, options: ProcessOptions, *, formatting: bool | str) -> tuple[str, str]:
    """Return a page's content as text or as HTML of few elements, and how it was found."""
    document = document_of(page, options)
    markup = document.utf8()
    cheap = markup if bears_tree(markup, options) else flattened(markup, options.open_tags_max)
    if cheap is None:
        text = document.markup.text()
        if formatting is not True:
            text = "".join(f"<p>{html.escape(line, quote=False)}</p>" for line in text.splitlines())
        return text, VISIBLE
    extract: Callable[..., str] = extract_plain_text
    characters = cheap.decode("utf-8", "replace")
    return extract(characters, main_content=True, preserve_formatting=formatting, links=formatting is not True), MAIN


def as_markdown(minimal: str) -> str:
    """Return Markdown (CommonMark) for HTML of headings, paragraphs, lists, `pre`, line breaks and links. Linear."""
    writer = _Writer()
    position = 0
    for tag in _TAG.finditer(minimal):
        writer.text(html.unescape(minimal[position : tag.start()]))
        writer.tag(tag[2].lower(), tag[3], closes=bool(tag[1]))
        position = tag.end()
    writer.text(html.unescape(minimal[position:]))
    return _BLANK.sub("\n\n", "".join(writer.pieces)).strip()


class _Writer:
    """Writes one document from its tags and texts as they come."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self._lists: list[int] = []
        """Of each open list its last number; -1 for one without numbers."""
        self._pre = False
        self._hrefs: list[str] = []

    def text(self, text: str) -> None:
        if self._pre:
            self.pieces.append(text)
        elif text and not text.isspace():
            escaped = _LINE_START.sub(r"\\\1", _SPECIAL.sub(r"\\\1", " ".join(text.split())))
            before, after = " " * text[:1].isspace(), " " * text[-1:].isspace()
            self.pieces.append(f"{before}{escaped}{after}" if self.pieces and self.pieces[-1][-1:] != "\n" else
                               f"{escaped}{after}")  # fmt: skip

    def tag(self, name: str, attributes: str, *, closes: bool) -> None:
        if name[0] == "h":
            self.pieces.append("\n\n" if closes else f"\n\n{'#' * int(name[1])} ")
        elif name == "p":
            self.pieces.append("\n" if self._lists else "\n\n")
        elif name == "br":
            self.pieces.append("\n" if self._pre else "  \n")
        elif name == "pre":
            self._pre = not closes
            self.pieces.append("\n```\n\n" if closes else "\n\n```\n")
        elif name == "a":
            self._link(attributes, closes=closes)
        elif name == "li":
            self._item(closes=closes)
        elif not closes:
            self._lists.append(0 if name == "ol" else -1)
        elif self._lists:
            self._lists.pop()
            self.pieces.append("" if self._lists else "\n\n")

    def _item(self, *, closes: bool) -> None:
        if closes:
            return
        indent, mark = "   " * (len(self._lists) - 1), "- "
        if self._lists and self._lists[-1] >= 0:
            self._lists[-1] += 1
            mark = f"{self._lists[-1]}. "
        self.pieces.append(f"\n{indent}{mark}")

    def _link(self, attributes: str, *, closes: bool) -> None:
        if self._pre:
            return
        if not closes:
            href = _HREF.search(attributes)
            self._hrefs.append(html.unescape(href[1]) if href else "")
            self.pieces.append("[")
        elif self._hrefs:
            target = self._hrefs.pop().replace(" ", "%20").replace("(", "%28").replace(")", "%29")
            self.pieces.append(f"]({target})")
