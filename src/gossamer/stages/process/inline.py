"""Inline: the Markdown of text within a paragraph: emphasis, links, code, images, formulas, footnote references."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from gossamer.stages.process.embeds import LAZY, is_address, srcset
from gossamer.stages.process.formulas import linear_formula
from gossamer.stages.process.kept import Element
from gossamer.stages.process.outline import attributes
from gossamer.stages.process.scan import unescape

_SPECIAL = re.compile(r"([\\`*\[\]<>|~])|(?<![^\W_])(_+)|(_+)(?![^\W_])|&(?=#?\w{1,32};)|(!)(?=\[)")
_MAY_MARK = re.compile(r"[\\`*\[\]<>|~_&!]")
"""A faster test than `_SPECIAL`, which matches all texts with special characters."""
_LINE_START = re.compile(r"^(?=(?:#{1,6}|[-+=])(?:[ \t\n]|$)|[-=]{2,}[ \t]*$)|^(\d{1,9})(?=[.)](?:\s|$))", re.MULTILINE)
_SPACES = re.compile(r"[ \t\n\r\f\v]+")
_SPACED = re.compile(r"[\t\n\r\f\v]| {2}")
_TEX_TEXT = r"((?>(?:[^\\]|\\(?![()\[\]])){1,2000}))"
_FORMULA = re.compile(rf"\\\({_TEX_TEXT}\\\)|\\\[{_TEX_TEXT}\\\]|\$\$([^$]{{1,2000}}+)\$\$")
_TEX = re.compile(r"<annotation(?=[^<>]*?application/x-tex)[^<>]*+>(.*?)(?:</annotation|\Z)", re.DOTALL | re.IGNORECASE)
_TEX_IMAGE = re.compile(r"""class=["']?[^"'>]*\b(?:la)?tex\b|latex\.(?:php|codecogs)""")
"""In the tag of an image that draws a formula, whose alternative text is its source."""
_PICTURE = re.compile(r"(?:https?:)?/[^\s,?]+\.(?:avif|gif|jpe?g|png|svg|webp)(?:\?[^\s,]*+)?", re.IGNORECASE)
_UNSAFE = re.compile(r"[\x00-\x20<>\\`|]")
_BACKTICKS = re.compile(r"`+")
_PERMALINKS = frozenset(("", "¶", "#", "§", "🔗", "link", "permalink", "anchor", "direct link to"))
NOTE = re.compile(r"\[?(\d{1,4}|[a-z]|[*†‡§])\]?", re.IGNORECASE)
_BRACKETS = re.compile(r"\A\\\[(\[\^[\w-]+\])\\\]\Z")
_MARKS = {"em": "*", "i": "*", "strong": "**", "b": "**", "del": "~~", "s": "~~", "strike": "~~"}
_EXPONENT = re.compile(r"[-+\u2212\u2013]?(?:\d[\d.,/+\u2212\u2013-]*[a-z]?|[a-zA-Z])")
"""Raised text without which a number or a formula would be another one; letters as in 1st and TM are read without."""
_CODE = frozenset(("code", "kbd", "samp", "tt"))
URL_MAX = 8_192
"""Longer addresses are skipped: most are images inside the page (`data:`)."""

Join = Callable[[str], str | None]
"""Returns an absolute address, or None if it is not valid."""


class Marked(NamedTuple):
    """Text between two marks, which Markdown recognizes only next to certain characters."""

    mark: str
    pieces: Sequence[str | Marked]


class Inline:
    """Writes the inline content of one page. `notes` are footnotes: labels by the id that they have in the page."""

    def __init__(self, join: Join, notes: dict[str, str]) -> None:
        self._join = join
        self._notes = notes
        self._source = ""
        """Address that `<picture>` offers for its image, which may have a placeholder itself."""

    def text(self, children: Iterable[Element | str], marks: frozenset[str] = frozenset()) -> str:
        """Return the Markdown of elements and texts, white space collapsed; a line break of the page is one here."""
        return combine(self._pieces(children, marks))

    def _pieces(self, children: Iterable[Element | str], marks: frozenset[str]) -> list[str | Marked]:
        pieces: list[str | Marked] = []
        for is_code, some in groupby(children, lambda child: isinstance(child, Element) and child.name in _CODE):
            if is_code:  # Two code spans without anything between are one to a parser.
                pieces.append(code("".join(one if isinstance(one, str) else one.text() for one in some)))
                continue
            for child in some:
                if isinstance(child, str):
                    pieces += escape(child)
                else:
                    pieces.append(self._element(child, marks))
        return pieces

    def _element(self, element: Element, marks: frozenset[str]) -> str | Marked:
        name = element.name
        if (mark := _MARKS.get(name)) is not None and mark not in marks:
            return Marked(mark, self._pieces(element.children, marks | {mark}))
        if name == "a" and "a" not in marks:
            return self._link(element, marks)
        if name == "img":
            return self._image(element)
        if name == "source":
            self._source = self._source or next(srcset(element.attributes.get("srcset", "")), "")
            return ""
        if name == "br":
            return "\\\n"
        if name == "math":
            return formula(element.rest)
        if name == "input":
            return ""
        if name == "sup":
            raised = _BRACKETS.sub(r"\1", self.text(element.children, marks))
            return f"<sup>{raised}</sup>" if _EXPONENT.fullmatch(raised) else raised
        if name == "q":
            return f'"{self.text(element.children, marks)}"'
        return combine(self._pieces(element.children, marks), "a")

    def _link(self, element: Element, marks: frozenset[str]) -> str:
        href = element.attributes.get("href", "").strip()
        text = combine(self._pieces(element.children, marks | {"a"}), "a")
        plain = text.strip(" \\\n")
        if plain.strip("[]\\ ").lower() in _PERMALINKS and "headerlink" in element.rest + " headerlink" * (
            not plain or href[:1] == "#"
        ):
            return ""
        if href[:1] == "#" and href[1:] in self._notes and NOTE.fullmatch(element.text().strip()):
            return f"[^{self._notes[href[1:]]}]"
        target = self.target(href) if href else None
        if target is None or not plain:
            return text
        before = text[: len(text) - len(text.lstrip())]
        after = text[len(text.rstrip()) :]
        return f"{before}[{unbroken(text).strip()}]({target}){after}"

    def _image(self, element: Element) -> str:
        found = element.attributes
        offered = self._source
        self._source = ""
        alternative = " ".join(found.get("alt", "").split())
        if alternative and _TEX_IMAGE.search(element.rest) is not None:
            return f"${alternative.strip('$')}$"
        if "mwe-math-fallback" in element.rest:  # Of the formula before it.
            return ""
        # What a script loads late is the picture; until then `src` is a placeholder.
        candidates = [found[name] for name in LAZY if is_address(name, found.get(name, ""))]
        candidates += [found.get("src", ""), next(srcset(found.get("srcset", "")), offered), found.get("data-src", "")]
        candidates += [one for key, one in found.items() if key[:5] == "data-" and _PICTURE.fullmatch(one) is not None]
        source = next((one.strip() for one in candidates if one.strip() and one.strip()[:5].lower() != "data:"), "")
        target = self.target(source) if source else None
        if target is None or (not alternative and found.get("width", "") in ("0", "1")):
            return ""
        return f"![{combine(escape(alternative))}]({target})"

    def target(self, href: str) -> str | None:
        """Return an address as the destination of a link, absolute; None for what is no address of the web."""
        address, sharp, fragment = href.partition("#")
        absolute = self._join(address) if address or sharp else None
        if absolute is None or len(href) > URL_MAX:
            return None
        whole = absolute.partition("#")[0] + (f"#{fragment}" if sharp and fragment else "")
        whole = _UNSAFE.sub(lambda one: f"%{ord(one[0]):02X}", whole)
        whole = re.sub(r"&(?=#?\w{1,32};)", "&amp;", whole)
        return f"<{whole}>" if "(" in whole or ")" in whole else whole


def escape(text: str) -> list[str]:
    """Return the pieces of a text with all markup escaped, except formulas between TeX's marks."""
    pieces = []
    position = 0
    if "\\" in text or "$$" in text:
        for found in _FORMULA.finditer(text):
            pieces.append(_escape(text[position : found.start()]))
            inline = found[1]
            display = found[2] or found[3]
            pieces.append(f"${inline.strip()}$" if inline else f"$${' '.join(display.split())}$$")
            position = found.end()
    pieces.append(_escape(text[position:]))
    return pieces


def _escape(text: str) -> str:
    def escape_mark(found: re.Match[str]) -> str:
        return "".join("\\" + one for one in found[0]) if found[0] != "&" else "&amp;"

    if _SPACED.search(text) is not None:
        text = _SPACES.sub(" ", text)
    return _SPECIAL.sub(escape_mark, text) if _MAY_MARK.search(text) is not None else text


class _Mark:
    """A mark at one end of marked text; written if both are recognized."""

    __slots__ = ("is_recognized", "mark", "opening")

    def __init__(self, mark: str, opening: _Mark | None = None) -> None:
        self.mark = mark
        self.opening = opening
        self.is_recognized = False


class _InlineText:
    """Pieces of text one after another, with at most one space between words, and white space outside of marks."""

    def __init__(self, last: str) -> None:
        self._tokens: list[str | _Mark] = []
        self._last = last
        self._space = ""
        """White space after the last text, which marks that close come before."""
        self._waiting: list[str] = []
        """Marks that open with the next text."""
        self._open: list[_Mark] = []

    def add(self, piece: str | Marked) -> None:
        if isinstance(piece, str):
            self._add(piece)
            return
        self._waiting.append(piece.mark)
        for one in piece.pieces:
            self.add(one)
        if self._waiting:
            self._waiting.pop()  # It held no text.
        else:
            self._tokens.append(_Mark(piece.mark, self._open.pop()))

    def _add(self, text: str) -> None:
        if text[:1] == " " and (self._space or self._last)[-1:] in ("", " ", "\n"):
            text = text[1:]
        start, end = edges(text)
        self._space += text[:start] if start < end else text
        if start == end:
            return
        core = text[start:end]
        if core[0] == "[" and self._last == "!" and not self._space and isinstance(self._tokens[-1], str):
            self._tokens[-1] = self._tokens[-1][:-1] + "\\!"  # With it, the link would be an image.
        if self._space:
            self._tokens.append(self._space)
        for mark in self._waiting:
            before = self._tokens[-1] if self._tokens else ""
            if isinstance(before, _Mark) and before.mark == mark and before.opening is not None:
                self._open.append(before.opening)  # Neighbours with the same mark become one.
                self._tokens.pop()
            else:
                self._open.append(_Mark(mark))
                self._tokens.append(self._open[-1])
        self._tokens.append(core)
        self._waiting, self._last, self._space = [], core[-1], text[end:]

    def text(self) -> str:
        """Return the text, without marks that would not be recognized (CommonMark 0.31, section 6.2)."""
        before = ""
        after = self._space[:1]
        following: list[str] = []
        for token in reversed(self._tokens):
            following.append(after)
            after = token[0] if isinstance(token, str) else "~" if token.mark == "~~" else after
        for token in self._tokens:
            after = following.pop()
            if isinstance(token, str):
                before = token[-1]
                continue
            opening = token.opening
            if opening is None:
                token.is_recognized = _beside(before, after)
            else:
                token.is_recognized = opening.is_recognized = opening.is_recognized and _beside(after, before)
            if token.mark == "~~":
                before = "~"
        marks = (one if isinstance(one, str) else one.mark * one.is_recognized for one in self._tokens)
        return "".join(marks) + self._space


def combine(pieces: Iterable[str | Marked], last: str = "") -> str:
    """Return pieces as one text; neighbours with the same mark become one. `last` is the character before: a space at
    the beginning of an element within a line divides words.
    """
    line = _InlineText(last)
    for piece in pieces:
        line.add(piece)
    return line.text()


def _beside(outer: str, inner: str) -> bool:
    """Return whether a mark between these characters is recognized (CommonMark 0.31, section 6.2)."""
    return not outer or outer.isspace() or _punctuation(outer) or not _punctuation(inner)


def _punctuation(character: str) -> bool:
    return not character.isalnum() and not character.isspace()


def edges(text: str) -> tuple[int, int]:
    """Return where a text begins and ends except for white space and line breaks."""
    start = 0
    end = len(text)
    while end and (text[end - 1].isspace() or (text[end - 1] == "\\" and text[end : end + 1] == "\n")):
        end -= 1
    while start < end and (text[start].isspace() or text.startswith("\\\n", start)):
        start += 1
    return start, end


def unbroken(text: str) -> str:
    """Return a text on one line."""
    return text.replace("\\\n", " ").replace("\n", " ")


def code(text: str) -> str:
    """Return a code span; empty for white space only."""
    text = " ".join(text.split())
    if not text:
        return ""
    fence = "`" * (max((len(run) for run in _BACKTICKS.findall(text)), default=0) + 1)
    pad = " " if text[0] == "`" or text[-1] == "`" else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def formula(kept: str) -> str:
    """Return a formula in TeX if the page has it, else its text."""
    rest, _, content = kept.partition("\0")
    found = attributes(rest)
    tex = _TEX.search(content)
    if tex is not None:
        source = unescape(tex[1])
    elif "alttext" in found:
        source = found["alttext"]
    elif "math/tex" in rest:
        source = content.replace("<![CDATA[", "").replace("]]>", "").replace("% ", "")
    else:
        return combine(escape(unescape(linear_formula(content))))
    source = " ".join(source.split()).strip("$")
    if not source:
        return ""
    display = found.get("display") == "block" or "mode=display" in rest
    return f"$${source}$$" if display else f"${source}$"


def line_safe(text: str) -> str:
    """Return a paragraph with its lines escaped so that none begins a heading, list or rule."""
    return _LINE_START.sub(lambda found: found[1] + "\\" if found[1] else "\\", text)
