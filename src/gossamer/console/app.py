"""App: all routes, in one table. Each file beside this one makes those of one subject."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from gossamer.console import crawl, hooks
from gossamer.console.access import Access, Guard
from gossamer.console.directory import CrawlHandle
from gossamer.console.operations import Operation, error, result
from gossamer.console.operations import routes as operation_routes
from gossamer.console.service import Service

DESCRIPTION = "/api/openapi.json"
MISSING = {404: "there is nothing here", 405: "this method is not for this address"}


def console_app(desk: CrawlHandle, access: Access, service: Service) -> Starlette:
    """Return the application of one crawl."""
    crawl_of = crawl.one(desk, service)
    operations = list(crawl.operations("/api/", crawl_of, service))
    routes = [
        *operation_routes(operations, access.bounds, service.under_way),
        *crawl.beside("/", crawl_of, service),
        *hooks.routes(desk, access.hook_bytes_max, access.bounds.request_s_max),
    ]
    return app(routes, operations, access, desk.failed)


def app(
    routes: Iterable[BaseRoute], operations: Sequence[Operation], access: Access, failed: Callable[[Exception], None]
) -> Starlette:
    """Return an application of `routes`, described as `operations`; `failed` takes internal errors."""

    async def broken(_: Request, mistake: Exception) -> Response:
        failed(mistake)
        return error(500, "an internal error; logs/critical.log says more")

    async def missing(_: Request, mistake: Exception) -> Response:
        assert isinstance(mistake, HTTPException)
        return error(mistake.status_code, MISSING.get(mistake.status_code, mistake.detail), mistake.headers)

    async def described(_: Request) -> Response:
        from gossamer.console.openapi import description  # noqa: PLC0415 - paid for by who asks

        return result(description(operations, reads_need_token=not access.is_local))

    made = Starlette(
        routes=[Route(DESCRIPTION, described, methods=["GET"]), *routes],
        exception_handlers={Exception: broken, HTTPException: missing},
    )
    made.router.redirect_slashes = False
    # Hubs come through a proxy, under a name of their own; all other requests come directly.
    made.add_middleware(Guard, token=access.token, is_local=access.is_local, public=hooks.PUBLIC)
    return made
