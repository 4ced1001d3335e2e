from __future__ import annotations

import pytest

from gossamer.cli.arguments import quantity_of
from gossamer.lab.simulate.arguments import explicit_keys, options_of, revisits_of, settable_keys
from gossamer.lab.simulate.presets import ASSUMED, MEASURED, PRESETS, source_of
from gossamer.lab.simulate.simulation import beyond_of
from gossamer.model.errors import ConfigError


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_are_whole_and_their_sources_name_their_keys(preset: str) -> None:
    options = options_of(preset)
    assert options.preset == preset
    known = set(settable_keys())
    assert set(PRESETS[preset].values) <= known
    assert set(PRESETS[preset].sources) <= known


def test_what_is_given_stands_above_the_preset() -> None:
    options = options_of("web2025", {"pages": 5_000, "shards": None}, ["web.hosts=2e3", "web.pages=1_000_000"])
    assert (options.pages, options.shards, options.web.hosts, options.web.pages) == (5_000, 12, 2_000, 1_000_000)
    assert options_of("mercator2001", {}, ["machine.cpu_us_per_page=none"]).machine.cpu_us_per_page is None
    assert options_of("", {}, ["seen.backend=memory", "web.robots=false"]).seen.backend == "memory"


def test_a_synthetic_web_follows_its_changes_and_its_seed() -> None:
    options = options_of("simweb-even", {"seed": 4}, ["simweb.pages=900", "simweb.latency_s=0.5"])
    assert options.simweb is not None
    assert (options.simweb.seed, options.simweb.pages, options.web.pages) == (4, 900, 900)
    assert options.web.fetch_s_median == pytest.approx(0.51)


@pytest.mark.parametrize(
    ("preset", "values", "sets", "says"),
    [
        ("web205", {}, [], "--preset web205: expected one of mercator2001, .*; did you mean web2025?"),
        ("", {}, ["web.host=3"], "no key web.host; did you mean web.hosts?"),
        ("", {}, ["hosts"], "--set hosts: write --set section.key=value, such as --set web.hosts=1e6"),
        ("", {}, ["web.hosts=many"], 'web.hosts is "many": expected a whole number'),
        ("", {}, ["web.same_host_share=2"], "web.same_host_share is 2: expected 1 or less"),
        ("", {"shards": 0}, [], "shards is 0: expected 1 or more"),
        ("", {"shards": 2, "shards_simulated": 3}, [], "shards_simulated is 3, of 2 shards"),
        ("", {}, ["web.hosts=10", "web.pages=3"], "web.pages is 3: each of the 10 hosts has one at least"),
        ("", {}, ["simweb.pages=3"], "simweb.pages: only with --preset simweb-even, simweb-uneven"),
        ("simweb-even", {}, ["simweb.pages=x"], 'simweb.pages is "x": expected a whole number'),
        ("simweb-even", {"scale": 3}, [], "scale is 3: a synthetic web is simulated host by host"),
        ("simweb-even", {}, ["web.hosts=9"], "web.hosts: the hosts of --preset simweb-even are its synthetic web's; "),
        ("simweb-even", {}, ["web.dead_host_share=1"], "web.dead_host_share: the hosts of --preset simweb-even are "),
        ("", {"scale": 3}, ["web.giant_pages=9"], "scale is 3: a web with a giant is simulated host by host"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_place(
    preset: str, values: dict[str, object], sets: list[str], says: str
) -> None:
    with pytest.raises(ConfigError, match="^" + says.replace("?", "\\?")) as caught:
        options_of(preset, values, sets)
    assert "\n" not in str(caught.value)


def test_numbers_are_written_as_people_do() -> None:
    assert [quantity_of("--pages", text, "whole") for text in ("1e9", "1_000", "20")] == [10**9, 1_000, 20]
    for text in ("1.5", "many", "inf", "nan", ""):
        with pytest.raises(ConfigError, match=f"--pages {text}: expected a whole number"):
            quantity_of("--pages", text, "whole")


def test_every_value_has_a_source_or_is_called_assumed() -> None:
    options = options_of("irlbot2007")
    given = explicit_keys({"pages": 3, "seed": None}, ["web.hosts = 5"])
    assert given == {"pages", "web.hosts"}
    assert source_of(options, "web.hosts", given) == "given"
    assert source_of(options, "web.hosts").startswith("IRLbot")
    assert source_of(options, "web.fetch_s_median") == ASSUMED
    assert source_of(options, "machine.cpu_us_per_kb") == MEASURED


def test_revisits_have_keys_of_their_own() -> None:
    options = revisits_of({"changing.pages": 300, "changing.seed": None}, ["revisit.interval_s_mean=86400"])
    assert (options.changing.pages, options.changing.seed, options.revisit.interval_s_mean) == (300, 1, 86_400.0)
    assert revisits_of({}).revisit.interval_s_mean == 4 * 86_400.0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("changing.page=3", "no key changing.page; did you mean changing.pages?"),
        ("web.hosts=3", "no key web.hosts"),
        ("changing.days=0", "changing.days is 0: expected more than 0"),
        ("revisit.interval_s_mean=60", "[0-9,]+ visits are more than 2,000,000: expected fewer pages or days"),
    ],
)
def test_a_mistake_about_revisits_is_one_line(text: str, says: str) -> None:
    with pytest.raises(ConfigError, match="^" + says.replace("?", "\\?")) as caught:
        revisits_of({}, [text])
    assert "\n" not in str(caught.value)


def test_a_sample_that_is_much_larger_than_wanted_is_announced() -> None:
    says = beyond_of(options_of("mercator2001", {"pages_simulated": 20_000}))
    assert says.startswith("about 66")
    assert "not 20,000" in says
    assert "--scale K" in says
    assert beyond_of(options_of("mercator2001", {"scale": 5_000})) == ""
    assert beyond_of(options_of("web2025", {"pages_simulated": 300_000})) == ""
