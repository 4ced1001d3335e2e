"""World: the clock, the web and the name service of one trial. Nothing in it depends on anything but its seed."""

from __future__ import annotations

import asyncio
import selectors
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from gossamer.model.visits import Failure, Located, Reply, Request
from gossamer.world.dice import Dice

T = TypeVar("T")
BEGIN = 1_767_225_600.0
HOSTS_MAX, PAGES_MIN, PAGES_MAX, LINKS_MAX = 4, 20, 50, 6
FAULTS_MAX = 2
"""Attempts of one page that fail before it is answered: fewer than a crawl makes."""
REQUEST_S_MAX, DOWN_S_MIN, DOWN_S_MAX = 8.0, 0.01, 120.0
IDLE_S_MAX = 86_400.0
"""A trial that waits for longer than this in all is stuck."""
ROBOTS = b"User-agent: *\nDisallow: /private/\n"


class Killed(KeyboardInterrupt):
    """The process ends here, in the middle of whatever it does."""


class Asked(NamedTuple):
    """One request as the servers saw it."""

    host: str
    path: str
    began: float
    ended: float
    life: int


class Site(NamedTuple):
    """What the servers hold, and what a crawl of it must come to."""

    pages: Mapping[str, bytes]
    redirects: Mapping[str, str]
    missing: frozenset[str]
    private: frozenset[str]

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
                waiting += [link.decode() for link in self.pages[url].split(b'"')[1::2]]
        return ends


def site(dice: Dice) -> Site:
    """Return a web of a few hosts: a tree, so that every page is reached, with links across it."""
    hosts = [f"h{number}.test" for number in range(1 + dice.below(HOSTS_MAX))]
    count = PAGES_MIN + dice.below(PAGES_MAX - PAGES_MIN)
    urls = [f"http://{hosts[dice.below(len(hosts))]}/{_folder(dice)}{number}" for number in range(1, count)]
    urls = [f"http://{hosts[0]}/", *urls]
    links: dict[str, list[str]] = {url: [] for url in urls}
    leaves = {url for url in urls[count // 2 :] if dice.below(5) == 0}
    private = frozenset(url for url in urls if "/private/" in url)
    closed = leaves | private
    for number, url in enumerate(urls[1:], 1):
        open_ones = [one for one in urls[:number] if one not in closed]
        links[open_ones[dice.below(len(open_ones))]].append(url)
        links[url] += [urls[dice.below(count)] for _ in range(dice.below(LINKS_MAX))]
    ordered = sorted(leaves - private)
    redirects = {url: urls[dice.below(urls.index(url))] for url in ordered[::2]}
    missing = frozenset(ordered[1::2])
    pages = {
        url: b"".join([b"<!doctype html><title>x</title>", *(f'<a href="{to}">x</a>'.encode() for to in links[url])])
        for url in urls
    }
    return Site(pages, redirects, missing, private)


class World:
    """A clock that moves when nothing else can happen, servers that fail as the seed has it, and kills.

    `step` is called before and after what touches the disk or the web, and at each turn of the event loop. Where it is
    to kill, it copies the crawl's directory, as a killed process leaves it, and ends the process.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.site = site(Dice(seed))
        self.elapsed_s = 0.0
        self.steps = 0
        self.kill_at = -1
        """The step at which the process is killed."""
        self.kill_in_commit: tuple[int, int] | None = None
        """After this number of requests, the process is killed at this step of the commits that follow. Most other
        steps fall into times in which there is nothing to commit.
        """
        self.life = 0
        self.log: list[Asked] = []
        self.under_way: Counter[str] = Counter()
        self.overlaps: list[str] = []
        self.directory = Path()
        self._dice = Dice(seed + 1)
        self._attempts: Counter[str] = Counter()

    # ---- the clock (`gossamer.world.clock.Clock`)

    def now(self) -> float:
        """Return seconds since 1970."""
        return BEGIN + self.elapsed_s

    async def sleep_until(self, instant: float) -> None:
        """Return at an instant of this clock."""
        await asyncio.sleep(max(0.0, instant - self.now()))

    # ---- kills

    def step(self, *, disk: bool = False) -> None:
        """Let one step pass, or die at it."""
        self.steps += 1
        kills = self.steps == self.kill_at
        if disk and self.kill_in_commit is not None and len(self.log) >= self.kill_in_commit[0]:
            requests, left = self.kill_in_commit
            self.kill_in_commit = requests, left - 1
            kills = not left
        if kills:
            if self.directory.exists():
                shutil.copytree(self.directory, self.directory.with_name(f"life-{self.life + 1}"))
            raise Killed

    def around(self, function: Callable[..., T]) -> Callable[..., T]:
        """Return a function with a step before it and one behind it."""

        def stepped(*given: Any) -> T:
            self.step(disk=True)
            result = function(*given)
            self.step(disk=True)
            return result

        return stepped

    def next_life(self) -> None:
        """Stand still until the crawl is started again: at once, or after a while."""
        self.life += 1
        self.elapsed_s += self._dice.uniform(0.0, DOWN_S_MAX) if self._dice.below(2) else DOWN_S_MIN
        self.under_way.clear()
        self.directory = self.directory.with_name(f"life-{self.life}")

    # ---- the web

    async def fetch(self, request: Request) -> Reply | Failure:
        """Answer as the request's host does at this attempt."""
        self.step()
        url, life = request.url, self.life
        host, _, path = url.removeprefix("http://").partition("/")
        began, lasts_s = self.now(), self._dice.uniform(0.01, REQUEST_S_MAX) ** 2 / REQUEST_S_MAX
        self._attempts[url] += 1
        if self.under_way[host]:
            self.overlaps.append(url)
        self.under_way[host] += 1
        try:
            await asyncio.sleep(lasts_s)
        finally:
            if life == self.life:
                self.under_way[host] -= 1
                self.log.append(Asked(host, "/" + path, began, self.now(), life))
        self.step()
        return self._answer(url, began, lasts_s)

    def _answer(self, url: str, began: float, lasts_s: float) -> Reply | Failure:
        faults = Dice(hash_of(self.seed, url)).below(3 * FAULTS_MAX)
        if self._attempts[url] <= min(faults, FAULTS_MAX) and faults < 2 * FAULTS_MAX:
            if (faults + self._attempts[url]) % 2:
                return Failure("timeout", "no answer", retry=True, host_level=True, started_at=began, fetch_s=lasts_s)
            return self._reply(url, 503, b"busy", began, lasts_s)
        if url.endswith("/robots.txt"):
            return self._reply(url, 200, ROBOTS, began, lasts_s, "text/plain")
        if url in self.site.redirects:
            return self._reply(url, 301, b"", began, lasts_s, location=self.site.redirects[url])
        if url in self.site.missing:
            return self._reply(url, 404, b"no such page", began, lasts_s)
        return self._reply(url, 200, self.site.pages[url], began, lasts_s)

    def _reply(
        self, url: str, status: int, body: bytes, began: float, lasts_s: float, media_type: str = "text/html",
        location: str = "",
    ) -> Reply:  # fmt: skip
        headers = (("Content-Type", media_type), *((("Location", location),) if location else ()))
        return Reply(
            url, status, headers, body, "127.0.0.1", began, lasts_s, wire_bytes=len(body) + 100, media_type=media_type,
            request_head=b"GET / HTTP/1.1\r\n\r\n",
        )  # fmt: skip


class SimulatedHttp:
    """The protocol module that a trial names in `components.protocols`: it asks the world that is its clock."""

    default_port = 80
    has_robots = True

    def __init__(self, *, options: object, agent: str, clock: World) -> None:  # noqa: ARG002 - the port's arguments
        self.fetch = clock.fetch

    async def close(self) -> None:
        """Nothing is held."""


class SimulatedResolver:
    """The resolver that a trial names in `components.resolver`: each host has an address, found after a while."""

    def __init__(self, *, options: object, clock: World) -> None:  # noqa: ARG002 - the port's arguments
        self._world = clock

    def cached(self, host: str) -> Located | None:  # noqa: ARG002 - the port's argument
        """Know nothing without looking it up."""
        return None

    async def resolve(self, host: str) -> Located | Failure:
        """Return a host's own address."""
        self._world.step()
        await asyncio.sleep(0.05)
        return Located((f"127.0.0.{int(host[1]) + 1}",), self._world.now() + 600.0)

    async def close(self) -> None:
        """Nothing is held."""


class SimulatedLoop(asyncio.SelectorEventLoop):
    """An event loop on the world's clock: where nothing can run, time goes on to the next timer. No threads run."""

    def __init__(self, world: World) -> None:
        self._world = world
        super().__init__(_Skipping(world))

    def time(self) -> float:
        """Return the world's time."""
        return self._world.elapsed_s

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]  # noqa: ARG002
        """Run a function now; its result is there at the loop's next turn."""
        future: asyncio.Future[T] = self.create_future()
        self._world.step()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - it is the waiter's
            future.set_exception(error)
        return future


class _Skipping(selectors.SelectSelector):
    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            assert timeout is not None, "everything waits, and nothing is due"
            self._world.elapsed_s += timeout
            assert self._world.elapsed_s < IDLE_S_MAX, "the crawl does not end"
        self._world.step()
        return ready


def hash_of(seed: int, text: str) -> int:
    """Return a number for a text that does not depend on the process, unlike `hash`."""
    number = seed
    for byte in text.encode():
        number = (number * 1_000_003 ^ byte) & 0xFFFF_FFFF_FFFF
    return number


def _folder(dice: Dice) -> str:
    return "private/" if dice.below(12) == 0 else ""
