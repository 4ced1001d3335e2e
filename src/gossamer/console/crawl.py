"""Crawl: the requests to one crawl over HTTP: its verbs, and views of its directory."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gossamer.console import events, exports, pages
from gossamer.console.directory import CrawlHandle
from gossamer.console.events import EventFeed
from gossamer.console.operations import NEVER_KEPT, ConsoleCounts, Method, Operation, answer, result_of
from gossamer.console.service import Service
from gossamer.console.views import Configuration, HistoryOf, ItemsOf, Query, Views
from gossamer.model import verbs
from gossamer.model.archived import HostHistory, ItemList, PageVersions
from gossamer.results.report.figures import Report

METRICS = "metrics"
"""Reported as text, at a separate path."""


class ConsoleCrawl:
    """One crawl, with the feed and the views that the console has of it."""

    def __init__(self, handle: CrawlHandle, service: Service) -> None:
        self.handle = handle
        self.views = Views(handle.directory, service)
        self.feed = EventFeed(handle, service.counts)


OWN = "console"

CrawlOf = Callable[[Mapping[str, str]], ConsoleCrawl]
"""Finds the crawl that a path names. Raises MissingError."""


def operations(prefix: str, crawl_of: CrawlOf, service: Service) -> Iterator[Operation]:
    """Yield the operations of a crawl, below `prefix`."""

    async def own(_: Mapping[str, str], __: verbs.VerbRequest) -> Mapping[str, object]:
        return {"ok": True, "result": service.counts()}

    yield Operation("GET", prefix + OWN, OWN, verbs.Nothing, ConsoleCounts, "The console's own state and counts.", own)
    for name, verb in verbs.VERBS.items():
        if name != METRICS:
            method: Method = "POST" if verb.changes else "GET"
            ask = partial(_ask, crawl_of, name)
            yield Operation(method, prefix + name, name, verb.takes, verb.gives, verb.says, ask)
    views: tuple[
        tuple[str, type[verbs.VerbRequest], type[msgspec.Struct], str, Callable[..., Awaitable[object]]], ...
    ] = (
        ("config", verbs.Nothing, Configuration, "All keys, with where their values came from.", Views.configuration),
        ("search", Query, verbs.SearchResults, "Pages that best answer a query, if there is an index.", Views.search),
        ("report", verbs.Nothing, Report, "The statistics, from the finished tables.", Views.report),
        ("versions", verbs.Why, PageVersions, "The attempts at a page, the newest first.", Views.versions),
        ("items", ItemsOf, ItemList, "The items of one kind, the newest first, in parts.", Views.items),
        ("history", HistoryOf, HostHistory, "How requests to a host ended, over time.", Views.history),
    )
    for name, takes, gives, says, view in views:
        yield Operation("GET", prefix + name, name, takes, gives, says, result_of(partial(_view, crawl_of, view)))


def beside(prefix: str, crawl_of: CrawlOf, service: Service) -> Iterator[Route]:
    """Yield the routes whose answers are not JSON: metrics, events and the page."""
    yield metrics_route(f"{prefix}{METRICS}", crawl_of, service)
    yield events.route(f"{prefix}api/events", lambda path: crawl_of(path).feed, service.streams)
    yield exports.route(f"{prefix}{exports.PATH}", lambda path: crawl_of(path).handle.directory, service)
    yield from pages.routes(prefix, replay=service.replay, require=crawl_of)


def metrics_route(path: str, crawl_of: CrawlOf, service: Service) -> Route:
    """Return the route for Prometheus: the metrics of a crawl, and those of the console."""

    async def metrics(request: Request) -> Response:
        from gossamer.api.metrics import CONTENT_TYPE  # noqa: PLC0415 - paid for by who asks

        found = await crawl_of(request.path_params).handle.ask({"verb": METRICS})
        result = found.get("result")
        if not isinstance(result, Mapping):
            return answer(found)
        return Response(
            str(result["metrics"]).encode() + service.metrics(), headers={**NEVER_KEPT, "Content-Type": CONTENT_TYPE}
        )

    return Route(path, metrics, methods=["GET"])


def one(handle: CrawlHandle, service: Service) -> CrawlOf:
    """Return a function that finds the same crawl for every path."""
    crawl = ConsoleCrawl(handle, service)
    return lambda _: crawl


async def _ask(crawl_of: CrawlOf, name: str, path: Mapping[str, str], asked: verbs.VerbRequest) -> Mapping[str, object]:
    return await crawl_of(path).handle.ask({"verb": name, **msgspec.to_builtins(asked)})


async def _view(
    crawl_of: CrawlOf, view: Callable[..., Awaitable[object]], path: Mapping[str, str], asked: verbs.VerbRequest
) -> object:
    return await view(crawl_of(path).views, asked)
