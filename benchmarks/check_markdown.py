"""Markdown of real pages, read again by a parser of CommonMark and GFM: each row of a table must be one, and each link.

    python benchmarks/check_markdown.py FOLDER [FOLDER …]

All `*.html` and `*.html.gz` files of the folders are read. Pages that differ are printed, then the sums. What was
meant is taken from the Markdown itself: a link whose target is not closed is not seen.
"""

from __future__ import annotations

import gzip
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from gossamer.model.pages import Findings, Page
from gossamer.stages.process.content import MainText, Markdown

CHARACTERS_MAX = 200_000
"""Longer Markdown is passed over: the parser takes minutes."""
PARSER = MarkdownIt("gfm-like", {"linkify": False})
PARSER.validateLink = lambda _: True  # It refuses `file:`, which says nothing of what was written.
_FENCE = re.compile(r"^([> ]*)(`{3,}).*?\n\1\2$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", re.DOTALL)
_ROW = re.compile(r"^(?:[> ]|[-*] |\d+[.)] )*\|.*\|$", re.MULTILINE)
_TARGET = re.compile(r"(?<!\\)\]\((?:<[^>\n]*>|[^ \n)<]*(?:\([^ \n)]*\)[^ \n)]*)*)\)")
_RULE = re.compile(r"\|(?: --- \|)+$")


def bodies(folders: list[Path]) -> Iterator[tuple[Path, bytes]]:
    for folder in folders:
        for path in sorted((*folder.rglob("*.html"), *folder.rglob("*.html.gz"))):
            yield path, gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def read_again(text: str) -> tuple[int, int]:
    """Return the rows of tables and the targets of links and images that the parser finds."""
    tokens = [one for token in PARSER.parse(text) for one in _all(token)]
    targets = sum(one.type in ("link_open", "image") for one in tokens)
    return sum(one.type == "tr_open" for one in tokens), targets


def _all(token: Token) -> Iterator[Token]:
    yield token
    if token.type != "image":  # What is in an image's text is no link.
        for child in token.children or ():
            yield from _all(child)


def written(text: str) -> tuple[int, int]:
    """Return the rows and targets that were meant: the first rule of each table is none."""
    text = _FENCE.sub("", text)
    lines, rows, in_table = text.split("\n"), 0, False
    for before, line in zip(["", *lines], lines, strict=False):
        is_row = bool(_ROW.match(line))
        is_rule = is_row and not in_table and bool(_ROW.match(before)) and bool(_RULE.search(line))
        in_table = is_row and (in_table or is_rule)
        rows += is_row and not is_rule
    return rows, len(_TARGET.findall(_CODE.sub("", text)))


def main() -> None:
    main_text, markdown = MainText(), Markdown()
    pages = different = rows = targets = 0
    spent_s = 0.0
    for path, body in bodies([Path(word) for word in sys.argv[1:]]):
        findings, page = Findings(), Page("https://e.example/d/p.html", "text/html", "utf-8", (), body)
        began = time.process_time()
        main_text.process(page, findings)
        markdown.process(page, findings)
        spent_s += time.process_time() - began
        text = str(findings.columns.get("markdown") or "")
        if not text or len(text) > CHARACTERS_MAX:
            continue
        found, meant = read_again(text), written(text)
        pages, rows, targets = pages + 1, rows + found[0], targets + found[1]
        if found != meant:
            different += 1
            print(f"{path}: {found[0]} of {meant[0]} rows, {found[1]} of {meant[1]} links and images", flush=True)
    print(f"{pages:,} pages, {different} different; {rows:,} rows, {targets:,} links and images read again;", end=" ")
    print(f"{1e3 * spent_s / max(1, pages):.1f} ms of CPU a page for main text and Markdown")
    sys.exit(bool(different))


if __name__ == "__main__":
    main()
