"""Content: the main content of a page, without navigation, as text or as Markdown."""

import re
from typing import NamedTuple

from gossamer.model.pages import Findings, Page
from gossamer.stages.process.html import HTML_TYPES, HtmlDocument, document_of
from gossamer.stages.process.kept import build_tree
from gossamer.stages.process.links import Base, base_href, cut
from gossamer.stages.process.main import main_blocks, with_captions
from gossamer.stages.process.markdown import as_markdown, paragraphs
from gossamer.stages.process.options import ProcessOptions, TypedModule
from gossamer.stages.process.outline import Outline, TextBlock, outline_of
from gossamer.stages.process.text import HIDDEN, IMAGE, MAIN, VISIBLE

_SELF_LINKS = " ¶↩\ufe0e"
"""Texts of links at the end of a heading, definition or footnote, to itself or back to the text."""
_INVISIBLE = re.compile("[\u00ad\u2060\ufeff]|&(?:shy|NoBreak|#173|#x[aA][dD]);")
"""Where a word may, or must not, be broken: with them, other programs would not know the word."""
_WIDE = "\u3005-\u30ff\u3400-\u9fff\uff01-\uff60"
_BETWEEN_WIDE = re.compile(
    rf"(<(?i:pre|textarea)\b.*?(?:</(?i:pre|textarea)|\Z))|(?<=[{_WIDE}])\s++(?=[{_WIDE}])", re.DOTALL
)
_READING = re.compile(r"<rt(?:[\t\n\f\r ][^<>]*+)?>([^<]*+)", re.IGNORECASE)
"""The reading of a word, shown above it (HTML, section 4.5.11)."""
_AMP_IMAGE = re.compile(r"<amp-img(?=[\t\n\f\r ])(?![^<>]*+>\s*+<noscript)", re.IGNORECASE)
"""An image of AMP, unless the same one follows for readers without scripts."""
_BUTTON = re.compile(r"<button(?<=[\w,;:] <button)(?=[\s>])[^<>]*+>([^<>]++)</button>(?= ?[\w,.;:!?])")
"""A button within a sentence."""
_PERMALINK = re.compile(
    r"""<a\s(?=[^<>]*?href=["']?#)[^<>]*+>[¶§\u200b]</a>"""
    r"""|(?<=</h[1-6]>)(\s*+<a\s(?=[^<>]*?href=["']?#([^<>"'\s]++))[^<>]*+>(?>[^<]*+(?:<(?!/a>)[^<]*+){0,40})</a>)"""
)
"""A link to itself that a heading shows as a sign: in it (Docusaurus, VitePress, rustdoc), or behind it (Starlight)."""
_EDIT_LINK = re.compile(r'<span class="?mw-editsection[" >](?>[^<]*+(?:<(?!/(?:h[1-6]|div)>)[^<]*+){0,20})')
"""A link of MediaWiki by which editors change a section, the last thing in a heading."""
HEADING_MAX = 600
"""Characters of a heading and its tag."""
_FRAGMENT = '<div class="fragment">'
_FRAGMENT_END = "</div><!-- fragment -->"
"""Code of Doxygen, in which each line is an element."""
_DIGITS = tuple("0123456789")
_PICTURE = 'body img[src]:not([width="0"], [width="1"], [height="0"], [height="1"], noscript *)'
"""Images that are seen: others count visits."""
_NUMBERING = re.compile(r"line-?n(?:o|um)|ln-numbers|gutter")
"""Names of elements that number the lines of code."""


class MainText(TypedModule):
    """Finds the main text of HTML pages, in `Findings.text` and in the column `main_text`, one line a block.

    A page with more than `process.open_tags_max` elements open at once gives its whole visible text;
    `Findings.text_method` says which. docs/reference/processing.md has the cost.
    """

    name = "main_text"
    media_types = HTML_TYPES
    columns = {"main_text": "text", **HIDDEN}  # noqa: RUF012 - declared once, never changed

    def process(self, page: Page, findings: Findings) -> None:
        document = document_of(page, self._options)
        main = _main_of(document, page.url, self._options)
        findings.text_method = _method(document, main)
        if main is None:
            text = document.text()
        else:
            kept = (block for block, keeps in zip(main.outline.blocks, main.chosen, strict=True) if keeps)
            lines = (one.text.rstrip(_SELF_LINKS) if one.links else one.text for one in kept)
            text = "\n".join(lines)
        findings.text = findings.columns["main_text"] = cut(text, self._options.text_bytes_max)
        findings.columns["hidden_chars"] = document.visible[1]


class Markdown(TypedModule):
    """Writes the main content of HTML pages as Markdown, in the column `markdown`, and in the column `heading_ids` a
    line for each heading that is no part of a list or quotation: the id that leads to it in the page, or nothing.
    """

    name = "markdown"
    media_types = HTML_TYPES
    columns = {"markdown": "text", "heading_ids": "text", **HIDDEN}  # noqa: RUF012 - as above

    def process(self, page: Page, findings: Findings) -> None:
        document = document_of(page, self._options)
        main = _main_of(document, page.url, self._options)
        findings.text_method = _method(document, main)
        if main is None:
            # Cut first, since the rest need not be written, and such pages are the largest.
            visible = cut(document.text(), self._options.text_bytes_max)
            text = "\n\n".join(paragraphs(visible.splitlines()))
        else:
            base = Base(page.url, base_href(document.markup.elements), document.charset)
            tree = build_tree(main.outline, with_captions(main.outline, main.chosen))
            markdown = as_markdown(tree, base.join)
            if any(markdown.heading_ids):
                findings.columns["heading_ids"] = "\n".join(markdown.heading_ids)
            text = str(markdown)
        findings.columns["hidden_chars"] = document.visible[1]
        whole = cut(text, self._options.text_bytes_max)
        # A line that is cut off would be a broken link or row.
        findings.columns["markdown"] = whole if len(whole) == len(text) else whole[: whole.rfind("\n") + 1]


class Main(NamedTuple):
    """A page's outline, and which of its blocks are main content."""

    outline: Outline
    chosen: list[bool]


def _method(document: HtmlDocument, main: Main | None) -> str:
    if main is None:
        return VISIBLE
    tree = None if any(main.chosen) else document.tree
    return IMAGE if tree is not None and tree.css_first(_PICTURE) is not None else MAIN


def _chosen(outline: Outline, url: str) -> list[bool]:
    return [
        keeps and (one.text[-1:] not in _DIGITS or not _is_numbering(outline, one))
        for one, keeps in zip(outline.blocks, main_blocks(outline, url), strict=True)
    ]


def _is_numbering(outline: Outline, block: TextBlock) -> bool:
    """Return whether a block is the column of line numbers beside code."""
    node = block.node
    while node and block.text.replace(" ", "").isdigit():
        if _NUMBERING.search(outline.names[outline.kinds[node]][1]) is not None:
            return True
        node = outline.parents[node]
    return False


def _unbroken(markup: str) -> str:
    """Return markup with AMP's images as such, without invisible marks within words, with brackets around readings, and
    without line breaks that divide a text of Chinese or Japanese only in the source (CSS Text Level 3, section 4.1.3).
    """

    def join_lines(found: re.Match[str]) -> str:
        return found[1] or ("" if "\n" in found[0] else found[0])

    markup = _INVISIBLE.sub("", markup)
    if "<amp-img" in markup:
        markup = _AMP_IMAGE.sub("<img", markup)
    if 'href="#' in markup:
        markup = _PERMALINK.sub(_drop_permalink, markup)
    if "mw-editsection" in markup:
        markup = _EDIT_LINK.sub("", markup)
    if "<button" in markup:
        markup = _BUTTON.sub(r"\1", markup)
    if _FRAGMENT_END in markup:
        first, *others = markup.split(_FRAGMENT)
        markup = first + "".join(map(_join_lines_of_code, others))
    if "<rt" in markup and "<rp" not in markup:
        markup = _READING.sub(lambda found: f"<rt>({found[1].strip()})" if found[1].strip() else found[0], markup)
    return markup if markup.isascii() else _BETWEEN_WIDE.sub(join_lines, markup)


def _drop_permalink(found: re.Match[str]) -> str:
    """Return what remains: behind a heading, a link that leads elsewhere in the page."""
    before = found.string[max(0, found.start() - HEADING_MAX) : found.start()]
    names = (f'id="{found[2]}"', f"id={found[2]}")
    return found[1] if found[1] and not any(name in before[before.rfind("<h") :] for name in names) else ""


def _join_lines_of_code(piece: str) -> str:
    code, end, after = piece.partition(_FRAGMENT_END)
    lines = code.replace('<div class="line">', "").replace("</div>", "\n")
    return f"<pre>{lines}</pre>{after}" if end else _FRAGMENT + piece


def _main_of(document: HtmlDocument, url: str, options: ProcessOptions) -> Main | None:
    """Return a page's main content, found once for all modules; None if the page is too deep or too large."""
    if document.main is None:
        outline = outline_of(_unbroken(document.visible[0].decode("utf-8", "replace")), options.open_tags_max)
        document.main = (None if outline is None else Main(outline, _chosen(outline, url)),)
    found: Main | None = document.main[0]
    return found
