"""Hooks: requests that are public: they come through a proxy and without a token.

Hubs call back (WebSub, sections 5.3 and 7). Each topic has an address that cannot be guessed:

GET   asks whether a subscription is ours, or says that it is denied
POST  reports that the topic has changed; its content is a hint and is not kept: the page itself is fetched

Other sites report that they link to a page of the crawl (Webmention, section 3.2).

Owners of sites read the page about the crawl, and verifiers the directory of the keys that sign its requests.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from gossamer.api.identity import DIRECTORY_PATH, PAGE_PATH, CrawlPage, crawl_page, directory_of_files, key_directory
from gossamer.config.gather import reopen, reopen_text
from gossamer.config.lists import read_text
from gossamer.console.directory import CrawlHandle
from gossamer.console.folder import Folder
from gossamer.console.operations import read_body
from gossamer.model.errors import ConfigError

if TYPE_CHECKING:
    from gossamer.api.callbacks import Callbacks
    from gossamer.config import Config

Made = TypeVar("Made")

PREFIX = "/websub/"
MENTIONS_PATH = "/webmention"
MENTION_BYTES_MAX = 8_192
FIELDS_MAX = 20
PUBLIC = (PREFIX, MENTIONS_PATH, PAGE_PATH, DIRECTORY_PATH)
"""Prefixes of paths that need no token."""
PAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"
FORM_TYPE = "application/x-www-form-urlencoded"
DURABLE_S_MAX = 30.0
"""Longest time for an answer to a hub, which repeats its request later."""


def routes(crawl: CrawlHandle, bytes_max: int, request_s_max: float) -> list[Route]:
    """Return the routes for hubs. A body larger than `bytes_max`, or slower than `request_s_max`, is refused."""

    async def hook(request: Request) -> Response:
        callbacks = crawl.callbacks
        if callbacks is None:
            return PlainTextResponse("not now\n", 503, {"Retry-After": "30"})
        token = request.path_params["token"]
        if request.method != "POST":
            status, text = callbacks.intent(token, request.query_params)
            return PlainTextResponse(text, status, {"X-Content-Type-Options": "nosniff"})
        return await _on_notification(request, callbacks, token, bytes_max, request_s_max)

    async def mention(request: Request) -> Response:
        mentions = crawl.mentions
        if mentions is None:
            return PlainTextResponse("this crawl accepts no notices now\n", 404)
        try:
            async with asyncio.timeout(request_s_max):
                form = await _read_form(request)
                if form is None:
                    return _refusal(400, f"send a form of at most {MENTION_BYTES_MAX:,} bytes with source and target")
                answer = await mentions.receive(form.get("source", ""), form.get("target", ""))
        except TimeoutError:
            return _refusal(408, "too slow")
        except ClientDisconnect:
            return _refusal(400, "gone")
        headers = {"Retry-After": f"{answer.retry_after_s:.0f}"} if answer.retry_after_s else {}
        return PlainTextResponse(answer.text + "\n", answer.status, headers)

    file = crawl.directory / "crawl.toml"
    return [
        Route(MENTIONS_PATH, mention, methods=["POST"]),
        Route(PREFIX + "{token}", hook, methods=["GET", "POST"]),
        *_public_routes(
            lambda: crawl_page(_configuration(file)).html(), lambda _: key_directory(_configuration(file), time.time())
        ),
    ]


def folder_routes(folder: Folder) -> list[Route]:
    """Return the routes of what the crawls of a folder publish, begun or not."""
    identities = _Identities(folder)
    return list(_public_routes(identities.html, identities.directory))


def _public_routes(
    html: Callable[[], str], directory: Callable[[str], tuple[bytes, dict[str, str]] | None]
) -> Iterator[Route]:
    """Yield the routes of what crawls publish, made by request in a thread. `directory` takes the `Host` of each."""

    async def page(_: Request) -> Response:
        made = await _make_in_thread(html)
        if not isinstance(made, str):
            return made
        return HTMLResponse(made, headers={"Content-Security-Policy": PAGE_POLICY, "X-Content-Type-Options": "nosniff"})

    async def keys(request: Request) -> Response:
        host = request.headers.get("host", "").lower()
        made = await _make_in_thread(lambda: directory(host))
        if made is None or isinstance(made, Response):
            return made or PlainTextResponse("requests are not signed\n", 404)
        return Response(made[0], headers=made[1])

    yield Route(PAGE_PATH, page, methods=["GET"])
    yield Route(DIRECTORY_PATH, keys, methods=["GET"])


async def _make_in_thread(make: Callable[[], Made]) -> Made | Response:
    try:
        return await asyncio.to_thread(make)
    except ConfigError:  # The message is for the operator: this answer is public.
        return PlainTextResponse("not published\n", 404)


def _configuration(file: Path) -> Config:
    """Read the configuration of a crawl, begun or not; one that was not begun has only what its operator gave."""
    return reopen(file) if file.name == "crawl.toml" else reopen_text(read_text(file), str(file))


class _Identities:
    """Identities of the crawls of a folder. A configuration is read again when its file has changed: 16 ms each."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._known: dict[Path, tuple[int, tuple[CrawlPage | None, str, str]]] = {}

    def html(self) -> str:
        """Return one page about all crawls. Raises ConfigError: none has a contact."""
        pages = [page for page, _, _ in self._all() if page is not None]
        if not pages:
            raise ConfigError("no crawl of this folder has a contact; set operator.contact")
        return pages[0].html(*pages[1:])

    def directory(self, host: str) -> tuple[bytes, dict[str, str]] | None:
        """Return the key directory of the crawls that sign for the origin `host`. Behind a proxy that passes no `Host`
        there must be one origin. Raises ConfigError: no key file can be read.
        """
        files: dict[str, list[str]] = {}
        for _, key_file, origin in self._all():
            if key_file:
                files.setdefault(origin, []).append(key_file)
        ours = [origin for origin in files if origin.partition("://")[2].lower() == host] or list(files)
        return directory_of_files(files[ours[0]], ours[0], time.time()) if len(ours) == 1 else None

    def _all(self) -> list[tuple[CrawlPage | None, str, str]]:
        """Return page, key file and origin of each crawl whose configuration can be read."""
        found = []
        known = {}
        for name in self._folder.names():
            begun = self._folder.path / name / "crawl.toml"
            file = begun if begun.exists() else self._folder.config_file(name)
            with suppress(ConfigError, OSError):
                changed_at = file.stat().st_mtime_ns
                held = self._known.get(file)
                known[file] = held if held is not None and held[0] == changed_at else (changed_at, _identity(file))
                found.append(known[file][1])
        self._known = known
        return found


def _identity(file: Path) -> tuple[CrawlPage | None, str, str]:
    config = _configuration(file)
    page = crawl_page(config) if config.operator.contact else None
    return page, config.identity.key_file, config.identity.directory


async def _on_notification(
    request: Request, callbacks: Callbacks, token: str, bytes_max: int, request_s_max: float
) -> Response:
    notification = callbacks.notification(token, request.headers.get("x-hub-signature", ""))
    if notification is None:
        return _refusal(410, "nothing is subscribed to here")
    try:
        async with asyncio.timeout(request_s_max):
            if not await read_body(request, bytes_max, notification.update):
                return _refusal(413, f"more than {bytes_max:,} bytes")
        async with asyncio.timeout(DURABLE_S_MAX):
            await notification.end()
    except TimeoutError:
        return _refusal(408, "too slow")
    except ClientDisconnect:
        return _refusal(400, "gone")
    # Section 7.1: one that is signed wrongly is ignored, and its sender need not know.
    return Response(status_code=204)


async def _read_form(request: Request) -> dict[str, str] | None:
    """Return the fields of a form; None if the body is no form, or too large."""
    body = bytearray()
    if not await read_body(request, MENTION_BYTES_MAX, body.extend):
        return None
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM_TYPE:
        return None
    try:
        return dict(parse_qsl(body.decode("utf-8", "replace"), max_num_fields=FIELDS_MAX))
    except ValueError:  # More fields.
        return None


def _refusal(status: int, why: str) -> Response:
    # The rest of the body is not waited for.
    return PlainTextResponse(why + "\n", status, {"Connection": "close"})
