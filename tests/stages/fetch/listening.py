"""A raw server whose conversations have all ended when its context has."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
END_S_MAX = 60.0


@asynccontextmanager
async def listening(serve: Serve, ip: str = "127.0.0.1", *, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Serve at a free port of `ip`, and yield it."""
    under_way: set[asyncio.Task[None]] = set()

    async def conversation(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        under_way.add(task)
        with suppress(ConnectionError):
            try:
                await serve(reader, writer)
            finally:
                writer.close()
                await writer.wait_closed()

    async with await asyncio.start_server(conversation, ip, 0, ssl=tls) as listener:
        yield listener.sockets[0].getsockname()[1]
        await asyncio.sleep(0)
    if under_way:
        await asyncio.wait(under_way, timeout=END_S_MAX)
