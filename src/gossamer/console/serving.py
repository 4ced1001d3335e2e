"""Serving: `gossamer serve`: the console of a crawl that runs elsewhere or not at all, or of a folder of crawls; and
`gossamer mcp`: the same crawls for language models.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from gossamer.config import configure
from gossamer.config.sections import ConsoleOptions
from gossamer.console import crawl, hooks, pages
from gossamer.console.access import Access, Guard, access_of
from gossamer.console.crawl import METRICS, ConsoleCrawl
from gossamer.console.directory import CrawlHandle, Directory
from gossamer.console.fleet import (
    ComparisonOf,
    CrawlSummaries,
    CrawlSummary,
    DeleteRequest,
    Fleet,
    New,
    ResumeRequest,
    ScheduleRequest,
)
from gossamer.console.folder import OWN, Folder
from gossamer.console.operations import NEVER_KEPT, Operation, answer, error, openapi, result, result_of, routes
from gossamer.console.replay import serve_replay
from gossamer.console.server import serve_app
from gossamer.console.service import OWN_SHARE, Service
from gossamer.console.views import Configuration, describe_keys
from gossamer.model import verbs
from gossamer.model.archived import Comparison

if TYPE_CHECKING:
    from gossamer.config import Config
    from gossamer.console.mcp import Agent

SIGNALS = (signal.SIGINT, signal.SIGTERM)
PORT_OPTION = "--port"
CRAWL_SERVED = "Dashboard; the JSON API is below /api/. Ctrl-C ends this server, not the crawl."
FOLDER_SERVED = (
    "List of crawls, with a form for new ones; the JSON API is below /api/. Ctrl-C stops the crawls with everything "
    "saved, and the next server resumes them."
)
Say = Callable[[str], None]


async def serve_crawl(directory: Path, options: ConsoleOptions, port: int, say: Say, complain: Say) -> None:
    """Serve the crawl in a directory until a signal comes. Raises ConfigError: the port is taken."""
    access = access_of(directory / "state", options)
    with _signals() as (asked, _):
        async with (
            Service(options.connections_max, OWN_SHARE) as service,
            serve_app(
                console_app(Directory(directory, complain), access, service), options, port, service,
                option=PORT_OPTION,
            ) as address,
            serve_replay(lambda _: directory, service, options, address),
        ):  # fmt: skip
            say(f"{address}/#token={access.token}\n{CRAWL_SERVED}")
            await asked.wait()


async def serve_folder(path: Path, options: ConsoleOptions, port: int, say: Say, complain: Say) -> None:
    """Serve a folder of crawls until a signal comes; then have them end, at once when another one comes. Raises
    ConfigError: the port is taken, or the folder is another server's.
    """
    with _signals() as (asked, again):
        async with _fleet_of(path, options, complain) as (fleet, service):
            access = access_of(path / OWN, options)
            async with (
                serve_app(fleet_app(fleet, access, service), options, port, service, option=PORT_OPTION) as address,
                serve_replay(fleet.folder.directory, service, options, address),
            ):
                fleet.find_again()
                say(f"{address}/#token={access.token}\n{FOLDER_SERVED}")
                await asked.wait()
                await fleet.end(again)


@asynccontextmanager
async def _fleet_of(path: Path, options: ConsoleOptions, complain: Say) -> AsyncIterator[tuple[Fleet, Service]]:
    """Lock a folder of crawls, and run them while the context is open. Raises ConfigError: it is another server's."""
    folder = Folder(path)
    try:
        async with asyncio.TaskGroup() as group, Service(options.connections_max, OWN_SHARE) as service:
            yield Fleet(folder, options.crawls_max, complain, group, service), service
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None  # The group is ours; what it holds is the operator's.
    finally:
        folder.close()


class McpOptions(NamedTuple):
    """Options of `gossamer mcp`."""

    path: Path
    is_folder: bool
    config: Config
    """The section `console` bounds the server; crawls on `scope.only_hosts` are started by the whole of it."""
    starts: bool
    """Crawls may be started."""
    port: int | None
    """None: standard input and output."""


async def serve_mcp(options: McpOptions, say: Say, complain: Say) -> None:
    """Serve crawls to language models until the input ends, or over HTTP until a signal comes.

    Crawls that were started go on when the input ends; a signal ends them as it does those of `serve_folder`. Raises
    ConfigError: the port is taken, or crawls may be started and the folder is another server's.
    """
    from gossamer.console.mcp import Agent, Crawls  # noqa: PLC0415 - it brings the protocol

    console = options.config.console
    if not options.starts:
        async with Service(console.connections_max, OWN_SHARE) as service:
            crawls = Crawls(options.path, complain, is_folder=options.is_folder)
            await _serve_agent(Agent(crawls, service), options, None, say)
        return
    async with _fleet_of(options.path, console, complain) as (fleet, service):
        fleet.find_again()
        crawls = Crawls(options.path, complain, fleet, is_folder=True)
        await _serve_agent(Agent(crawls, service, fleet, options.config), options, fleet, say)


async def _serve_agent(agent: Agent, options: McpOptions, fleet: Fleet | None, say: Say) -> None:
    from gossamer.console.mcp import PATH, mcp_app, serve_stdio, sessions_of  # noqa: PLC0415

    if options.port is None:
        await serve_stdio(agent)
        if fleet is not None:
            fleet.leave()
        return
    console = options.config.console
    access = access_of(options.path / (OWN if options.is_folder else "state"), console)
    sessions = sessions_of(agent, console)
    with _signals() as (asked, again):
        async with (
            sessions.run(),
            serve_app(
                mcp_app(sessions, access), console, options.port, agent.service, option=PORT_OPTION
            ) as address,
        ):  # fmt: skip
            say(f"{address}{PATH}\nAuthorization: Bearer {access.token}")
            await asked.wait()
            if fleet is not None:
                await fleet.end(again)


@contextmanager
def _signals() -> Iterator[tuple[asyncio.Event, asyncio.Event]]:
    """Set one event at the first signal, and the other at each later one."""
    loop = asyncio.get_running_loop()
    first = asyncio.Event()
    later = asyncio.Event()

    def on_signal() -> None:
        (later if first.is_set() else first).set()

    for number in SIGNALS:
        loop.add_signal_handler(number, on_signal)
    try:
        yield first, later
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)


EXAMPLE = '{"name": "docs", "config": {"seeds": {"urls": ["https://docs.example.org/"]}}}'
LIST = "/api/crawls"
ONE = "/api/crawls/{name}"
PAGE = "/crawls/{name}/"


def fleet_app(fleet: Fleet, access: Access, service: Service) -> Starlette:
    """Return the application of a server of many crawls."""

    def crawl_of(path: Mapping[str, str]) -> ConsoleCrawl:
        return fleet.crawl(path["name"])

    own = [*operations(fleet), *crawl.operations(f"{ONE}/", crawl_of, service)]
    # A page's own addresses are relative to it: the same operations are there once more.
    below_page = [*steering(fleet, f"{PAGE}api/"), *crawl.operations(f"{PAGE}api/", crawl_of, service)]

    async def to_page(request: Request) -> Response:
        return RedirectResponse(f"{request.path_params['name']}/")

    all_routes = [
        Route(PAGE.rstrip("/"), to_page, methods=["GET"]),
        *routes((*own, *below_page), access.bounds, service.under_way),
        *crawl.beside(PAGE, crawl_of, service),
        crawl.metrics_route(f"{ONE}/{METRICS}", crawl_of, service),
        _metrics(fleet, service),
        *pages.routes("/", "crawls.html"),
        *hooks.folder_routes(fleet.folder),
    ]
    return app(all_routes, own, access, lambda error: fleet.note(f"{type(error).__name__}: {error}"))


def operations(fleet: Fleet) -> Iterator[Operation]:
    """Yield the operations of the folder, and those of a crawl that only a server has."""
    crawls = result_of(lambda _, __: fleet.summaries())
    create = result_of(lambda _, asked: fleet.create(asked))
    defaults = result_of(lambda _, __: asyncio.to_thread(lambda: describe_keys(configure())))
    summary = result_of(lambda path, _: fleet.summary(path["name"]))
    compare = result_of(lambda path, asked: fleet.compare(path["name"], asked))
    says = "All keys of a new crawl, with defaults."
    yield Operation("GET", LIST, "crawls", verbs.Nothing, CrawlSummaries, "All crawls, and how they stand.", crawls)
    yield Operation("GET", "/api/config", "defaults", verbs.Nothing, Configuration, says, defaults)
    yield Operation("POST", LIST, "create", New, CrawlSummary, "Make a crawl of a configuration.", create, 201, EXAMPLE)
    says = "What differs between an earlier crawl and this one, by the last visit of each to a URL."
    yield Operation("GET", f"{ONE}/compare", "compare", ComparisonOf, Comparison, says, compare)
    yield Operation("GET", ONE, "crawl", verbs.Nothing, CrawlSummary, "Return the state of a crawl, in short.", summary)
    yield from steering(fleet, f"{ONE}/")


def steering(fleet: Fleet, prefix: str) -> Iterator[Operation]:
    """Yield the operations that begin or delete a crawl, below `prefix`."""
    start = result_of(lambda path, _: fleet.start(path["name"]))
    resume = result_of(lambda path, asked: fleet.resume(path["name"], asked))
    schedule = result_of(lambda path, asked: fleet.schedule(path["name"], asked))
    delete = result_of(lambda path, asked: fleet.delete(path["name"], asked))
    of = partial(Operation, "POST")
    says = "Delete a crawl that does not run, with all its files; return the others."
    yield of(f"{prefix}delete", "delete", DeleteRequest, CrawlSummaries, says, delete)
    says = "Start a crawl that was made and never begun."
    yield of(f"{prefix}start", "start", verbs.Nothing, CrawlSummary, says, start)
    yield of(f"{prefix}resume", "resume", ResumeRequest, CrawlSummary, "Continue a crawl that does not run.", resume)
    says = "Run a crawl again by a schedule, each time as a new crawl."
    yield of(f"{prefix}schedule", "schedule", ScheduleRequest, CrawlSummary, says, schedule)


def _metrics(fleet: Fleet, service: Service) -> Route:
    async def metrics(_: Request) -> Response:
        from gossamer.api.metrics import CONTENT_TYPE, fleet_metrics  # noqa: PLC0415 - paid for by who asks

        listed = await fleet.summaries()
        body = fleet_metrics([one.state for one in listed.crawls], listed.running, listed.crawls_max)
        return Response(body + service.metrics(), headers={**NEVER_KEPT, "Content-Type": CONTENT_TYPE})

    return Route(f"/{METRICS}", metrics, methods=["GET"])


DESCRIPTION = "/api/openapi.json"
NOTHING = f"there is nothing here; {DESCRIPTION} lists what there is"


def console_app(handle: CrawlHandle, access: Access, service: Service) -> Starlette:
    """Return the application of one crawl."""
    crawl_of = crawl.one(handle, service)
    operations = list(crawl.operations("/api/", crawl_of, service))
    all_routes = [
        *routes(operations, access.bounds, service.under_way),
        *crawl.beside("/", crawl_of, service),
        *hooks.routes(handle, access.hook_bytes_max, access.bounds.request_s_max),
    ]
    return app(all_routes, operations, access, handle.log_error)


def _wants_page(request: Request) -> bool:
    """Return whether a browser is to show the answer, as its `Accept` says, and not a program to read it."""
    return "text/html" in request.headers.get("accept", "") and "/api/" not in request.url.path


def app(
    routes: Iterable[BaseRoute], operations: Sequence[Operation], access: Access, failed: Callable[[Exception], None]
) -> Starlette:
    """Return an application of `routes`, described as `operations`; `failed` takes internal errors."""

    async def on_error(_: Request, mistake: Exception) -> Response:
        failed(mistake)
        return error(500, "an internal error; logs/critical.log says more")

    async def on_refusal(request: Request, mistake: Exception) -> Response:
        assert isinstance(mistake, verbs.RefusedError)
        said = answer({"ok": False, "error": str(mistake), "kind": mistake.kind})
        return pages.problem(said.status_code, str(mistake)) if _wants_page(request) else said

    async def missing(request: Request, mistake: Exception) -> Response:
        assert isinstance(mistake, HTTPException)
        if mistake.status_code == 404 and _wants_page(request):
            return pages.problem(404, "There is no such page")
        says = NOTHING if mistake.status_code == 404 else mistake.detail
        if mistake.status_code == 405:
            says = f"{request.method} is not for this address; it takes {(mistake.headers or {}).get('Allow', 'GET')}"
        return error(mistake.status_code, says, mistake.headers)

    async def describe(_: Request) -> Response:
        return result(openapi(operations, reads_need_token=not access.is_local))

    made = Starlette(
        routes=[Route(DESCRIPTION, describe, methods=["GET"]), *routes],
        exception_handlers={Exception: on_error, HTTPException: missing, verbs.RefusedError: on_refusal},
    )
    made.router.redirect_slashes = False
    # Hubs come through a proxy, under a name of their own; all other requests come directly.
    made.add_middleware(Guard, access=access, public=hooks.PUBLIC)
    return made
