"""How many pages a second one simweb process serves, and what a page costs it.

    python benchmarks/bench_simweb.py [--pages 40000] [--concurrency 32] [--fresh]

The client (libcurl, keep-alive unless --fresh) runs in this process, the server in its own: two cores are needed for
the rate to be the server's. CPU seconds a page are read from /proc and do not depend on that.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import deque
from itertools import islice
from pathlib import Path

import pycurl

from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.lab.simweb.web import Web


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pages", type=int, default=40_000)
    parser.add_argument("--hosts", type=int, default=2_000)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--fresh", action="store_true", help="a new connection for each page")
    given = parser.parse_args()
    options = SimwebOptions(hosts=given.hosts, pages=max(given.pages, given.hosts), latency_s=0)
    began = time.monotonic()
    with SimwebProcess(options) as simweb:
        ready_s = time.monotonic() - began
        urls = ordinary(simweb.web, given.pages)
        cpu = cpu_s(simweb.pid)
        began = time.monotonic()
        done, body_bytes = fetch(urls, given.concurrency, fresh=given.fresh)
        took_s = time.monotonic() - began
        cpu = cpu_s(simweb.pid) - cpu
        print(f"{given.hosts} hosts on {len(simweb.web.addresses)} addresses, ready in {ready_s:.2f} s")
        print(f"{done} pages of {body_bytes / done / 1000:.1f} KB in {took_s:.2f} s: {done / took_s:.0f} pages/s")
        print(f"server: {cpu / done * 1e6:.0f} us CPU a page, {done / cpu:.0f} pages per CPU-second")
        print(f"server: {memory_mb(simweb.pid):.0f} MB resident")


def ordinary(web: Web, most: int) -> list[tuple[str, str, str]]:
    """Return URL, name and address of ordinary pages, one host after the other, so that connections are kept."""
    pages = ((host, number) for host in web.hosts if not host.slow for number in range(host.pages))
    return [(web.url(host, number), host.name, host.address) for host, number in islice(pages, most)]


def fetch(urls: list[tuple[str, str, str]], concurrency: int, *, fresh: bool) -> tuple[int, int]:
    multi = pycurl.CurlMulti()
    multi.setopt(pycurl.M_MAXCONNECTS, concurrency)
    waiting = deque(urls)
    free = [pycurl.Curl() for _ in range(concurrency)]
    done = body_bytes = 0

    def take(data: bytes) -> None:
        nonlocal body_bytes
        body_bytes += len(data)

    while waiting or len(free) < concurrency:
        while waiting and free:
            url, name, address = waiting.popleft()
            curl = free.pop()
            curl.setopt(pycurl.URL, url)
            curl.setopt(pycurl.CONNECT_TO, [f"{name}::{address}:"])
            curl.setopt(pycurl.WRITEFUNCTION, take)
            curl.setopt(pycurl.FORBID_REUSE, int(fresh))
            multi.add_handle(curl)
        multi.perform()
        left, good, bad = multi.info_read()
        assert not bad, bad
        for curl in good:
            assert curl.getinfo(pycurl.RESPONSE_CODE) == 200
            done += 1
            multi.remove_handle(curl)
            free.append(curl)
        if not left:
            multi.select(0.01)
    return done, body_bytes


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    main()
