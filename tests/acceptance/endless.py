"""An endless web on loopback, some of it hostile: each page leads to more, and every request is noted as it comes.

It is a trap, as crawlers call it: they are not to look for such.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple, Self

from tests.answering import Answering

SCRIPT = "<script>window.owned='title'</script><img src=x onerror=\"window.owned='image'\">"
TURNED = "\u202egpj.evil\u2066"
HOSTS = (
    "walk.example", "left.example", "slowed.example", "filtered.example", "hostile.example", "later.example",
    "restarted.example", "listed.example", "archived.example",
)  # fmt: skip
ATTACKS = """
<script>parent.owned = top.owned = "script"; top.location = "http://walk.example/"; fetch("/left-by-script")</script>
<meta http-equiv=refresh content="0; url=http://walk.example/refreshed"><link rel=prefetch href=/prefetched>
<img src=/image-that-is-not-archived onerror="parent.owned = 'image'"><svg onload="parent.owned = 'svg'"></svg>
<iframe srcdoc="<script>top.owned = 'frame'</script>"></iframe><iframe src=/framed></iframe>
<object data=/object></object><style>@import url(/imported); body { background: url(/background) }</style>
<form action=/sent method=post><button>send</button></form><a href=/p2 target=_top>leave</a>
<a href=http://walk.example/outside>outside</a><h2>What was archived</h2>"""
"""What a page tries against a program that shows it."""
WAIT_S_MAX = 60.0
SERVED_S = 0.05
"""How long an answer takes."""


class Asked(NamedTuple):
    """One request, as it came."""

    at: float
    host: str
    path: str


class Endless(ThreadingHTTPServer):
    """Serves while the context is open."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.log: list[Asked] = []
        self.at_once = 0
        self.at_once_most = 0
        self.pages_max = 1_000_000
        """Each host has so many."""
        self.lock = threading.Lock()
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()

    def handle_error(self, *_: object) -> None:
        """Say nothing: who stops at once does not wait for answers."""

    def url(self, host: str) -> str:
        return f"http://{host}:{self.server_port}/p1"

    def names(self, directory: Path) -> Path:
        """Write the file of its names."""
        file = directory / "hosts"
        file.write_text("".join(f"127.0.0.1 {host}\n" for host in HOSTS))
        return file

    def asked(self, host: str = "", since: int = 0) -> list[Asked]:
        return [one for one in self.log[since:] if host in ("", one.host) and one.path != "/robots.txt"]

    def more(self, requests: int, host: str = "") -> int:
        """Wait until so many more have come, of any host or of one; return the place in the log at which it began."""
        begun = len(self.log)
        until(lambda: len(self.asked(host, begun)) >= requests)
        return begun


class _Handler(Answering):
    server: Endless

    def get(self) -> None:
        host = self.headers["Host"].partition(":")[0]
        with self.server.lock:
            self.server.log.append(Asked(time.monotonic(), host, self.path))
            self.server.at_once += 1
            self.server.at_once_most = max(self.server.at_once_most, self.server.at_once)
        time.sleep(SERVED_S)
        body = _page(host, self.path, self.server.pages_max)
        with self.server.lock:
            self.server.at_once -= 1
        self.answer(200 if body else 404, body, media_type="text/html; charset=utf-8")


def _page(host: str, path: str, pages_max: int) -> bytes:
    if not path.startswith("/p"):
        return b""
    number = int(path[2:].partition("?")[0] or 0)
    title, links = f"Page {number}", [f"/p{number + step}" for step in (1, 2, 3) if number + step <= pages_max]
    if host == "hostile.example":
        title = f"{SCRIPT} {TURNED} {number}"
        links += ["javascript:window.owned=1", "data:text/html,<script>1</script>", f"/%3Cscript%3E{number}?<b>=\"'"]
    escaped = title.replace("&", "&amp;").replace("<", "&lt;")
    anchors = "".join(f"<a href='{link.replace(chr(39), '&#39;')}'>more</a>" for link in links)
    text = f"<p>Wanted words &lt;img src=x onerror=window.owned=1&gt; number {number}.</p>"
    if host == "archived.example":
        text += ATTACKS
    return f"<!doctype html><title>{escaped}</title>{text}{anchors}".encode()


def until(holds: Callable[[], object], deadline_s: float = WAIT_S_MAX) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + deadline_s
    while not holds():
        assert time.monotonic() < deadline, "it did not come to be in time"
        time.sleep(0.02)
