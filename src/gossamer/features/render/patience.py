"""Patience: how long a page is waited for while its requests do not end.

A wait for a silent network never ends on pages that poll. Puppeteer's `networkidle2` tolerates two requests; here
the time counts at which a request began, since one that polls looks like one that loads.
"""

from collections.abc import Callable
from typing import Final

AGAIN_S: Final = 2.0
"""Seconds for all further waits of a page whose requests did not end."""


class PagePatience:
    """The requests of a page, and whether to wait for them: while one began within `limit_s` of waiting, and replies
    come at most `limit_s` apart. Time counts once the document was parsed, and not while a host's delay is the reason.
    """

    def __init__(self, limit_s: float, is_delayed: Callable[[], bool]) -> None:
        self._limit_s = limit_s
        self._is_delayed = is_delayed
        self.began: dict[int, float] = {}
        """Requests that are under way: the time of waiting at which each began."""
        self._waited_s = 0.0
        self._silent_s = 0.0
        self.is_parsed = False
        self.is_short = False
        """Whether requests did not end: then further waits are short, and in the end there are none."""

    @property
    def is_over(self) -> bool:
        """Whether further requests would be in vain."""
        return self.is_short and self._waited_s >= self._limit_s

    @property
    def lasts(self) -> bool:
        """Whether a request is under way that is waited for."""
        is_wanted = any(began < self._limit_s for began in self.began.values())
        return is_wanted and self._silent_s < self._limit_s and not self.is_over

    def begin(self, request: int) -> None:
        self.began[request] = self._waited_s

    def end(self, request: int) -> None:
        del self.began[request]
        self._silent_s = 0.0

    def pass_time(self, seconds: float) -> None:
        """Count time in which the page waited for what is under way."""
        if self.is_parsed and self.began and not self._is_delayed():
            self._waited_s += seconds
            self._silent_s += seconds

    def renew(self) -> None:
        """Wait again, for what begins from now on."""
        self._silent_s = 0.0
        if not self.is_short:
            self._waited_s = 0.0

    def shorten(self) -> None:
        """Give up the requests that are under way, and wait for later ones for `AGAIN_S` in all."""
        self.is_short = True
        self._limit_s = min(self._limit_s, AGAIN_S)
        self._waited_s = self._silent_s = 0.0
        self.began = dict.fromkeys(self.began, self._limit_s)
