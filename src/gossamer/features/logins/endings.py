"""Endings: finds the URLs that end a session by what follows their requests; words in them mean nothing here.

A URL is suspected if the session is found ended right after its request. The next URL of the same kind is the first
request of a session, and so is a URL that was answered as if there were no session. After it, a page that was content
before is requested: if it shows no session, the URL has ended it, and URLs of its kind are excluded. Sessions that end
by time or number exclude nothing, because a page of the kind is then followed by content.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from gossamer.url.url import Url

KINDS_MAX: Final = 10_000
"""Kinds of URLs of which something is known."""
EXCLUDED_MAX: Final = 200
"""Kinds of URLs that one login excludes."""
TRIALS_MAX: Final = 3
"""Sessions that begin for the sake of one suspected kind."""
PAIRS_MAX: Final = 4
"""Parameters of a URL, each of which is a kind."""
LIVES_MIN: Final = 2
"""Replies that some session must have had, because sessions may end after a number of them."""
LONGER_MIN: Final = 1.5
"""A session that ends later than others lived, times this, may have ended by time."""
_SEPARATOR = re.compile("[&;]")
SAME_MIN: Final = 2
"""URLs of a kind that have ended sessions, before the kind is excluded."""
ALIKE_MIN: Final = 3
"""The same where paths differ in numbers or tokens."""
_VARIES = re.compile(r"(?<=/)[0-9A-Za-z_-]{16,}(?![^/])|[0-9]+")
"""Matches numbers in a path, and segments that are tokens or long names."""


class Evidence(msgspec.Struct):
    """What followed the URLs of a kind."""

    ended: int = 0
    """Sessions that had ended after one."""
    lived: int = 0
    """Sessions that had not."""
    trials: int = 0
    pages: int = 0
    """Pages of the kind that were followed by another one."""


class SessionEndings:
    """What one login has learned, in memory but for the kinds that it excludes. Each call costs some µs."""

    def __init__(self, excluded: list[str]) -> None:
        """`excluded` are the kinds that were found before."""
        self.excluded = excluded
        self.good: Url | None = None
        """A page that was content, to see whether a session goes on."""
        self._needs_session = False
        """Whether `good` is known to show nothing without a session."""
        self._kinds: dict[str, Evidence] = {}
        self._out: dict[str, None] = {}
        """Keys of URLs that were answered as if there were no session."""
        self._accused: tuple[Url, str] | None = None
        """A URL after which the session had ended, and the key of that which showed it."""
        self._tried: Url | None = None
        """A URL after whose request it must be seen whether the session goes on."""
        self._shows_no_session = False
        """Whether the reply to it did."""
        self._last: Url | None = None
        """The URL of the last reply in this session."""
        self._last_is_page = False
        self._previous: Url | None = None
        self._previous_is_page = False
        self._began = 0.0
        self._replies = 0
        """In this session."""
        self._replies_most = 0
        self._controls = 0
        """Pages after which it was seen whether a session has a second one."""
        self._lived_s_most = 0.0
        """How long a session was seen to live."""

    def begin(self, now: float) -> None:
        """Note a new session."""
        self._began = now
        self._replies = 0
        self._last = None
        self._tried = None

    def excludes(self, url: Url) -> bool:
        """Say whether a URL is of a kind that ends sessions."""
        return bool(self.excluded) and not set(self.excluded).isdisjoint(_kinds_of(url))

    def is_on_trial(self, url: Url) -> bool:
        """Say whether a URL should be the first request of a session. Pure."""
        if not self._replies:
            return False
        return url.key in self._out or any(one.trials < TRIALS_MAX for one in self._suspected(url))

    @property
    def checks(self) -> bool:
        """Whether `good` should be requested before any other page."""
        return self._tried is not None and self.good is not None

    def begin_trial(self, url: Url) -> None:
        """Note that a session ends for the sake of a suspected URL."""
        for one in self._suspected(url):
            one.trials += 1

    def note_reply(self, url: Url) -> None:
        """Note a reply in the session."""
        self._previous = self._last
        self._previous_is_page = self._last_is_page
        self._last = url
        self._last_is_page = False
        self._replies += 1
        if self._replies == 1 and self._suspected(url):
            self._tried = url
            self._shows_no_session = False

    def note_page(self, url: Url, now: float) -> None:
        """Note that the last reply is content."""
        self._note_life(now)
        if url.key in self._out:
            del self._out[url.key]
            self.good = url
            self._needs_session = True
            if self._accused is not None and self._accused[1] == url.key:
                self._strike(_kinds_of(self._accused[0]))
                self._accused = None
        elif self.good is None:
            self.good = url
        if self._replies_most < LIVES_MIN and self._kinds and self._controls < TRIALS_MAX:
            self._controls += 1
            self._tried = url
            self._shows_no_session = False
        if self._previous is not None and self._previous_is_page:
            for kind in _kinds_of(self._previous)[1:]:
                self._evidence(kind).pages += 1
        self._last_is_page = True

    def note_end(self, url: Url) -> tuple[bool, bool]:
        """Note that the last reply, to this URL, shows no session. Return whether the session is kept, because `good`
        tells more, and whether the URL was answered like this before.
        """
        was_out = url.key in self._out
        self._out[url.key] = None
        while len(self._out) > KINDS_MAX:
            del self._out[next(iter(self._out))]
        is_kept = self._replies == 1 and self.good is not None and self.good.key != url.key
        if is_kept:
            self._tried = url
            self._shows_no_session = True
        elif self._previous is not None:
            self._accused = (self._previous, url.key)
        return is_kept, is_kept and was_out

    def note_check(self, now: float, *, is_out: bool | None) -> str:
        """Note whether `good` shows no session; None: its request failed. Return the kind of URLs that are excluded
        because of it; empty: none.
        """
        url = self._tried
        self._tried = None
        if url is None or is_out is None:
            return ""
        kinds = _kinds_of(url)
        if not is_out:
            if self._needs_session:
                self._replies += 1
                self._note_life(now)
                for kind in kinds:
                    self._evidence(kind).lived += 1
            return ""
        is_early = self._replies_most >= LIVES_MIN and now - self._began <= LONGER_MIN * self._lived_s_most
        if not (self._shows_no_session or is_early) or len(self.excluded) >= EXCLUDED_MAX:
            return ""
        self._strike(kinds)
        alone = kinds[0] if self._shows_no_session else ""
        kind = next((kind for kind in kinds if self._is_certain(kind)), alone)
        if kind:
            self.excluded.append(kind)
        return kind

    def _note_life(self, now: float) -> None:
        self._replies_most = max(self._replies_most, self._replies)
        self._lived_s_most = max(self._lived_s_most, now - self._began)

    def _suspected(self, url: Url) -> list[Evidence]:
        known = [self._kinds[kind] for kind in _kinds_of(url) if kind in self._kinds] if self._kinds else []
        return [one for one in known if one.ended > one.pages and not one.lived]

    def _is_certain(self, kind: str) -> bool:
        one = self._kinds[kind]
        return one.ended >= (ALIKE_MIN if "*" in kind else SAME_MIN) and one.ended > one.pages and not one.lived

    def _strike(self, kinds: tuple[str, ...]) -> None:
        for kind in kinds:
            self._evidence(kind).ended += 1

    def _evidence(self, kind: str) -> Evidence:
        found = self._kinds.get(kind)
        if found is None:
            if len(self._kinds) >= KINDS_MAX:
                del self._kinds[next(iter(self._kinds))]
            found = self._kinds[kind] = Evidence()
        return found


def _kinds_of(url: Url) -> tuple[str, ...]:
    """Return the kinds of a URL, the narrowest first: itself; one for each of its parameters; its path with the names
    of its parameters; the same without numbers and tokens in the path.
    """
    path, mark, query = url.text.removeprefix(url.origin).partition("?")
    pairs = [pair for pair in _SEPARATOR.split(query, PAIRS_MAX)[:PAIRS_MAX] if "=" in pair]
    names = "&".join(pair.partition("=")[0] + "=" for pair in pairs) or query
    single = (f"{url.origin}{path}?{pair}" for pair in pairs)
    shape = f"{url.origin}{_VARIES.sub('*', path)}{mark}{names}"
    return tuple(dict.fromkeys((url.text, *single, f"{url.origin}{path}{mark}{names}", shape)))
