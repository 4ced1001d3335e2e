"""Events: a stream of server-sent events, once a second, for everybody who watches.

There are few streams, by a bound; each holds one message, and one that takes none for `SEND_S_MAX` is closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from gossamer.console.answers import answer, error
from gossamer.console.connections import CLOSING
from gossamer.console.feed import TICK_S, Feed
from gossamer.console.figures import Figures
from gossamer.model.verbs import RefusedError

SEND_S_MAX = 10.0
STAY_S_MIN = 5.0
"""A stream that reads keeps its place for at least so long."""
HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"connection", b"close"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-accel-buffering", b"no"),
]


def route(path: str, feed_of: Callable[[Mapping[str, str]], Feed], streams: Streams) -> Route:
    """Return the route of the stream. `feed_of` finds the feed of the crawl that a path names."""

    async def events(request: Request) -> Response:
        try:
            feed = feed_of(request.path_params)
        except RefusedError as refused:
            return answer({"ok": False, "error": str(refused), "kind": refused.kind})
        stream = _Stream(feed, streams, has_token="authorization" in request.headers)
        if not streams.make_room(stream):
            return error(503, f"{streams.most} event streams are open already; close one", {"Retry-After": "5"})
        return stream

    return Route(path, events, methods=["GET"])


class Streams:
    """All event streams of a server. A new one takes the place of one that does not read, else of the oldest.

    A stream of an operator, who has the token, gives way to others with the token only.
    """

    def __init__(self, most: int, figures: Figures) -> None:
        self.most = most
        self._figures = figures
        self._open: set[_Stream] = set()

    def make_room(self, stream: _Stream) -> bool:
        """Add a stream, in the place of another if it must be; False where all others are to stay."""
        if len(self._open) >= self.most:
            now = asyncio.get_running_loop().time()
            may_go = [one for one in self._open if one.may_give_way(stream, now)]
            if not may_go:
                self._figures.busy += 1
                return False
            self._figures.streams_displaced += 1
            slowest = min(may_go, key=lambda one: (one.has_token, not one.is_behind, one.began_at))
            slowest.displaced.set()
            self.remove(slowest)
        self._open.add(stream)
        self._figures.streams = len(self._open)
        return True

    def remove(self, stream: _Stream) -> None:
        """Count it no more."""
        self._open.discard(stream)
        self._figures.streams = len(self._open)


class _Stream(Response):
    """An answer that goes on until its reader leaves, the server ends, or another takes its place."""

    def __init__(self, feed: Feed, streams: Streams, *, has_token: bool) -> None:
        self._feed = feed
        self._streams = streams
        self.has_token = has_token
        self.began_at = asyncio.get_running_loop().time()
        self.is_behind = False
        """It waits for its reader to read."""
        self.displaced = asyncio.Event()
        self.background = None

    def may_give_way(self, other: _Stream, now: float) -> bool:
        """Say whether `other` may have its place. One that reads keeps it for a while among equals."""
        if self.has_token and not other.has_token:
            return False
        return self.is_behind or (other.has_token and not self.has_token) or now - self.began_at >= STAY_S_MIN

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until it is over."""
        closing = scope.get("state", {}).get(CLOSING)
        try:
            async with asyncio.TaskGroup() as group:
                ends = [group.create_task(_left(receive)), group.create_task(self.displaced.wait())]
                if closing is not None:
                    ends.append(group.create_task(closing.wait()))
                await self._sent(send, ends)
                for task in ends:
                    task.cancel()
        finally:
            self._streams.remove(self)

    async def _sent(self, send: Send, ends: Sequence[asyncio.Task[object]]) -> None:
        loop, feed = asyncio.get_running_loop(), self._feed
        try:
            await self._sent_one(send, {"type": "http.response.start", "status": 200, "headers": HEADERS})
            begun = b""
            while not any(task.done() for task in ends):
                message = await feed.message()
                if not begun and (begun := await feed.beginning()):  # Nobody can say while the crawl starts.
                    message = begun + feed.status
                await self._sent_one(send, _body(message))
                # A little more, so that all of them wake in the same second.
                wait_s = TICK_S - loop.time() % TICK_S + TICK_S / 100
                await asyncio.wait(ends, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
            await self._sent_one(send, {"type": "http.response.body", "body": b"", "more_body": False})
        except TimeoutError:
            return  # Its reader does not read: the server closes the connection.

    async def _sent_one(self, send: Send, message: dict[str, object]) -> None:
        self.is_behind = True
        async with asyncio.timeout(SEND_S_MAX):
            await send(message)
        self.is_behind = False


def _body(data: bytes) -> dict[str, object]:
    return {"type": "http.response.body", "body": data, "more_body": True}


async def _left(receive: Receive) -> object:
    """Return when the reader has left."""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return message
