"""App: all routes, in one table. Each file beside this one makes those of one subject."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from gossamer.console import crawl, hooks
from gossamer.console.answers import error, result
from gossamer.console.desk import Desk
from gossamer.console.guard import Guard
from gossamer.console.operations import Bounds, Operation
from gossamer.console.operations import routes as operation_routes
from gossamer.console.service import Service

DESCRIPTION = "/api/openapi.json"
MISSING = {404: "there is nothing here", 405: "this method is not for this address"}


class Door(NamedTuple):
    """How the application is reached."""

    token: str
    """Without it nothing changes."""
    is_local: bool
    """On loopback: who is here may read without it."""
    bounds: Bounds
    hook_bytes_max: int = 0
    """Of what hubs send."""


def console_app(desk: Desk, door: Door, service: Service) -> Starlette:
    """Return the application of one crawl."""
    crawl_of = crawl.one(desk, service)
    operations = list(crawl.operations("/api/", crawl_of, service))
    routes = [
        *operation_routes(operations, door.bounds, service.under_way),
        *crawl.beside("/", crawl_of, service),
        *hooks.routes(desk, door.hook_bytes_max, door.bounds.request_s_max),
    ]
    return app(routes, operations, door, desk.failed)


def app(
    routes: Iterable[BaseRoute], operations: Sequence[Operation], door: Door, failed: Callable[[Exception], None]
) -> Starlette:
    """Return an application of `routes`, described as `operations`; `failed` is told of mistakes of ours."""

    async def broken(_: Request, mistake: Exception) -> Response:
        failed(mistake)
        return error(500, "an error of ours; logs/critical.log says more")

    async def missing(_: Request, mistake: Exception) -> Response:
        assert isinstance(mistake, HTTPException)
        return error(mistake.status_code, MISSING.get(mistake.status_code, mistake.detail), mistake.headers)

    async def described(_: Request) -> Response:
        from gossamer.console.openapi import description  # noqa: PLC0415 - paid for by who asks

        return result(description(operations, reads_need_token=not door.is_local))

    made = Starlette(
        routes=[Route(DESCRIPTION, described, methods=["GET"]), *routes],
        exception_handlers={Exception: broken, HTTPException: missing},
    )
    made.router.redirect_slashes = False
    # Hubs come through a proxy, under a name of their own; nobody else does.
    made.add_middleware(Guard, token=door.token, is_local=door.is_local, hooks=hooks.PREFIX)
    return made
