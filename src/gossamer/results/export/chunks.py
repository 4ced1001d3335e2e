"""Chunks: a page's Markdown in pieces of a bounded size for retrieval, with headings and a link to the place."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from urllib.parse import quote

from gossamer.results.export.quality import BYTES_A_TOKEN, tokens_of

TOKENS_MAX = 512
"""Of a chunk, by default."""
TOKENS_MAX_LEAST = 32
CHARACTER_BYTES_MAX = 4
"""Of a character in UTF-8."""
_HEADING = re.compile(r"(#{1,6}) ([^\n]*)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_NESTED_FENCE = re.compile(r"(?:(?:[-*+>]|\d{1,9}[.)]) ?)* *(`{3,}|~{3,})")
"""The same in lists and quotations."""
_TABLE_RULE = re.compile(r"[ |:]*+-[ |:-]*")
"""Matches the line below a table's header."""
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")  # noqa: RUF001 - in their own script
_LINK = re.compile(r"\[([^\[\]]*)\]\([^()\[\]]*\)")
_MARKS = str.maketrans("", "", "*`>|")
_LEADS = frozenset(("-", "+", "#"))
_FRAGMENT_WORDS = 8
_SAFE = "!$&'()*+,;=@/?"
"""Characters that a fragment may hold as they are (RFC 3986, section 3.5), but the colon, which begins a directive."""


class PageChunk(NamedTuple):
    """A part of a page."""

    headings: tuple[str, ...]
    """From the page's own to the nearest one."""
    text: str
    """Markdown, without the headings."""
    fragment: str
    """Fragment by which browsers show the place: `#ID`, a text fragment `#:~:text=…`, or both: the text below ID."""


def chunks_of(markdown: str, tokens_max: int, heading_ids: Sequence[str] = ()) -> list[PageChunk]:
    """Return a page's chunks in order. A chunk has text below one heading; code and tables are divided only where they
    do not fit. `heading_ids` are the ids in the page that lead to its headings, in order; empty where there is none.
    About 1 µs a word.
    """
    chunks: list[PageChunk] = []
    for headings, place, blocks in _sections(markdown, heading_ids):
        fragment = f"#{quote(place, safe=_SAFE)}" if place else _fragment(headings[-1] if headings else "")
        for text in _pack([piece for block in blocks for piece in _pieces(block, tokens_max)], "\n\n", tokens_max):
            chunks.append(PageChunk(headings, text, fragment or _fragment(text, place)))
            fragment = ""
    return chunks


def _sections(markdown: str, heading_ids: Sequence[str]) -> Iterator[tuple[tuple[str, ...], str, list[str]]]:
    """Yield the blocks below each heading, if any, with the headings above them and the id of the last one."""
    path: list[tuple[int, str]] = []
    blocks: list[str] = []
    ids = iter(heading_ids)
    place = ""
    for block in _blocks(markdown):
        match = _HEADING.fullmatch(block)
        if match is None:
            blocks.append(block)
            continue
        if blocks:
            yield tuple(text for _, text in path), place, blocks
            blocks = []
        place = next(ids, "")
        level = len(match[1])
        text, _, closing = match[2].rstrip().rpartition(" ")
        heading = match[2] if closing.strip("#") else text
        path = [(above, text) for above, text in path if above < level]
        path.append((level, plain_text(heading)))
    if blocks:
        yield tuple(text for _, text in path), place, blocks


def _blocks(markdown: str) -> Iterator[str]:
    """Yield headings, fenced code, and what lies between empty lines."""
    held: list[str] = []
    fence = ""
    for line in markdown.splitlines():
        match = _NESTED_FENCE.match(line)
        if fence:
            held.append(line)
            if match is not None and match[1].startswith(fence) and not line[match.end() :].strip():
                fence = ""
            continue
        begins = match is not None or _HEADING.fullmatch(line)
        if held and (begins or not line.strip()):
            yield "\n".join(held)
            held = []
        if match is not None:
            fence = match[1]
            held.append(line)
        elif begins:
            yield line
        elif line.strip():
            held.append(line)
    if held:
        yield "\n".join(held)


def _pieces(block: str, tokens_max: int) -> list[str]:
    """Divide a block that is too large: code and tables by lines, prose by sentences, what has none by characters.
    Each part of code has its fence, each of a table its header, if that is short.
    """
    if tokens_of(block) <= tokens_max:
        return [block]
    lines = block.split("\n")
    if _FENCE.match(block):
        head = lines[0]
        foot = _FENCE.match(head)[1]  # type: ignore[index]
        code = lines[1:-1] if len(lines) > 1 and lines[-1].strip() == foot else lines[1:]
        room = max(tokens_max - tokens_of(head + foot) - 1, 1)
        return [f"{head}\n{part}\n{foot}" for part in _pack(_cut(code, room), "\n", room)]
    head = "\n".join(lines[:2])
    room = tokens_max - tokens_of(head) - 1
    if len(lines) > 2 and _TABLE_RULE.fullmatch(lines[1]) and room > tokens_max // 2:
        return [f"{head}\n{part}" for part in _pack(_cut(lines[2:], room), "\n", room)]
    if len(lines) > 1:
        return _pack([part for line in lines for part in _sentences(line, tokens_max)], "\n", tokens_max)
    return _pack(_sentences(block, tokens_max), " ", tokens_max)


def _sentences(line: str, tokens_max: int) -> list[str]:
    return [line] if tokens_of(line) <= tokens_max else _cut(_SENTENCE_END.split(line), tokens_max)


def _cut(parts: Sequence[str], tokens_max: int) -> list[str]:
    """Divide parts that are too large after as many characters as certainly fit."""
    step = max(tokens_max * BYTES_A_TOKEN // CHARACTER_BYTES_MAX, 1)
    return [
        piece
        for part in parts
        for piece in (
            [part] if tokens_of(part) <= tokens_max else [part[at : at + step] for at in range(0, len(part), step)]
        )
    ]


def _pack(parts: Sequence[str], separator: str, tokens_max: int) -> list[str]:
    """Join parts, in order, as long as they fit."""
    packed: list[str] = []
    size = 0
    for part in parts:
        added = len(part.encode("utf-8", "replace")) + len(separator)
        if packed and size + added <= tokens_max * BYTES_A_TOKEN:
            packed[-1] += separator + part
            size += added
        else:
            packed.append(part)
            size = added - len(separator)
    return packed


def plain_text(markdown: str) -> str:
    """Return a line of Markdown as a reader sees it."""
    shown = _LINK.sub(lambda match: match[1], markdown.replace("![", "[")).translate(_MARKS)
    return " ".join(word.strip("_") or word for word in shown.split())


def _fragment(text: str, place: str = "") -> str:
    """Return the fragment that leads to a text (WICG, URL Fragment Text Directives), or else to the id `place`."""
    rows = text.split("\n")  # Other chunks have a table's header too, and browsers look for a text in one cell.
    rows = rows[2:] if len(rows) > 2 and _TABLE_RULE.fullmatch(rows[1]) else rows
    cells = (max(row.split("|"), key=len) if row.startswith("|") else row for row in rows if not _FENCE.match(row))
    lines = map(plain_text, cells)
    words = next((line for line in lines if any(map(str.isalnum, line))), "").split()
    if words and (words[0] in _LEADS or words[0].rstrip(".)").isdigit()):  # The mark of a list is not in the page.
        del words[0]
    words = words[:_FRAGMENT_WORDS]
    said = ":~:text=" + quote(" ".join(words), safe="").replace("-", "%2D") if words else ""
    found = quote(place, safe=_SAFE) + said
    return f"#{found}" if found else ""
