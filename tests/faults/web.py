"""Web: the pages, redirects and robots.txt of one trial, and how each URL of them must end; and the host whose pages
need a session.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from gossamer.features.logins.endings import LOGGED_OUT_MAX
from gossamer.model.visits import Request
from gossamer.world.dice import Dice

HOSTS_MAX = 4
PAGES_MIN = 20
PAGES_MAX = 50
LINKS_MAX = 6
HOSTS_OF_SHARDS = 10
ROBOTS = b"User-agent: *\nDisallow: /private/\n"


class FaultSite(NamedTuple):
    """What the servers hold, and what a crawl of it must come to."""

    pages: Mapping[str, bytes]
    redirects: Mapping[str, str]
    missing: frozenset[str]
    private: frozenset[str]
    robots: Mapping[str, str]
    """Where a robots.txt redirects to that of another host."""

    def links(self, url: str) -> list[str]:
        """Return what a page links to."""
        return [link.decode() for link in self.pages[url].split(b'"')[1::2]]

    def truth(self, seeds: list[str]) -> dict[str, str]:
        """Return how each URL that can be reached must end."""
        ends: dict[str, str] = {}
        waiting = list(seeds)
        while waiting:
            url = waiting.pop()
            if url in ends:
                continue
            if url in self.private:
                ends[url] = "robots_denied"
            elif url in self.redirects:
                ends[url] = "redirected"
                waiting.append(self.redirects[url])
            elif url in self.missing:
                ends[url] = "http_error"
            else:
                ends[url] = "fetched"
                waiting += self.links(url)
        return ends


def site(dice: Dice, hosts_max: int, hosts_min: int = 1, *, is_chain: bool = False) -> FaultSite:
    """Return a web of a few hosts: a tree, so that every page is reached, with links across it; or a chain, in which
    everything depends on each page.
    """
    hosts = [f"h{number}.test" for number in range(hosts_min + dice.below(hosts_max + 1 - hosts_min))]
    count = PAGES_MIN + dice.below(PAGES_MAX - PAGES_MIN)
    urls = [f"http://{hosts[dice.below(len(hosts))]}/{_folder(dice)}{number}" for number in range(1, count)]
    urls = [f"http://{hosts[0]}/", *urls]
    links: dict[str, list[str]] = {url: [] for url in urls}
    leaves = {url for url in urls[count // 2 :] if dice.below(5) == 0}
    private = frozenset(url for url in urls if "/private/" in url)
    closed = leaves | private
    for number, url in enumerate(urls[1:], 1):
        open_ones = [one for one in urls[:number] if one not in closed]
        links[open_ones[-1 if is_chain else dice.below(len(open_ones))]].append(url)
        links[url] += [urls[dice.below(count)] for _ in range(0 if is_chain else dice.below(LINKS_MAX))]
    ordered = sorted(leaves - private)
    redirects = {url: urls[dice.below(urls.index(url))] for url in ordered[::2]}
    missing = frozenset(ordered[1::2])
    pages = {
        url: b"".join([b"<!doctype html><title>x</title>", *(f'<a href="{to}">x</a>'.encode() for to in links[url])])
        for url in urls
    }
    elsewhere = hosts[2::3] if hosts_max > HOSTS_MAX else []
    robots = {f"http://{host}/robots.txt": f"http://{hosts[0]}/robots.txt" for host in elsewhere}
    return FaultSite(pages, redirects, missing, private, robots)


def hash_of(seed: int, text: str) -> int:
    """Return a number for a text that does not depend on the process, unlike `hash`."""
    number = seed
    for byte in text.encode():
        number = (number * 1_000_003 ^ byte) & 0xFFFF_FFFF_FFFF
    return number


def _folder(dice: Dice) -> str:
    return "private/" if dice.below(12) == 0 else ""


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

    def __init__(self, seed: int, delay_s: float) -> None:
        """`delay_s` is the longest between two requests of the crawl: a session must outlast its login and some pages,
        or no visit succeeds.
        """
        self._expires_s = max(EXPIRES_S[seed % len(EXPIRES_S)], 4.0 * delay_s)
        self._number = 0
        self._ends_at = 0.0
        self._used: list[Use] = []
        self._refused: Counter[str] = Counter()
        """By URL: its requests that were answered as if there were no session."""
        self._suspected: set[str] = set()
        """URLs that were answered so in spite of a session, and not as pages since: each may be the first request of a
        new session, to see whether it ends that (`features.logins.endings`)."""

    def begin(self, now: float) -> bytes:
        """Begin another session; return what the login's answer has of it."""
        self._number = self._number + 1
        self._ends_at = now + self._expires_s
        self._used = []
        return b'{"t": "session-%d"}' % self._number

    def admits(self, request: Request, use: Use) -> bool:
        """Say whether a request is one of the session, or of one that ended for a page which would be given up."""
        token = f"Bearer session-{self._number}"
        is_good = ("Authorization", token) in request.headers and use.at < self._ends_at
        self._used += [use] if is_good else []
        had_one = any(name == "Authorization" for name, _ in request.headers)
        if is_good or (had_one and self._refused[request.url] >= LOGGED_OUT_MAX - 1):
            self._suspected.discard(request.url)
            return True
        self._refused[request.url] += 1
        if had_one:
            self._suspected.add(request.url)
        return False

    def needless(self, now: float, forgot: Sequence[float]) -> Iterator[str]:
        """Yield why a login that comes now has no reason: the session is good, a commit has it, and no URL is suspected
        of ending it.
        """
        first = self.first_use(now)
        if first is not None and not self._suspected and not any(at >= first.at for at in forgot):
            yield f"a login at {now:.0f} s, and the session of shard {first.machine} was good until {self._ends_at:.0f}"

    def first_use(self, now: float) -> Use | None:
        """Return the first use of the session, if that is good, and a commit of the process that began it has it."""
        first = self._used[0] if self._used and now < self._ends_at else None
        since_s = [one.at - first.at for one in self._used if first is not None and one[1:] == first[1:]]
        return first if max(since_s, default=0.0) >= COMMITTED_S else None


def needs_session(url: str) -> bool:
    """Say whether a URL is answered in a session only."""
    return url.startswith(ORIGIN) and not url.endswith("/robots.txt") and url != LOGIN
