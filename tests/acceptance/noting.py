"""A server on loopback that notes every request: rendering is judged by its requests."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from http.server import ThreadingHTTPServer
from pathlib import Path

from tests.answering import Answering


class Site:
    """A server on loopback that notes every request; pages are texts by path, `None` stands for all other paths."""

    def __init__(self, pages: Mapping[str, str | None], robots: str = "", address: str = "127.0.0.1") -> None:
        self.log: list[tuple[float, str, str, dict[str, str]]] = []
        self.pages = dict(pages)
        site = self

        class Handler(Answering):
            def get(self) -> None:
                site.log.append((time.time(), self.command, self.path, {k.lower(): v for k, v in self.headers.items()}))
                if self.path == "/robots.txt":
                    self.answer(200 if robots else 404, robots.encode(), media_type="text/plain")
                    return
                text = site.pages.get(self.path.partition("?")[0], None)
                kinds = {".js": "text/javascript", ".json": "application/json", ".css": "text/css"}
                kind = kinds.get(Path(self.path).suffix, "text/html; charset=utf-8")
                if text is None:
                    self.answer(404, b"none")
                else:
                    self.answer(200, text.encode(), media_type=kind)

            do_POST = do_OPTIONS = get  # noqa: N815 - as the base class has it

        self._server = ThreadingHTTPServer((address, 0), Handler)
        self.url = f"http://{address}:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def paths(self) -> list[str]:
        return [path for _, _, path, _ in self.log]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
