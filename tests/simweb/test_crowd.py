from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterator

import pytest

from gossamer.lab.simweb.hosts import WebHost
from gossamer.lab.simweb.judge import Promise, judge
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from tests.rates import rates

PROMISE = Promise(delay_s_min=0.05, factor=10, delay_s_max=0.5, address_delay_s=0.002)


async def fetch(process: SimwebProcess, host: WebHost, path: str) -> float:
    """Fetch one page on a connection of its own; return how long it took."""
    began = time.monotonic()
    reader, writer = await asyncio.open_connection(host.address, process.port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {host.name}\r\nConnection: close\r\n\r\n".encode())
    await reader.read()
    writer.close()
    await writer.wait_closed()
    return time.monotonic() - began


async def visit(process: SimwebProcess, host: WebHost, gate: asyncio.Lock, haste: float) -> None:
    """Fetch a dozen pages of a host, `haste` times as soon as was promised."""
    recent: deque[float] = deque(maxlen=5)
    for path in ["/robots.txt", *(process.web.url(host, k).partition(f":{process.port}")[2] for k in range(11))]:
        async with gate:
            recent.append(await fetch(process, host, path))
            await asyncio.sleep(PROMISE.address_delay_s / haste)
        delay_s = PROMISE.clamp_s(sum(recent) / 5) if len(recent) == 5 else PROMISE.delay_s_min
        await asyncio.sleep(delay_s / haste)


async def crowd(process: SimwebProcess, haste: float) -> None:
    hosts = [host for host in process.web.hosts if host.pages > 11]
    gates = {host.address: asyncio.Lock() for host in hosts}
    assert len(gates) < len(hosts)
    async with asyncio.TaskGroup() as group:
        for host in hosts:
            group.create_task(visit(process, host, gates[host.address], haste))


@pytest.fixture
def plain() -> Iterator[SimwebProcess]:
    with SimwebProcess(SimwebOptions.plain(hosts=12, pages=400, bytes_median=1_000)) as process:
        yield process


def test_a_polite_crowd_is_clean_and_makes_use_of_its_time(plain: SimwebProcess) -> None:
    asyncio.run(crowd(plain, haste=1.0))
    plain.stop()
    assert judge(plain.requests(), PROMISE, plain.web) == []
    for rate in rates(plain.requests(), PROMISE, plain.web).values():
        assert 0 <= rate.utilisation <= 1


def test_a_hasty_crowd_is_caught(plain: SimwebProcess) -> None:
    asyncio.run(crowd(plain, haste=20.0))
    plain.stop()
    kinds = [violation.kind for violation in judge(plain.requests(), PROMISE, plain.web)]
    assert "gap_host" in kinds
