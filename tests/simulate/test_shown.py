"""The result as people see it, and the command that shows it."""

from __future__ import annotations

import contextlib
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import gossamer
from gossamer.features.revisit.policies import POLICIES
from gossamer.lab.simulate.arguments import options_of, settable_keys
from gossamer.lab.simulate.figure import as_html, as_svg
from gossamer.lab.simulate.options import SimulateOptions
from gossamer.lab.simulate.result import Simulated
from gossamer.lab.simulate.revisits import RevisitsOptions
from gossamer.lab.simulate.simulation import simulate
from gossamer.lab.simulate.text import as_text
from tests.commands import run

REPOSITORY = Path(gossamer.__file__).parents[2]
SMALL = ("--preset", "web2025", "--pages", "4e3", "--set", "web.hosts=200", "--set", "web.pages=1e5")


@pytest.fixture(scope="module")
def options() -> SimulateOptions:
    return options_of("web2025", {"pages": 4_000, "shards": 2}, ["web.hosts=200", "web.pages=100000"])


@pytest.fixture(scope="module")
def result(options: SimulateOptions) -> Simulated:
    return simulate(options)


def gossamer_simulate(directory: Path, *arguments: str) -> tuple[int, str, str]:
    with contextlib.chdir(directory):
        return run("simulate", *arguments)


@pytest.mark.heavy
def test_the_text_says_what_how_fast_why_and_on_what_grounds(result: Simulated, options: SimulateOptions) -> None:
    text = as_text(result, options, frozenset({"web.hosts"}))
    for part in (
        "4,000 pages in ", "Limited by  ", "pages/s", "Memory ", "Disk ", "Machines    1 with 2 of 2 shards", "Cost  ",
        "Published   1.005 G pages in 1 d 1 h, 10,950 pages/s", "Assumptions",
    ):  # fmt: skip
        assert part in text
    assert re.search(r"web\.hosts +200 +given", text)
    assert re.search(r"web\.fetch_s_median +0\.5 +assumed", text)
    assert re.search(r"web\.page_bytes_mean +154,000 +Common Crawl", text)
    assert max(map(len, text.splitlines())) < 160


def test_of_a_synthetic_web_its_own_politeness_is_reported() -> None:
    chosen = options_of("simweb-uneven", {"pages": 60}, ["simweb.crawl_delay_s=3"])
    text = as_text(simulate(chosen), chosen, frozenset({"simweb.crawl_delay_s"}))
    assert re.search(r"simweb\.hosts +60 +assumed", text)
    assert re.search(r"simweb\.crawl_delay_s +3 +given", text)
    assert "slow 0.2, robots_crawl_delay 0.1, robots_deny_all 0.05" in text
    assert "web.slow_share" not in text
    assert "web.crawl_delay_share" not in text


def test_figures_agree_with_each_other(result: Simulated, options: SimulateOptions) -> None:
    assert result.pages == result.samples[-1].pages == 4_000
    assert result.pages_per_s == pytest.approx(result.pages / result.time_s)
    assert sum(result.limits.values()) == pytest.approx(1.0)
    assert sum((one.end_s - one.begin_s) * one.pages_per_s for one in result.intervals) == pytest.approx(4_000)
    assert 0 < result.half_s < result.nine_tenths_s < result.time_s
    assert result.machine_hours == pytest.approx(result.time_s / 3_600)
    assert result.cost == pytest.approx(result.machine_hours * options.machine.price_per_hour)
    assert result.cost_per_million == pytest.approx(result.cost / 4_000 * 1e6)
    assert result.bits_per_s * result.time_s / 8 == pytest.approx(result.samples[-1].wire_bytes)
    assert result.urls >= result.requests - 200  # Those of robots.txt have no URL in a queue.


def test_the_drawing_is_well_formed_and_needs_nothing_from_elsewhere(
    result: Simulated, options: SimulateOptions
) -> None:
    drawing = ET.fromstring(as_svg(result))
    lines = [one for one in drawing.iter() if one.tag.endswith("polyline")]
    assert len(lines) == 10
    _, _, width, height = map(float, drawing.attrib["viewBox"].split())
    for line in lines:
        points = [tuple(map(float, point.split(","))) for point in line.attrib["points"].split()]
        assert len(points) > 10
        assert all(0 <= x <= width and 0 <= y <= height for x, y in points)
    page = as_html(result, options)
    assert page.startswith("<!doctype html>")
    assert not re.findall(r'(?:src|href)="', page.replace("http://www.w3.org/2000/svg", ""))


@pytest.mark.heavy
@pytest.mark.long
def test_the_command_prints_a_table_or_json_and_draws(tmp_path: Path) -> None:
    status, out, err = gossamer_simulate(tmp_path, *SMALL, "--figure", "crawl.html", "--shards", "2")
    assert (status, err) == (0, "")
    assert "4,000 pages in" in out
    assert (tmp_path / "crawl.html").read_text().count("<svg") == 1
    _, out, _ = gossamer_simulate(tmp_path, *SMALL, "--json", "--figure", "crawl.svg", "--seed", "3")
    assert json.loads(out)["pages"] == 4_000
    assert json.loads(out)["options"]["seed"] == 3
    ET.parse(tmp_path / "crawl.svg")


@pytest.mark.heavy
def test_revisits_are_reported_policy_by_policy(tmp_path: Path) -> None:
    few = ("--revisits", "--pages", "60", "--set", "changing.hosts=6", "--set", "changing.days=30")
    status, out, err = gossamer_simulate(tmp_path, *few)
    assert (status, err) == (0, "")
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines()[-len(POLICIES) :]}
    assert list(rows) == list(POLICIES)
    assert all(0 < float(row[0].rstrip("%")) < 100 for row in rows.values())
    assert float(rows["optimal"][0].rstrip("%")) > float(rows["proportional"][0].rstrip("%"))
    told = json.loads(gossamer_simulate(tmp_path, *few, "--set", "revisit.policy=uniform", "--json")[1])
    assert told["options"]["changing"]["pages"] == 60
    assert [one["policy"] for one in told["policies"]] == ["uniform"]
    assert f"{told['policies'][0]['freshness']:.1%}" == rows["uniform"][0], "the same pages, visited the same way"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--pages", "lots"], "--pages lots: expected a whole number"),
        (["--delay", "soon"], "--delay soon: expected a number"),
        (["--figure", "crawl.png"], "--figure crawl.png: expected a name that ends in .html or .svg"),
        (["--figure", "no/crawl.svg"], "--figure no/crawl.svg: there is no directory no; make it, or name another"),
        (["--preset", "web2024"], "--preset web2024: expected one of mercator2001, irlbot2007, nielsen2012, web2025, "),
        (["--politeness", "rude"], 'politeness.preset is "rude": expected '),
        (["--set", "seen.backend=disk"], 'seen.backend is "disk": expected '),
        (["--revisits", "--shards", "3"], "--shards: goes without --revisits; leave out one of them"),
        (["--revisits", "--set", "revisit.policy=often"], "revisit.policy: no policy 'often'; write uniform, "),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, arguments: list[str], says: str) -> None:
    status, out, err = gossamer_simulate(tmp_path, *arguments)
    assert (status, out) == (2, "")
    assert err.startswith(f"gossamer: {says}")
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_help_and_presets_come_without_what_simulates(tmp_path: Path) -> None:
    assert "--simulated-pages" in gossamer_simulate(tmp_path, "--help")[1]
    assert "irlbot2007" in gossamer_simulate(tmp_path, "--list-presets")[1]


def test_every_key_is_documented() -> None:
    page = (REPOSITORY / "docs/reference/simulate.md").read_text(encoding="utf-8")
    for key in [*settable_keys(), *settable_keys(RevisitsOptions)]:
        if key.split(".")[0] not in {"politeness", "frontier", "seen", "simweb", "revisit"}:
            assert f"`{key}`" in page, key
