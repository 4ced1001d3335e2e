"""Replay: archived pages as browsers show them, on a port of their own, so that they are never in the console's origin.

No script of a page runs, and nothing of it reaches a server: each answer is a sandbox (HTML, section 7.1.5; Content
Security Policy Level 3, section 6.3.2), shows only what this port has, and leads nowhere else. No token is known here:
a path is signed, and only the console gives one out.
"""

import html
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import unquote

from msgspec.structs import replace
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gossamer.config.sections import ConsoleOptions
from gossamer.console.access import place_of
from gossamer.console.operations import STATUSES, ConsoleCounts
from gossamer.console.pages import HOST, origin_of
from gossamer.console.server import serve_app
from gossamer.console.service import Service
from gossamer.model import verbs
from gossamer.model.errors import ConfigError
from gossamer.results.isolated.reads import ReadReplay, Replayed, unseal

CONNECTIONS_MAX = 8
"""A page with its images takes six."""
POLICY = (
    "sandbox; default-src 'none'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; font-src 'self' data:; "
    "media-src 'self' data:; frame-src 'self' data:; object-src 'self' data:; base-uri 'none'; form-action 'none'"
)
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    # Requests of a sandboxed page come from the origin `null`. The path is the secret.
    "Cross-Origin-Resource-Policy": "cross-origin",
    "Access-Control-Allow-Origin": "*",  # For fonts and masks.
}
NOT_ARCHIVED = "This page is not in the archive."
DirectoryOf = Callable[[str], Path]
"""Finds the crawl of a name. Raises MissingError."""


@asynccontextmanager
async def serve_replay(
    directory_of: DirectoryOf, service: Service, options: ConsoleOptions, address: str
) -> AsyncIterator[None]:
    """Serve archived pages on the port after the console's, or where that is taken on any: `service.replay` has it."""
    console_port = int(address.rpartition(":")[2])
    options = replace(options, connections_max=CONNECTIONS_MAX)
    service.replay.public_host = place_of(options.public_url)
    service.replay.public_url = options.replay_url
    app = replay_app(directory_of, service, console_port, origin_of(options.public_url))
    for port in (console_port + 1, 0):  # The next one is known beforehand: a tunnel can lead to it.
        try:
            async with serve_app(app, options, port, service, figures=ConsoleCounts.zero()) as own:
                service.replay.port = int(own.rpartition(":")[2])
                yield
                return
        except (ConfigError, OverflowError):
            if port == 0 or service.replay.port:
                raise
        finally:
            service.replay.port = 0


def replay_app(directory_of: DirectoryOf, service: Service, console_port: int, public_url: str = "") -> Starlette:
    """Return the application that shows archived pages to frames of the console, which is also at `public_url`."""

    async def page(request: Request) -> Response:
        host = HOST.fullmatch(request.headers.get("host", ""))
        if host is None:
            return Response("expected the name of this host\n", 400, HEADERS, "text/plain")
        headers = {**HEADERS, "Content-Security-Policy": POLICY}
        place = unseal(service.replay.secret, request.path_params["path"])
        if place is None:
            return _message_page(NOT_ARCHIVED, 404, headers, request.url.query)
        if not place.is_within:  # Frames of a sandboxed page have a parent without an origin, which no policy can name.
            places = f"http://{host[1]}:{console_port} {public_url}".strip()  # No header ends with a space.
            headers["Content-Security-Policy"] += f"; frame-ancestors {places}"
        # Browsers name HTML first where they load a page or a frame, and not for what a page shows.
        is_part = "text/html" not in request.headers.get("accept", "text/html")
        question = ReadReplay(place, service.replay.secret, is_part)
        try:
            with service.under_way.one("replay"):
                found = await service.reads.read(directory_of(place.crawl), question, Replayed)
        except verbs.RefusedError as refused:
            return _message_page(str(refused), STATUSES.get(refused.kind, 422), headers)
        return Response(found.body, 200, {**headers, "Content-Type": found.media_type})

    return Starlette(routes=[Route("/{path}", page, methods=["GET"])])


def _message_page(says: str, status: int, headers: dict[str, str], address: str = "") -> Response:
    text = (
        f'<!doctype html><html lang="en"><title>{status}</title><body style="font: 15px system-ui; padding: 16px; '
        f'overflow-wrap: anywhere"><main><h1>{html.escape(says)}</h1><p>{html.escape(unquote(address))}</main>'
    )
    return Response(text, status, headers, "text/html")
