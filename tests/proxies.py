"""Proxies: a small one that takes tunnels, plain HTTP and SOCKS5, and notes the requests that came to it."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from socketserver import BaseRequestHandler, ThreadingTCPServer


class SmallProxy(ThreadingTCPServer):
    """Passes all requests on to one server of the test, whatever host they name."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, port: int, kind: str = "http", user: str = "", *, listens: bool = True) -> None:
        """One that does not listen refuses connections, and keeps its port from servers of other tests."""
        super().__init__(("127.0.0.1", 0), Passing, bind_and_activate=listens)
        if not listens:
            self.server_bind()
        self.target = port
        self.kind = kind
        self.passed: list[str] = []
        """Host and port of each request or tunnel."""
        self.heads: list[bytes] = []
        self.is_dead = False
        self.answers = b""
        """What it answers to every request itself."""
        self.url = f"{'socks5' if kind == 'socks5' else 'http'}://{user}127.0.0.1:{self.server_address[1]}"


class Passing(BaseRequestHandler):
    server: SmallProxy

    def handle(self) -> None:
        if self.server.is_dead:
            self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return
        with suppress(OSError):
            self.speak_socks() if self.server.kind == "socks5" else self.speak_http()

    def speak_socks(self) -> None:
        self.take(2 + self.take(2)[1] - 2)
        self.request.sendall(b"\x05\x00")
        kind = self.take(4)[3]
        length = {1: 4, 4: 16}.get(kind) or self.take(1)[0]
        host = self.take(length)
        name = host.decode() if kind == 3 else socket.inet_ntop(socket.AF_INET, host)
        [port] = struct.unpack("!H", self.take(2))
        self.server.passed.append(f"{name}:{port}")
        self.request.sendall(b"\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x00")
        self.join(b"")

    def speak_http(self) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            some = self.request.recv(65_536)
            if not some:
                return
            head += some
        self.server.heads.append(head)
        if self.server.answers:
            self.request.sendall(self.server.answers)
            return
        method, target, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
        if method == "CONNECT":
            self.server.passed.append(target)
            self.request.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            self.join(b"")
            return
        place, _, path = target.removeprefix("http://").partition("/")
        self.server.passed.append(place)
        rest = head.partition(b"\r\n")[2].replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1)
        self.join(f"{method} /{path} HTTP/1.1\r\n".encode() + rest)

    def take(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            some = self.request.recv(count - len(data))
            if not some:
                raise ConnectionError
            data += some
        return data

    def join(self, first: bytes) -> None:
        with socket.create_connection(("127.0.0.1", self.server.target)) as other:
            other.sendall(first)
            back = threading.Thread(target=copy, args=(other, self.request), daemon=True)
            back.start()
            copy(self.request, other)
            back.join(10)


def copy(reads: socket.socket, writes: socket.socket) -> None:
    with suppress(OSError):
        while some := reads.recv(65_536):
            writes.sendall(some)
    with suppress(OSError):
        writes.shutdown(socket.SHUT_WR)
