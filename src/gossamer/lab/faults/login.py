"""Login: a host of a simulated web whose pages need a session, and what a crawl must do with that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gossamer.crawl.outcomes import LOGGED_OUT_MAX
from gossamer.model.visits import Request

ORIGIN = "http://h0.test/"
LOGIN = f"{ORIGIN}login"
SETS = (f"login.a={{url='{LOGIN}', fields={{user='u'}}, token='t', attempts_max=1000}}",)
EXPIRES_S = (60.0, 300.0, 1_000.0, 100_000.0)
"""How long a session lasts, by seed."""
COMMITTED_S = 40.0
"""After which a commit has what a process did, with `lives.SETS_OF_SHARDS`."""


class Use(NamedTuple):
    """A request of a session."""

    at: float
    machine: int
    life: int


class Session:
    """The host's one session: the newest, until it ends."""

    def __init__(self, seed: int) -> None:
        self._expires_s = EXPIRES_S[seed % len(EXPIRES_S)]
        self._number, self._ends_at = 0, 0.0
        self._used: list[Use] = []
        self._refused: Counter[str] = Counter()
        """By URL: its requests that were answered as if there were no session."""

    def begin(self, now: float) -> bytes:
        """Begin another session; return what the login's answer has of it."""
        self._number, self._ends_at, self._used = self._number + 1, now + self._expires_s, []
        return b'{"t": "session-%d"}' % self._number

    def admits(self, request: Request, use: Use) -> bool:
        """Say whether a request is one of the session, or of one that ended for a page which would be given up."""
        token = f"Bearer session-{self._number}"
        is_good = ("Authorization", token) in request.headers and use.at < self._ends_at
        self._used += [use] if is_good else []
        had_one = any(name == "Authorization" for name, _ in request.headers)
        if is_good or (had_one and self._refused[request.url] >= LOGGED_OUT_MAX - 1):
            return True
        self._refused[request.url] += 1
        return False

    def needless(self, now: float, forgot: Sequence[float]) -> Iterator[str]:
        """Yield why a login that comes now has no reason: the session is good, and a commit has it."""
        first = self.kept(now)
        if first is not None and not any(at >= first.at for at in forgot):
            yield f"a login at {now:.0f} s, and the session of shard {first.machine} was good until {self._ends_at:.0f}"

    def kept(self, now: float) -> Use | None:
        """Return the first use of the session, if that is good, and a commit of the process that began it has it."""
        first = self._used[0] if self._used and now < self._ends_at else None
        since_s = [one.at - first.at for one in self._used if first is not None and one[1:] == first[1:]]
        return first if max(since_s, default=0.0) >= COMMITTED_S else None


def needs_session(url: str) -> bool:
    """Say whether a URL is answered in a session only."""
    return url.startswith(ORIGIN) and not url.endswith("/robots.txt") and url != LOGIN
