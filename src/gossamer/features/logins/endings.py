"""Endings: finds the URLs that end a session by what follows their requests; words in them mean nothing here.

A URL is suspected if the session is found ended right after its request. The next URL of the same kind is the first
request of a session, and so is a URL that was answered as if there were no session. After it, a page that was content
before is requested: if it shows no session, the URL has ended it, and URLs of its kind are excluded. Sessions that end
by time or number exclude nothing, because a page of the kind is then followed by content.
"""

import re
from collections import Counter, defaultdict
from typing import Final

import msgspec

from gossamer.url.url import Url

KINDS_MAX: Final = 10_000
"""Kinds of URLs of which something is known; with more, all are forgotten."""
EXCLUDED_MAX: Final = 200
"""Kinds of URLs that one login excludes."""
CONTROLS_MAX: Final = 3
"""Pages after which it is seen whether a session has a second one."""
PAIRS_MAX: Final = 4
"""Parameters of a URL, each of which is a kind."""
LIVES_MIN: Final = 2
"""Replies that some session must have had, because sessions may end after a number of them."""
LONGER_MIN: Final = 1.5
LONGER_S: Final = 2.0
"""A session that ends later than others lived, times the one and plus the other, may have ended by time."""
LOGGED_OUT_MAX: Final = 3
"""Requests for one page that a server answers as if there were no session."""
SAME_MIN: Final = 2
"""URLs of a kind that have ended sessions, before the kind is excluded."""
ALIKE_MIN: Final = 3
"""The same where paths differ in numbers or tokens."""
_SEPARATOR = re.compile("[&;]")
_VARIES = re.compile(r"(?<=/)[0-9A-Za-z_-]{16,}(?![^/])|[0-9]+")
"""Matches numbers in a path, and segments that are tokens or long names."""


class Evidence(msgspec.Struct):
    """Counts of what happened after URLs of one kind."""

    ended: int = 0
    """Sessions that had ended, by the next reply or by that of `good`."""
    shown: int = 0
    """Those of them that had ended by that of `good`."""
    lived: int = 0
    """Replies of `good` that showed a session."""
    pages: int = 0
    """Pages that were followed by another one."""


class SessionEndings:
    """Learns which kinds of URLs end one login; only those kinds outlast the process. Each call costs some µs."""

    def __init__(self, excluded: list[str]) -> None:
        """`excluded` are the kinds that were found before."""
        self.excluded = excluded
        self.good: Url | None = None
        """A page that was content, to see whether a session goes on."""
        self._needs_session = False
        """Whether `good` is known to show nothing without a session."""
        self._kinds: defaultdict[str, Evidence] = defaultdict(Evidence)
        self._out: Counter[str] = Counter()
        """By key of a URL: how often it was answered as if there were no session. Lost in a crash."""
        self._accused: tuple[Url, str] | None = None
        """A URL after which the session had ended, and the key of that which showed it."""
        self._tried: Url | None = None
        """A URL after whose request it must be seen whether the session goes on."""
        self._out_after_s: float | None = None
        """After which part of the session the reply to it showed none; None: it did not."""
        self._last: list[Url] = []
        """The last two requests of this session."""
        self._page_at = 0
        """Number of the last reply in this session that was content."""
        self._began = 0.0
        self._replies = 0
        self._replies_most = 0
        self._lived_s_most = 0.0
        self._controls = 0

    def begin(self, now: float) -> None:
        """Note a new session."""
        if max(len(self._kinds), len(self._out)) >= KINDS_MAX:
            self._kinds.clear()
            self._out.clear()
        self._began = now
        self._replies = 0
        self._page_at = 0
        self._last = []
        self._tried = None

    def excludes(self, url: Url) -> bool:
        """Return whether a URL is of a kind that ends sessions."""
        return bool(self.excluded) and not set(self.excluded).isdisjoint(_kinds_of(url))

    def is_on_trial(self, url: Url) -> bool:
        """Return whether a URL should be the first request of a session. Pure."""
        return self._replies > 0 and (url.key in self._out or self._is_suspected(url))

    @property
    def checks(self) -> bool:
        """Whether `good` should be requested before any other page."""
        return self._tried is not None and self.good is not None

    def note_reply(self, url: Url, now: float) -> None:
        """Note a reply in the session. Of one that an earlier run began, the time is counted from its first reply."""
        self._began = self._began or now
        self._last = [*self._last[-1:], url]
        self._replies += 1
        if self._replies == 1 and self._is_suspected(url):
            self._tried = url
            self._out_after_s = None

    def note_page(self, url: Url, now: float) -> None:
        """Note that the last reply is content."""
        self._note_life(now)
        if url.key in self._out:
            del self._out[url.key]
            self.good = url
            self._needs_session = True
            if self._accused is not None and self._accused[1] == url.key:
                self._strike(self._accused[0])
                self._accused = None
        self.good = self.good or url
        if self._replies_most < LIVES_MIN and self._kinds and self._controls < CONTROLS_MAX:
            self._controls += 1
            self._tried = url
            self._out_after_s = None
        if self._page_at == self._replies - 1 and len(self._last) == 2 and len(self._kinds) < KINDS_MAX:
            for kind in _kinds_of(self._last[0])[1:]:
                self._kinds[kind].pages += 1
        self._page_at = self._replies

    def note_end(self, url: Url, now: float) -> tuple[bool, bool]:
        """Note a reply without a session. Return whether the session is kept, and whether to request no more."""
        self._out[url.key] += 1
        is_kept = self._replies == 1 and self.good is not None and self.good.key != url.key
        if is_kept:
            self._tried = url
            self._out_after_s = now - self._began
        elif len(self._last) == 2:
            self._accused = (self._last[0], url.key)
        return is_kept, self._out[url.key] >= LOGGED_OUT_MAX

    def note_check(self, now: float, *, is_out: bool | None) -> str:
        """Note whether `good` shows no session; None: its request failed. Return the kind of URLs excluded for it."""
        url = self._tried
        self._tried = None
        if url is None or is_out is None:
            return ""
        if not is_out:
            if self._needs_session:
                self._replies += 1
                self._note_life(now)
                for kind in _kinds_of(url):
                    self._kinds[kind].lived += 1
            return ""
        shows_none = self._out_after_s is not None
        after_s = now - self._began if self._out_after_s is None else self._out_after_s
        has_lived = shows_none or self._replies_most >= LIVES_MIN
        if not has_lived or after_s > LONGER_MIN * self._lived_s_most + LONGER_S or len(self.excluded) >= EXCLUDED_MAX:
            return ""
        self._strike(url)
        kinds = _kinds_of(url)
        for kind in kinds:
            self._kinds[kind].shown += 1
        found = next((kind for kind in kinds if self._is_certain(kind)), url.text)
        self.excluded.append(found)
        return found

    def _note_life(self, now: float) -> None:
        self._replies_most = max(self._replies_most, self._replies)
        self._lived_s_most = max(self._lived_s_most, now - self._began)

    def _is_suspected(self, url: Url) -> bool:
        return bool(self._kinds) and any(self._has_ended(kind, 1) for kind in _kinds_of(url))

    def _has_ended(self, kind: str, least: int) -> bool:
        one = self._kinds.get(kind)
        return one is not None and one.ended >= least and one.ended > one.pages and not one.lived

    def _is_certain(self, kind: str) -> bool:
        has_value = "?" in kind and not kind.endswith("=")  # A page that came before may share a parameter's value.
        is_shown = not has_value or self._kinds[kind].shown >= SAME_MIN
        return is_shown and self._has_ended(kind, ALIKE_MIN if "*" in kind else SAME_MIN)

    def _strike(self, url: Url) -> None:
        for kind in _kinds_of(url):
            self._kinds[kind].ended += 1


def _kinds_of(url: Url) -> tuple[str, ...]:
    """Return a URL's kinds: itself; each parameter; its path with their names; that without numbers and tokens."""
    path, mark, query = url.text.removeprefix(url.origin).partition("?")
    pairs = [pair for pair in _SEPARATOR.split(query, PAIRS_MAX)[:PAIRS_MAX] if "=" in pair]
    names = "&".join(pair.partition("=")[0] + "=" for pair in pairs) or query
    single = (f"{url.origin}{path}?{pair}" for pair in pairs)
    shape = f"{url.origin}{_VARIES.sub('*', path)}{mark}{names}"
    return tuple(dict.fromkeys((url.text, *single, f"{url.origin}{path}{mark}{names}", shape)))
