"""Status: how the crawl stands, as JSON and as Prometheus reads it."""

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

    async def metrics(_: Request) -> Response:
        from gossamer.api.metrics import CONTENT_TYPE, metrics_of  # noqa: PLC0415 - paid for by who asks

        body = metrics_of(crawl.status(detail=True))
        return Response(body, headers={"Cache-Control": "no-store", "Content-Type": CONTENT_TYPE})

    return [Route("/api/status", status, methods=["GET"]), Route("/metrics", metrics, methods=["GET"])]
