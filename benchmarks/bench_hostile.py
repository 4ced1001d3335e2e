"""An innocent host's pages beside N hostile hosts: how much of the pace that politeness permits it keeps.

    python benchmarks/bench_hostile.py [--hosts N …] [--links]

Each hostile host serves chunks of one byte, and chunk extensions, folded headers, interim replies, header lines and
trailers without end (the behavior `floods` of the synthetic web). With `--links` each of its pages has 50,000 links to
others of the kind instead. The innocent host gets one request a second. Its pace is the share of its permitted turns
that it had, by the server's log. Fails below 90 % of the pace without hostile hosts. The machine must be quiet.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.ring.beside import LAG_S_P99_MAX, PACE_MIN, SETTINGS, beside, crawl_and_look

from gossamer import Crawler
from gossamer.config import configure

LINKS = 50_000
RUN_S = 40
INNOCENT = "127.0.0.2"


class Pace(NamedTuple):
    """What one crawl showed."""

    requests: int
    """To the innocent host."""
    pace: float
    hostile: int
    """Requests to all others."""
    lags_s: list[float]
    """Sorted."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, nargs="+", default=[0, 1, 4, 16])
    parser.add_argument("--links", action="store_true", help="pages of many links instead of floods of bytes")
    given = parser.parse_args()
    print("hostile hosts  innocent requests  pace  beside alone  hostile requests  lag p99  lag max")
    alone, failed = 0.0, False
    for hosts in given.hosts:
        with tempfile.TemporaryDirectory() as directory:
            seen = among_links(Path(directory), hosts) if given.links else among_floods(Path(directory), hosts)
        alone = alone or seen.pace
        lag_s_p99 = seen.lags_s[len(seen.lags_s) * 99 // 100]
        failed |= seen.pace < PACE_MIN * alone or lag_s_p99 > LAG_S_P99_MAX
        print(
            f"{hosts:13}  {seen.requests:17}  {seen.pace:4.0%}  {seen.pace / alone:12.0%}  {seen.hostile:16}"
            f"  {lag_s_p99 * 1e3:4.0f} ms  {seen.lags_s[-1] * 1e3:4.0f} ms",
            flush=True,
        )
    return 1 if failed else 0


def among_floods(directory: Path, hosts: int) -> Pace:
    """Crawl an innocent host beside hosts that flood with bytes."""
    seen = beside(directory, ("floods",) if hosts else (), hosts)
    return Pace(seen.innocent.requests, seen.innocent.utilisation, seen.hostile, seen.lags_s)


def among_links(directory: Path, hosts: int) -> Pace:
    """Crawl an innocent host beside hosts whose every page has as many links as are taken of one."""
    with served() as (port, counts):
        seeds = [f"http://127.0.0.{2 + host}:{port}/" for host in range(hosts + 1)]
        config = configure(
            options={"allow_private": True, "contact": "me@example.org", "scope": "host"},
            sets=(*SETTINGS, "politeness.delay_s_min=1.0", f"limits.max_time_s={RUN_S}"),
            seeds=seeds,
        )
        _, lags_s = asyncio.run(crawl_and_look(Crawler(output=directory / "c", config=config)))
        counts.send(None)
        requests: Counter[str] = counts.recv()
    innocent = requests.pop(INNOCENT)
    return Pace(innocent, innocent / RUN_S, requests.total(), lags_s)


@contextmanager
def served() -> Iterator[tuple[int, Connection]]:
    """Serve the hosts in another process; give the port, and what answers with the requests of each host."""
    ours, theirs = get_context("spawn").Pipe()
    process = get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
    process.start()
    try:
        yield ours.recv(), ours
    finally:
        process.kill()
        process.join()


def serve(counts: Connection) -> None:
    """Serve until this process is ended."""
    asyncio.run(_serve(counts))


async def _serve(counts: Connection) -> None:
    requests: Counter[str] = Counter()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host = writer.get_extra_info("sockname")[0]
        while True:
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                return writer.close()
            requests[host] += 1
            path = head.split(b" ")[1]
            number, prefix = (40, b"/") if host == INNOCENT else (LINKS, b"/%s-" % path[1:][-6:])
            body = b"<title>Page</title>" + b"".join(b"<a href=%s%d>x</a>" % (prefix, one) for one in range(number))
            if path == b"/robots.txt":
                body = b""
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            await writer.drain()

    server = await asyncio.start_server(answer, "0.0.0.0", 0, backlog=100)
    counts.send(server.sockets[0].getsockname()[1])
    await asyncio.get_running_loop().run_in_executor(None, counts.recv)
    counts.send(requests)


if __name__ == "__main__":
    sys.exit(main())
