"""One budget of memory: what it gives to whom, what the operator's own values do, and that the kernel holds it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gossamer.config.footprint import BASE_BYTES, ORIGIN, SHARES, fitted
from gossamer.config.gather import configure, reopen, reopen_text
from gossamer.config.sections import BUDGET_BYTES_MIN, Config
from gossamer.config.toml import effective_toml
from gossamer.model.errors import ConfigError
from gossamer.testing.footprint import run_within

MIB = 1 << 20


def share_bytes(config: Config) -> int:
    """What the parts may take at most: the epoch twice, for one closes while the next is open."""
    hosts = config.frontier.records_cached_max * 2_000
    robots = 2 * config.robots.cache_bytes_max
    store = config.state.cache_bytes + config.state.write_buffer_bytes
    return (
        store
        + hosts
        + robots
        + config.frontier.bench_bytes_max
        + config.seen.popular_bytes_max
        + config.fetch.bodies_memory_bytes_max
        + 2 * (config.crawl.epoch_bytes_max)
    )


@pytest.mark.parametrize("budget", [256 * MIB, 512 * MIB, 4096 * MIB])
def test_the_shares_fit_into_the_budget(budget: int) -> None:
    config = configure(options={"memory": str(budget)})

    assert share_bytes(config) <= budget - BASE_BYTES
    assert share_bytes(config) > 0.8 * (budget - BASE_BYTES), "and use it"


def test_filters_of_urls_are_a_part_of_the_budget() -> None:
    sets = ["seen.form='bloom'", "seen.expected_urls=100000000", "seen.false_positive_rate=0.001"]

    config = configure(sets=sets)

    assert 188 * MIB < config.seen.filter_bytes < 189 * MIB
    assert share_bytes(config) + config.seen.filter_bytes <= 512 * MIB - BASE_BYTES
    with pytest.raises(ConfigError, match=r"memory.budget_bytes = 256 MiB: .* take 188 MiB .* give 317 MiB or more"):
        configure(sets=sets, options={"memory": "256MiB"})
    configure(sets=sets, options={"memory": "317MiB"})


def test_the_default_budget_leaves_the_defaults_as_they_are() -> None:
    config = fitted(Config())

    assert config == Config()
    assert all(config.origin(key) == "default" for key in SHARES)


def test_another_budget_changes_every_share_and_says_so() -> None:
    config = configure(options={"memory": "4GiB"})

    for key in SHARES:
        assert config.value(key) > Config().value(key)  # type: ignore[operator]
        assert config.origin(key) == ORIGIN


def test_the_least_budget_gives_everybody_enough_to_work_with() -> None:
    config = configure(options={"memory": str(BUDGET_BYTES_MIN)})

    for key, least in SHARES.items():
        assert config.value(key) >= least  # type: ignore[operator]


def test_what_the_operator_sets_stays() -> None:
    config = configure(options={"memory": "256MiB"}, sets=["state.cache_bytes=7340032"])

    assert config.state.cache_bytes == 7 * MIB
    assert config.origin("state.cache_bytes") == "--set"
    assert config.state.write_buffer_bytes < Config().state.write_buffer_bytes


def test_a_crawl_that_is_resumed_keeps_its_shares_and_another_budget_changes_them(tmp_path: Path) -> None:
    first = configure(options={"memory": "1GiB"}, sets=["seen.popular_bytes_max=9000000"])
    (tmp_path / "crawl.toml").write_text(effective_toml(first))

    again = reopen(tmp_path / "crawl.toml")
    assert again == first
    assert again.origins == first.origins
    smaller = reopen(tmp_path / "crawl.toml", options={"memory": "256MiB"})
    assert smaller.state.cache_bytes == configure(options={"memory": "256MiB"}).state.cache_bytes
    assert smaller.seen.popular_bytes_max == 9_000_000
    default = reopen_text(effective_toml(first), "crawl.toml", options={"memory": "512MiB"})
    assert default.state.cache_bytes == Config().state.cache_bytes
    assert default.origin("state.cache_bytes") == "default"


@pytest.mark.parametrize(
    ("written", "meant"),
    [("512MiB", 512 * MIB), ("1.5 GiB", 1536 * MIB), ("4gib", 4096 * MIB), ("1GB", 10**9), ("300000000", 300_000_000)],
)
def test_sizes_are_written_as_people_write_them(written: str, meant: int) -> None:
    assert configure(options={"memory": written}).memory.budget_bytes == meant


@pytest.mark.parametrize("written", ["much", "512 Mebi", "-1", "64MiB", ""])
def test_a_size_that_is_none_is_one_line(written: str) -> None:
    with pytest.raises(ConfigError) as error:
        configure(sets=[f"memory.budget_bytes='{written}'"])
    assert "\n" not in str(error.value)
    assert "memory.budget_bytes" in str(error.value)


def test_a_program_is_held_to_its_bound() -> None:
    hungry = [sys.executable, "-c", "print(len(bytearray(300 << 20)))"]

    within = run_within(400 * MIB, hungry)
    beyond = run_within(128 * MIB, hungry)

    assert (within.status, within.output) == (0, f"{300 * MIB}\n")
    assert beyond.status != 0
    assert within.means == beyond.means
    assert not within.peak_bytes or 300 * MIB < within.peak_bytes < 400 * MIB
