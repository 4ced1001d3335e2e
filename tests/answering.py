"""Answering: what small servers of tests have in common."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from socketserver import BaseServer
from threading import Thread

PORTS = range(20_000, 32_000)
"""Below those that Linux gives to connections, and to servers that have it choose."""


class Answering(BaseHTTPRequestHandler):
    """Answers over kept connections, and says nothing on standard error. `get` is each test's own."""

    protocol_version = "HTTP/1.1"

    def get(self) -> None:
        """Answer a GET."""
        raise NotImplementedError

    def do_GET(self) -> None:
        self.get()

    def answer(self, status: int, body: bytes = b"", *headers: tuple[str, str], media_type: str = "text/html") -> None:
        """Send a whole answer."""
        self.send_response(status)
        for name, value in (*headers, ("Content-Type", media_type), ("Content-Length", str(len(body)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def serving(*servers: BaseServer) -> Iterator[None]:
    """Serve, each in a thread, until the block ends; then close."""
    with ExitStack() as stack:
        for server in servers:
            thread = Thread(target=server.serve_forever, args=(0.01,))
            thread.start()
            for end in (server.server_close, thread.join, server.shutdown):
                stack.callback(end)
        yield


def free_port() -> int:
    """Return a port of 127.0.0.1 that no process listens on: for a server that begins later, or for none.

    No test of another process gets it before this one ends: a name, which the kernel frees with the process, is held.
    """
    while True:
        held = socket.socket(socket.AF_UNIX)
        with socket.socket() as one, suppress(OSError):
            port = secrets.choice(PORTS)  # Tests of all workers begin with the same seed of `random`.
            one.bind(("127.0.0.1", port))
            held.bind(f"\0gossamer-test-port-{port}")
            held.detach()
            return port
        held.close()
