"""Gopher: the protocol module for gopher, over libcurl (RFC 1436; URLs: RFC 4266)."""

import re
from typing import Final, NamedTuple

import pycurl

from gossamer.model.visits import Failure, Reply, Request
from gossamer.stages.fetch.bodies import GOPHER_MENU, BodyMemory, media_type_of
from gossamer.stages.fetch.connections import End
from gossamer.stages.fetch.options import FetchOptions
from gossamer.stages.fetch.settings import Setting
from gossamer.stages.fetch.transfer import Transfer
from gossamer.stages.fetch.transfers import Transfers, cut, one_line
from gossamer.world.clock import Clock

_ADDRESS = re.compile(r"gopher://(?:[^/@?]*+@)*([^/@?]++)(?:/([!-~])?)?([!-~]*)", re.IGNORECASE)
_CONTROL = re.compile(r"%(?:[01][0-9a-f]|7f)", re.IGNORECASE)
_ERROR = re.compile(rb"3([^\t\r\n]*+)(?:\t[^\t\r\n]*+){3,}\r?\n?(?:\.\r?\n?)?")
_ERROR_BYTES_MAX: Final = 2_000
_BINARY: Final = "application/octet-stream"
_TYPES: Final = {"0": "text/plain", "1": GOPHER_MENU, "4": "application/mac-binhex40", "7": GOPHER_MENU,
                 "h": "text/html", "g": "image/gif"}  # fmt: skip


class GopherItem(NamedTuple):
    """The parts of a Gopher URL."""

    url: str
    """The URL for libcurl, without user and password."""
    kind: str
    """The item type; `1` if the URL has none."""
    selector: str
    """The selector, still escaped."""


class GopherModule:
    """`ports.ProtocolModule` for gopher: one connection, one selector, everything that is received until it closes.

    Success has the status 200. The media type follows from the item type, for files from the name. An answer that
    consists of one item of type 3 is a refusal: a `Failure` with `http_error`. Selectors with control characters are
    not sent, since servers of other protocols could take them for commands.
    """

    def __init__(
        self,
        options: FetchOptions,
        agent: str,  # Gopher has no names
        clock: Clock,
        bodies: BodyMemory | None = None,
    ) -> None:
        self._options = options
        self._clock = clock
        shared = bodies or BodyMemory(options)
        self._transfers = Transfers(options, clock, lambda: _transfer(options, shared))

    async def fetch(self, request: Request) -> Reply | Failure:
        """Fetch one selector. Cancelling it ends the transfer and its connection."""
        assert request.ip, "a request without a checked address"
        started_at = self._clock.now()
        item = item_of(request.url)
        if item is None:
            return self._transfers.ours(request, started_at, "unsupported", "no URL that Gopher can request")
        if self._options.proxy:
            return self._transfers.ours(request, started_at, "unsupported", "Gopher does not go through fetch.proxy")
        transfer = self._transfers.take(started_at)
        transfer.aim(request, [], request.body_bytes_max or self._options.body_bytes_max, item.url)
        end = await self._transfers.run(transfer)
        if isinstance(end, Failure):
            return end
        return self._transfers.finish(transfer, _result(transfer, item, end))

    async def close(self) -> None:
        """Close all connections. Fetches in flight end with a `Failure`."""
        await self._transfers.close()


def item_of(url: str) -> GopherItem | None:
    """Split a Gopher URL; None if it cannot be requested: no host, control characters."""
    url = url.partition("#")[0]
    match = _ADDRESS.fullmatch(url)
    if match is None or _CONTROL.search(url):
        return None
    authority, kind, selector = match.groups()
    if kind is None and selector:
        return None  # A query without a path.
    return GopherItem(f"gopher://{authority}/{kind or ''}{selector}", kind or "1", selector)


def _transfer(options: FetchOptions, bodies: BodyMemory) -> Transfer:
    settings: list[Setting] = [(pycurl.PROTOCOLS, pycurl.PROTO_GOPHER)]
    transfer = Transfer(options, settings, bodies)
    transfer.open_only_pinned()
    return transfer


def _result(transfer: Transfer, item: GopherItem, end: End) -> Reply | Failure:
    truncated = cut(transfer, end)
    if isinstance(truncated, Failure):
        return truncated
    media_type = _TYPES.get(item.kind) or media_type_of(item.selector) or _BINARY
    reply = transfer.reply(200, truncated, media_type)
    refused = _ERROR.fullmatch(reply.body) if reply.file is None and len(reply.body) <= _ERROR_BYTES_MAX else None
    if refused is None:
        return reply
    return transfer.failure("http_error", f"Gopher: {one_line(refused[1].decode('utf-8', 'replace'))}")
