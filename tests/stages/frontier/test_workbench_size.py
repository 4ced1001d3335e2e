"""The size of the workbench: as many hosts as requests wait for, within hosts and bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gossamer.model.visits import Contact
from gossamer.stages.frontier.options import FrontierOptions, PolitenessOptions
from gossamer.stages.frontier.workbench import HOST_BYTES, SLACK, SPAN_S, WorkbenchSize
from tests.stages.frontier.names import T0, Shard, linked


def room(**options: Any) -> WorkbenchSize:
    return WorkbenchSize(FrontierOptions(**options))


def test_it_begins_small_and_grows_by_one_for_whoever_waits() -> None:
    hosts = room(active_hosts_first=10, active_hosts_max=12)
    assert hosts.hosts == 10
    assert not hosts.widen(12, 0)
    assert hosts.widen(10, 0)
    assert hosts.hosts == 11
    assert hosts.widen(11, 0)
    assert hosts.hosts == 12
    assert not hosts.widen(12, 0), "never past active_hosts_max"


def test_it_never_grows_past_its_bytes() -> None:
    hosts = room(active_hosts_first=1, active_hosts_bytes_max=1 << 20)
    most = (1 << 20) // HOST_BYTES
    active = 1
    while hosts.widen(active, 0):
        active += 1
    assert active == most
    assert not hosts.may_widen(most // 2, (1 << 20) // 2 + HOST_BYTES), "what windows hold counts too"
    assert hosts.may_widen(0, 1 << 30), "one host always finds place"


def test_it_shrinks_to_rate_times_mean_delay() -> None:
    hosts = room(active_hosts_first=5)
    hosts.fit(T0)
    hosts.widen(999, 0)
    assert hosts.hosts == 1000
    now = T0
    for _ in range(100):
        for _ in range(int(20 * SPAN_S)):  # 20 requests a second, after each of which its host rests 2 s.
            hosts.note_delay(2.0)
        now += SPAN_S
        hosts.fit(now)
    assert hosts.hosts == SLACK * 20 * 2


def test_a_span_that_is_not_over_changes_nothing() -> None:
    hosts = room(active_hosts_first=5)
    hosts.fit(T0)
    hosts.widen(50, 0)
    hosts.fit(T0 + SPAN_S - 1)
    assert hosts.hosts == 51


def crawl_all(shard: Shard, fetchers: int, hosts: int, urls: int) -> tuple[int, float]:
    """Visit everything with so many fetchers; return the most hosts on the bench and how long it took."""
    frontier, now, most = shard.open(T0), T0, 0
    for number in range(hosts):
        for page in range(urls):
            frontier.add(linked(f"http://h{number}.test/{page}"), 1, now)
    out = []
    while frontier.counts.pending:
        while len(out) < fetchers and (lease := frontier.select(now)) is not None:
            if lease.address:
                frontier.begin(lease, now)
                out.append((now + 0.5, lease))
            else:
                frontier.locate(lease, lease.url.host, now + 1e6, now)
        most = max(most, frontier.active_hosts)
        wake_at = frontier.wake_at() if len(out) < fetchers else None
        instants = [at for at, _ in out] + ([wake_at] if wake_at is not None else [])
        now = max(now, min(instants))
        for at, lease in [one for one in out if one[0] <= now]:
            out.remove((at, lease))
            frontier.ended(lease, Contact(0.5, "answered"), now)
            frontier.finish(lease, "fetched", now)
    shard.crash()
    return most, now - T0


def test_the_bench_holds_the_hosts_that_the_rate_needs_and_is_as_fast_as_one_that_holds_all(tmp_path: Path) -> None:
    """Ten fetchers, half a second a request, four and a half of rest: a hundred hosts keep them busy."""
    rules = PolitenessOptions(preset="polite", delay_s_min=4.5, delay_factor=0.0, address_delay_s=0.0)
    small = Shard(tmp_path / "small", rules, active_hosts_first=1)
    all_of_them = Shard(tmp_path / "all", rules, active_hosts_first=600)
    for directory in (small.directory, all_of_them.directory):
        directory.mkdir()
    most, lasted_s = crawl_all(small, 10, 400, 4)
    most_of_all, shortest_s = crawl_all(all_of_them, 10, 400, 4)

    assert most_of_all == 400
    assert 90 <= most <= 130
    assert lasted_s <= 1.1 * shortest_s


def test_a_window_holds_what_may_be_asked_in_a_few_minutes(tmp_path: Path) -> None:
    rules = PolitenessOptions(preset="polite", delay_s_min=60.0, delay_s_max=60.0)
    shard = Shard(tmp_path, rules, window_s_max=180.0, window_urls_max=16)
    frontier = shard.open(T0)
    for number in range(50):
        frontier.add(linked(f"http://slow.test/{number}"), 1, T0)
    lease = frontier.select(T0)

    assert lease is not None
    assert lease.host.window is not None
    assert len(lease.host.window) == 2, "three minutes of a host that is asked once a minute"
    assert frontier._queues.window_bytes > 0
    frontier.return_lease(lease, T0)
    assert len(lease.host.window) == 3
    frontier.control.close(lease.url, "its owner asked", T0)
    assert frontier._queues.window_bytes == 0
    shard.crash()
