"""Pages: the dashboard's own files. They hold no data: what a crawl does, the page asks for by itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from html import escape
from importlib.resources import files
from pathlib import PurePath
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from gossamer.console.access import ALWAYS

if TYPE_CHECKING:
    from gossamer.console.service import Replay

HOST = re.compile(r"([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::\d+)?")
"""The name of this host, without its port, as it may stand in a policy."""
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
POLICY = (
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = {
    **ALWAYS,
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


def routes(
    prefix: str,
    first: str = "index.html",
    replay: Replay | None = None,
    require: Callable[[Mapping[str, str]], object] | None = None,
) -> list[Route]:
    """Return the routes of a page, a crawl's or the one named `first`, and of what it loads. All of it is read here,
    once: about 120 KB. Frames of the page show archived pages of `replay`, and nothing else. `require` raises
    RefusedError for the parts of an address that have no page.
    """
    found = {
        entry.name: (entry.read_bytes(), TYPES[PurePath(entry.name).suffix])
        for entry in (files("gossamer.console") / "page").iterdir()
        if PurePath(entry.name).suffix in TYPES
    }

    async def page(request: Request) -> Response:
        if require is not None:
            require(request.path_params)
        answer = _answer(*found[first])
        host = HOST.fullmatch(request.headers.get("host", ""))
        if replay is not None and replay.port and host is not None:
            is_public = host[0].lower() == replay.public_host
            frames = origin_of(replay.public_url) or "'none'" if is_public else f"http://{host[1]}:{replay.port}"
            answer.headers["Content-Security-Policy"] = f"{POLICY}; frame-src {frames}"
        return answer

    async def static(request: Request) -> Response:
        name = request.path_params["file"]
        if name not in found:
            return PlainTextResponse("there is no such file\n", 404, HEADERS)
        return _answer(*found[name])

    return [Route(prefix, page, methods=["GET"]), Route(prefix + "static/{file}", static, methods=["GET"])]


def problem(status: int, says: str) -> Response:
    """Return an error as a page, for a browser that was to show another one."""
    body = (
        f'<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>Gossamer: {status}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="stylesheet" '
        'href="/static/style.css"><link rel="icon" href="/static/icon.svg">'
        f"<header><h1>{status}</h1></header><main><section><p>{escape(says[:1].upper() + says[1:])}.</p>"
        '<p><a href="/">Go to the dashboard</a></p></section></main></html>'
    )
    return Response(body, status, {**HEADERS, "Content-Type": TYPES[".html"]})


def origin_of(url: str) -> str:
    """Return the scheme and host of a web address, as a policy names them; empty for an empty one."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}" if url else ""


def _answer(body: bytes, media_type: str) -> Response:
    return Response(body, headers={**HEADERS, "Content-Type": media_type})
