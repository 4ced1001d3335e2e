"""One budget of memory: what it gives to whom, what the operator's own values do, and that the kernel holds it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gossamer.config.footprint import (
    BASE_BYTES,
    ISOLATED_BYTES,
    ORIGIN,
    PROGRAM,
    SHARES,
    fit_budget,
    fixed_bytes,
    least_bytes,
    require_memory,
)
from gossamer.config.gather import configure, reopen, reopen_text
from gossamer.config.sections import Config
from gossamer.config.toml import effective_toml
from gossamer.model.errors import ConfigError
from gossamer.plugins import component
from gossamer.stages.process.choice import MODULES
from gossamer.stages.process.options import ISOLATED
from gossamer.stages.seen.popular import POPULAR_BYTES
from gossamer.world.allocators import ARROW_POOL, FRUGAL
from tests.bounded import run_within

MIB = 1 << 20
LEAST = "192MiB"
IDLE = """
import gossamer.api.crawler
from gossamer.world.machine import ThisMachine
print(ThisMachine().memory_bytes())
"""


def share_bytes(config: Config) -> int:
    """What the parts may take at most: the epoch twice, for one closes while the next is open."""
    hosts = config.frontier.records_cached_max * 2_000
    popular = {"rocksdb": config.seen.popular_bytes_max, "diskmerge": POPULAR_BYTES * config.seen.popular_urls_max}
    robots = 2 * config.robots.cache_bytes_max
    store = config.state.cache_bytes + config.state.write_buffer_bytes
    return (
        store
        + hosts
        + robots
        + config.frontier.active_hosts_bytes_max
        + popular.get(config.seen.backend, 0)
        + 32 * config.seen.held_urls_max * (config.seen.backend == "diskmerge")
        + config.fetch.bodies_memory_bytes_max
        + 2 * (config.crawl.epoch_bytes_max)
        + 3 * config.archive.table_group_bytes_max
    )


@pytest.mark.promise("Bounds", "One value sets the memory of the process tree.")
@pytest.mark.parametrize("budget", [192 * MIB, 256 * MIB, 512 * MIB, 4096 * MIB])
def test_the_shares_fit_into_the_budget(budget: int) -> None:
    config = configure(options={"memory": str(budget)})

    assert share_bytes(config) <= budget - BASE_BYTES
    assert share_bytes(config) > 0.8 * (budget - BASE_BYTES), "and use it"


def test_filters_of_urls_are_a_part_of_the_budget() -> None:
    sets = ["seen.backend='bloom'", "seen.expected_urls=100000000", "seen.false_positive_rate=0.001"]

    config = configure(sets=sets)

    assert 188 * MIB < config.seen.filter_bytes < 189 * MIB
    assert share_bytes(config) + config.seen.filter_bytes <= 512 * MIB - BASE_BYTES
    with pytest.raises(ConfigError, match=r"memory.budget_bytes = 256 MiB does not hold .* 189 MiB, .* set 380 MiB"):
        configure(sets=sets, options={"memory": "256MiB"})
    configure(sets=sets, options={"memory": "380MiB"})


CONFIGURATIONS = [
    [],
    ["search.enabled=true"],
    ["search.enabled=true", "search.memory_bytes_max=100000000"],
    ["process.modules=['pdf_links']"],
    ["process.isolated=['mine']", "process.isolated_processes=4"],
    ["process.types={'application/pdf'=['pdf_text']}", "process.isolated_processes=2"],
    ["console.port=0"],
    ["archive.store='file:///tmp/copies'"],
    ["state.hosts_store='hosts'"],
    ["state.cache_bytes=100000000"],
    ["crawl.epoch_bytes_max=60000000"],
    ["seen.backend='diskmerge'", "seen.popular_urls_max=5000000"],
    ["search.enabled=true", "process.modules=['pdf_links']", "console.port=0"],
]


@pytest.mark.promise("Bounds", "A memory budget that is too small is refused before anything is fetched.")
@pytest.mark.parametrize("sets", CONFIGURATIONS, ids=" ".join)
def test_a_budget_that_is_too_small_names_the_least_that_works(sets: list[str]) -> None:
    with pytest.raises(ConfigError) as refused:
        configure(sets=sets, options={"memory": "64MiB"})
    named = re.search(r"set (\d+) MiB or more \(--memory \1MiB\)", str(refused.value))
    assert named is not None
    least = int(named[1])

    config = configure(sets=sets, options={"memory": f"{least}MiB"})
    assert sum(fixed_bytes(config).values()) + share_bytes(config) <= least * MIB
    with pytest.raises(ConfigError, match=f"set {least} MiB or more"):
        configure(sets=sets, options={"memory": f"{least - 1}MiB"})
    assert least == 192 or sets, "a plain crawl fits into 192 MiB"
    assert "\n" not in str(refused.value)


def test_what_the_operator_sets_beyond_its_share_is_taken_from_the_others() -> None:
    plain = configure()
    config = configure(sets=["state.cache_bytes=200000000"])

    assert config.state.cache_bytes == 200_000_000
    assert config.state.write_buffer_bytes < plain.state.write_buffer_bytes
    assert BASE_BYTES + share_bytes(config) <= 512 * MIB


def test_isolated_processes_are_counted_one_by_one() -> None:
    sets = ["process.isolated=['mine']"]
    one, four = (
        sum(fixed_bytes(configure(sets=[*sets, *more])).values()) for more in ([], ["process.isolated_processes=4"])
    )
    assert four - one == 3 * ISOLATED_BYTES


def test_every_module_that_always_runs_isolated_is_counted() -> None:
    declared = {
        name for name, place in MODULES.items() if getattr(component(place, "process.modules"), "isolated", False)
    }
    assert declared == ISOLATED
    plain = sum(fixed_bytes(configure()).values())
    for name in ISOLATED:
        assert sum(fixed_bytes(configure(sets=[f"process.modules=['{name}']"])).values()) == plain + ISOLATED_BYTES


def test_a_program_that_takes_more_here_than_where_it_was_measured_is_refused_before_it_crawls() -> None:
    config = configure(options={"memory": LEAST})

    require_memory(config, BASE_BYTES)
    with pytest.raises(ConfigError, match=r"the program 200 MiB, caches and buffers 37 MiB .* set 237 MiB or more"):
        require_memory(config, 200 * MIB)
    require_memory(configure(options={"memory": "237MiB"}), 200 * MIB)


def test_the_program_takes_less_than_its_part_of_the_budget() -> None:
    idle = run_within(4096 * MIB, [sys.executable, "-c", IDLE], {**FRUGAL, **os.environ})

    assert idle.status == 0, idle.output
    supervisor_bytes = 16 * MIB
    assert 64 * MIB < int(idle.output) < fixed_bytes(Config())[PROGRAM] - supervisor_bytes


@pytest.mark.parametrize(("environment", "backend"), [({}, "system"), ({ARROW_POOL: "mimalloc"}, "mimalloc")])
def test_a_program_that_imports_the_crawler_has_arrow_use_the_systems_allocator(
    environment: dict[str, str], backend: str
) -> None:
    code = "from gossamer import Crawler; import pyarrow; print(pyarrow.default_memory_pool().backend_name)"
    inherited = {name: value for name, value in os.environ.items() if name != ARROW_POOL}
    done = subprocess.run(
        [sys.executable, "-c", code], env={**inherited, **environment}, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{backend}\n"


def test_the_default_budget_leaves_the_defaults_as_they_are() -> None:
    config = fit_budget(Config())

    assert config == Config()
    assert all(config.origin(key) == "default" for key in SHARES)


def test_another_budget_changes_every_share_and_says_so() -> None:
    config = configure(options={"memory": "4GiB"})

    for key in SHARES:
        assert config.value(key) > Config().value(key)  # type: ignore[operator]
        assert config.origin(key) == ORIGIN


def test_the_least_budget_gives_everybody_enough_to_work_with() -> None:
    config = configure(options={"memory": LEAST})

    for key, share in SHARES.items():
        assert config.value(key) >= share.least  # type: ignore[operator]
    assert least_bytes(config) <= share_bytes(config) <= 192 * MIB - BASE_BYTES


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
    assert (
        smaller.state.cache_bytes
        == configure(options={"memory": "256MiB"}, sets=["seen.popular_bytes_max=9000000"]).state.cache_bytes
    )
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
