"""Signals: features that distinguish main content from navigation, as one row of numbers a block."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gossamer.process.outline import Outline, Tag, TextBlock

Rows = NDArray[np.float32]

WORDS_LARGE, BLOCKS_LARGE, PLACE_LARGE = 2_000, 200, 40
"""More words, more blocks, and places further from either end or from a heading, are all alike: long pages are rare
where a model is trained, and what is true of their beginning is true of the rest.
"""
LEVELS = 4
"""Elements around a block that are looked at one by one."""
WORDS_MAX = 16
"""Words of a block that are looked up."""
NAMES_MAX = 16
"""Parts of the names of one element that are looked up."""
KNOWN_MAX = 20_000
"""Elements whose names are remembered from page to page: the pages of a site share most."""
STRUCTURED_MAX = 20_000
"""Characters of a page's JSON-LD in which its texts are sought."""
_NAMES = re.compile(r"""\s(class|id|role|itemprop|itemtype)=(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
_CALLED = frozenset(("class", "id"))
_HIDDEN = re.compile(r"display: ?none|aria-hidden=.?true|(?<![\w-])hidden(?![\w-])")
_WORD = re.compile(r"[^\W\d_]{2,}|©")
_PART = re.compile(r"[a-z]{2,}")
_SENTENCE = (".", "!", "?", "。", "…", ".”", '."', "\uff01", "\uff1f", ":")
_KINDS = {
    "p": 1, "li": 2, "h1": 3, "h2": 3, "h3": 3, "h4": 3, "td": 4, "th": 4, "pre": 5, "dt": 6, "dd": 6, "button": 7,
    "label": 7,
}  # fmt: skip
_AROUND = {"main": 1, "article": 2, "table": 4, "ul": 8}
_HEADS = frozenset(("h1", "h2", "h3", "h4"))


def names_of(name: str, rest: str) -> list[str]:
    """Return what an element is called: its tag, its classes, id and role, and the words that these consist of."""
    names = [f"<{name}"] if name != "div" else []
    if "=" not in rest:
        return names
    called = ""
    for key, double, single, bare in _NAMES.findall(rest):
        value = double or single or bare
        if key in _CALLED:
            called += value + " "
        else:
            names.append(f"{key}={value[:200].lower().rpartition('/')[2]}")
    if called:
        classes = called[:400].lower().split(None, 6)[:6]
        names += ["." + one for one in classes]
        names += _PART.findall(" ".join(classes))
    if ("hidden" in rest or "none" in rest) and _HIDDEN.search(rest) is not None:
        names.append("hidden")
    return list(dict.fromkeys(names))[:NAMES_MAX]


def words_of(block: TextBlock) -> list[str]:
    """Return the first words of a block, in lower case."""
    return _WORD.findall(block.text[:120].lower())[:WORDS_MAX]


TYPES = ("article", "collection", "documentation", "forum", "listing", "product", "service")
_TYPED = re.compile(r'"@type"\s*:\s*\[?\s*"(\w{2,40})"')
_PATH_WORD = re.compile(r"[a-z]{2,20}")


def page_names(outline: Outline, url: str) -> list[str]:
    """Return what speaks for a page's type beside the names of its elements: types in its JSON-LD, its URL."""
    found = ["@" + one for script in outline.scripts for one in _TYPED.findall(script[:100_000])[:50]]
    path = url.partition("://")[2].partition("/")[2].lower()
    steps = [one for one in path.partition("?")[0].split("/") if one]
    found.append(f"/{min(len(steps), 6)}")
    found += ["/" + one for one in _PATH_WORD.findall("/".join(steps[:-1]))]
    last = _PATH_WORD.findall(steps[-1]) if steps else []
    return [*found, f"-{min(len(last), 9)}", *last]


class Weights:
    """How much each name around a block and each word in it speaks for content, and what speaks for a page's type."""

    def __init__(
        self, names: Mapping[str, float], words: Mapping[str, float], types: Mapping[str, Sequence[float]]
    ) -> None:
        self._names = names
        self._words = words
        self._places = {name: at for at, name in enumerate(types, 1)}
        self._types = np.array([[0.0] * len(TYPES), *types.values()], dtype=np.float32)
        self._known: dict[tuple[str, str], tuple[float, frozenset[int]]] = {}

    def of_element(self, key: tuple[str, str]) -> tuple[float, frozenset[int]]:
        """Return the score of an element's names, and the places of those that speak for a type."""
        found = self._known.get(key)
        if found is None:
            names = names_of(*key)
            found = (
                sum(filter(None, map(self._names.get, names))),
                frozenset(filter(None, map(self._places.get, names))),
            )
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            self._known[key] = found
        return found

    def of_words(self, words: Sequence[str]) -> float:
        """Return the score of the words of a block."""
        return sum(filter(None, map(self._words.get, words)))

    def page_types(self, places: set[int], names: Iterable[str]) -> Rows:
        """Return how likely a page with names at these places, and with these names, is of each of `TYPES`."""
        places.update(filter(None, map(self._places.get, names)))
        scores = self._types[sorted(places)].sum(axis=0)
        scores = np.exp(scores - scores.max())
        return np.asarray(scores / scores.sum(), dtype=np.float32)


def signals(outline: Outline, weights: Weights, url: str) -> Rows:
    """Return a row for each block of the page. About 5 µs a block and 2 µs a block-level element."""
    blocks, tags, parents = outline.blocks, outline.tags, outline.parents
    holders = np.array([block.node for block in blocks], dtype=np.int32)
    sums = _sums(parents, blocks)
    own, path, places = _of_nodes(tags, parents, sums[2], weights)
    texts = _of_texts(blocks, weights, outline)
    columns = [
        *texts,
        *path[:, holders],
        *_of_levels(tags, parents, holders, sums, own),
        *_of_place(blocks, tags, holders),
        *(np.full(len(blocks), one, dtype=np.float32) for one in weights.page_types(places, page_names(outline, url))),
        *_around([texts[0], texts[1], texts[5], path[0, holders]]),
    ]
    return np.stack(columns, axis=1).astype(np.float32)


def _sums(parents: Sequence[int], blocks: Sequence[TextBlock]) -> tuple[list[int], list[int], list[int], list[int]]:
    """Return of each element: words, words of links, blocks, and how many of these are paragraphs."""
    words, links, count, paragraphs = ([0] * len(parents) for _ in range(4))
    for block in blocks:
        at = block.node
        words[at] += block.words
        links[at] += block.link_words
        count[at] += 1
        paragraphs[at] += block.words > 12 and block.link_words * 3 < block.words
    for at in range(len(parents) - 1, 0, -1):
        if count[at]:
            parent = parents[at]
            words[parent] += words[at]
            links[parent] += links[at]
            count[parent] += count[at]
            paragraphs[parent] += paragraphs[at]
    return words, links, count, paragraphs


def _of_nodes(
    tags: Sequence[Tag], parents: Sequence[int], count: Sequence[int], weights: Weights
) -> tuple[Rows, Rows, set[int]]:
    """Return each element's own score; of the path to it the sum, the least, the most, the depth, what it is in, and
    its kind; and the places of all names. Elements without blocks are passed over.
    """
    own = [0.0] * len(tags)
    path = [(0.0, 0.0, 0.0, 0, 0, 0)] * len(tags)
    places: set[int] = set()
    kind, bits, score_of = _KINDS.get, _AROUND.get, weights.of_element
    for at, (tag, parent) in enumerate(zip(tags, parents, strict=True)):
        if not count[at]:
            continue
        score, found = score_of(tag)
        own[at], name = score, tag[0]
        if found:
            places |= found
        total, least, most, depth, around, _ = path[parent]
        path[at] = (
            total + score, min(least, score), max(most, score), depth + 1,
            around | bits(name, 0), kind(name, 0),
        )  # fmt: skip
    return np.array(own, dtype=np.float32), np.array(path, dtype=np.float32).T, places


def _of_texts(blocks: Sequence[TextBlock], weights: Weights, outline: Outline) -> list[Rows]:
    counts = Counter([block.text for block in blocks])
    titled = set(_WORD.findall(outline.title.lower()))
    structured = "\n".join(outline.scripts)[:STRUCTURED_MAX]
    facts = []
    score_of, sentence, has_structure = weights.of_words, _SENTENCE, structured != ""
    for block in blocks:
        text = block.text
        words = words_of(block)
        facts.append((
            block.words, block.link_words, len(text), block.links, text.endswith(sentence), score_of(words),
            counts[text], len(titled.intersection(words)) / (len(words) or 1),
            has_structure and len(text) > 20 and text[:40] in structured,
        ))  # fmt: skip
    columns = list(np.array(facts, dtype=np.float32).T)
    columns[1] = columns[1] / columns[0]
    columns[2] = columns[2] / columns[0]
    columns[0] = np.log1p(columns[0])
    return [*columns, np.full(len(blocks), structured != "", dtype=np.float32)]


def _of_levels(
    tags: Sequence[Tag], parents: Sequence[int], holders: NDArray[np.int32], sums: Sequence[Sequence[int]], own: Rows
) -> Iterable[Rows]:
    """Return of each element around: words, links, blocks, its name's score, and how often its like is on the page."""
    alike = Counter(tags)
    held = np.array([*sums, list(map(alike.__getitem__, tags))], dtype=np.float32)
    words, links, count, paragraphs = (each[0] for each in sums)
    large = np.array([[WORDS_LARGE], [BLOCKS_LARGE], [BLOCKS_LARGE], [BLOCKS_LARGE]], dtype=np.float32)
    sizes = np.log1p(np.minimum(held[[0, 2, 3, 4]], large))
    table = np.stack([*sizes, held[1] / np.maximum(held[0], 1), held[0] / words, own])
    above = np.array(parents, dtype=np.int32)
    columns: list[Rows] = []
    level = holders
    for _ in range(LEVELS):
        columns += list(table[:, level])
        level = above[level]
    whole = (*sizes[:3, 0], links / words, paragraphs / count)
    return [*columns, *(np.full(len(holders), one, dtype=np.float32) for one in whole)]


def _of_place(blocks: Sequence[TextBlock], tags: Sequence[Tag], holders: NDArray[np.int32]) -> Iterable[Rows]:
    """Return where on the page a block is, and where among the headings."""
    size = len(blocks)
    words = np.array([block.words for block in blocks], dtype=np.float32)
    before = np.cumsum(words) - words
    index = np.arange(size, dtype=np.float32)
    kinds = [tags[at][0] for at in holders.tolist()]
    heads = [at for at, kind in enumerate(kinds) if kind in _HEADS]
    tops = [at for at in heads if kinds[at] == "h1"]
    since = np.zeros(size, dtype=np.float32)
    for start, stop in pairwise([*heads, size]):
        since[start:stop] = np.arange(stop - start) + 1
    from_top = np.clip(index - tops[0], -PLACE_LARGE, PLACE_LARGE) if tops else np.full(size, -100, dtype=np.float32)
    return [
        np.minimum(index, PLACE_LARGE), np.minimum(size - index, PLACE_LARGE), index / size,
        before / max(1.0, float(words.sum())), np.minimum(since, PLACE_LARGE), from_top,
        np.full(size, min(len(tops), 5), dtype=np.float32), np.full(size, min(len(heads), 20), dtype=np.float32),
    ]  # fmt: skip


def _around(columns: Sequence[Rows]) -> Iterable[Rows]:
    """Return the signals of the two blocks before and the two after."""
    chosen = np.stack(columns)
    padded = np.pad(chosen, ((0, 0), (2, 2)), constant_values=-1.0)
    size = chosen.shape[1]
    return [row for at in (0, 1, 3, 4) for row in padded[:, at : at + size]]
