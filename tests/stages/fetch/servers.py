"""Raw servers on loopback: what they send is bytes, and they keep what they were sent."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

Answer = Callable[["Server", asyncio.StreamWriter, bytes], Awaitable[bool]]
"""Writes an answer to the request head it is given; says whether the connection stays open."""


@dataclass
class Server:
    answer: Answer
    port: int = 0
    connections: int = 0
    requests: list[bytes] = field(default_factory=list)
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            with suppress(asyncio.IncompleteReadError, ConnectionError):
                while True:
                    head = await reader.readuntil(b"\r\n\r\n")
                    self.requests.append(head)
                    self.arrived.set()
                    if not await self.answer(self, writer, head):
                        break
                    await writer.drain()
        finally:
            writer.close()
            with suppress(ConnectionError, ssl.SSLError):
                await writer.wait_closed()
            self.hung_up.set()


def always(data: bytes, *, stay: bool = True) -> Answer:
    """Answer every request with these bytes."""

    async def answer(_server: Server, writer: asyncio.StreamWriter, _head: bytes) -> bool:
        writer.write(data)
        return stay

    return answer


def reply(body: bytes = b"hello", *headers: bytes, status: bytes = b"200 OK") -> bytes:
    lines = [b"HTTP/1.1 " + status, b"Content-Length: %d" % len(body), *headers, b"", body]
    return b"\r\n".join(lines)


async def never(_server: Server, _writer: asyncio.StreamWriter, _head: bytes) -> bool:
    """Accept, read, and never answer."""
    return True


async def pause() -> None:
    """Wait for the other side in steps: the loop looks at its sockets between two, however late a busy machine is."""
    for _ in range(10):
        await asyncio.sleep(0.01)


@asynccontextmanager
async def serving(
    answer: Answer | bytes, *, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None
) -> AsyncIterator[Server]:
    server = Server(always(answer) if isinstance(answer, bytes) else answer)
    tasks: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await server.serve(reader, writer)
        except asyncio.CancelledError:
            pass
        finally:
            tasks.discard(task)

    listener = await asyncio.start_server(accept, host, 0, ssl=tls)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()
        for task in list(tasks):
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=60)
