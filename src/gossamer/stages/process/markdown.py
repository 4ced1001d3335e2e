"""Markdown: the kept part of a page as CommonMark with GFM's tables, strikethrough, task items and footnotes."""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import dropwhile

from gossamer.stages.process.inline import NOTE, Inline, Join, Marked, code, combine, edges, escape, line_safe, unbroken
from gossamer.stages.process.kept import Element
from gossamer.stages.process.tables import alignments, cells_of, is_layout
from gossamer.stages.process.tokens import HEADINGS

_LANGUAGE = re.compile(
    r"(?:^|[\s\"'=])(?:lang(?:uage)?-|highlight-source-|(?:mw-)?highlight-(?:lang-)?|brush:\s*|src src-"
    r"|(?:sourceCode|hljs)\s+(?:lang(?:uage)?-)?|(?:data-(?:enlighter-)?lang(?:uage)?|language)=[\"']?)([\w+#.-]{1,20})"
)
_KNOWN_LANGUAGE = re.compile(
    r"""\s(?:class|lang)=["']?(?:hljs |highlight )?(bash|c|cpp|csharp|css|diff|go|haskell|html|ini|java|javascript|js"""
    r"""|json|kotlin|lua|perl|php|python|ruby|rust|scala|sh|shell|sql|swift|toml|ts|typescript|xml|yaml)(?=["'\s]|\Z)""",
    re.IGNORECASE,
)
"""A language as the only or first class of code, or in its `lang`, where GitHub has it."""
_SHOWN_AS_BLOCK = re.compile(r"display: ?block")
_NO_LANGUAGE = frozenset(("default", "text", "plain", "none", "notranslate", "plaintext", "output", "txt", "theme"))
_FENCE = re.compile(r"^ *(`{3,})", re.MULTILINE)
_RULES = {"": "---", "left": ":---", "right": "---:", "center": ":---:"}
"""Below the head of a column, by its alignment."""
_LISTS = frozenset(("ul", "ol", "menu"))
_HEADING = re.compile(r"(#{1,6} )?(.*)", re.DOTALL)
_MARK = re.compile(r"^(?:[-*]|\d{1,9}[.)]) ", re.MULTILINE)
"""The mark of an item; what is in an item is indented."""
_TIGHT = re.compile(r"(?:[-*]|1[.)]) ").match
"""Matches a list that can follow a paragraph without a blank line (CommonMark 0.31, section 5.3)."""
_OTHER_BLOCK = re.compile(r"[|>]|[-*] |```|\d{1,9}[.)] |---")
DEPTH_MAX = 12
"""Nesting depth of lists and quotations; deeper ones get no marks."""
_NUMBER_MAX = 999_999_999
"""Nine digits: a longer number is not a list item."""
_HOLDERS = frozenset(("li", "p", "div", "dd", "aside"))
"""Elements that hold a footnote."""
_NUMBER = re.compile(r"^(?:<sup>)?(?:\\?\[?(?:\d+|\\?[*†‡§])\\?[\].:)]*|\\\[\\\]|[.:)])(?:</sup>)?\s+(?=\S)")
"""Marks at the beginning of a footnote in the page."""
_NOTE_PLACE = re.compile(r"#[a-z_-]*(?:fn|ftn|note)", re.IGNORECASE)
_BACK = frozenset(["↩", "↩︎", "⏎", "^", "↑", "back", "return"])


class MarkdownText(str):
    """Markdown of a page."""

    __slots__ = ("heading_ids",)

    heading_ids: tuple[str, ...]
    """For each heading outside lists and quotations, in order, the id that leads to it; empty where there is none."""


def as_markdown(root: Element, join: Join) -> MarkdownText:
    """Return a kept page's Markdown. Deterministic, and linear except for spanning cells, which are bounded.

    `join` returns an absolute address, or None if it is not valid.
    """
    return _MarkdownWriter(root, join).document(root)


class _MarkdownWriter:
    def __init__(self, root: Element, join: Join) -> None:
        self._notes = _Notes(root)
        self._defined: set[str] = set()
        self._inline = Inline(join, self._notes.labels)
        self._depth = 0
        """Lists and quotations that are open."""
        self._places: dict[str, deque[str]] = {}
        """Ids of the headings with a text outside of these, in order."""

    def document(self, root: Element) -> MarkdownText:
        # A rule at the beginning divides nothing.
        blocks = list(dropwhile("---".__eq__, self._blocks(root.children, "")))
        headings = [block for block in blocks if block[:1] == "#"]  # No other block begins with this mark.
        text = MarkdownText("\n\n".join(blocks).strip("\n"))
        text.heading_ids = tuple(map(self._place, headings))
        return text

    def _place(self, heading: str) -> str:
        """Return the id of the next heading with this text. That of a link around blocks has another text then."""
        places = self._places.get(heading)
        return places.popleft() if places else ""

    def _blocks(self, children: Sequence[Element | str], language: str) -> list[str]:
        """Return the blocks of a flow of elements and text: runs of inline content are paragraphs."""
        out: list[str] = []
        run: list[Element | str] = []
        before = ""
        for child in children:
            if isinstance(child, str) or not child.holds_blocks:
                run.append(child)
                continue
            out += self._paragraph(run)
            run = []
            made = self._block(child, language, before)
            if made:
                marks = _MARK.findall(made[-1]) if child.name in _LISTS else []
                before = child.name if marks and marks[-1][-2] in "-." else ""
            out += made
        out += self._paragraph(run)
        return out

    def _paragraph(self, run: Sequence[Element | str]) -> list[str]:
        if not run:
            return []
        text = self._inline.text(run)
        start, end = edges(text)
        text = text[start:end]
        if text[:1] == text[-1:] == "`" and (block := _bare_code(run)):
            return block
        return [line_safe(re.sub(r"\n +", "\n", text))] if text else []

    def _block(self, element: Element, language: str, before: str) -> list[str]:
        name = element.name
        language = _language(element) or language
        if (note := self._note_of(element)) and name not in HEADINGS:
            return self._note(element, note)
        if name in HEADINGS:
            return self._heading(element)
        if name in _LISTS or name == "blockquote":
            return self._quote_or_list(element, language, before)
        if name == "pre":
            return _code_block(element, language)
        if name == "table":
            return self._table(element, language)
        if name == "hr":
            return ["---"]
        if name == "a":
            return self._card(element, language)
        if name == "dt":
            text = unbroken(self._inline.text(element.children, frozenset(("**",)))).strip()
            return [line_safe(combine([Marked("**", (text,))]))] if text else []
        return self._blocks(element.children, language)

    def _quote_or_list(self, element: Element, language: str, before: str) -> list[str]:
        if self._depth >= DEPTH_MAX:
            return self._blocks(element.children, language)
        self._depth += 1
        if element.name == "blockquote":
            inner = "\n\n".join(self._blocks(element.children, language))
            made = ["\n".join(f"> {line}".rstrip() for line in inner.split("\n"))] if inner else []
        else:
            made = self._list(element, language, before)
        self._depth -= 1
        return made

    def _card(self, element: Element, language: str) -> list[str]:
        """Return the blocks of a link around blocks: the first one gets the link, if it is one line of text."""
        blocks = self._blocks(element.children, language)
        target = self._inline.target(element.attributes.get("href", "").strip())
        if not blocks or target is None:
            return blocks
        mark, text = _HEADING.match(blocks[0]).groups()  # type: ignore[union-attr]  # matches the empty string
        if text and "[" not in text.replace("\\[", "") and "\n" not in text and not _OTHER_BLOCK.match(text):
            blocks[0] = f"{mark or ''}[{text}]({target})"
        return blocks

    def _heading(self, element: Element) -> list[str]:
        text = unbroken(self._inline.text(element.children)).strip()
        if not text:
            return []
        if text.endswith("#"):
            text = text.rstrip("#") + "\\#" * (len(text) - len(text.rstrip("#")))
        line = f"{'#' * int(element.name[1])} {text}"
        if not self._depth:
            self._places.setdefault(line, deque()).append(element.place)
        return [line]

    def _note_of(self, element: Element) -> str:
        """Return the label of a footnote that an element is, if it is one that was not written yet."""
        note = self._notes.elements.get(id(element), "")
        if note in self._defined:
            return ""
        if note:
            self._defined.add(note)
        return note

    def _note(self, element: Element, label: str) -> list[str]:
        inner = "\n\n".join(self._blocks(list(_without_back(element)), "")) or "-"
        lines = _NUMBER.sub("", inner).split("\n")
        return ["\n".join([f"[^{label}]: {lines[0]}", *(f"    {line}".rstrip() for line in lines[1:])])]

    def _list(self, element: Element, language: str, before: str) -> list[str]:
        """Return a list as one block, with another mark than the list before, or numbers that go on, so none merge."""
        ordered = element.name == "ol"
        step = -1 if ordered and "reversed" in element.attributes else 1
        first = sum(item.name == "li" for item in element.elements()) if step < 0 else 1
        number = expected = _number(element, "start", first) if ordered else 1
        other = before == element.name
        items: list[str] = []
        notes: list[str] = []
        loose = False
        indent = ""
        for item in element.children:
            note = self._note_of(item) if isinstance(item, Element) else ""
            if note and isinstance(item, Element):
                notes += self._note(item, note)
                continue
            blocks = self._item(item, language)
            if not blocks:
                continue
            # A list that is no item, as old pages have it, belongs to the item before it.
            nested = bool(items) and isinstance(item, Element) and item.name in _LISTS
            tight = all(_TIGHT(block) for block in blocks[not nested :])
            loose = loose or not tight
            lines = ("\n" if tight else "\n\n").join([""] * nested + blocks).split("\n")
            if nested:
                items[-1] += "\n".join(indent * bool(line) + line for line in lines)
                continue
            if ordered and isinstance(item, Element) and item.name == "li":
                number = _number(item, "value", number)
            if items and number != expected:
                other = not other
            mark = f"{number}{')' if other else '.'} " if ordered else "* " if other else "- "
            number, expected = max(number + step, 0), number + 1
            if lines[0] == "---" and mark == "- ":
                lines[0] = "***"  # With the mark of the item, it would be a rule outside of the list.
            indent = " " * len(mark)
            items.append("\n".join([mark + lines[0], *(indent + line if line else "" for line in lines[1:])]))
        return [("\n\n" if loose else "\n").join(items)] * bool(items) + notes

    def _item(self, item: Element | str, language: str) -> list[str]:
        if isinstance(item, str):
            return self._paragraph([item])
        if item.name != "li":
            return self._block(item, language, "") if item.holds_blocks else self._paragraph([item])
        blocks = self._blocks(item.children, language)
        box = next((one for one in list(item.walk())[:6] if isinstance(one, Element) and one.name == "input"), None)
        if blocks and box is not None and box.attributes.get("type") == "checkbox":
            blocks[0] = f"[{'x' if 'checked' in box.attributes else ' '}] {blocks[0]}"
        return blocks

    def _table(self, element: Element, language: str) -> list[str]:
        caption = next((one for one in element.elements() if one.name == "caption"), None)
        out = self._blocks(caption.children, "") if caption is not None else []
        rows = [] if is_layout(element) else cells_of(element, self._cell)
        if not rows:
            return out + self._blocks([one for one in element.children if one is not caption], language)
        lines = ["| " + " | ".join(row) + " |" for row in rows]
        lines.insert(1, "|" + "".join(f" {_RULES[one]} |" for one in alignments(element, len(rows[0]))))
        return [*out, "\n".join(lines)]

    def _cell(self, cell: Element) -> str:
        """Return a cell on one line: its blocks with `<br>` between."""
        parts: list[str] = []
        for block in self._blocks(cell.children, ""):
            if _FENCE.match(block):
                parts += [code(line).replace("|", "\\|") for line in block.split("\n")[1:-1] if line.strip()]
            else:
                parts += [_bare(line) for line in block.replace("\\\n", "\n").split("\n") if line.strip()]
        return "<br>".join(parts)


def _bare_code(run: Sequence[Element | str]) -> list[str]:
    """Return a paragraph that is one element of code with line breaks, where people see these, as a fenced block."""
    codes = [one for one in run if not isinstance(one, str) or one.strip()]
    if len(codes) != 1 or isinstance(codes[0], str) or codes[0].name != "code":
        return []
    element = codes[0]
    language = _language(element)
    is_lined = language != "" and "\n" in element.text().strip()
    return _code_block(element, language) if is_lined or element.first("br") is not None else []


def _bare(line: str) -> str:
    """Return a line of a cell, where block marks mean nothing; a bar in code ends a cell there too."""
    line = re.sub(r"(?<!\\)\|", r"\\|", line.strip())
    return re.sub(r"^(?:#{1,6}|>) +", "", line)


def _number(element: Element, name: str, without: int) -> int:
    """Return the number in an attribute, or another one where it has none that an item of Markdown can have."""
    said = element.attributes.get(name, "").strip()
    if not (said.isdecimal() and said.isascii() and len(said) < 10):
        return without
    return min(int(said), _NUMBER_MAX - len(element.children))


def _language(element: Element) -> str:
    found = _LANGUAGE.search(element.rest) if element.rest else None
    if found is None and element.name in ("pre", "code", "figure"):
        found = _KNOWN_LANGUAGE.search(element.rest)
    name = found[1].lower() if found is not None else ""
    return "" if name in _NO_LANGUAGE else name


def _code_block(element: Element, language: str) -> list[str]:
    """Return preformatted text as a fenced block, whose fence is longer than any within."""
    inner = element.first("code")
    language = (_language(inner) if inner is not None else "") or language
    text = "".join(_lines(element)).replace("\r\n", "\n").replace("\r", "\n").strip("\n").rstrip()
    if not text:
        return []
    fence = "`" * max([3, *(len(run) + 1 for run in _FENCE.findall(text))])
    return [f"{fence}{language}\n{text}\n{fence}"]


def _lines(element: Element) -> Iterator[str]:
    """Yield preformatted text in pieces: a block within, such as a numbered line, begins a line and ends one."""
    stack: list[Element | str | None] = [element]
    ended = True
    divided = False
    while stack:
        one = stack.pop()
        if isinstance(one, Element) and one.name != "br":
            apart = (one.block and one.name not in ("td", "th")) or _SHOWN_AS_BLOCK.search(one.rest) is not None
            stack += [None, *reversed(one.children), None] if apart else reversed(one.children)
        elif one is None:
            divided = True
        else:
            text = one if isinstance(one, str) else "\n"
            if text:
                yield "\n" + text if divided and not ended and text[0] not in "\r\n" else text
                ended = text[-1] in "\r\n"
                divided = False


class _Notes:
    """The footnotes of a page: their labels by the ids to which references lead, and by the elements that hold them."""

    def __init__(self, root: Element) -> None:
        self.labels: dict[str, str] = {}
        self._wanted: dict[str, str] = {}
        self._begun: set[int] = set()
        """Blocks of which a text was read."""
        self.elements: dict[int, str] = {}
        self._read(root, root, raised=False)

    def _read(self, element: Element, holder: Element, *, raised: bool) -> None:
        for child in element.children:
            if isinstance(child, str):
                if child.strip():
                    self._begun.add(id(holder))
                continue
            block = child if child.block else holder
            if "=" in child.rest:
                self._place(child, block)
                if child.name == "a":
                    self._refer(child, raised=raised)
            self._read(child, block, raised=raised or child.name == "sup")

    def _place(self, element: Element, holder: Element) -> None:
        """Take an element to which a reference may lead; an inline one stands for the block that it begins."""
        found = element.attributes
        place = found.get("id") or (found.get("name", "") if element.name == "a" else "")
        mark = self._wanted.pop(place, "") if holder.name in _HOLDERS and id(holder) not in self._begun else ""
        if mark:
            is_free = mark.isalnum() and mark not in self.labels.values()
            self.labels[place] = mark if is_free else f"{mark if mark.isalnum() else 'n'}-{len(self.labels)}"
            self.elements.setdefault(id(holder), self.labels[place])

    def _refer(self, element: Element, *, raised: bool) -> None:
        href = element.attributes.get("href", "")
        if href[:1] != "#" or len(href) >= 80:
            return
        text = element.text().strip()
        said = raised or text[:1] == "[" or "footnote" in element.rest or "noteref" in element.rest
        said = said or _NOTE_PLACE.match(href) is not None or element.first("sup") is not None
        if said and NOTE.fullmatch(text) is not None and href[1:] not in self.labels:
            self._wanted.setdefault(href[1:], text.strip("[]"))


def _without_back(element: Element) -> Iterable[Element | str]:
    """Yield what a footnote consists of, without the link back to where it is referred to."""
    for child in element.children:
        if isinstance(child, Element):
            child.children = list(_without_back(child))
            if "backref" in child.rest or _leads_back(child):
                continue
        yield child


def _leads_back(element: Element) -> bool:
    found = element.attributes
    if element.name != "a" or found.get("href", "")[:1] != "#":
        return False
    text = element.text().strip()
    is_number = ("name" in found or "id" in found) and NOTE.fullmatch(text) is not None
    return text in _BACK or "ref" in element.rest or is_number


def paragraphs(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines of plain text as Markdown paragraphs, in which nothing is markup."""
    return (line_safe(combine(escape(line)).strip()) for line in lines if line.strip())
