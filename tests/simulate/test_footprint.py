"""What a crawl takes, reckoned by hand."""

from __future__ import annotations

import pytest

from gossamer.lab.simulate.options import MachineOptions, SimulateOptions, WebOptions
from gossamer.lab.simulate.result import Footprint, Sample, footprint_of, url_seen_disk_bytes, url_seen_memory_bytes
from gossamer.options import convert
from gossamer.stages.frontier.workbench import HOST_BYTES
from gossamer.stages.seen.options import SeenOptions

COUNTS = {
    "hosts_benched": 400.0, "hosts_known": 1_000.0, "discovered": 5e6, "pending": 4e6, "pages": 1e6, "wire_bytes": 30e9,
}  # fmt: skip


def footprint(shards: int = 4, backend: str = "rocksdb", **counts: float) -> Footprint:
    options = SimulateOptions(
        shards=shards,
        seen=convert(SeenOptions, {"backend": backend}),
        web=WebOptions(hosts=1_000, pages=10**7, links_per_page=50, page_bytes_mean=100_000),
        machine=MachineOptions(shards=2, concurrency=10),
    )
    last = dict.fromkeys(Sample.__struct_fields__, 0.0) | COUNTS | counts
    return footprint_of(options, [Sample(**last)])


def test_disk_is_the_sum_of_what_each_url_page_and_link_takes() -> None:
    whole = footprint()
    assert whole.state_disk == pytest.approx(4e6 * 40 + 1_000 * 160 + 5e6 * 12 + 1e6 * 120)
    assert whole.archive_disk == pytest.approx(30e9 * 1.05 + 1e6 * 50 * 12)
    assert whole.disk_per_machine == pytest.approx((whole.state_disk + whole.archive_disk) / 2)


def test_memory_is_of_one_shard_and_of_those_on_a_machine() -> None:
    whole, more_hosts = footprint(), footprint(hosts_benched=800.0)
    assert whole.memory_per_machine == 2 * whole.memory_per_shard
    assert footprint(shards=1).memory_per_machine == footprint(shards=1).memory_per_shard
    per_host = HOST_BYTES + SimulateOptions().frontier.window_urls_max * 150
    assert more_hosts.memory_per_shard - whole.memory_per_shard == pytest.approx(100 * per_host)
    in_memory = footprint(backend="memory")
    assert in_memory.memory_per_shard - whole.memory_per_shard == pytest.approx(90 * 5e6 / 4 - (20 << 20))
    assert footprint(discovered=9e9).memory_per_shard == whole.memory_per_shard, "the default backend is bounded"


def test_what_each_form_of_the_eliminator_takes() -> None:
    memory, merged = (
        SeenOptions(backend="memory"),
        SeenOptions(backend="diskmerge", popular_urls_max=1_000, front_urls_max=10),
    )
    assert url_seen_memory_bytes(memory, 1e6) == 90e6
    assert url_seen_memory_bytes(merged, 1e6) == 1.5e6 + 8_000 + 3_000
    assert url_seen_disk_bytes(merged, 1e6) == 13e6
    bloom = SeenOptions(backend="bloom", expected_urls=1_000_000, false_positive_rate=1e-4)
    assert url_seen_memory_bytes(bloom, 10) == url_seen_disk_bytes(bloom, 1e6) == bloom.filter_bytes
    assert url_seen_memory_bytes(bloom, 1e6 + 1) == pytest.approx(3 * bloom.filter_bytes)
    assert url_seen_memory_bytes(bloom, 7e6) == pytest.approx(7 * bloom.filter_bytes)
