"""Match: makes of a parsed query the queries of tantivy, for the layout of an index.

A page with all words as they are written ranks above one that has only their loose forms.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

import tantivy
from msgspec.structs import replace
from tantivy import Filter, Occur, Query, TextAnalyzerBuilder, Tokenizer

from gossamer.results.search.parse import FILTERS, QueryAtom, QueryGroup
from gossamer.results.search.words import fold, is_dense, joined_of, loose_of, numbered_parts, symbols_of, terms_of

FIELDS_1 = {"title": "title", "anchors": "anchors", "text": "text", "url": "url"}
FIELDS_2 = {"title": "title_words", "anchors": "anchors", "text": "words", "url": "url_words"}
"""The terms of each field that a query can name, by layout."""
_WEIGHTS = {"title": 3.0, "anchors": 2.0, "text": 1.0, "url": 0.5}
_STRONG_WEIGHT = 1.5
_LOOSE_WEIGHT = 0.2
_COMPOUNDING = frozenset(("da", "de", "fi", "fy", "hu", "is", "nb", "nl", "nn", "no", "sv"))
_WITHIN_CHARACTERS_MIN = 5
"""A shorter word is in too many others."""
_SYMBOL_WEIGHT = 20.0
"""Of `C++` itself beside pages with C."""
_VERSION = re.compile("v?[0-9]+")
_CONTINUED = re.compile(r"(?<!\d)\d{4}(?:\.\d{4,5}|-\d\d-\d\d)\Z")
"""An identifier of arXiv, which a version may follow, or a day, which a time may follow."""
_ELISION = re.compile(r"(?:[cdjlmnst]|qu|dell|nell|all|un)['\u2019](.+)", re.IGNORECASE)
"""An article or pronoun of French, Italian or Catalan before a word."""
EXACT_SCORE = 100.0
"""Added score of a page that has all words as they are written."""
_SIMPLE = TextAnalyzerBuilder(Tokenizer.simple()).filter(Filter.remove_long(40)).filter(Filter.lowercase()).build()
"""How the words of layout 1 are cut."""


class QueryMatcher:
    """Queries for one index."""

    def __init__(self, schema: tantivy.Schema, layout: int, languages: Sequence[str] = ()) -> None:
        """`languages` are those of the index's pages: by their rules the words of a query are stemmed."""
        self._schema = schema
        self._fields = FIELDS_1 if layout == 1 else FIELDS_2
        self._is_loose = layout > 1
        self._languages = ("", *languages)
        self._is_within = False
        self.is_compounding = self._is_loose and not _COMPOUNDING.isdisjoint(languages)
        """Whether words of the index may have others within, without a mark between."""

    def query(self, whole: QueryGroup, *, is_within: bool = False) -> Query:
        """Return the query for pages, exact ones first; `is_within`: words within longer ones, reading all words."""
        self._is_within = is_within
        exact = self._group(whole, is_loose=False)
        if not self._is_loose:
            return exact
        first = Query.const_score_query(exact, EXACT_SCORE)
        return Query.boolean_query([(Occur.Must, self._group(whole, is_loose=True)), (Occur.Should, first)])

    def forms(self, atom: QueryAtom) -> tuple[str, ...]:
        """Return the loose forms of a word, in all languages of the index."""
        if not self._is_loose or len(atom.terms) != 1 or atom.is_quoted:
            return ()
        return tuple({form for language in self._languages for form in loose_of(atom.terms[0], language)})

    def _group(self, group: QueryGroup, *, is_loose: bool) -> Query:
        parts: list[tuple[Occur, Query]] = []
        for is_wanted, part in group.parts:
            loosely = is_loose and is_wanted
            if isinstance(part, QueryGroup):
                query = self._group(part, is_loose=loosely)
            else:
                query = self._atom(part, is_loose=loosely)
            if not group.is_any:
                parts.append((Occur.Must if is_wanted else Occur.MustNot, query))
            elif is_wanted:
                parts.append((Occur.Should, query))
            else:
                without = Query.boolean_query([(Occur.Must, _everything()), (Occur.MustNot, query)])
                parts.append((Occur.Should, without))
        if parts and all(occur == Occur.MustNot for occur, _ in parts):
            parts.append((Occur.Must, _everything()))
        return Query.boolean_query(parts)

    def _atom(self, atom: QueryAtom, *, is_loose: bool) -> Query:
        if not atom.terms and atom.text == "*":
            return _everything()
        if atom.field in FILTERS:
            value = filter_value(atom.field, atom.text)
            return _any(Query.term_query(self._schema, name, value) for name in FILTERS[atom.field])
        if atom.terms == (atom.text,) and symbols_of(atom.text):  # An emoji.
            return self._one(atom, "loose", atom.text) if self._is_loose else Query.empty_query()
        named = [atom.field] if atom.field else list(_WEIGHTS)
        found = [Query.boost_query(self._terms(atom, name, atom.terms), _WEIGHTS[name]) for name in named]
        if is_loose:
            found += self._second_chance(atom, named)
        query = _any(found)
        for symbol in symbols_of(atom.text) if is_loose and not atom.field else ():
            named_so = Query.boost_query(self._one(atom, "loose", symbol), _SYMBOL_WEIGHT)
            query = Query.boolean_query([(Occur.Must, query), (Occur.Should, named_so)])
        if self._is_loose and not atom.field and len(atom.terms) == 1:
            strong = Query.boost_query(self._one(atom, "strong", atom.terms[0]), _STRONG_WEIGHT)
            query = Query.boolean_query([(Occur.Must, query), (Occur.Should, strong)])
        return query if atom.weight == 1.0 else Query.boost_query(query, atom.weight)

    def _second_chance(self, atom: QueryAtom, named: Sequence[str]) -> list[Query]:
        """Return queries that also find pages with other forms of the words."""
        found: list[Query] = []
        if atom.is_quoted or atom.field or len(atom.terms) > 1:
            if not any(map(is_dense, atom.terms)):
                found = [self._accent_query(atom, self._fields[name]) for name in named]
            if not atom.is_quoted and not atom.is_prefix:
                found += [self._one(atom, "loose", form) for form in joined_of(atom.text) if not atom.field]
        else:
            forms = self.forms(atom)
            found = [self._terms(atom, name, (form,)) for form in forms for name in named]
            found += [self._one(atom, "loose", form) for form in (*atom.terms, *forms) if not is_dense(form)]
            if self._is_within and len(atom.terms[0]) >= _WITHIN_CHARACTERS_MIN and atom.terms[0].isalpha():
                pattern = f".*{atom.terms[0]}.*"
                found += [Query.regex_query(self._schema, self._fields[name], pattern) for name in named]
        if not atom.is_quoted and not atom.is_prefix:
            found += [self._terms(atom, name, terms) for terms in _other_terms(atom) for name in named]
            if _CONTINUED.search(atom.text):
                begun = replace(atom, is_prefix=True)
                found += [self._terms(begun, name, atom.terms) for name in named]
        return [Query.boost_query(query, _LOOSE_WEIGHT) for query in found]

    def _accent_query(self, atom: QueryAtom, field: str) -> Query:
        patterns = [_pattern(term) for term in atom.terms]
        if atom.is_prefix:
            patterns[-1] += ".*"
        if len(patterns) == 1:
            return Query.regex_query(self._schema, field, patterns[0])
        return Query.regex_phrase_query(self._schema, field, list(patterns), atom.slop)

    def _terms(self, atom: QueryAtom, name: str, terms: Sequence[str]) -> Query:
        field = self._fields[name]
        if not self._is_loose:
            terms = _SIMPLE.analyze(atom.text)
        elif len(terms) > 1 and is_dense(terms[-1]) and len(terms[-1]) == 1 and is_dense(terms[-2]):
            terms = terms[:-1]  # The last character of a run, which goes on in the page perhaps.
        if not terms:
            return Query.empty_query()
        if len(terms) == 1:
            return self._one(atom, field, terms[0])
        if atom.is_prefix or (self._is_loose and len(terms[-1]) == 1 and is_dense(terms[-1])):
            return Query.phrase_prefix_query(self._schema, field, list(terms))
        return Query.phrase_query(self._schema, field, list(terms), atom.slop)

    def _one(self, atom: QueryAtom, field: str, term: str) -> Query:
        """Return the query for one term. A single character of a dense script begins a pair, or ends its run."""
        if not (atom.is_prefix or (self._is_loose and len(term) == 1 and is_dense(term))):
            return Query.term_query(self._schema, field, term)
        return Query.regex_query(self._schema, field, f"{re.escape(term)}.*")


def _other_terms(atom: QueryAtom) -> Iterator[tuple[str, ...]]:
    """Yield the other ways to write a word: in one, without its article, with or without a `v`, and with a number apart
    from its unit, and its thousands from each other.
    """
    for form in joined_of(atom.text):
        yield (form,)
    if elided := _ELISION.fullmatch(atom.text):
        yield tuple(terms_of(elided[1]))
    if len(atom.terms) > 1 and _VERSION.fullmatch(atom.terms[0]):
        first = atom.terms[0]
        yield (first.removeprefix("v") if first[0] == "v" else f"v{first}", *atom.terms[1:])
    apart = tuple(part for term in atom.terms for part in numbered_parts(term) or (term,))
    if len(apart) > len(atom.terms):
        yield apart
    if len(first := next(iter(atom.terms), "")) > 3 and first.isdecimal() and first[0] != "0":
        yield (*f"{int(first):,}".split(","), *atom.terms[1:])


def _any(queries: Iterable[Query]) -> Query:
    return Query.boolean_query([(Occur.Should, query) for query in queries])


def _everything() -> Query:
    return Query.const_score_query(Query.all_query(), 0.0)


def filter_value(field: str, text: str) -> str:
    """Return the value that a filter compares: the host of an address, the language of a language with a region."""
    value = text.strip().lower()
    if field in ("language", "lang"):
        return re.split("[-_]", value, maxsplit=1)[0]
    return value.rpartition("://")[2].partition("/")[0]


@cache
def _letters() -> dict[str, str]:
    """Return the letters with accents of each letter without."""
    found: defaultdict[str, str] = defaultdict(str)
    for code in (*range(0xC0, 0x530), *range(0x1E00, 0x2000)):
        letter = chr(code)
        plain = fold(letter)
        if len(plain) == 1 and plain != letter and unicodedata.category(letter) == "Ll":
            found[plain] += letter
    return dict(found)


def _pattern(term: str) -> str:
    letters = _letters()
    return "".join(f"[{one}{letters[one]}]" if one in letters else re.escape(one) for one in fold(term))
