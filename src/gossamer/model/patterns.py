"""Patterns: matches many regular expressions in one pass (RE2 sets), so that their number hardly affects the cost."""

import re
from collections.abc import Collection, Sequence
from typing import TypeVar

import re2

from gossamer.model.errors import ConfigError

PATTERN_MEMORY_BYTES_MAX = 64 << 20
"""Memory of RE2 for the automaton of one set; RE2 restarts the automaton when it reaches this."""
ONE_PATTERN_MEMORY_BYTES_MAX = 4 << 20
"""Memory of RE2 for one pattern: one that needs more, such as `.{0,1000}` thirty times, takes seconds to compile."""
_DELIMITED = re.compile(r"/(\^.*|.*(?<!\\)\$)/[a-z]*").fullmatch
"""Matches an expression between slashes, as JavaScript and sed write it, whose anchor no text has beside a slash."""
_ALWAYS = "^"
"""A pattern that every text matches: a set that does not report it has run out of memory."""


class PatternSet:
    """Regular expressions in RE2 syntax, matched anywhere in a text. Under 1 µs a text, for one pattern or thousands.

    Raises ConfigError, which names the pattern that is not valid and why.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        options = re2.Options()
        options.log_errors = False
        options.never_capture = True
        options.max_mem = PATTERN_MEMORY_BYTES_MAX
        alone = re2.Options()
        alone.log_errors = False
        alone.max_mem = ONE_PATTERN_MEMORY_BYTES_MAX
        self.patterns = tuple(patterns)
        self._options = options
        self._set = re2.Set.SearchSet(options)  # type: ignore[no-untyped-call]
        self._set.Add(_ALWAYS)
        for pattern in self.patterns:
            self._add(pattern, alone)
        try:
            self._set.Compile()
        except re2.error:
            raise ConfigError(
                f"these {len(self.patterns)} patterns together need more than {PATTERN_MEMORY_BYTES_MAX >> 20} MiB; "
                "use fewer or simpler ones"
            ) from None

    def matches(self, text: str) -> bool:
        """Return whether any pattern matches."""
        found = self._set.Match(text)
        return len(found) > 1 if found else self.first(text) is not None

    def matching(self, text: str) -> list[int]:
        """Return the indexes of all patterns that match, ascending."""
        if found := self._set.Match(text):
            return sorted(place - 1 for place in found if place)
        return [
            place
            for place, pattern in enumerate(self.patterns)
            if re2.search(pattern, text, self._options)  # type: ignore[no-untyped-call]
        ]

    def first(self, text: str) -> str | None:
        """Return the first pattern, in the order given, that matches: for explanations."""
        for pattern in self.patterns:
            if re2.search(pattern, text, self._options):  # type: ignore[no-untyped-call]
                return pattern
        return None

    def _add(self, pattern: str, alone: re2.Options) -> None:
        if bare := _DELIMITED(pattern):
            raise ConfigError(f"the pattern {pattern!r} matches nothing; leave out the slashes around it: {bare[1]!r}")
        try:
            # Alone first: a set does not say why it rejects a pattern.
            re2.compile(pattern, alone)  # type: ignore[no-untyped-call]
            self._set.Add(pattern)
        except re2.error as error:
            detail = error.args[0] if error.args else ""
            reason = detail.decode("utf-8", "replace") if isinstance(detail, bytes) else str(detail)
            hint = ""
            if pattern.startswith("*"):
                hint = f"; for the glob write {_of_glob(pattern)!r}"
            elif reason.endswith(("(?!", "(?=", "(?<")):
                hint = "; RE2 looks neither ahead nor back: leave pages out with a pattern to exclude"
            raise ConfigError(f"the pattern {pattern!r} is not a regular expression (RE2): {reason}{hint}") from None
        except UnicodeEncodeError:
            raise ConfigError(f"the pattern {pattern!r} is not text: it holds half a character") from None


def _of_glob(pattern: str) -> str:
    """Return a glob that begins with * as a regular expression."""
    escaped = ".*".join(re.escape(part) for part in pattern.strip("*").split("*"))
    return (escaped or ".*") if pattern.endswith("*") else f"{escaped}$"


P = TypeVar("P", bound=Collection[str])


def regular(patterns: P) -> P:
    """Check `patterns`, or a table by pattern, and return it. Raises ValueError with the invalid pattern and why."""
    try:
        PatternSet(tuple(patterns))
    except ConfigError as error:
        raise ValueError(str(error)) from None
    return patterns
