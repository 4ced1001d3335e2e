"""Snippets: the part of a page that shows most of a query's words, with their places."""

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from gossamer.results.search.parse import QueryAtom, QueryGroup
from gossamer.results.search.words import DENSE, IGNORED, MARKS, is_dense, loose_of, normal, terms_of

SNIPPET_CHARACTERS_MAX = 200
SCANNED_CHARACTERS_MAX = 100_000
"""Beginning of a text in which a snippet is searched: about 10 ms."""
SCANNED_IN_ALL_MAX = 5_000_000
"""Characters that are read for the snippets of one answer; further hits show the beginning of their page."""
MARKS_MAX = 100
_LEAD_CHARACTERS = 40
_LAST_WORD = re.compile(r"\s\S*+\Z")
_WORD = re.compile(f"(?:[{DENSE}{IGNORED}]+|(?:(?![{DENSE}])[\\w{MARKS}{IGNORED}])+)")
_BEGINNING = "(?<![A-Za-z0-9])(?=[{}\x80-\U0010ffff])"
_Mark = tuple[int, int, str]


class Snippets:
    """Finds snippets for the hits of one query."""

    def __init__(self, whole: QueryGroup, forms: Iterable[str]) -> None:
        """`forms` are the loose forms of the query's words."""
        atoms = list(atoms_of(whole))
        terms = {term for atom in atoms for term in atom.terms}
        self._runs = {run for atom in atoms for run in _runs(atom.text)}
        self._terms = {term for term in terms if not is_dense(term)}
        self._loose = {*self._terms, *forms}
        self._beginnings = tuple(atom.terms[-1] for atom in atoms if atom.is_prefix and atom.terms)
        # A form has the first letter of its word: other words of ASCII are passed over.
        firsts = {re.escape(word[0]) for word in (*self._loose, *self._beginnings) if word.isascii()}
        self._words = re.compile(_BEGINNING.format("".join(sorted({*firsts, *map(str.upper, firsts)}))) + _WORD.pattern)
        self._left = SCANNED_IN_ALL_MAX
        self._found: dict[tuple[str, str], str] = {}

    def of(self, text: str, language: str) -> tuple[str, tuple[tuple[int, int], ...]]:
        """Return the snippet on one line with its matches as ranges of characters; the beginning if there are none."""
        text = text[: max(0, min(SCANNED_CHARACTERS_MAX, self._left))] or text[:SNIPPET_CHARACTERS_MAX]
        self._left -= len(text)
        marks = list(islice(self._marks(text, language), MARKS_MAX))
        start = _best_start(text, marks)
        end = min(len(text), start + SNIPPET_CHARACTERS_MAX)
        if end < len(text) and (last := _LAST_WORD.search(text, end - _LEAD_CHARACTERS, end + 1)) is not None:
            end = last.start()
        places = tuple((first - start, last - start) for first, last, _ in marks if start <= first and last <= end)
        return "".join(" " if one.isspace() else one for one in text[start:end]), places

    def _marks(self, text: str, language: str) -> Iterator[_Mark]:
        for match in self._words.finditer(text):
            word = match[0]
            if not word.isascii() and is_dense(known := normal(word)):
                yield from self._marks_in_run(word, known, match.start())
            elif found := self._matches(word, language):
                yield match.start(), match.end(), found

    def _marks_in_run(self, run: str, known: str, at: int) -> Iterator[_Mark]:
        for wanted in self._runs:
            place = known.find(wanted)
            if place >= 0 and len(known) != len(run):  # Its characters are not those of the page.
                yield at, at + len(run), wanted
            elif place >= 0:
                yield at + place, at + place + len(wanted), wanted

    def _matches(self, word: str, language: str) -> str:
        """Return the part of the query that a word of the page matches; empty if none."""
        known = self._found.get((word, language))
        if known is None:
            loose = [form for term in terms_of(word) for form in (term, *loose_of(term, language))]
            known = next((term for term in loose if term in self._loose or term.startswith(self._beginnings)), "")
            self._found[word, language] = known
        return known


def atoms_of(group: QueryGroup) -> Iterator[QueryAtom]:
    """Yield the words and phrases that pages may have."""
    for is_wanted, part in group.parts:
        if is_wanted and isinstance(part, QueryGroup):
            yield from atoms_of(part)
        elif is_wanted and isinstance(part, QueryAtom) and part.field in ("", "text"):
            yield part


def _runs(text: str) -> list[str]:
    return [run for run in _WORD.findall(normal(text)) if is_dense(run)]


def _best_start(text: str, marks: list[_Mark]) -> int:
    """Return where the snippet begins that has most different words, then most words; the first of such."""
    best = (0, 0)
    start = 0
    for number, (first, _, _) in enumerate(marks):
        within = [word for _, end, word in marks[number : number + 20] if end - first <= SNIPPET_CHARACTERS_MAX - 40]
        score = (len(set(within)), len(within))
        if score > best:
            best = score
            start = first
    if start <= _LEAD_CHARACTERS:
        return 0
    space = re.search(r"\s", text[start - _LEAD_CHARACTERS : start])
    return start - _LEAD_CHARACTERS + (space.end() if space else 0)
