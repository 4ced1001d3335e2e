"""Control: queries and commands to a running crawl, as JSON lines on a socket in the crawl's directory.

Only one process can open the store, so `status`, `why`, `seed` and other commands are sent here. Access to the socket,
which has mode 600, gives control of the crawl.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from gossamer.engine.logs import Logs
from gossamer.model.verbs import Kind, RefusedError
from gossamer.world.files import socket_name

SOCKET = "control.sock"
REQUEST_BYTES_MAX = 16 << 20
REQUEST_S_MAX = 60.0

Verb = Callable[[dict[str, object]], Awaitable[object]]


class ControlSocket:
    """Serves verbs: one line of answer for each line of request, any number per client."""

    def __init__(
        self, directory: Path, verbs: Mapping[str, Verb], logs: Logs, bound: Callable[[], None] = lambda: None
    ) -> None:
        """`bound` is called once the socket exists: the crawl opens no other Unix socket after it."""
        self._bound = bound
        self._directory = directory
        self._verbs = verbs
        self._logs = logs
        self._clients: set[asyncio.StreamWriter] = set()

    async def serve(self) -> None:
        """Answer until cancelled."""
        path = self._directory / SOCKET
        path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with socket_name(path) as name:
                listener.bind(name)
            self._bound()
            path.chmod(0o600)  # Before it listens: no client can connect until then.
            server = await asyncio.start_unix_server(self._answer, sock=listener, limit=REQUEST_BYTES_MAX)
            try:
                await server.serve_forever()
            finally:
                # From Python 3.12 on, a server waits for its clients, which may stay connected for a minute.
                for client in self._clients:
                    client.transport.abort()
                server.close()
        finally:
            listener.close()
            with suppress(OSError):  # If the disk fails, its first error is the one to report.
                path.unlink(missing_ok=True)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._clients.add(writer)
        with suppress(OSError, TimeoutError, ValueError, asyncio.CancelledError):
            while True:
                async with asyncio.timeout(REQUEST_S_MAX):
                    line = await reader.readline()
                if not line:
                    break
                answer = await self._reply(line)
                if writer.is_closing():  # Its client is gone, or the server has ended meanwhile.
                    break
                writer.write(msgspec.json.encode(answer) + b"\n")
                async with asyncio.timeout(REQUEST_S_MAX):
                    await writer.drain()
        self._clients.discard(writer)
        writer.close()

    async def _reply(self, line: bytes) -> dict[str, object]:
        try:
            request = msgspec.json.decode(line, type=dict[str, object])
        except (msgspec.DecodeError, RecursionError) as error:
            return refusal("invalid", f"not a JSON object: {error}")
        return await answer_of(self._verbs, request, self._logs)


async def answer_of(verbs: Mapping[str, Verb], request: dict[str, object], logs: Logs) -> dict[str, object]:
    """Return the answer of the verb that a request names. Never raises."""
    name = str(request.get("verb"))
    if name not in verbs:
        return refusal("invalid", f"no verb {request.get('verb')!r}; there are: {', '.join(verbs)}")
    return await run_verb(verbs[name], request, logs)


async def run_verb(verb: Verb, request: dict[str, object], logs: Logs) -> dict[str, object]:
    """Return a verb's answer, or a refusal. Never raises."""
    try:
        async with asyncio.timeout(REQUEST_S_MAX):
            return {"ok": True, "result": await verb(request)}
    except RefusedError as refused:
        return refusal(refused.kind, str(refused))
    except TimeoutError:
        return refusal("overdue", f"no answer within {REQUEST_S_MAX:.0f} s")
    except Exception as error:  # noqa: BLE001 - a question must not end the crawl, nor go without an answer
        logs.critical("control_failed", error, verb=str(request.get("verb")))  # noqa: PLE1205 - not the logging module
        return refusal("failed", f"internal error: {type(error).__name__}: {error}; critical.log says more")


def refusal(kind: Kind, error: str) -> dict[str, object]:
    """Return the answer to a request without a result."""
    return {"ok": False, "error": error, "kind": kind}
