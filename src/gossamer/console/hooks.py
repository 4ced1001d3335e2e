"""Hooks: where hubs call back (WebSub, sections 5.3 and 7). Each topic has an address that cannot be guessed.

GET   asks whether a subscription is ours, or says that it is denied
POST  tells that the topic has changed; what it brings is a hint and is not kept: the page itself is fetched
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from gossamer.console.directory import CrawlHandle

if TYPE_CHECKING:
    from gossamer.api.callbacks import Callbacks, Notification

PREFIX = "/websub/"
DURABLE_S_MAX = 30.0
"""A hub waits no longer for its answer; it will say so again."""


def routes(crawl: CrawlHandle, bytes_max: int, request_s_max: float) -> list[Route]:
    """Return the routes for hubs. A body larger than `bytes_max`, or slower than `request_s_max`, is refused."""

    async def hook(request: Request) -> Response:
        callbacks = crawl.callbacks
        if callbacks is None:
            return PlainTextResponse("not now\n", 503, {"Retry-After": "30"})
        token = request.path_params["token"]
        if request.method != "POST":
            status, text = callbacks.intent(token, request.query_params)
            return PlainTextResponse(text, status, {"X-Content-Type-Options": "nosniff"})
        return await _notified(request, callbacks, token, bytes_max, request_s_max)

    return [Route(PREFIX + "{token}", hook, methods=["GET", "POST"])]


async def _notified(
    request: Request, callbacks: Callbacks, token: str, bytes_max: int, request_s_max: float
) -> Response:
    notification = callbacks.notification(token, request.headers.get("x-hub-signature", ""))
    if notification is None:
        return _refused(410, "nothing is subscribed to here")
    try:
        async with asyncio.timeout(request_s_max):
            if not await _taken(request, notification, bytes_max):
                return _refused(413, f"more than {bytes_max:,} bytes")
        async with asyncio.timeout(DURABLE_S_MAX):
            await notification.end()
    except TimeoutError:
        return _refused(408, "too slow")
    except ClientDisconnect:
        return _refused(400, "gone")
    # Section 7.1: one that is signed wrongly is ignored, and its sender need not know.
    return Response(status_code=204)


async def _taken(request: Request, notification: Notification, bytes_max: int) -> bool:
    """Read the body and keep nothing of it; False where there is too much."""
    length = request.headers.get("content-length", "0")
    if not length.isdigit() or int(length[:20]) > bytes_max:
        return False
    taken = 0
    async for piece in request.stream():
        taken += len(piece)
        if taken > bytes_max:
            return False
        notification.update(piece)
    return True


def _refused(status: int, why: str) -> Response:
    # The rest of the body is not waited for.
    return PlainTextResponse(why + "\n", status, {"Connection": "close"})
