"""Signals: features that distinguish main content from navigation, as one row of numbers a block."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from gossamer.stages.process.outline import Outline
from gossamer.stages.process.tokens import Tag

Rows = NDArray[np.float32]
Numbers = NDArray[np.float64]
Integers = NDArray[np.int32]

WORDS_LARGE = 2_000
BLOCKS_LARGE = 200
PLACE_LARGE = 40
"""More words, more blocks, and places further from either end or from a heading, are all alike: long pages are rare
where a model is trained, and what is true of their beginning is true of the rest.
"""
WORDS_MAX = 16
WORD_CHARACTERS = 120
"""Words of a block that are looked up, and the characters in which they are sought."""
NAMES_MAX = 16
"""Parts of the names of one element that are looked up."""
KNOWN_MAX = 20_000
"""Elements whose names are remembered from page to page: the pages of a site share most."""
STRUCTURED_MAX = 20_000
"""Characters of a page's JSON-LD in which its texts are sought."""
_NAMES = re.compile(r"""\s(class|id|role|itemprop|itemtype)=(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
_CALLED = frozenset(("class", "id"))
_WORD = re.compile(r"[^\W\d_]{2,}|©")
_WORD_OR_END = re.compile(r"[^\W\d_]{2,}|©|\n")
_PART = re.compile(r"[a-z]{2,}")
_SENTENCE = (".", "!", "?", "。", "…", ".”", '."', "\uff01", "\uff1f", ":")
_KINDS = {
    "p": 1, "li": 2, "h1": 3, "h2": 3, "h3": 3, "h4": 3, "td": 4, "th": 4, "pre": 5, "dt": 6, "dd": 6, "button": 7,
    "label": 7,
}  # fmt: skip
_AROUND = {"main": 1, "article": 2, "table": 4, "ul": 8}
_HEADS = frozenset(("h1", "h2", "h3", "h4"))


def _labels(rest: str) -> tuple[list[str], list[str]]:
    """Return the classes, id and role of an element in lower case, and what else names it."""
    called = ""
    others = list[str]()
    if rest.startswith(' class="') and rest.count("=") == 1:
        called = rest[8:].partition('"')[0]
    else:
        for key, double, single, bare in _NAMES.findall(rest):
            value = double or single or bare
            if key in _CALLED:
                called += value + " "
            else:
                others.append(f"{key}={value[:200].lower().rpartition('/')[2]}")
    return called[:400].lower().split(None, 6)[:6], others


def names_of(name: str, rest: str) -> list[str]:
    """Return the names of an element: its tag, classes, id and role, and the words that these consist of."""
    names = [f"<{name}"] if name != "div" else []
    if "=" not in rest:
        return names
    classes, others = _labels(rest)
    names += others
    names += ["." + one for one in classes]
    names += _PART.findall(" ".join(classes))
    return list(dict.fromkeys(names))[:NAMES_MAX]


def words_of(text: str) -> list[str]:
    """Return the first words of a text, in lower case."""
    return _WORD.findall(text[:WORD_CHARACTERS].lower())[:WORDS_MAX]


TYPES = ("article", "collection", "documentation", "forum", "listing", "product", "service")
_TYPED = re.compile(r'"@type"\s*+:\s*+\[?\s*+"(\w{2,40})"')
_PATH_WORD = re.compile(r"[a-z]{2,20}")


def page_names(outline: Outline, url: str) -> list[str]:
    """Return signals of a page's type beside the names of its elements: types in its JSON-LD, its URL."""
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
        self._words = {**words, "\n": math.nan}
        self._types = np.array([[0.0] * len(TYPES), *types.values()], dtype=np.float32)
        self._places = {name: at for at, name in enumerate(types, 1)}
        telling = ["", *dict.fromkeys([*names, *types])]
        self._scores = [names.get(name, 0.0) for name in telling]
        self._typed = [self._places.get(name, 0) for name in telling]
        self._ids = {name: at for at, name in enumerate(telling)}
        """The names that say something, by their places in the two lists before."""
        self._known: dict[Tag, tuple[float, list[int]]] = {}

    def of_element(self, tag: Tag) -> tuple[float, list[int]]:
        """Return the score of an element's names, and the places of those that speak for a type."""
        found = self._known.get(tag)
        if found is None:
            ids = set(map(self._ids.get, names_of(*tag), repeat(0)))  # 0 stands for names that say nothing.
            typed = self._typed
            found = sum([self._scores[at] for at in ids]), [typed[at] for at in ids if typed[at]]
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            self._known[tag] = found
        return found

    def of_words(self, words: Sequence[str]) -> list[float]:
        """Return the scores of words in lower case; `nan` for the end of a line."""
        return list(map(self._words.get, words, repeat(0.0)))

    def page_types(self, places: set[int], names: Iterable[str]) -> Rows:
        """Return how likely a page with names at these places, and with these names, is of each of `TYPES`."""
        places.update(filter(None, map(self._places.get, names)))
        scores = self._types[sorted(places)].sum(axis=0)
        scores = np.exp(scores - scores.max())
        return np.asarray(scores / scores.sum(), dtype=np.float32)


COLUMNS = 80


def signals(outline: Outline, weights: Weights, url: str) -> Rows:
    """Return a row for each block of the page. About 12 µs a block, of which half is for names not seen before."""
    texts, *facts, _, _ = zip(*outline.blocks, strict=True)
    words, link_words, links, holders = map(_numbers, facts)
    kinds, parents, within = map(_numbers, (outline.kinds, outline.parents, outline.within))
    sums = _sums(within, holders, words, link_words)
    scores, places = _of_names(outline.names, kinds[sums[2] > 0], weights)
    own = scores[kinds]
    columns = np.empty((COLUMNS, len(outline.blocks)), dtype=np.float32)
    said = _of_texts(texts, outline, weights)
    columns[:4] = np.log1p(words.astype(np.float32)), link_words / words, said[0] / words, links
    columns[4:10] = said[1:]
    columns[10:16] = _of_paths(outline.names, kinds, parents, own)[:, holders]
    columns[16:49] = _of_levels(kinds, parents, holders, sums, own)
    columns[49:57] = _of_place(outline.names, kinds[holders], words)
    columns[57:64] = weights.page_types(places, page_names(outline, url))[:, None]
    columns[64:] = _around(columns[[0, 1, 5, 10]])
    return columns.T


def _numbers(values: Iterable[int]) -> Integers:
    return np.fromiter(values, np.int32)


def _sums(within: Integers, holders: Integers, words: Integers, link_words: Integers) -> Numbers:
    """Return of each element: words, words of links, blocks, and how many of these are paragraphs."""
    paragraphs = (words > 12) & (link_words * 3 < words)
    held = np.zeros((4, len(within) + 1))
    for row, of_block in zip(held, (words, link_words, None, paragraphs), strict=True):
        row[1:] = np.bincount(holders, of_block, len(within)).cumsum()
    return held[:, within] - held[:, :-1]


def _of_names(names: Sequence[Tag], used: Integers, weights: Weights) -> tuple[Numbers, set[int]]:
    """Return the score of each tag that is among those used, and the places of all their names."""
    scores = np.zeros(len(names))
    places: set[int] = set()
    for at in np.flatnonzero(np.bincount(used)).tolist():
        scores[at], found = weights.of_element(names[at])
        places.update(found)
    return scores, places


def _of_paths(names: Sequence[Tag], kinds: Integers, parents: Integers, own: Numbers) -> Numbers:
    """Return of the path to each element the sum of scores, the least, the most, the depth, what it is in, its kind.

    Each round joins the path so far of an element with that of the one where it ends, which doubles its length.
    """
    size = len(kinds)
    up = np.append(parents, size)
    up[0] = size  # An element of no weight around all.
    around = np.array([_AROUND.get(name, 0) for name, _ in names])
    total = np.append(own, 0.0)
    bits = np.append(around[kinds], 0)
    depth = np.append(np.ones(size), 0.0)
    least = np.minimum(total, 0.0)
    most = np.maximum(total, 0.0)
    while (up != size).any():
        total = total + total[up]
        depth = depth + depth[up]
        bits = bits | bits[up]
        least = np.minimum(least, least[up])
        most = np.maximum(most, most[up])
        up = up[up]
    kind = np.array([_KINDS.get(name, 0) for name, _ in names])[kinds]
    return np.stack([total[:-1], least[:-1], most[:-1], depth[:-1], bits[:-1], kind])


def _of_texts(texts: Sequence[str], outline: Outline, weights: Weights) -> Rows:
    """Return the signals of the text of each block. Texts that a page repeats are examined once."""
    counts = Counter(texts)
    different = list(counts)
    columns = np.zeros((7, len(different)), dtype=np.float32)
    columns[0] = _numbers(map(len, different))
    columns[1] = [text.endswith(_SENTENCE) for text in different]
    columns[2], columns[4] = _of_words(different, weights, set(_WORD.findall(outline.title.lower())))
    columns[3] = _numbers(counts.values())
    structured = "\n".join(outline.scripts)[:STRUCTURED_MAX]
    if structured:
        columns[5] = [len(text) > 20 and text[:40] in structured for text in different]
        columns[6] = 1.0
    if len(different) == len(texts):
        return columns
    places = dict(zip(different, range(len(different)), strict=True))
    return columns[:, _numbers(map(places.__getitem__, texts))]


def _of_words(texts: Sequence[str], weights: Weights, titled: set[str]) -> tuple[NDArray[np.generic], Numbers]:
    """Return the score of the words of each text, and what share of them are words of the title."""
    found = _WORD_OR_END.findall("\n".join([text[:WORD_CHARACTERS] for text in texts]).lower() + "\n")
    scores = np.fromiter(weights.of_words(found), np.float64, len(found))
    ends = np.flatnonzero(np.isnan(scores))
    sizes = np.diff(ends, prepend=-1) - 1
    owners = np.repeat(np.arange(len(texts)), sizes + 1)
    scores[ends] = 0.0
    scores[np.arange(len(found)) - np.repeat(ends - sizes, sizes + 1) >= WORDS_MAX] = 0.0
    shared = np.zeros(len(texts))
    if not titled.isdisjoint(found):
        for owner, (begin, size) in enumerate(zip((ends - sizes).tolist(), sizes.tolist(), strict=True)):
            if size:
                shared[owner] = len(titled.intersection(found[begin : begin + min(size, WORDS_MAX)]))
    return np.bincount(owners, scores, len(texts)), shared / np.clip(sizes, 1, WORDS_MAX)


def _of_levels(kinds: Integers, parents: Integers, holders: Integers, sums: Numbers, own: Numbers) -> Rows:
    """Return of each element around: words, links, blocks, its name's score, and how often its like is on the page."""
    held = np.concatenate([sums, np.bincount(kinds)[kinds][None]]).astype(np.float32)
    words, links, count, paragraphs = sums[:, 0]
    large = np.array([[WORDS_LARGE], [BLOCKS_LARGE], [BLOCKS_LARGE], [BLOCKS_LARGE]], dtype=np.float32)
    sizes = np.log1p(np.minimum(held[[0, 2, 3, 4]], large))
    table = np.stack([*sizes, held[1] / np.maximum(held[0], 1), held[0] / np.float32(words), own.astype(np.float32)])
    columns = np.empty((33, len(holders)), dtype=np.float32)
    level = holders
    for at in range(0, 28, 7):
        columns[at : at + 7] = table[:, level]
        level = parents[level]
    columns[28:] = np.array([*sizes[:3, 0], links / words, paragraphs / count])[:, None]
    return columns


def _of_place(names: Sequence[Tag], kinds: Integers, count: Integers) -> Rows:
    """Return where on the page a block is, and where among the headings."""
    size = len(kinds)
    words = count.astype(np.float32)
    index = np.arange(size, dtype=np.float32)
    heads = np.flatnonzero(np.array([name in _HEADS for name, _ in names])[kinds])
    tops = np.flatnonzero(np.array([name == "h1" for name, _ in names])[kinds])
    columns = np.empty((8, size), dtype=np.float32)
    columns[0] = np.minimum(index, PLACE_LARGE)
    columns[1] = np.minimum(size - index, PLACE_LARGE)
    columns[2] = index / size
    columns[3] = (words.cumsum() - words) / max(1.0, float(words.sum()))
    columns[4] = 0.0
    if len(heads):
        lengths = np.diff(np.append(heads, size))
        columns[4, heads[0] :] = np.minimum(index[heads[0] :] - np.repeat(heads, lengths) + 1, PLACE_LARGE)
    columns[5] = np.clip(index - tops[0], -PLACE_LARGE, PLACE_LARGE) if len(tops) else -100.0
    columns[6], columns[7] = min(len(tops), 5), min(len(heads), 20)
    return columns


def _around(columns: Rows) -> Rows:
    """Return the signals of the two blocks before and the two after."""
    size = columns.shape[1]
    padded = np.full((len(columns), size + 4), -1.0, dtype=np.float32)
    padded[:, 2:-2] = columns
    return np.concatenate([padded[:, at : at + size] for at in (0, 1, 3, 4)])
