"""A protocol module for `components.protocols`: Finger (RFC 1288), with addresses such as finger://example.org/ann.

gossamer crawl finger://example.org/ann --contact you@example.org \
    --set 'components.protocols={finger = "protocol.py:Finger"}' --set 'scope.schemes=["http", "https", "finger"]'
"""

import asyncio
from urllib.parse import unquote, urlsplit

from gossamer.model.visits import Failure, Reply, Request
from gossamer.stages.fetch.options import FetchOptions
from gossamer.world.clock import Clock


class Finger:
    """One line goes out, and text comes until the server closes the connection."""

    default_port = 79

    def __init__(self, *, options: FetchOptions, agent: str, clock: Clock) -> None:
        self._options = options
        self._clock = clock

    async def fetch(self, request: Request) -> Reply | Failure:
        began = self._clock.now()
        most = request.body_bytes_max or self._options.body_bytes_max
        user = unquote(urlsplit(request.url).path[1:])
        if not user.isprintable():  # A line break would make two requests of one.
            return Failure("unsupported", "not a name that Finger can send", ip=request.ip)
        try:
            async with asyncio.timeout(self._options.request_s_max):
                body = await self._read(request, user, most)
        except TimeoutError:
            return Failure("timeout", "no end of the reply", retry=True, host_level=True, ip=request.ip)
        except OSError as error:
            return Failure("connect_error", str(error), retry=True, host_level=True, ip=request.ip)
        return Reply(
            url=request.url,
            status=200,
            headers=(),
            body=body[:most],
            ip=request.ip,
            started_at=began,
            fetch_s=self._clock.now() - began,
            wire_bytes=len(body),
            media_type="text/plain",
            truncated="length" if len(body) > most else "",
        )

    async def close(self) -> None:
        """Close what is open between requests; here nothing."""

    async def _read(self, request: Request, user: str, most: int) -> bytes:
        reader, writer = await asyncio.open_connection(request.ip, request.port)
        try:
            writer.write(user.encode() + b"\r\n")
            body = b""
            while len(body) <= most and (piece := await reader.read(65_536)):
                body += piece
            return body
        finally:
            writer.close()
