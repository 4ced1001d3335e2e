"""CPU per keep-alive request: `HttpModule` beside a bare `AsyncCurlMulti`, against nginx on loopback.

    python benchmarks/bench_fetch.py [--root DIR] [--requests N] [--concurrency N] [--rounds N]

The bare loop does what no crawler can do without: it collects head and body and joins the body. Fails when the module
costs more than 1.5 times as much. Rounds alternate and the best of each counts, so that a busy machine is fair to both.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pycurl
import uvloop

from gossamer.model.visits import Reply, Request
from gossamer.stages.fetch.http import HttpModule
from gossamer.stages.fetch.options import FetchOptions
from gossamer.world.clock import WallClock

RATIO_MAX = 1.5
_NGINX = """
daemon off; worker_processes 1; pid {at}/pid; error_log {at}/error.log;
events {{ worker_connections 1024; }}
http {{
    access_log off; sendfile on; keepalive_requests 1000000000; default_type text/html;
    client_body_temp_path {at}/1; proxy_temp_path {at}/2; fastcgi_temp_path {at}/3; uwsgi_temp_path {at}/4;
    scgi_temp_path {at}/5;
    server {{ listen 127.0.0.1:{port}; root {root}; }}
}}
"""

Fetch = Callable[[str], Awaitable[int]]


@contextlib.contextmanager
def nginx(root: Path) -> Iterator[int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as at:
        configuration = Path(at) / "nginx.conf"
        configuration.write_text(_NGINX.format(at=at, port=port, root=root))
        server = subprocess.Popen(["/usr/sbin/nginx", "-c", str(configuration)], stderr=subprocess.DEVNULL)
        try:
            until = time.monotonic() + 10
            while time.monotonic() < until:
                with contextlib.suppress(ConnectionError), socket.create_connection(("127.0.0.1", port), 1):
                    break
                time.sleep(0.05)
            yield port
        finally:
            server.terminate()
            server.wait(timeout=10)


@contextlib.asynccontextmanager
async def module(port: int):  # type: ignore[no-untyped-def]
    http = HttpModule(FetchOptions(connections_per_host=0), "gossamer/0 (+benchmark)", WallClock())

    async def fetch(url: str) -> int:
        reply = await http.fetch(Request(url=url, ip="127.0.0.1", port=port))
        assert isinstance(reply, Reply), reply
        return len(reply.body)

    try:
        yield fetch
    finally:
        await http.close()


@contextlib.asynccontextmanager
async def bare(_port: int):  # type: ignore[no-untyped-def]
    multi = pycurl.AsyncCurlMulti()
    idle: list[pycurl.Curl] = []

    async def fetch(url: str) -> int:
        curl = idle.pop() if idle else pycurl.Curl()
        head: list[bytes] = []
        body: list[bytes] = []
        curl.setopt(pycurl.URL, url)
        curl.setopt(pycurl.HEADERFUNCTION, head.append)
        curl.setopt(pycurl.WRITEFUNCTION, body.append)
        await multi.perform(curl)
        idle.append(curl)
        return len(b"".join(body))

    try:
        yield fetch
    finally:
        await multi.aclose()


async def measure(way, port: int, urls: list[str], concurrency: int) -> tuple[float, float]:  # type: ignore[no-untyped-def]
    """Return microseconds of CPU for a request, and bytes."""
    async with way(port) as fetch:
        for url in urls[:concurrency]:
            await fetch(url)
        todo = iter(urls)
        total = 0

        async def work() -> None:
            nonlocal total
            for url in todo:
                size = await fetch(url)
                total += size

        start = time.process_time()
        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(work())
        return (time.process_time() - start) / len(urls) * 1e6, total / len(urls)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=Path("/usr/share/doc/python3.11/html"))
    parser.add_argument("--requests", type=int, default=4000)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    pages = [path for path in sorted(given.root.rglob("*.html")) if path.stat().st_size < 100_000]
    if not pages:
        print(f"no pages below {given.root}; name a directory of HTML with --root", file=sys.stderr)
        return 2
    best: dict[str, float] = {}
    size = 0.0
    with nginx(given.root) as port:
        names = itertools.islice(itertools.cycle(pages), given.requests)
        urls = [f"http://127.0.0.1:{port}/{path.relative_to(given.root)}" for path in names]
        for _ in range(given.rounds):
            for name, way in (("bare", bare), ("module", module)):
                cost_us, size = uvloop.run(measure(way, port, urls, given.concurrency))
                best[name] = min(cost_us, best.get(name, cost_us))
    ratio = best["module"] / best["bare"]
    print(f"{given.requests} requests of {size:,.0f} bytes, {given.concurrency} at once, best of {given.rounds} rounds")
    print(f"bare AsyncCurlMulti  {best['bare']:6.1f} µs CPU a request")
    print(f"HttpModule           {best['module']:6.1f} µs CPU a request, {ratio:.2f} times bare (at most {RATIO_MAX})")
    return 0 if ratio <= RATIO_MAX else 1


if __name__ == "__main__":
    sys.exit(main())
