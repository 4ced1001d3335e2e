"""Fakes: a clock that moves when a test moves it, a web in a dictionary, fixed addresses, an archive in memory."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from html import escape

from msgspec.structs import replace

from gossamer.model.links import Link
from gossamer.model.pages import Archived, Visited
from gossamer.model.visits import Failure, Located, Reply, Request
from gossamer.stages.frontier.strategy import Strategy
from gossamer.world.clock import Clock


class FakeClock:
    """`world.clock.Clock` on which sleeping takes no time: `sleep_until` moves the clock and yields once."""

    def __init__(self, instant: float = 1_000_000.0) -> None:
        """Begin at `instant`, in seconds since 1970."""
        self.instant = instant

    def now(self) -> float:
        """Return the time; it changes only when a test moves it."""
        return self.instant

    def work_s(self) -> float:
        """Return the time: work takes as long as a test moves it."""
        return self.instant

    process_work_s = work_s

    async def sleep_until(self, instant: float) -> None:
        """Move the clock to `instant`, unless that has passed."""
        self.instant = max(self.instant, instant)
        await asyncio.sleep(0)

    def advance(self, duration_s: float) -> None:
        """Move the clock forward by `duration_s`."""
        assert duration_s >= 0, "a clock never goes back"
        self.instant += duration_s


HTML = "text/html"

Answer = Reply | Failure | Exception
"""Result of one request. An exception is raised: it represents an error in a module."""
Answers = Answer | Sequence[Answer] | Callable[[Request], Answer]
"""Always the same; or one after the other, the last for ever; or what a function makes of the request."""


def reply(
    body: bytes = b"",
    status: int = 200,
    headers: Sequence[tuple[str, str]] = (),
    *,
    media_type: str = HTML,
    truncated: str = "",
) -> Reply:
    """Return a reply; address, times and sizes are filled in by the web that gives it."""
    named = {name.lower() for name, _ in headers}
    typed = [("Content-Type", media_type)] if media_type and "content-type" not in named else []
    return Reply(
        url="", status=status, headers=(*headers, *typed), body=body, ip="", started_at=0.0, fetch_s=0.0, wire_bytes=0,
        media_type=media_type, truncated=truncated,
    )  # fmt: skip


def page(*hrefs: str, title: str = "", text: str = "", status: int = 200) -> Reply:
    """Return an HTML page with these links."""
    links = "".join(f'<p><a href="{escape(href)}">to {escape(href)}</a></p>' for href in hrefs)
    return reply(f"<!doctype html><title>{escape(title)}</title><p>{escape(text)}</p>{links}".encode(), status)


class FakeWeb:
    """`ports.ProtocolModule` over a dictionary of addresses. An address that is not in it is a 404; robots.txt too.

    `held` keeps every request waiting until it is set, so that a test can look at what is in flight.
    """

    def __init__(
        self, pages: Mapping[str, Answers] | None = None, *, clock: Clock | None = None, fetch_s: float = 0.01
    ) -> None:
        """`fetch_s` is how long a request takes on `clock`."""
        self.pages = dict(pages or {})
        self.requests: list[Request] = []
        """Every request, in order."""
        self.counts: Counter[str] = Counter()
        """Requests by address."""
        self.in_flight = 0
        self.in_flight_max = 0
        self.is_closed = False
        self.held: asyncio.Event | None = None
        self._news = asyncio.Event()
        self._clock = clock or FakeClock()
        self._fetch_s = fetch_s

    async def asked(self, requests: int) -> None:
        """Return when this number of requests has come in, over all."""
        while len(self.requests) < requests:
            self._news.clear()
            await self._news.wait()

    async def fetch(self, request: Request) -> Reply | Failure:
        """Answer one request as the dictionary says."""
        assert not self.is_closed, "a request after close"
        self.requests.append(request)
        self.counts[request.url] += 1
        self._news.set()
        self.in_flight += 1
        self.in_flight_max = max(self.in_flight_max, self.in_flight)
        started = self._clock.now()
        try:
            if self.held is not None:
                await self.held.wait()
            await self._clock.sleep_until(started + self._fetch_s)
            return self._respond(request, started)
        finally:
            self.in_flight -= 1

    async def close(self) -> None:
        """Refuse further requests. Twice is as good as once."""
        self.is_closed = True

    def _respond(self, request: Request, started: float) -> Reply | Failure:
        answer = self._answer(request)
        took_s = self._clock.now() - started
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Failure):
            came = self._make_reply(answer.came, request, started, took_s) if answer.came is not None else None
            return replace(answer, ip=request.ip, started_at=started, fetch_s=took_s, came=came)
        return self._make_reply(answer, request, started, took_s)

    def _make_reply(self, answer: Reply, request: Request, started: float, took_s: float) -> Reply:
        cut = 0 < request.body_bytes_max < len(answer.body)
        body = answer.body[: request.body_bytes_max] if cut else answer.body
        return replace(
            answer, url=request.url, body=body, ip=request.ip, started_at=started, fetch_s=took_s,
            wire_bytes=len(body) + 100, request_head=_head(request), truncated="length" if cut else answer.truncated,
        )  # fmt: skip

    def _answer(self, request: Request) -> Answer:
        answers = self.pages.get(request.url)
        if answers is None:
            return reply(b"not here", 404, media_type="text/plain")
        if isinstance(answers, Reply | Failure | Exception):
            return answers
        if isinstance(answers, Sequence):
            return answers[min(self.counts[request.url], len(answers)) - 1]
        return answers(request)


def _head(request: Request) -> bytes:
    scheme, _, rest = request.url.partition("://")
    host, slash, path = rest.partition("/")
    return f"GET {slash}{path} HTTP/1.1\r\nHost: {host}\r\nX-Scheme: {scheme}\r\n\r\n".encode()


class FixedResolver:
    """`ports.Resolver` that sends no query. A host that was never asked about is not in its memory."""

    def __init__(
        self,
        hosts: Mapping[str, str | tuple[str, ...] | Failure] | None = None,
        *,
        default: str = "127.0.0.1",
        expires_at: float = float("inf"),
    ) -> None:
        """`hosts` have their addresses, best first, or a failure; every other host is at `default`."""
        self.hosts = dict(hosts or {})
        self.counts: Counter[str] = Counter()
        """How often each host was asked about, memory aside."""
        self._default = default
        self._expires_at = expires_at
        self._known: dict[str, Located] = {}

    def cached(self, host: str) -> Located | None:
        """Return the earlier result of `resolve`."""
        return self._known.get(host)

    async def resolve(self, host: str) -> Located | Failure:
        """Return a host's addresses or its failure."""
        self.counts[host] += 1
        found = self.hosts.get(host, self._default)
        if isinstance(found, Failure):
            return found
        self._known[host] = Located((found,) if isinstance(found, str) else found, self._expires_at)
        return self._known[host]

    async def close(self) -> None:
        """Forget everything."""
        self._known.clear()


class FakeGates:
    """`gates` of a frontier component: keeps what is queued until a test finishes it."""

    def __init__(self) -> None:
        self.queued: list[Link] = []
        self.counts = self

    @property
    def pending(self) -> int:
        """URLs that are queued and not finished."""
        return len(self.queued)

    def queue(self, link: Link, level: int, now: float) -> None:
        """Queue a URL."""
        assert 0 <= level <= 7, f"{level} is no level from 0 to 7"
        self.queued.append(link)

    def finish(self, strategy: Strategy) -> list[Link]:
        """Finish all queued URLs, and return them."""
        done = self.queued
        self.queued = []
        for link in done:
            strategy.finish(link.url, "fetched")
        return done


FILE = "memory.warc.gz"


class MemoryArchive:
    """`ports.Archive` that keeps visits in the order in which they were added."""

    def __init__(self) -> None:
        self.added: list[Visited] = []
        """Everything that was given."""
        self.cut_at: list[int] = []
        """How many visits there were at each cut: what stood in the list then belongs to an epoch that closed."""
        self.prerequisites: list[tuple[Reply, str, str]] = []
        """Each robots.txt that came, with the URL that waited for it and the kind."""
        self._length = 0

    @property
    def urls(self) -> list[str]:
        """The addresses that were added, in order."""
        return [visited.row.url for visited in self.added]

    @property
    def outcomes(self) -> dict[str, str]:
        """The last outcome of each address."""
        return {visited.row.url: visited.row.outcome for visited in self.added}

    def add(self, visited: Visited) -> Archived:
        """Keep a visit. A response has a place in one endless file, any other attempt has none."""
        self.added.append(visited)
        if visited.reply is None:
            return Archived()
        offset = self._length
        length = len(visited.reply.body) + 1
        self._length += length
        row = visited.row
        row.warc_file = FILE
        row.warc_offset = offset
        row.warc_length = length
        return Archived(FILE, offset, length, f"<urn:memory:{len(self.added)}>")

    def add_prerequisite(self, reply: Reply, via: str, link_type: str) -> None:
        """Keep what had to be asked before a page."""
        self.prerequisites.append((reply, via, link_type))

    def cut(self) -> None:
        """Note that an epoch closes."""
        self.cut_at.append(len(self.added))

    def close(self) -> None:
        """Do nothing: there is no file to finish."""
