"""Events: a stream of server-sent events, one message a second, the same for all readers.

There are few streams, by a bound; each holds one message, and one that takes none for `SEND_S_MAX` is closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from gossamer.console.connections import CLOSING
from gossamer.console.directory import CrawlHandle
from gossamer.console.operations import ConsoleCounts, error
from gossamer.model.health import OVER, health_of
from gossamer.model.status import detail_pause_s, is_resumable, read_status
from gossamer.world.clock import WallClock

TICK_S = 1.0
ATTEMPTS_A_TICK_MAX = 10
"""Attempts of either kind in a message; the number of the others is included."""
BEGINNING = ("about", "course", "recent")
LEFT_OUT = frozenset(("course", "rejected", "traps"))
"""Keys of a status that the page gets in another form, or does not show."""
MAKING_S_MAX = 5.0
"""Longest wait for a message that another stream requested; then the stream reports that the crawl does not answer."""
OVER_S = 3.0
"""Interval of checks whether a crawl that does not run was resumed."""
SEND_S_MAX = 10.0
STAY_S_MIN = 5.0
"""A stream that reads keeps its place for at least this time."""
HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"connection", b"close"),
    (b"x-accel-buffering", b"no"),
]


def route(path: str, feed_of: Callable[[Mapping[str, str]], EventFeed], streams: Streams) -> Route:
    """Return the route of the stream. `feed_of` finds the feed of the crawl that a path names."""

    async def events(request: Request) -> Response:
        stream = _EventStream(feed_of(request.path_params), streams, has_token="authorization" in request.headers)
        if not streams.make_room(stream):
            return error(503, f"{streams.most} event streams are open already; close one", {"Retry-After": "5"})
        return stream

    return Route(path, events, methods=["GET"])


class Streams:
    """All event streams of a server. A new one replaces a stream that does not read, else the oldest.

    Only another stream with the token can replace an operator's stream, which has the token.
    """

    def __init__(self, most: int, figures: ConsoleCounts) -> None:
        self.most = most
        self._figures = figures
        self._open: set[_EventStream] = set()

    def make_room(self, stream: _EventStream) -> bool:
        """Add a stream, if necessary instead of another; False if all others must stay."""
        if len(self._open) >= self.most:
            now = asyncio.get_running_loop().time()
            may_go = [one for one in self._open if one.may_give_way(stream, now)]
            if not may_go:
                self._figures.requests_busy += 1
                return False
            self._figures.streams_displaced += 1
            slowest = min(may_go, key=lambda one: (one.has_token, not one.is_behind, one.began_at))
            slowest.displaced.set()
            self.remove(slowest)
        self._open.add(stream)
        self._figures.streams = len(self._open)
        return True

    def remove(self, stream: _EventStream) -> None:
        """Remove a stream that has ended."""
        self._open.discard(stream)
        self._figures.streams = len(self._open)


class _EventStream(Response):
    """A response that lasts until its reader leaves, the server ends, or another stream replaces it."""

    def __init__(self, feed: EventFeed, streams: Streams, *, has_token: bool) -> None:
        self._feed = feed
        self._streams = streams
        self.has_token = has_token
        self.began_at = asyncio.get_running_loop().time()
        self.is_behind = False
        """Whether it waits for its reader to read."""
        self.displaced = asyncio.Event()
        self.background = None

    def may_give_way(self, other: _EventStream, now: float) -> bool:
        """Return whether `other` may have its place. One that reads keeps it for a while among equals."""
        if self.has_token and not other.has_token:
            return False
        return self.is_behind or (other.has_token and not self.has_token) or now - self.began_at >= STAY_S_MIN

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until it is over."""
        closing = scope.get("state", {}).get(CLOSING)
        try:
            async with asyncio.TaskGroup() as group:
                ends = [group.create_task(wait_for_disconnect(receive)), group.create_task(self.displaced.wait())]
                if closing is not None:
                    ends.append(group.create_task(closing.wait()))
                await self._stream(send, ends)
                for task in ends:
                    task.cancel()
        finally:
            self._streams.remove(self)

    async def _stream(self, send: Send, ends: Sequence[asyncio.Task[object]]) -> None:
        loop = asyncio.get_running_loop()
        feed = self._feed
        try:
            await self._send(send, {"type": "http.response.start", "status": 200, "headers": HEADERS})
            begun = b""
            while not any(task.done() for task in ends):
                message = await feed.message()
                if not begun and (begun := await feed.beginning()):  # Unknown while the crawl starts.
                    message = begun + feed.status
                await self._send(send, _body(message))
                # A little more, so that all of them wake in the same second.
                wait_s = TICK_S - loop.time() % TICK_S + TICK_S / 100
                await asyncio.wait(ends, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
            if any(task.done() for task in ends[2:]):  # The server ends, with its crawl: the page keeps the last state.
                await self._send(send, _body(await feed.message(last=True)))
            await self._send(send, {"type": "http.response.body", "body": b"", "more_body": False})
        except TimeoutError:
            return  # Its reader does not read: the server closes the connection.

    async def _send(self, send: Send, message: dict[str, object]) -> None:
        self.is_behind = True
        async with asyncio.timeout(SEND_S_MAX):
            await send(message)
        self.is_behind = False


def _body(data: bytes) -> dict[str, object]:
    return {"type": "http.response.body", "body": data, "more_body": True}


async def wait_for_disconnect(receive: Receive) -> object:
    """Return when the reader has left."""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return message


encode = msgspec.json.Encoder().encode


class EventFeed:
    """Makes messages as server-sent events."""

    def __init__(self, handle: CrawlHandle, own: Callable[[], ConsoleCounts]) -> None:
        """Take a crawl, and what returns the console's own counts."""
        self._handle = handle
        self._own = own
        self._clock = WallClock()
        self._making = asyncio.Lock()
        self._tick = -1
        self._message = b""
        self.status = b""
        """The last status message, for streams that open while there is nothing new."""
        self._seen = 0
        """The number of the last attempt that was sent."""
        self._detail: dict[str, object] = {}
        self._rates: dict[str, object] = {}
        """The rates over time, used only for the health: the page has its own."""
        self._detail_at = 0.0
        self._silent = SILENT
        """The message while the crawl does not answer."""
        self._is_over = False
        self._is_last = False
        self._again_at = 0.0
        """When a crawl that does not run is checked again."""

    async def beginning(self) -> bytes:
        """Return a stream's first message: the crawl, its course, its last attempts; None: it does not answer."""
        answers = [await self._ask(verb) for verb in BEGINNING]
        if not all(answers):
            return b""
        return b"".join(event(name, answer) for name, answer in zip(BEGINNING, answers, strict=True))

    async def message(self, *, last: bool = False) -> bytes:
        """Return the message of this second, the same for all streams; `last`: of the server's end."""
        tick = int(asyncio.get_running_loop().time() / TICK_S)
        try:
            async with asyncio.timeout(MAKING_S_MAX):
                await self._making.acquire()
        except TimeoutError:
            return SILENT  # It is being made, and the crawl does not answer.
        try:
            if last and not self._is_last:
                self._is_last = True
                self._tick = tick - 1
                self._again_at = 0.0
            if self._tick != tick:
                self._message = await self._make_message(after_silence=tick - self._tick > 1)
                self._tick = tick
        finally:
            self._making.release()
        return self._message

    async def _make_message(self, *, after_silence: bool = False) -> bytes:
        if asyncio.get_running_loop().time() < self._again_at:
            return event("still", {})
        status = await self._status()
        if status is None:
            return self._silent
        if after_silence:  # No stream was open: what went by is not sent.
            self._see(await self._ask("recent", most=1))
            recent = None
        else:
            recent = await self._ask("recent", after=self._seen, most=ATTEMPTS_A_TICK_MAX)
            self._see(recent)
        self.status = event(
            "status",
            {
                "at": self._clock.now(),
                "status": status,
                "health": health_of(read_status({**self._rates, **status})),
                "resumable": is_resumable(status),
                "recent": recent,
                "console": self._own(),
            },
        )
        return self.status

    def _see(self, recent: Mapping[str, object] | None) -> None:
        last = recent.get("last") if recent is not None else None
        self._seen = last if isinstance(last, int) else 0

    async def _status(self) -> Mapping[str, object] | None:
        """Return the status, with detail as often as it may cost, and once of what is over."""
        now = asyncio.get_running_loop().time
        began = now()
        wants_detail = now() >= self._detail_at
        status = await self._ask("status", detail=wants_detail)
        if status is None:
            return None
        shown = {name: value for name, value in status.items() if name not in LEFT_OUT}
        is_over = shown.get("state") in OVER and not shown.get("in_flight")
        if wants_detail:
            self._detail_at = now() + detail_pause_s(now() - began)
            self._detail = {name: shown[name] for name in ("hosts", "changes", "lasting") if name in shown}
            self._rates = {"course": status["course"]} if "course" in status else {}
        if is_over != self._is_over:
            self._is_over = is_over
            self._detail_at = 0.0
        elif is_over:
            self._detail_at = float("inf")
            self._again_at = now() + OVER_S
        return {**shown, **self._detail}

    async def _ask(self, verb: str, **fields: object) -> Mapping[str, object] | None:
        answer = await self._handle.ask({"verb": verb, **fields})
        result = answer.get("result")
        if answer.get("ok") and isinstance(result, Mapping):
            return result
        self._silent = event("silent", {"says": str(answer.get("error", ""))})
        return None


def event(name: str, value: object) -> bytes:
    """Return a server-sent event. JSON has no line breaks of its own, so that no value can end it."""
    return b"event: %s\ndata: %s\n\n" % (name.encode(), encode(value))


SILENT = event("silent", {"says": "the crawl does not answer"})
