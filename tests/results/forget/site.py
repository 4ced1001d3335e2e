"""Three hosts on loopback: two whose pages are forgotten in part or whole, and one whose pages stay.

Forgotten pages carry marks in title, text, header, robots.txt and link texts; no kept page has one. Kept pages share
bodies with forgotten ones, exactly and nearly, small and large, and refer to them.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path

from tests.answering import Answering, serving

MARKS = tuple(f"qmark{word}zx" for word in ("title", "text", "header", "anchor", "robots", "version", "spilled"))
SHARED = "<title>Shared</title><p>" + " ".join(f"shared words number {number}" for number in range(60))
GONE, KEPT = "gone.test", "kept.test"
TAG = '"1"'
"""A kept copy of a forgotten page has it: later visits are answered with 304."""
LONG = ("X-Long", "x" * 40_000)
_NEAR = [f"nearly the same sentence about topic {number} and more" for number in range(80)]


def _page(title: str, text: str, *hrefs: tuple[str, str]) -> bytes:
    links = "".join(f'<p><a href="{href}">{words}</a></p>' for href, words in hrefs)
    return f"<!doctype html><title>{title}</title><p>{text}</p>{links}".encode()


def _pages() -> dict[str, bytes]:
    title, text, _, anchor, _, _, spilled = MARKS
    noise = random.Random(7).randbytes(600_000).hex().encode()
    kept = [f"http://{KEPT}/page-{number}.html" for number in range(12)]
    gone = [f"http://{GONE}/secret-{number}.html" for number in range(6)]
    shared = ("shared.html", "large.bin", "near.html")
    first = [(f"http://{GONE}/{name}", "plain words") for name in shared]
    then = [(f"http://{KEPT}/{name}", "plain words") for name in (*shared, "shared-too.html")]
    pages = {
        f"{GONE}/": _page(title, text, *first, *((url, anchor) for url in gone), (kept[0], anchor)),
        f"{GONE}/shared.html": SHARED.encode(),
        f"{GONE}/large.bin": noise,
        f"{GONE}/near.html": _page("Near", " ".join([*_NEAR, text])),
        f"{GONE}/alone.bin": (spilled * 80_000).encode(),
        f"{KEPT}/": _page(
            "Home", "kept words", *((url, "plain words") for url in kept), *then, *((url, "it") for url in gone)
        ),
        f"{KEPT}/shared.html": SHARED.encode(),
        f"{KEPT}/shared-too.html": SHARED.encode(),
        f"{KEPT}/large.bin": noise,
        f"{KEPT}/near.html": _page("Near", " ".join([*_NEAR, "kept"])),
        "third.test/": _page("Third", "third words", (f"http://{GONE}/alone.bin", "plain words")),
    }
    pages |= {url[7:]: _page(f"{title} {url}", f"{text} {url} " * 20, (kept[1], anchor)) for url in gone}
    return pages | {url[7:]: _page(f"Kept {url[-8:]}", f"kept words of {url} " * 20) for url in kept}


class Site:
    """Serves all hosts at one port. `GONE/secret-0.html` is another version at each request."""

    def __init__(self) -> None:
        self.pages = _pages()
        self.asked: Counter[str] = Counter()
        site = self

        class Handler(Answering):
            def get(self) -> None:
                name = f"{self.headers['Host'].partition(':')[0]}{self.path}"
                site.asked[name] += 1
                headers = (
                    [("X-Mark", MARKS[2]), ("Set-Cookie", f"seen={MARKS[2]}"), LONG] if name.startswith(GONE) else []
                )
                if name == f"{GONE}/robots.txt":
                    rules = f"# {MARKS[4]}\nUser-agent: *\nAllow: /\n".encode()
                    self.answer(200, rules, LONG, media_type="text/plain")
                elif name == f"{GONE}/.well-known/tdmrep.json":
                    policy = (
                        f'[{{"location": "/none", "tdm-reservation": 1, "tdm-policy": "https://{MARKS[4]}.test/"}}]'
                    )
                    self.answer(200, policy.encode(), media_type="application/json")
                elif name == f"{KEPT}/shared.html" and self.headers["If-None-Match"] == TAG:
                    self.answer(304, b"", ("ETag", TAG))
                elif name in site.pages:
                    headers += [("ETag", TAG)] if name == f"{KEPT}/shared.html" else []
                    version = f"<p>{MARKS[5]} {site.asked[name]}".encode() if name.endswith("secret-0.html") else b""
                    kind = "application/octet-stream" if name.endswith(".bin") else "text/html"
                    self.answer(200, site.pages[name] + version, *headers, media_type=kind)
                else:
                    self.answer(404, b"not there")

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port: int = self._server.server_port
        for name, body in list(self.pages.items()):
            for host in (GONE, KEPT):
                body = body.replace(f"http://{host}/".encode(), f"http://{host}:{self.port}/".encode())
            self.pages[name] = body

    def url(self, name: str) -> str:
        return f"http://{name.replace('/', f':{self.port}/', 1)}"

    def hosts_file(self, folder: Path) -> Path:
        path = folder / "hosts"
        path.write_text("".join(f"127.0.0.1 {host}\n" for host in (GONE, KEPT, "third.test")))
        return path

    @contextmanager
    def serving(self) -> Iterator[Site]:
        with serving(self._server):
            yield self
