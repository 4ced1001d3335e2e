"""Parse: a query as people write it becomes words, phrases and groups; parts that cannot be used are reported.

A colon, a bracket in a word and a hyphen are text, except for a colon after the name of a field.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from gossamer.results.search.words import symbols_of, terms_of

FIELDS = frozenset(("title", "text", "url", "anchors"))
FILTERS = {"host": ("host",), "site": ("site", "host"), "language": ("language",), "lang": ("language",)}
_QUOTES = str.maketrans(dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb\u300c\u300d\u300e\u300f\uff02", '"'))
_GERSHAYIM = re.compile(r'(?<=[\u05d0-\u05ea])"(?=[\u05d0-\u05ea])')
_TOKEN = re.compile(
    r"""
    (?P<sign>[-+](?![-+\s)]))?
    (?P<field>[A-Za-z]{1,8}:(?![:\s)]))?
    (?: (?P<open>\()
      | "(?P<phrase>[^"]*+)(?P<end>"?)(?P<star>\*?)(?:~(?P<slop>[0-9]++))?(?:\^(?P<weight>[0-9.]++))?
      | (?P<range>[\[{][^\[\]{}"()\s]*+\s++TO\s++[^\[\]{}"()\s]*+[\]}])
      | (?P<word>[^\s()"]++(?:\([^\s()"]*+\)[^\s()"]*+)*)
    ) | (?P<close>\)(?:\^[0-9.]++)?)
    """,
    re.VERBOSE,
)
_WEIGHT = re.compile(r"(.+)\^([0-9.]+)")
_FUZZY = re.compile(r"(.+)~[0-9.]*")


class QueryAtom(msgspec.Struct, frozen=True):
    """A word or phrase: terms in a row."""

    text: str
    terms: tuple[str, ...]
    field: str = ""
    is_prefix: bool = False
    """The last term is only the beginning of a word."""
    is_quoted: bool = False
    slop: int = 0
    weight: float = 1.0


class QueryGroup(msgspec.Struct, frozen=True):
    """Parts that all must match, or any."""

    parts: tuple[tuple[bool, QueryAtom | QueryGroup], ...]
    """Each with whether pages must have it; otherwise they must not."""
    is_any: bool = False


class QueryParser:
    """Reads one query. One pass; `SearchQuestion.check` bounds its length and nesting."""

    def __init__(self, query: str) -> None:
        self.problems: list[str] = []
        """Notes on parts of the query that were left out or changed."""
        self._tokens = _TOKEN.finditer(_GERSHAYIM.sub("\u05f4", query.translate(_QUOTES)))

    def parse(self) -> QueryGroup:
        """Return the whole query."""
        whole = self._group(0)
        if whole.parts and not any(is_wanted for is_wanted, _ in whole.parts):
            self.problems.append('all words are left out, as - is before them; write "-word" to find one with its dash')
        return whole

    def _group(self, depth: int) -> QueryGroup:
        parts: list[tuple[bool, QueryAtom | QueryGroup]] = []
        is_wanted = True
        operator = ""
        for token in self._tokens:
            word = token["word"]
            if token["close"]:
                if depth:
                    break
                continue
            if word in ("AND", "OR", "NOT") and not token["field"]:
                is_wanted = is_wanted and word != "NOT"
                operator = word if word != "NOT" else operator
                continue
            for part in self._parts(token, depth):
                signed = (is_wanted and token["sign"] != "-", part)
                if operator == "OR" and parts:
                    last = parts.pop()
                    known = last[1].parts if isinstance(last[1], QueryGroup) and last[1].is_any and last[0] else (last,)
                    signed = (True, QueryGroup((*known, signed), is_any=True))
                parts.append(signed)
                operator = ""
            is_wanted = True
        if operator or not is_wanted:
            self.problems.append(f"{operator or 'NOT'} has no word after it")
        return QueryGroup(tuple(parts))

    def _parts(self, token: re.Match[str], depth: int) -> Iterator[QueryAtom | QueryGroup]:
        field = (token["field"] or "").removesuffix(":")
        known = field.lower()
        written = token[0].removeprefix(token["sign"] or "")
        if known not in FIELDS and known not in FILTERS:
            if token["word"] is not None:
                yield from self._word(f"{token['field'] or ''}{token['word']}", "")
                return
            if field:
                yield from self._word(field, "")
            known = ""
        if token["open"]:
            if known:
                self.problems.append(f"{written} ...): a field is named at each word; write {known}:word")
            if (group := self._group(depth + 1)).parts:
                yield group
        elif token["phrase"] is not None:
            yield from self._phrase(token, known)
        elif token["range"]:
            self.problems.append(f"{written}: ranges are not supported")
        else:
            yield from self._word(token["word"], known)

    def _phrase(self, token: re.Match[str], field: str) -> Iterator[QueryAtom]:
        if not token["end"]:
            self.problems.append(f'"{token["phrase"]} has no closing quote; its words are taken as a phrase')
        more = (bool(token["star"]), True, int(token["slop"] or 0), _number(token["weight"]))
        yield from self._atom(QueryAtom(token["phrase"], (), field, *more))

    def _word(self, text: str, field: str) -> Iterator[QueryAtom]:
        weight = 1.0
        if weighted := _WEIGHT.fullmatch(text):
            text = weighted[1]
            weight = _number(weighted[2])
        if fuzzy := _FUZZY.fullmatch(text):
            text = fuzzy[1]
            self.problems.append(f"{fuzzy[0]}: similar words are not searched; ~ is for phrases")
        if field and text[0] in "<>":
            self.problems.append(f"{field}:{text}: ranges are not supported")
            return
        if text == "*" and not field:
            yield QueryAtom("*", (), weight=0.0)
            return
        if "*" in text[:-1]:
            self.problems.append(f"{text}: an asterisk is only understood at the end of a word")
        yield from self._atom(QueryAtom(text, (), field, text.endswith("*"), False, 0, weight))

    def _atom(self, atom: QueryAtom) -> Iterator[QueryAtom]:
        terms = terms_of(atom.text)
        if terms or (atom.field in FILTERS and atom.text):
            yield msgspec.structs.replace(atom, terms=tuple(terms))
        elif not atom.field and (symbols := symbols_of(atom.text)):
            for symbol in symbols:
                yield msgspec.structs.replace(atom, text=symbol, terms=(symbol,))
        elif atom.field and atom.is_prefix:
            raise ValueError(f"{atom.field}:{atom.text} has no word")
        elif atom.text.strip("-+&|!*?.,;:/\\") or atom.field:
            named = f"{atom.field}:{atom.text}" if atom.field else atom.text
            self.problems.append(f"{named or 'an empty phrase'} has no letter or digit to search for")


def _number(text: str | None) -> float:
    try:
        return float(text or 1.0)
    except ValueError:
        return 1.0
