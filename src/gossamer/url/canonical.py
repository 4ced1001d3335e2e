"""Canonical: when two addresses are one, by named rules."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from gossamer.url.parts import split
from gossamer.url.rules import DEFAULT_RULES, RULES, Rule

STABLE_ROUNDS_MAX = 64
"""Rounds after which rules that still change an address are left alone; no address of lawful length needs as many."""


class Canonicalizer:
    """Makes the key by which addresses are compared, by the rules that are switched on.

    The default rules merge only what RFC 3986 declares equal (sections 6.2.2 and 6.2.3) and the final dot of a host.
    Rules run in the order of `RULES`, whatever order they are named in. Raises ValueError for a name that is no rule.
    """

    def __init__(self, rules: Sequence[str] = DEFAULT_RULES) -> None:
        wanted = check_rules(rules)
        self.rules = tuple(name for name in RULES if name in wanted)
        self._steps: tuple[Rule, ...] = tuple(RULES[name] for name in self.rules)
        self._cautious = wanted <= frozenset(DEFAULT_RULES)

    def key(self, url: str) -> str:
        """Return the key of an address that `join` or `absolute` gave; the key of a key is itself.

        0.3 µs where the default rules find nothing to do; 2 to 6 µs otherwise and with further rules.
        """
        return url if self._cautious and is_plain(url) else self.key_by_rules(url)

    def key_by_rules(self, url: str) -> str:
        """Return what `key` returns, rule by rule: the readable path."""
        parts = split(url)
        if parts is None:
            return url
        for _ in range(STABLE_ROUNDS_MAX):
            # One rule's work may be another's occasion: /a/index.html/ loses its slash first, then its index file.
            before = parts
            for rule in self._steps:
                parts = rule(parts)
            if parts == before:
                break
        return parts.text()


def is_plain(url: str) -> bool:
    """Say that no default rule changes this address: the fast path. May miss some, but is right if true."""
    end = url.find("/", 8)
    return end > 0 and "%" not in url and "#" not in url and is_plain_start(url[:end])


def is_plain_start(start: str) -> bool:
    """Say that no default rule changes an address for the sake of its start: scheme and authority."""
    # http and https only: the WHATWG rules leave host case and port of other schemes as written.
    return start.startswith(("http://", "https://")) and start[-1] != "." and ".:" not in start


def check_rules(rules: Iterable[str]) -> frozenset[str]:
    """Return the names as a set. Raises ValueError, naming the nearest rule, when one is unknown."""
    for name in rules:
        if name not in RULES:
            near = difflib.get_close_matches(name, RULES, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else "the rules are " + ", ".join(RULES)
            raise ValueError(f"no canonical rule is called {name!r}; {hint}")
    return frozenset(rules)
