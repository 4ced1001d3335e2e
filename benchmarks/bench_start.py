"""What a start costs: crawls of one page, in processor time of the whole process tree and time to the first request.

    python benchmarks/bench_start.py [--runs N] [SRC...]

Each SRC is a folder that holds the package `gossamer`, such as `src` of two worktrees; they take turns. Without one, it
is the installed package. With them one process imports the libraries of a crawl and does nothing else: no start that
needs them costs less. Figures are medians.
"""

from __future__ import annotations

import argparse
import compileall
import os
import subprocess
import sys
import tempfile
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from threading import Thread

import gossamer

LIBRARIES = (
    "ada_url", "asyncio", "brotli", "fastwarc.warc", "isal.isal_zlib", "msgspec", "numpy", "pyarrow.parquet", "pycurl",
    "re2", "rocksdict", "selectolax.lexbor", "ssl", "typer", "uvloop", "xxhash", "zstandard",
)  # fmt: skip
"""Those that a plain crawl imports."""


class OnePage(BaseHTTPRequestHandler):
    """A site of one page without links."""

    first_s = 0.0
    """When the first request of a crawl came."""

    def do_GET(self) -> None:
        OnePage.first_s = OnePage.first_s or time.monotonic()
        body = b"<!doctype html><title>One</title><p>and no other" if self.path == "/" else b""
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def imported() -> tuple[float, float]:
    """Import the libraries without the cyclic collector, as a crawl does; return its user and system time."""
    process = subprocess.Popen([sys.executable, "-c", f"import gc; gc.disable(); import {', '.join(LIBRARIES)}"])
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if status:
        raise SystemExit("a library of a crawl cannot be imported")
    return usage.ru_utime, usage.ru_stime


def start(folder: Path, seed: str) -> tuple[float, float, float]:
    """Crawl the page with the package in a folder; return user and system time, and the time to the first request."""
    OnePage.first_s = 0.0
    with tempfile.TemporaryDirectory() as temporary:
        words = ["crawl", seed, "-o", f"{temporary}/crawl", "--politeness", "own", "--allow-private", "--quiet"]
        began_s = time.monotonic()
        environment = {**os.environ, "PYTHONPATH": str(folder)}
        process = subprocess.Popen([sys.executable, "-m", "gossamer", *words], env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if status:
            raise SystemExit(f"the crawl with {folder} failed")
    return usage.ru_utime, usage.ru_stime, OnePage.first_s - began_s


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("folders", nargs="*", type=Path, default=[Path(gossamer.__file__).parent.parent])
    given = parser.parse_args()
    folders = [folder.resolve() for folder in given.folders]
    for folder in folders:
        compileall.compile_dir(folder, quiet=1)
    found: dict[Path, list[tuple[float, float, float]]] = {folder: [] for folder in folders}
    alone: list[tuple[float, float]] = []
    with ThreadingHTTPServer(("127.0.0.1", 0), OnePage) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        for _ in range(given.runs):
            for folder in folders:
                found[folder].append(start(folder, f"http://127.0.0.1:{server.server_port}/"))
            alone.append(imported())
        server.shutdown()
        thread.join()
    print("| | processor, s | user | system | first request, s |\n| --- | --: | --: | --: | --: |")
    for folder, runs in found.items():
        user_s, system_s, first_s = (median(one) for one in zip(*runs, strict=True))
        cpu_s = median(user + system for user, system, _ in runs)
        print(f"| {folder} | {cpu_s:.3f} | {user_s:.3f} | {system_s:.3f} | {first_s:.3f} |")
    user_s, system_s = (median(one) for one in zip(*alone, strict=True))
    cpu_s = median(user + system for user, system in alone)
    print(f"| the libraries, imported | {cpu_s:.3f} | {user_s:.3f} | {system_s:.3f} | |")


if __name__ == "__main__":
    main()
