"""Crawls: the routes of a server of many crawls: the folder's own, and for each crawl all that one has."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gossamer.console import crawl, pages
from gossamer.console.answers import NEVER_KEPT
from gossamer.console.app import Door, app
from gossamer.console.crawl import METRICS, Crawl
from gossamer.console.fleet import Again, CrawlsTold, CrawlTold, Fleet, New
from gossamer.console.operations import Fields, Operation, routes
from gossamer.console.service import Service
from gossamer.model import verbs

LIST = "/api/crawls"
ONE = "/api/crawls/{name}"
PAGE = "/crawls/{name}/"


def fleet_app(fleet: Fleet, door: Door, service: Service) -> Starlette:
    """Return the application of a server of many crawls."""

    def crawl_of(path: Mapping[str, str]) -> Crawl:
        return fleet.crawl(path["name"])

    own = [*operations(fleet), *crawl.operations(f"{ONE}/", crawl_of, service)]
    # A page's own addresses are relative to it: the same operations are there once more.
    below_page = [*steering(fleet, f"{PAGE}api/"), *crawl.operations(f"{PAGE}api/", crawl_of, service)]
    all_routes = [
        *routes((*own, *below_page), door.bounds, service.under_way),
        *crawl.beside(PAGE, crawl_of, service),
        crawl.metrics_route(f"{ONE}/{METRICS}", crawl_of, service),
        _metrics(fleet, service),
        *pages.list_routes("/"),
    ]
    return app(all_routes, own, door, lambda error: fleet.note(f"{type(error).__name__}: {error}"))


def operations(fleet: Fleet) -> Iterator[Operation]:
    """Yield what can be asked of the folder, and what only a server can do for a crawl."""

    async def listed(_: Mapping[str, str], __: Fields) -> Mapping[str, object]:
        return {"ok": True, "result": await fleet.listed()}

    async def created(_: Mapping[str, str], fields: Fields) -> Mapping[str, object]:
        return {"ok": True, "result": await fleet.create(_read("create", New, fields))}

    async def told(path: Mapping[str, str], _: Fields) -> Mapping[str, object]:
        return {"ok": True, "result": await fleet.told(path["name"])}

    yield Operation("GET", LIST, "crawls", verbs.Nothing, CrawlsTold, "All crawls, and how they stand.", listed)
    yield Operation("POST", LIST, "create", New, CrawlTold, "Make a crawl of a configuration.", created, 201)
    yield Operation("GET", ONE, "crawl", verbs.Nothing, CrawlTold, "How a crawl stands, in short.", told)
    yield from steering(fleet, f"{ONE}/")


def steering(fleet: Fleet, prefix: str) -> Iterator[Operation]:
    """Yield what begins a crawl, below `prefix`."""

    async def start(path: Mapping[str, str], _: Fields) -> Mapping[str, object]:
        return {"ok": True, "result": await fleet.start(path["name"])}

    async def resume(path: Mapping[str, str], fields: Fields) -> Mapping[str, object]:
        return {"ok": True, "result": await fleet.resume(path["name"], _read("resume", Again, fields))}

    runs: tuple[tuple[str, type[verbs.Request], str, Callable[..., Awaitable[Any]]], ...] = (
        ("start", verbs.Nothing, "Start a crawl that was made and never begun.", start),
        ("resume", Again, "Continue a crawl that does not run.", resume),
    )
    for name, takes, says, run in runs:
        yield Operation("POST", prefix + name, name, takes, CrawlTold, says, run)


def _read(name: str, takes: type[Any], fields: Fields) -> Any:
    return verbs.checked(name, takes, fields)


def _metrics(fleet: Fleet, service: Service) -> Route:
    async def metrics(_: Request) -> Response:
        from gossamer.api.metrics import CONTENT_TYPE, fleet_metrics  # noqa: PLC0415 - paid for by who asks

        listed = await fleet.listed()
        body = fleet_metrics([one.state for one in listed.crawls], listed.running, listed.crawls_max)
        return Response(body + service.metrics().encode(), headers={**NEVER_KEPT, "Content-Type": CONTENT_TYPE})

    return Route(f"/{METRICS}", metrics, methods=["GET"])
