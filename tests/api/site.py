"""A site on loopback, in the loop of the test."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Self


def page(*hrefs: str, title: str = "", text: str = "") -> bytes:
    links = "".join(f'<p><a href="{href}">to {href}</a></p>' for href in hrefs)
    return f"<!doctype html><title>{title}</title><p>{text}</p>{links}".encode()


def star(pages: int, filler: int = 0) -> dict[str, bytes]:
    """A page with so many links to pages of their own."""
    leaves = {f"/{n}": page(title=f"Page {n}", text="x" * filler + str(n)) for n in range(pages)}
    return {"/": page(*leaves, title="Home"), **leaves}


class Site:
    """Answers with bodies by path; everything else, robots.txt included, is a 404."""

    def __init__(self, pages: Mapping[str, bytes], headers: Mapping[str, str] | None = None) -> None:
        self.pages = dict(pages)
        self.headers = {"Content-Type": "text/html; charset=utf-8", **(headers or {})}
        self.counts: Counter[str] = Counter()
        self.moved: dict[str, str] = {}
        self.open = asyncio.Event()
        """While it is not set no page is answered."""
        self.open.set()
        self._news = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._lines: set[asyncio.StreamWriter] = set()

    @property
    def root(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/"

    async def asked(self, requests: int) -> None:
        while sum(self.counts.values()) < requests:
            self._news.clear()
            await self._news.wait()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for line in self._lines:
            line.transport.abort()
        await asyncio.sleep(0)
        await self._server.wait_closed()
        await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._lines.add(writer)
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                path = head.split(b" ", 2)[1].decode()
                self.counts[path] += 1
                self._news.set()
                await self.open.wait()
                writer.write(self._answer(path))
                await writer.drain()
        self._lines.discard(writer)
        writer.close()

    def _answer(self, path: str) -> bytes:
        status, headers, body = "200 OK", dict(self.headers), self.pages.get(path)
        if path in self.moved:
            status, body, headers["Location"] = "301 Moved Permanently", b"moved", self.moved[path]
        if body is None:
            status, body = "404 Not Found", b"not here"
        headers["Content-Length"] = str(len(body))
        lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        return "\r\n".join(lines).encode() + body
