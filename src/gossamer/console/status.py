"""Status: how the crawl stands, as JSON."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gossamer.console.live import Live


def routes(crawl: Live) -> list[Route]:
    """Return the routes that only read."""

    async def status(_: Request) -> Response:
        body = msgspec.json.encode(crawl.status())
        return Response(body, media_type="application/json", headers={"Cache-Control": "no-store"})

    return [Route("/api/status", status, methods=["GET"])]
