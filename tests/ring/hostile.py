"""A server in a thread that answers with whatever a page may hold to do harm; bodies are made while they are sent."""

from __future__ import annotations

import threading
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import NamedTuple, Self

MIB = 1024 * 1024


class Answer(NamedTuple):
    """What a path is answered with; pieces are made anew for each request."""

    pieces: Callable[[], Iterable[bytes]]
    media_type: str = "text/html"
    coding: str = ""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()


def whole(body: bytes, media_type: str = "text/html", coding: str = "") -> Answer:
    return Answer(lambda: (body,), media_type, coding)


def bomb(gigabytes: int) -> Callable[[], Iterator[bytes]]:
    """Gzip that decodes to so many GB of zeros: one flushed MiB, again and again."""

    def pieces() -> Iterator[bytes]:
        packing = zlib.compressobj(9, zlib.DEFLATED, 31)
        yield packing.compress(b"<title>Bomb</title>") + packing.flush(zlib.Z_FULL_FLUSH)
        block = zlib.compressobj(9, zlib.DEFLATED, -15)
        flushed = block.compress(bytes(MIB)) + block.flush(zlib.Z_FULL_FLUSH)
        for _ in range(gigabytes):
            yield flushed * 1024
        yield packing.flush()

    return pieces


def noise(megabytes: int, seed: int = 1) -> Callable[[], Iterator[bytes]]:
    """A body that is the same each time and unlike any other, in pieces of a MiB."""

    def pieces() -> Iterator[bytes]:
        for number in range(megabytes):
            stamp = f"{seed}-{number:08d} ".encode()
            yield (stamp * (MIB // len(stamp) + 1))[:MIB]

    return pieces


class HostileServer:
    """Answers by path; robots.txt and everything unknown is a 404."""

    def __init__(self, answers: dict[str, Answer], address: str = "127.0.0.1") -> None:
        self.answers = answers
        self.counts: Counter[str] = Counter()
        self.with_cookies: dict[str, Answer] = {}
        """Answers to requests that send a cookie, instead of the others."""
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.0"

            def do_GET(self) -> None:
                server.counts[self.path] += 1
                known = server.with_cookies.get(self.path) if self.headers["Cookie"] else None
                answer = known or server.answers.get(self.path)
                self.send_response(answer.status if answer else 404)
                if answer is not None:
                    self.send_header("Content-Type", answer.media_type)
                    if answer.coding:
                        self.send_header("Content-Encoding", answer.coding)
                    for name, value in answer.headers:
                        self.send_header(name, value)
                self.end_headers()
                if answer is not None:
                    try:
                        for piece in answer.pieces():
                            self.wfile.write(piece)
                    except ConnectionError:
                        pass  # It had enough of us.

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer((address, 0), Handler)
        self._server.daemon_threads = True
        self.root = f"http://{address}:{self._server.server_port}/"

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
