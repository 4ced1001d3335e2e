"""Main: selects the blocks of a page's main content, by a model that was trained on pages labelled by people.

The model estimates how likely each block is content; of all sets of blocks, the one with the highest expected F score
is taken. Then gaps among siblings, headings before what is kept and code beside it are filled in.
`benchmarks/train_text.py` trains the model, docs/reference/processing.md has its scores.
"""

from __future__ import annotations

import gzip
import pkgutil
from collections.abc import Sequence
from functools import cache
from itertools import pairwise, takewhile
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from gossamer.model.decodable import decodable
from gossamer.stages.process.inline import NOTE
from gossamer.stages.process.outline import Outline, TextBlock, attributes
from gossamer.stages.process.signals import Rows, Weights, signals
from gossamer.stages.process.tokens import HEADINGS

GAP_MAX = 3
"""Up to this many blocks between two content blocks are content too, if they are siblings of one of these."""
HEADING_WORDS_MAX = 30
ITEMS_MAX = 15
"""Blocks of a numbered list that is kept to its end."""
_ITEMS = frozenset(("li", "dd", "aside"))
_CAPTIONS = frozenset(("figcaption",))
NOTES_SHARE = 0.3
"""Footnotes with more words, by those of the rest, are disclaimers or lists of literature."""
NAMING = frozenset((*HEADINGS, "dt", "summary"))
"""Elements that introduce the next block, and mean little without it."""
EMBEDDED = frozenset(("table", "ul", "ol", "dl", "blockquote", "pre", "details"))
"""Elements between two paragraphs of a text that are part of it, with headings and captions …"""
_WITHIN = EMBEDDED | _CAPTIONS | HEADINGS
EMBEDDED_BLOCKS_MAX = 24
EMBEDDED_WORDS_MAX = 120
LINKED_MAX = 0.3
"""… up to this many blocks and words, and with this share of linked words in each block."""
CELLS_MIN = 4
CELL_WORDS_MAX = 10
CELLS_KEPT = 0.3
"""Tables with 4 blocks or more, of 10 words or fewer on average, are kept whole if this share of words is kept."""
REPEATED_MIN = 4
REPEATED_KEPT = 0.7
REPEATED_WORDS_MAX = 12
"""Of 4 elements of one class or more, those of 12 words or fewer are kept if this share of all is: short posts."""
REPEATED_DEPTH = 3
"""A block has the class of the first of its element and those around it that has one: of these many."""
_WORDS_MIN = 20.0
"""Lower bound of a page's words in the computation, so that a page without content does not yield an unlikely block."""
_RECALL = 0.6
"""How much recall counts beside precision: the square of beta in the F score. Of news, a list of other headlines is the
common error; a lost paragraph is rare."""
_SHIFTS = np.array([[-3.0], [-1.5], [0.0], [1.5], [3.0]], dtype=np.float32)
"""Common errors of all estimates of a page, as logarithms of odds …"""
_CHANCES = np.array([0.0545, 0.244, 0.403, 0.244, 0.0545], dtype=np.float32)
"""… and how likely each is: a normal distribution with a deviation of 1.5."""


class Trees(msgspec.Struct, frozen=True):
    """Trees of one depth, as `benchmarks/train_text.py` writes them."""

    features: Sequence[Sequence[int]]
    """For each level, the column that each tree looks at."""
    borders: Sequence[Sequence[float]]
    """For each level, the value above which each tree goes on to the right."""
    leaves: Sequence[Sequence[int]]
    """For each tree, its leaves in thousandths; bit n of a leaf's place is the answer at level n."""
    bias: float


@decodable
class Learned(msgspec.Struct, frozen=True):
    """The results of training."""

    names: dict[str, float]
    words: dict[str, float]
    types: dict[str, list[float]]
    trees: Trees


class Model(NamedTuple):
    """The model, which is read once per process."""

    weights: Weights
    forest: Forest


@cache
def model() -> Model:
    """Return the model in this package. Its first call takes about 30 ms."""
    data = pkgutil.get_data("gossamer.stages.process", "main.json.gz")
    assert data is not None
    learned = msgspec.json.decode(gzip.decompress(data), type=Learned)
    return Model(Weights(learned.names, learned.words, learned.types), Forest(learned.trees))


def main_blocks(outline: Outline, url: str) -> list[bool]:
    """Return for each block of a page whether it is main content. About 15 µs a block."""
    if not outline.blocks:
        return []
    weights, forest = model()
    likely = forest.likely(signals(outline, weights, url))
    words = np.array([block.words for block in outline.blocks], dtype=np.float32)
    return complete_blocks(outline, [bool(one) for one in choose_blocks(likely, words)])


def choose_blocks(likely: Rows, words: Rows) -> NDArray[np.bool_]:
    """Return the set of blocks with the highest expected F score of their words, by how likely each is content.

    The model's errors within a page are correlated, so the score is averaged over cases in which all blocks of the
    page are more, or all less, likely than estimated.
    """
    order = np.argsort(-likely, kind="stable")
    estimates = np.clip(likely[order], 1e-6, 1 - 1e-6)
    scores = np.log(estimates / (1 - estimates)) + _SHIFTS
    found = np.cumsum(words[order] / (1 + np.exp(-scores)), axis=1)
    wanted = np.maximum(found[:, -1:], _WORDS_MIN)
    score = _CHANCES @ (found / (np.cumsum(words[order]) + _RECALL * wanted))
    keep = np.zeros(len(likely), dtype=np.bool_)
    keep[order[: int(score.argmax()) + 1]] = True
    return keep


def complete_blocks(outline: Outline, keep: list[bool]) -> list[bool]:
    """Add what the model judges badly because it is short: gaps, headings before content, code beside it, cells."""
    blocks = outline.blocks
    tags = outline.tags
    parents = [outline.parents[block.node] for block in blocks]
    names = [tags[block.node][0] for block in blocks]
    out = list(keep)
    for before, after in pairwise([at for at, keeps in enumerate(keep) if keeps]):
        gap = range(before + 1, after)
        around = (parents[before], parents[after])
        within = [outline.parents[parents[at]] if names[at] in _ITEMS else parents[at] for at in gap]
        near = (
            parents[at] in around or one in around or (blocks[at].node in around and _is_formula(outline, blocks[at]))
            for at, one in zip(gap, within, strict=True)
        )
        is_beside = len(gap) <= GAP_MAX and all(near) and not any("share" in tags[parents[at]][1] for at in gap)
        if is_beside or _is_embedded(outline, gap, around):
            out[before + 1 : after] = [True] * len(gap)
    _fill_notes(outline, out)
    _fill_lists(outline, out)
    _fill_ends(outline, out)
    for at in range(len(blocks) - 2, -1, -1):
        in_heading = names[at] == "button" and (tags[parents[at]][0] in HEADINGS or blocks[at].text.endswith("?"))
        if out[at + 1] and (names[at] in NAMING or in_heading) and blocks[at].words < HEADING_WORDS_MAX:
            out[at] = True
    for at in (*range(len(names)), *range(len(names) - 1, -1, -1)):  # Of several, each beside another one.
        if names[at] == "pre" and (out[at - 1 : at] == [True] or out[at + 1 : at + 2] == [True]):
            out[at] = True
    _fill_tables(outline, out)
    _fill_repeated(outline, out)
    return out


def _is_formula(outline: Outline, block: TextBlock) -> bool:
    return any(event[0] == "math" for event in outline.events[block.first : block.last] if not isinstance(event, str))


def with_captions(outline: Outline, keep: list[bool]) -> list[bool]:
    """Return the choice with the captions between kept blocks: with them go their figures. Not for the text alone: of
    1,461 captions in pages that people marked, 154 are in what they marked.
    """
    if not any(name in _CAPTIONS for name, _ in outline.names):
        return keep
    parents = [outline.parents[block.node] for block in outline.blocks]
    out = list(keep)
    for before, after in pairwise(at for at, keeps in enumerate(keep) if keeps):
        gap = range(before + 1, after)
        if gap and _is_embedded(outline, gap, (parents[before], parents[after]), _CAPTIONS):
            out[before + 1 : after] = [True] * len(gap)
    return out


def _is_embedded(outline: Outline, gap: range, parents: tuple[int, int], kinds: frozenset[str] = EMBEDDED) -> bool:
    """Return whether blocks between two paragraphs are lists, tables and the like of the text: short, without links.
    One of the parents of the paragraphs is, or is in, the other one. One block at least is in an element of `kinds`.
    """
    around = min(parents)
    if outline.within[around] <= max(parents):
        return False
    blocks = outline.blocks[gap.start : gap.stop]
    if not _is_short(blocks):
        return False
    held = [_names_up_to(outline, block.node, around) for block in blocks]
    return all(_WITHIN & names for names in held) and any(kinds & names for names in held)


def _is_short(blocks: Sequence[TextBlock]) -> bool:
    """Return whether blocks are few, short, and without many links."""
    if len(blocks) > EMBEDDED_BLOCKS_MAX or sum(block.words for block in blocks) > EMBEDDED_WORDS_MAX:
        return False
    return not any(block.link_words > LINKED_MAX * block.words for block in blocks)


def _names_up_to(outline: Outline, node: int, around: int) -> set[str]:
    """Return the names of a block-level element and those around it within another one."""
    names: set[str] = set()
    while node > around:
        names.add(outline.names[outline.kinds[node]][0])
        node = outline.parents[node]
    return names


def _note_targets(outline: Outline, keep: list[bool]) -> set[str]:
    events = outline.events
    found = set[str]()
    for block, keeps in zip(outline.blocks, keep, strict=True):
        for at in range(block.first, block.last) if keeps and block.links else ():
            event = events[at]
            if not isinstance(event, str) and event[0] == "a" and "#" in event[1]:
                href = attributes(event[1]).get("href", "")
                text = "".join(one for one in events[at + 1 : at + 8] if isinstance(one, str))
                if href[:1] == "#" and NOTE.match(text.strip()) is not None:
                    found.add(href[1:])
    return found


def _fill_notes(outline: Outline, keep: list[bool]) -> None:
    """Keep the footnotes to which references in kept blocks lead."""
    blocks = outline.blocks
    parents = outline.parents
    wanted = _note_targets(outline, keep)
    more = set[int]()
    ends: dict[int, int] = {}
    at = 0
    for place, event in enumerate(outline.events) if wanted else ():
        if isinstance(event, str) or event[0] in HEADINGS or ("id=" not in event[1] and "name=" not in event[1]):
            continue
        found = attributes(event[1])
        if found.get("id") not in wanted and (event[0] != "a" or found.get("name") not in wanted):
            continue
        while at < len(blocks) and blocks[at].last <= place:
            at += 1
        if at == len(blocks):
            break
        around = parents[blocks[at].node] if event[0] in _ITEMS else -1
        if at < ends.get(around, 0):
            continue  # A note before it has the same blocks from here on.
        end = at + 1
        while end < len(blocks) and (blocks[end - 1].words < 2 or parents[blocks[end].node] == around):
            end += 1
        more.update(range(at, end))
        ends[around] = end
    more = {at for at in more if not keep[at]}
    words = sum(block.words for block, keeps in zip(blocks, keep, strict=True) if keeps)
    if sum(blocks[at].words for at in more) <= NOTES_SHARE * words:
        for at in more:
            keep[at] = True


def _fill_lists(outline: Outline, keep: list[bool]) -> None:
    """Keep the last items of a short numbered list whose others are kept, all if it belongs to what is kept before."""
    for node, held in _blocks_within(outline, "ol").items():
        rest = list(takewhile(lambda at: not keep[at], reversed(held)))
        words = sum(outline.blocks[at].words - 2 * outline.blocks[at].link_words for at in rest)
        continues = 2 * len(rest) <= len(held) or _follows_content(outline, keep, node, held[0])
        if len(held) <= ITEMS_MAX and continues and words >= 0:
            for at in rest:
                keep[at] = True


def _fill_ends(outline: Outline, keep: list[bool]) -> None:
    """Keep short tables and definitions without links directly after what is kept: a text may end with them."""
    for name in ("table", "dl"):
        for node, held in _blocks_within(outline, name).items():
            blocks = outline.blocks[held[0] : min(held[-1], held[0] + EMBEDDED_BLOCKS_MAX) + 1]
            if _is_short(blocks) and _follows_content(outline, keep, node, held[0]):
                keep[held[0] : held[-1] + 1] = [True] * len(blocks)


def _follows_content(outline: Outline, keep: Sequence[bool], node: int, first: int) -> bool:
    """Return whether the block before an element, except for a heading, is kept and in the same element."""
    blocks = outline.blocks
    before = first - 1
    if before > 0 and outline.tags[blocks[before].node][0] in NAMING:
        before -= 1
    return before >= 0 and keep[before] and outline.parents[blocks[before].node] == outline.parents[node]


def _blocks_within(outline: Outline, name: str) -> dict[int, list[int]]:
    """Return the blocks in each element of a name, by the innermost."""
    if not any(one == name for one, _ in outline.names):
        return {}
    holders = [0] * len(outline.kinds)
    for at, (one, _) in enumerate(outline.tags):
        holders[at] = at if one == name else holders[outline.parents[at]]
    found: dict[int, list[int]] = {}
    for at, block in enumerate(outline.blocks):
        if holders[block.node]:
            found.setdefault(holders[block.node], []).append(at)
    return found


def _fill_tables(outline: Outline, keep: list[bool]) -> None:
    """Keep the whole of a table of short cells if a large part of it is kept: incomplete rows are misleading."""
    for held in _blocks_within(outline, "table").values():
        words = sum(outline.blocks[at].words for at in held)
        kept = sum(outline.blocks[at].words for at in held if keep[at])
        if len(held) >= CELLS_MIN and words <= CELL_WORDS_MAX * len(held) and kept >= CELLS_KEPT * words:
            for at in held:
                keep[at] = True


def _fill_repeated(outline: Outline, keep: list[bool]) -> None:
    """Keep short texts without links in elements of a class that is kept otherwise, such as `+1` in a thread."""
    classes = [(name, attributes(rest).get("class", "") if "class" in rest else "") for name, rest in outline.names]
    places: dict[tuple[str, str], dict[int, list[int]]] = {}
    for at, block in enumerate(outline.blocks):
        node = block.node
        for _ in range(REPEATED_DEPTH):
            if (named := classes[outline.kinds[node]])[1]:
                places.setdefault(named, {}).setdefault(node, []).append(at)
                break
            node = outline.parents[node]
    for held in places.values():
        lost = [one for one in held.values() if not any(keep[at] for at in one)]
        if len(held) < REPEATED_MIN or len(lost) > (1 - REPEATED_KEPT) * len(held):
            continue
        for one in lost:
            blocks = [outline.blocks[at] for at in one]
            if sum(block.words for block in blocks) <= REPEATED_WORDS_MAX and not any(block.links for block in blocks):
                for at in one:
                    keep[at] = True


class Forest:
    """Estimates a probability for each row. About 0.3 ms for 300 rows and 300 trees of depth 6; depth 8 is the most."""

    def __init__(self, trees: Trees) -> None:
        self._levels = [
            (np.array(features, dtype=np.intp), np.array(borders, dtype=np.float32)[:, None])
            for features, borders in zip(trees.features, trees.borders, strict=True)
        ]
        leaves = np.array(trees.leaves, dtype=np.float32) / 1_000
        self._leaves = leaves.ravel()
        self._starts = (np.arange(len(leaves), dtype=np.intp) * leaves.shape[1])[:, None]
        self._bias = trees.bias

    def likely(self, rows: Rows) -> Rows:
        """Return a probability for each row."""
        columns = np.ascontiguousarray(rows.T)
        at = np.zeros((len(self._starts), columns.shape[1]), dtype=np.uint8)
        # All places are within: with `clip`, numpy does not check that first.
        for features, borders in reversed(self._levels):
            answers = (columns.take(features, axis=0, mode="clip") > borders).view(np.uint8)
            np.add(at, at, out=at)
            np.bitwise_or(at, answers, out=at)
        scores = self._leaves.take(at + self._starts, mode="clip").sum(axis=0) + self._bias
        return np.asarray(1 / (1 + np.exp(-scores)), dtype=np.float32)
