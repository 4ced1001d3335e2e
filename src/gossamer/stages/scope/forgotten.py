"""Forgotten: pages that were removed from a crawl on request, and stay out of it until a date.

A pattern is a host, a domain with all hosts under it (`.example.org`), or a regular expression as in `exclude`, as
elsewhere in the scope, or an address in which `*` matches any characters.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from math import inf

import msgspec

from gossamer.model.errors import ConfigError
from gossamer.model.links import Link
from gossamer.model.patterns import PatternSet
from gossamer.stages.scope.hosts import HostSet
from gossamer.url.join import absolute

NAME = "forgotten"
"""The filter's name, and the rule that `why` shows."""
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE).match
_HOST = re.compile(r"[\w.:\[\]-]+").fullmatch
_ANY_SCHEME = r"^[a-z][a-z0-9+.-]*://(?:[^/?#@]*@)?"
_PORT = r"\.?(?::\d*)?"
_END = r"(?:[/?#]|$)"


class ForgottenEntry(msgspec.Struct, frozen=True, omit_defaults=True, rename={"whom": "for"}):
    """One line of a list of forgotten pages: what was removed, and how long it stays out."""

    pattern: str
    at: str
    """When it was removed: ISO 8601, in UTC."""
    until: str = ""
    """When these pages may be fetched again, as `at`; empty: never."""
    reason: str = ""
    whom: str = ""
    """The person who requested it."""
    removed: dict[str, int] = {}
    """How much was removed, by kind: `pages`, `rows`, `records` and others."""

    @property
    def until_at(self) -> float:
        """Wall time at which the entry ends."""
        return datetime.fromisoformat(self.until).timestamp() if self.until else inf

    def says(self) -> str:
        """Return the entry as text for people."""
        until = f"until {self.until[:10]}" if self.until else "for good"
        details = [f"reason: {self.reason}"] if self.reason else []
        details += [f"for {self.whom}"] if self.whom else []
        return ", ".join([f"forgotten on {self.at[:10]}", *details, until])


def expression(pattern: str) -> str:
    """Return the regular expression (RE2) that matches the addresses that a pattern means. Raises ConfigError: the
    pattern is empty, or not a regular expression.
    """
    text = pattern.strip()
    if not text:
        raise ConfigError("the pattern is empty; name a host, .example.org, an address or a regular expression")
    if _ADDRESS(text):
        whole = absolute(text) or text
        return "^" + ".*".join(re.escape(part) for part in whole.split("*")) + "$"
    hosts = HostSet()
    try:
        name = "." + text.removeprefix("*.") if text.startswith("*.") else text
        hosts.add(name if _HOST(name) else "?")
    except ConfigError:
        PatternSet((text,))
        return text
    [host] = hosts.entries()
    under = r"(?:[^/?#@:]+\.)?" if host.startswith(".") else ""
    return _ANY_SCHEME + under + re.escape(host.removeprefix(".")) + _PORT + _END


def moment(text: str) -> str:
    """Return a date, or a date with a time, in ISO 8601, UTC. Raises ConfigError if the text is neither."""
    try:
        at = datetime.fromisoformat(text.strip())
        return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).astimezone(UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError) as error:
        raise ConfigError(f"--until {text}: expected a date such as 2030-12-31") from error


class Matching:
    """Matches addresses, in their text or their canonical form, with patterns."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._set = PatternSet(tuple(expression(pattern) for pattern in patterns))

    def matches(self, text: str, key: str) -> bool:
        """Return whether any pattern matches an address; `key` is its canonical form. About 1 µs."""
        return self._set.matches(text) or (key != text and self._set.matches(key))

    def matching(self, text: str, key: str) -> list[int]:
        """Return the indexes of the patterns that match."""
        found = self._set.matching(text)
        return found if key == text else sorted({*found, *self._set.matching(key)})


class Forgotten:
    """The filter: rejects addresses of entries that are in force. About 1 µs a link, for any number of entries."""

    name = NAME

    def __init__(self, entries: Sequence[ForgottenEntry], now: Callable[[], float]) -> None:
        """`now` returns wall time."""
        self._entries = tuple(entries)
        self._until = [entry.until_at for entry in entries]
        self._matching = Matching([entry.pattern for entry in entries])
        self._now = now

    def entry(self, text: str, key: str) -> ForgottenEntry | None:
        """Return the entry in force that excludes an address for the longest time; None if there is none."""
        found = self._matching.matching(text, key)
        if not found:
            return None
        longest = max(found, key=lambda place: self._until[place])
        return self._entries[longest] if self._until[longest] > self._now() else None

    def rejects(self, link: Link) -> bool:
        return self.entry(link.url.text, link.url.key) is not None

    def detail(self, link: Link) -> str:
        found = self.entry(link.url.text, link.url.key)
        return found.says() if found is not None else ""
