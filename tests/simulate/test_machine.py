from __future__ import annotations

import pytest
from msgspec.structs import replace

from gossamer.lab.simulate.costs import (
    Capacity,
    cpu_exchange_s,
    cpu_page_s,
    cpu_request_s,
    exchange_bytes,
    shard_bytes_per_s,
    shard_cores,
)
from gossamer.lab.simulate.options import ExchangeOptions, MachineOptions, SimulateOptions, WebOptions


def test_nobody_waits_while_there_is_room() -> None:
    processor = Capacity(per_s=2.0, typical=0.1)
    assert [processor.wait_s(0.1, now) for now in range(1, 100)] == [0.0] * 99
    assert processor.work_done(100.0) == pytest.approx(9.9)


def test_who_asks_for_too_much_is_served_at_the_rate_there_is() -> None:
    processor = Capacity(per_s=2.0, typical=0.1)
    ends = [10.0 + processor.wait_s(0.1, 10.0) for _ in range(1_000)]
    assert ends == sorted(ends)
    served = sum(end <= 30.0 for end in ends)
    assert served == pytest.approx(2.0 * 20.0 / 0.1, rel=0.03)


def test_work_that_came_in_a_rush_is_done_at_the_rate_there_is() -> None:
    processor = Capacity(per_s=2.0, typical=0.1)
    for _ in range(200):
        processor.wait_s(0.1, 10.0)
    assert [processor.work_done(now) for now in (10.0, 12.5, 20.0, 50.0)] == pytest.approx([0.0, 5.0, 20.0, 20.0])


def test_a_page_costs_the_sum_of_its_parts_or_what_it_is_said_to() -> None:
    web = WebOptions(links_per_page=100, https_share=0.5)
    machine = MachineOptions(
        cpu_us_per_request=100, cpu_us_per_tls=400, cpu_us_per_document=50, cpu_us_per_kb=10, cpu_us_per_link=2
    )
    assert cpu_request_s(web, machine) == pytest.approx(300e-6)
    assert cpu_page_s(20_000, web, machine) == pytest.approx((300 + 50 + 200 + 200) / 1e6)
    said = replace(machine, cpu_us_per_page=7.0)
    assert cpu_page_s(20_000, web, said) == pytest.approx(7e-6)


@pytest.mark.parametrize(
    ("kind", "page_bytes", "links", "https", "measured_us"),
    [
        ("Python's documentation", 95_900, 208, 0.0, 3_510),
        ("PostgreSQL's documentation", 14_600, 26, 0.0, 820),
        ("sizes as in the HTTP Archive", 65_000, 104, 0.0, 2_155),
        ("light pages", 5_100, 8, 0.0, 625),
        ("a TLS connection for every page", 5_100, 8, 1.0, 1_520),
    ],
)
def test_the_formula_meets_what_kinds_of_sites_took(
    kind: str, page_bytes: int, links: int, https: float, measured_us: float
) -> None:
    """Figures of `benchmarks/bench_crawl.py` on a quiet machine (decision 18), less half a second for start and end."""
    predicted_us = 1e6 * cpu_page_s(page_bytes, WebOptions(links_per_page=links, https_share=https), MachineOptions())
    assert predicted_us == pytest.approx(measured_us, rel=0.08), kind


def test_links_to_other_shards_cost_more_the_more_shards_there_are() -> None:
    web, exchange = WebOptions(links_per_page=50, same_host_share=0.8), ExchangeOptions()
    assert cpu_exchange_s(web, exchange, 1) == 0.0
    assert cpu_exchange_s(web, exchange, 4) == pytest.approx(50 * 0.2 * 0.75 * exchange.cpu_us_per_link / 1e6)
    assert exchange_bytes(web, exchange, 4) == pytest.approx(2 * 50 * 0.2 * 0.75 * exchange.bytes_per_link)
    costs = [cpu_exchange_s(web, exchange, shards) for shards in (4, 16, 64)]
    assert costs == sorted(costs)


def test_shards_share_their_machine() -> None:
    machine = MachineOptions(cores=8, shards=16, bandwidth_bits_per_s=8e9)
    alone = SimulateOptions(shards=1, machine=machine)
    crowded = SimulateOptions(shards=40, machine=machine)
    assert (shard_cores(alone), shard_cores(crowded)) == (1.0, 0.5)
    assert (shard_bytes_per_s(alone), shard_bytes_per_s(crowded)) == (1e9, 1e9 / 16)
    assert (alone.machines, crowded.machines) == (1, 3)
