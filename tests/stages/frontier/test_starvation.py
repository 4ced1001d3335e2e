"""Starvation: one huge slow site among ten thousand small ones, under a clock of our own.

The real frontier, a crawler with a bounded number of requests at once, and a model of fetch times: small hosts answer
in 0.2 s, the huge one in 8 s. What is told is when each small host was through, with the huge one there and without it.
"""

from __future__ import annotations

import heapq
import itertools
from pathlib import Path

import pytest

from gossamer.model.visits import Contact
from gossamer.stages.frontier.host import Lease
from gossamer.stages.frontier.options import PolitenessOptions
from tests.stages.frontier.names import T0, Shard, linked

SMALL_HOSTS = 10_000
PAGES = 2
HUGE_PAGES = 20_000
CONCURRENCY = 256
SMALL_S, HUGE_S = 0.2, 8.0
GAP_S = 10 * SMALL_S + SMALL_S
"""Between two requests to a small host: by so much, a chance of the draw, hosts come earlier or later."""


def crawled(directory: Path, *, huge: bool, bench_hosts: int) -> tuple[list[float], int]:
    """Return when each small host was through, sorted, and how many visits the huge one had by then."""
    directory.mkdir()
    shard = Shard(
        directory, PolitenessOptions(preset="polite", per_address=1), window_urls_max=4, active_hosts_max=bench_hosts,
        active_hosts_first=min(bench_hosts, 1_000),
    )  # fmt: skip
    frontier = shard.open(T0)
    if huge:  # Found first, and all of it: nobody could be more in the way.
        for number in range(HUGE_PAGES):
            frontier.add(linked(f"http://huge.test/{number}"), 0, T0)
    for page, host in itertools.product(range(PAGES), range(SMALL_HOSTS)):
        frontier.add(linked(f"http://h{host}.test/{page}"), 1, T0)
    left = dict.fromkeys((f"h{host}.test" for host in range(SMALL_HOSTS)), PAGES)
    through: list[float] = []
    under_way: list[tuple[float, int, Lease]] = []
    order, now, huge_visits = itertools.count(), T0, 0
    while len(through) < SMALL_HOSTS:
        lease = frontier.select(now) if len(under_way) < CONCURRENCY else None
        if lease is not None and not lease.address:
            frontier.locate(lease, lease.url.host, now + 1e9, now)
            continue
        if lease is not None:
            assert frontier.begin(lease, now)
            fetch_s = HUGE_S if lease.url.host == "huge.test" else SMALL_S
            heapq.heappush(under_way, (now + fetch_s, next(order), lease))
            continue
        wake_at = frontier.wake_at() if len(under_way) < CONCURRENCY else None
        if under_way and (wake_at is None or under_way[0][0] <= wake_at):
            now, _, done = heapq.heappop(under_way)
            host = done.url.host
            frontier.ended(done, Contact(HUGE_S if host == "huge.test" else SMALL_S, "answered"), now)
            frontier.finish(done, "fetched", now)
            if host == "huge.test":
                huge_visits += 1
                continue
            left[host] -= 1
            if not left[host]:
                through.append(now - T0)
        else:
            assert wake_at is not None, "somebody was lost"
            now = max(now, wake_at)
    shard.crash()
    return through, huge_visits


@pytest.mark.heavy
@pytest.mark.promise("Order and fairness", "A huge slow site does not slow the small ones.")
@pytest.mark.parametrize("bench_hosts", [500, 20_000])
@pytest.mark.long
def test_small_sites_finish_as_fast_beside_a_huge_slow_one_as_without_it(tmp_path: Path, bench_hosts: int) -> None:
    """At most its one slot of 256 slower, whether all hosts fit on the workbench or one in twenty does."""
    without, _ = crawled(tmp_path / "without", huge=False, bench_hosts=bench_hosts)
    beside, huge_visits = crawled(tmp_path / "beside", huge=True, bench_hosts=bench_hosts)
    for share in (0.5, 0.9, 0.99, 1.0):
        place = int(share * SMALL_HOSTS) - 1
        assert beside[place] <= without[place] * 1.02 + GAP_S, f"{share:.0%} through"
        print(
            f"{bench_hosts} on the bench, {share:.0%} through: {beside[place]:.1f} s beside it, {without[place]:.1f} s"
        )
    assert huge_visits >= 1, "and it is not starved in turn"
