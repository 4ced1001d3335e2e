"""A prediction owes to each assumption what the simulation with that assumption changed says."""

from __future__ import annotations

import json

import msgspec
import pytest
from msgspec.structs import replace

from gossamer.lab.simulate.arguments import options_of, settable_keys
from gossamer.lab.simulate.options import MachineOptions, SimulateOptions, WebOptions
from gossamer.lab.simulate.presets import PRESETS
from gossamer.lab.simulate.sensitivity import ASSUMPTIONS, Sensitivity, as_table, sensitivity_of, vary
from gossamer.lab.simulate.simulation import simulate
from gossamer.stages.frontier.options import PolitenessOptions, politeness
from tests.commands import run

SMALL = SimulateOptions(
    pages=600,
    web=WebOptions(hosts=40, pages=1_200, zipf_exponent=0.3, new_urls_per_page=4.0, links_per_page=10.0),
    machine=MachineOptions(price_per_gb_sent=1e6, price_per_gb_month=2.0),
    politeness=PolitenessOptions(preset="broad"),
)
pytestmark = pytest.mark.together  # What was found takes all of their time.
BY_NAME = {one.name: one for one in ASSUMPTIONS}


@pytest.fixture(scope="module")
def found() -> Sensitivity:
    return sensitivity_of(SMALL)


@pytest.mark.heavy
@pytest.mark.long
def test_every_assumption_is_changed_alone_and_the_strongest_comes_first(found: Sensitivity) -> None:
    assert {row.assumption for row in found.rows} == set(BY_NAME)
    effects = [row.effect for row in found.rows]
    assert effects == sorted(effects, reverse=True)
    assert effects[-1] >= 1.0
    prediction = simulate(SMALL)
    assert found.prediction.hours == pytest.approx(prediction.time_s / 3600)
    assert found.prediction.cost == pytest.approx(prediction.cost)


@pytest.mark.heavy
@pytest.mark.long
def test_a_row_says_what_a_simulation_with_that_value_says(found: Sensitivity) -> None:
    row = next(row for row in found.rows if row.assumption == "politeness.delay_s_min")
    delays = (35.0, 140.0)
    for case, delay_s in zip(row.cases, delays, strict=True):
        rules = PolitenessOptions(preset="broad", delay_s_min=delay_s, delay_s_max=max(70.0, delay_s))
        alone = simulate(replace(SMALL, politeness=rules))
        assert (case.hours, case.cost) == (pytest.approx(alone.time_s / 3600), pytest.approx(alone.cost))
    halved, doubled = row.cases
    assert halved.hours < found.prediction.hours < doubled.hours
    assert row.effect == pytest.approx(doubled.hours / halved.hours)


@pytest.mark.heavy
@pytest.mark.long
def test_where_hosts_run_dry_the_number_of_pages_decides_and_the_machines_do_not(found: Sensitivity) -> None:
    effect = {row.assumption: row.effect for row in found.rows}
    assert effect["politeness.delay_s_min"] > 3
    for of_machines in ("machine.bandwidth_bits_per_s", "machine.cpu_us_per_*", "web.links_per_page"):
        assert effect[of_machines] < 1.2


def test_changes_stay_possible() -> None:
    base = options_of("nielsen2012", {"scale": 250, "shards_simulated": 20})
    for one in ASSUMPTIONS:
        for amount in (one.low, one.high):
            other = vary(base, one, amount)
            assert other != base or amount in (0.0, 1.0), (one.name, amount)
    assert vary(base, BY_NAME["shards"], 0.5).shards_simulated == 10
    assert politeness(vary(base, BY_NAME["politeness.delay_s_min"], 2.0).politeness).delay_s([9.0], None) == 140.0
    assert vary(base, BY_NAME["machine.cpu_us_per_*"], 3.0).machine.cpu_us_per_kb == 52.5
    assert vary(base, BY_NAME["machine.cpu_us_per_*"], 3.0).machine.cpu_us_per_page is None
    assert {key for one in ASSUMPTIONS for key in one.keys} <= set(settable_keys())


@pytest.mark.heavy
@pytest.mark.long
def test_the_table_names_hours_cost_limit_and_how_closely_it_looked(found: Sensitivity) -> None:
    lines = as_table(found).splitlines()
    assert lines[0].startswith(f"As assumed: {found.prediction.hours:,.1f} h, cost {found.prediction.cost:,.0f}")
    assert [line.split()[0] for line in lines[3 : 3 + len(found.rows)]] == [row.assumption for row in found.rows]
    assert lines[-3] == "Simulated 1 of 1 hosts of a shard: 600 pages a case."
    assert max(map(len, lines)) < 140


@pytest.mark.heavy
@pytest.mark.long
def test_a_case_that_never_has_the_pages_says_so(found: Sensitivity) -> None:
    [row, *others] = found.rows
    short = msgspec.structs.replace(row.cases[1], ended="finished", pages=420.0)
    changed_row = msgspec.structs.replace(row, cases=(row.cases[0], short))
    line = as_table(msgspec.structs.replace(found, rows=(changed_row, *others))).splitlines()[3]
    assert line.split()[1] == "never"
    assert line.endswith(f"{short.change}: never, 420 pages in all")


@pytest.mark.heavy
@pytest.mark.long
def test_the_command_prints_the_table_or_json() -> None:
    small = (
        "--sensitivity", "--preset", "nielsen2012", "--pages", "60", "--shards", "1", "--set", "web.hosts=20",
        "--set", "web.pages=600",
    )  # fmt: skip
    status, out, err = run("simulate", *small)
    assert (status, err) == (0, "")
    assert out.startswith("As assumed: ")
    told = json.loads(run("simulate", *small, "--json")[1])
    assert [row["assumption"] for row in told["rows"]] == [line.split()[0] for line in out.splitlines()[3:-4]]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--preset", "simweb-even"], "--sensitivity: the hosts of this web are not assumed; use another --preset"),
        (["--figure", "x.svg"], "--figure: goes without --sensitivity; leave out one of them"),
        (["--revisits"], "--sensitivity: goes without --revisits; leave out one of them"),
    ],
)
def test_what_has_no_sensitivity_is_refused_in_one_line(arguments: list[str], says: str) -> None:
    assert run("simulate", "--sensitivity", *arguments) == (2, "", f"gossamer: {says}\n")


def test_traffic_and_storage_cost_what_they_are_said_to() -> None:
    result = simulate(SMALL)
    assert result.traffic_cost == pytest.approx(result.requests * 400 / 1e9 * 1e6)
    assert result.cost == pytest.approx(result.machine_hours * 1.51 + result.traffic_cost)
    kept = result.footprint.state_disk + result.footprint.archive_disk
    assert result.storage_cost_month == pytest.approx(kept / 1e9 * 2.0)


def test_an_assumption_of_nielsens_crawl_has_a_source_or_says_that_it_has_none() -> None:
    preset = PRESETS["nielsen2012"]
    unsourced = set(preset.values) - set(preset.sources)
    assert unsourced == {
        "web.fetch_s_median", "web.https_share", "web.error_share", "frontier.active_hosts_bytes_max", "machine.shards",
        "machine.bandwidth_bits_per_s",
    }  # fmt: skip


@pytest.mark.heavy
@pytest.mark.long
def test_with_a_thousand_pages_a_domain_nielsens_crawl_runs_out_of_hosts_near_his_time() -> None:
    result = simulate(options_of("nielsen2012", {"scale": 1_000}))
    assert next(iter(result.limits)) == "hosts"
    assert result.limits["hosts"] > 0.8
    published = PRESETS["nielsen2012"].published
    assert published is not None
    assert 0.6 < result.time_s / published.time_s < 1.6
    many = simulate(options_of("nielsen2012", {"scale": 1_000}, ["web.pages=2e10"]))
    assert "hosts" not in many.limits
    assert many.time_s < 0.4 * published.time_s
