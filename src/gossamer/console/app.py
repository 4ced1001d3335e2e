"""App: all routes, in one table. Each file beside this one makes those of one subject."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from gossamer.console import events, hooks, pages, status
from gossamer.console.live import Live
from gossamer.console.local import LocalOnly


def console_app(crawl: Live, hook_bytes_max: int, request_s_max: float) -> Starlette:
    """Return the application. `hook_bytes_max` and `request_s_max` bound what a caller may send, and how slowly."""

    async def failed(_: Request, error: Exception) -> Response:
        crawl.failed(error)
        return PlainTextResponse("an error of ours; logs/critical.log says more\n", 500)

    routes = [
        *pages.routes(),
        *status.routes(crawl),
        *events.routes(crawl),
        *hooks.routes(crawl, hook_bytes_max, request_s_max),
    ]
    app = Starlette(routes=routes, exception_handlers={Exception: failed})
    # Hubs come through a proxy, under a name of their own; nobody else does.
    app.add_middleware(LocalOnly, public=(hooks.PREFIX,))
    return app
