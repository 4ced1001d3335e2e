"""Events: the route by which people look on: a stream of server-sent events, once a second.

Those who look on are few, by a bound; each holds one message, and whoever takes none for `SEND_S_MAX` is let go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from gossamer.console.answers import answer, error
from gossamer.console.feed import SUBSCRIBERS_MAX, TICK_S, Audience
from gossamer.console.server import CLOSING
from gossamer.model.verbs import RefusedError

SEND_S_MAX = 10.0
HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-accel-buffering", b"no"),
]


def route(path: str, audience_of: Callable[[Mapping[str, str]], Audience]) -> Route:
    """Return the route of the stream. `audience_of` finds those who look on at the crawl that a path names."""

    async def events(request: Request) -> Response:
        try:
            audience = audience_of(request.path_params)
        except RefusedError as refused:
            return answer({"ok": False, "error": str(refused), "kind": refused.kind})
        if audience.is_full:
            return error(503, f"{SUBSCRIBERS_MAX} pages look on already; close one", {"Retry-After": "10"})
        return _Stream(audience)

    return Route(path, events, methods=["GET"])


class _Stream(Response):
    """An answer that goes on until its reader leaves, or the server."""

    def __init__(self, audience: Audience) -> None:
        self._audience = audience
        self.background = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until it is over."""
        closing = scope.get("state", {}).get(CLOSING)
        audience = self._audience
        audience.present += 1
        try:
            async with asyncio.TaskGroup() as group:
                ends = [group.create_task(_left(receive))]
                if closing is not None:
                    ends.append(group.create_task(closing.wait()))
                await self._sent(send, ends)
                for task in ends:
                    task.cancel()
        finally:
            audience.present -= 1

    async def _sent(self, send: Send, ends: list[asyncio.Task[object]]) -> None:
        loop, feed = asyncio.get_running_loop(), self._audience.feed
        try:
            async with asyncio.timeout(SEND_S_MAX):
                await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            begun = b""
            while not any(task.done() for task in ends):
                message = await feed.message()
                if not begun and (begun := await feed.beginning()):  # Nobody can say while the crawl starts.
                    message = begun + feed.status
                async with asyncio.timeout(SEND_S_MAX):
                    await send(_body(message))
                # A little more, so that all of them wake in the same second.
                wait_s = TICK_S - loop.time() % TICK_S + TICK_S / 100
                await asyncio.wait(ends, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
            async with asyncio.timeout(SEND_S_MAX):
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        except TimeoutError:
            return  # Who does not read: the server closes the connection.


def _body(data: bytes) -> dict[str, object]:
    return {"type": "http.response.body", "body": data, "more_body": True}


async def _left(receive: Receive) -> object:
    """Return when the reader has left."""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return message
