"""Question: what a search is given, and the bounds that keep it from harming the machine.

Nested brackets are parsed by recursion into nested queries of native code; deep nesting could end the process. These
bounds are far below what does harm, and far above what people type.
"""

import re

import msgspec

from gossamer.model.errors import ConfigError

CHARACTERS_MAX = 2_000
WORDS_MAX = 128
BRACKETS_MAX = 64
NESTING_MAX = 16
RANGES_MAX = 4
STARS_MAX = 8
SLOP_MAX = 100
BOOST_MAX = 1_000.0
FILTER_CHARACTERS_MAX = 300
LIMIT_MAX = 1_000
_OPENING = "([{"
_CLOSING = ")]}"
_WORD = re.compile(r"\w+")
_RANGE = re.compile(r"[\[{<>]")
_SLOP = re.compile(r"~\s*(\d+)")
_BOOST = re.compile(r"\^\s*([\d.]+)")


class QueryError(ConfigError):
    """A query that cannot be run; the text says what to change."""


class SearchQuestion(msgspec.Struct, frozen=True):
    """A query, and what narrows its answer."""

    query: str
    limit: int = 10
    host: str = ""
    site: str = ""
    language: str = ""

    def check(self) -> None:
        """Refuse, in one pass, a dangerous query. Raises QueryError: a bound is passed, or it is empty or not text."""
        if not 1 <= self.limit <= LIMIT_MAX:
            raise QueryError(f"--limit: expected 1 to {LIMIT_MAX}")
        for name in ("host", "site", "language"):
            if len(getattr(self, name)) > FILTER_CHARACTERS_MAX:
                raise QueryError(f"--{name}: expected at most {FILTER_CHARACTERS_MAX} characters")
            _require_text(f"--{name}", getattr(self, name))
        _check_query(self.query)


def _check_query(query: str) -> None:
    if not query.strip():
        raise QueryError('the query is empty; name words, or a "phrase" in quotes')
    _limit(len(query), CHARACTERS_MAX, "characters")
    _require_text("the query", query)
    _limit(sum(1 for _ in _WORD.finditer(query)), WORDS_MAX, "words")
    brackets = [character for character in query if character in _OPENING or character in _CLOSING]
    _limit(len(brackets), BRACKETS_MAX, "brackets")
    depth = deepest = 0
    for bracket in brackets:
        depth = depth + 1 if bracket in _OPENING else max(depth - 1, 0)
        deepest = max(deepest, depth)
    _limit(deepest, NESTING_MAX, "brackets within each other")
    _limit(sum(1 for _ in _RANGE.finditer(query)), RANGES_MAX, "ranges")
    _limit(query.count("*"), STARS_MAX, "asterisks")
    if any(len(slop[1]) > len(str(SLOP_MAX)) or int(slop[1]) > SLOP_MAX for slop in _SLOP.finditer(query)):
        raise QueryError(f"the query allows too many words between those of a phrase; use at most ~{SLOP_MAX}")
    if any(_boost(boost[1]) > BOOST_MAX for boost in _BOOST.finditer(query)):
        raise QueryError(f"the query has too large a weight; use at most ^{BOOST_MAX:.0f}")


def _limit(count: int, most: int, what: str) -> None:
    if count > most:
        raise QueryError(f"the query has {count:,} {what}; use at most {most:,}")


def _boost(number: str) -> float:
    try:
        return float(number)
    except ValueError:
        return 0.0  # The parser takes it for no weight.


def _require_text(name: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise QueryError(f"{name} has bytes that are no UTF-8 at character {error.start + 1}; leave them out") from None
