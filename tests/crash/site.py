"""A small site on loopback whose pages are what a test says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import ThreadingHTTPServer

from tests.answering import Answering, serving


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that are killed break off: that is what they are here for."""


class Site:
    """Serves `pages` by path; anything else is 404. Counts what was asked for."""

    def __init__(self, pages: Mapping[str, bytes]) -> None:
        self.pages = dict(pages)
        self.asked: Counter[str] = Counter()
        site = self

        class Handler(Answering):
            def get(self) -> None:
                site.asked[self.path] += 1
                body = site.pages.get(self.path)
                self.answer(200 if body is not None else 404, body or b"")

        self._server = _Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.root = f"http://127.0.0.1:{self._server.server_port}"

    def url(self, path: str) -> str:
        return self.root + path

    @contextmanager
    def serving(self) -> Iterator[Site]:
        with serving(self._server):
            yield self


def linked(others: Mapping[str, bytes], ordinary: int) -> dict[str, bytes]:
    """Return a site of so many ordinary pages and some others: the front page links all, the others in the middle."""
    pages = {f"/page-{number}.html": f"<title>{number}</title><p>ordinary".encode() for number in range(ordinary)}
    paths = list(pages)
    paths[ordinary // 2 : ordinary // 2] = others
    front = "".join(f'<a href="{path}">{path}</a>\n' for path in paths)
    return {"/": front.encode(), **pages, **others}
