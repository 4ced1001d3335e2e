"""Politeness: the table of presets, and the arithmetic of rests."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer.options import convert
from gossamer.stages.frontier.options import HostOverride, PolitenessOptions, politeness
from gossamer.stages.frontier.politeness import SAMPLES, grown_s

seconds = st.floats(0, 500)
PRESETS = ["polite", "gentle", "broad", "weak", "own"]


@pytest.mark.parametrize(
    ("preset", "fetches_s", "delay_s"),
    [
        # polite: ten times the mean of the last five or fewer, from 1 s to 60 s
        ("polite", [], 1.0),
        ("polite", [3.0], 30.0),
        ("polite", [9.0] * 4, 60.0),
        ("polite", [0.2, 0.4], 3.0),
        ("polite", [0.01] * 5, 1.0),
        ("polite", [0.1, 0.2, 0.3, 0.4, 0.5], 3.0),
        ("polite", [9.0] * 5, 60.0),
        # gentle: the same from 15 s
        ("gentle", [], 15.0),
        ("gentle", [2.0], 20.0),
        ("gentle", [0.3] * 5, 15.0),
        ("gentle", [2.0] * 5, 20.0),
        ("gentle", [9.0] * 5, 60.0),
        ("broad", [], 70.0),
        ("broad", [30.0] * 5, 70.0),
        ("weak", [], 0.0),
        ("weak", [30.0] * 5, 0.0),
        ("own", [30.0] * 5, 0.0),
    ],
)
def test_rests_of_the_presets(preset: str, fetches_s: list[float], delay_s: float) -> None:
    rules = politeness(convert(PolitenessOptions, {"preset": preset}))

    assert rules.delay_s(fetches_s, None) == pytest.approx(delay_s)


@pytest.mark.parametrize(
    ("preset", "per_host", "per_address"),
    [("polite", 1, 1), ("gentle", 1, 1), ("broad", 1, 1), ("weak", 1, 1), ("own", 8, 0)],
)
def test_requests_at_once(preset: str, per_host: int, per_address: int) -> None:
    rules = politeness(convert(PolitenessOptions, {"preset": preset}))

    assert (rules.per_host, rules.per_address) == (per_host, per_address)
    assert (rules.address_delay_s > 0) == (preset in ("polite", "gentle", "broad"))


@pytest.mark.parametrize(
    ("given", "address_delay_s"),
    [
        ({}, 0.1),
        ({"delay_s_min": 0.02}, 0.02),
        ({"delay_s_min": 0.0}, 0.0),
        ({"delay_s_min": 5.0}, 0.1),
        ({"delay_s_min": 0.02, "address_delay_s": 0.5}, 0.5),
        ({"delay_s_min": 0.02, "preset": "weak"}, 0.0),
    ],
)
def test_a_shorter_delay_of_hosts_is_that_of_addresses(given: dict[str, Any], address_delay_s: float) -> None:
    assert politeness(PolitenessOptions(**given)).address_delay_s == address_delay_s


def test_keys_that_are_given_win_over_the_preset() -> None:
    rules = politeness(
        PolitenessOptions(
            preset="own", delay_s_min=2.0, per_host=3, per_address=5, address_delay_s=0.5, delay_factor=0.0
        )
    )

    assert (rules.delay_s([100.0] * 5, None), rules.per_host, rules.per_address, rules.address_delay_s) == (
        2.0,
        3,
        5,
        0.5,
    )


def test_a_delay_is_between_any_two_requests_to_a_host_unless_several_at_once_are_wanted() -> None:
    one_at_a_time = politeness(PolitenessOptions(preset="own", delay_s_min=1.0))
    assert (one_at_a_time.per_host, one_at_a_time.per_address) == (1, 0)
    assert politeness(PolitenessOptions(preset="own", delay_s_min=0.0)).per_host == 8
    assert politeness(PolitenessOptions(preset="own", delay_s_min=1.0, per_host=3)).per_host == 3
    overrides = {"slow": HostOverride(delay_s=1.0), "quick": HostOverride(delay_s=0.0),
                 "both": HostOverride(delay_s=1.0, per_host=4)}  # fmt: skip
    some = politeness(PolitenessOptions(preset="own"), overrides)
    assert [some.of(host).per_host for host in (*overrides, "other")] == [1, 8, 4, 8]
    assert politeness(PolitenessOptions(per_host=2), overrides).of("slow").per_host == 2


def test_a_least_delay_above_the_greatest_wins() -> None:
    rules = politeness(PolitenessOptions(delay_s_min=100.0))

    assert rules.delay_s([], None) == 100.0
    assert rules.delay_s([30.0] * 5, None) == 100.0


@pytest.mark.parametrize(
    ("crawl_delay_s", "delay_s"), [(None, 3.0), (0.0, 3.0), (2.0, 3.0), (10.0, 10.0), (200.0, 200.0)]
)
def test_a_longer_crawl_delay_wins(crawl_delay_s: float | None, delay_s: float) -> None:
    assert politeness(PolitenessOptions()).delay_s([0.3] * 5, crawl_delay_s) == delay_s


@settings(deadline=None, derandomize=True)
@given(
    st.sampled_from(PRESETS),
    st.lists(seconds, max_size=SAMPLES),
    seconds,
    st.none() | seconds,
    st.none() | seconds,
    st.floats(0, 1),
)
def test_what_is_written_before_a_request_is_never_less_than_what_follows_it(
    preset: str, fetches_s: list[float], fetch_s: float, crawl_delay_s: float | None, least_s: float | None, part: float
) -> None:
    """The gate journal must be pessimistic: after a death that is all there is."""
    rules = politeness(convert(PolitenessOptions, {"preset": preset, "delay_s_min": least_s}))
    earlier = fetches_s[1 - SAMPLES :]
    before = rules.delay_to_come(fetches_s, crawl_delay_s)
    after_s = rules.delay_s([*earlier, fetch_s * part], crawl_delay_s)
    longest_s = rules.longest_delay_s(crawl_delay_s)

    assert before.most_s == longest_s
    assert after_s <= min(before.least_s + before.per_second * fetch_s, longest_s) + 1e-9


def test_backing_off_doubles_with_jitter_up_to_a_bound() -> None:
    rules = politeness(PolitenessOptions(backoff_s_first=30.0, backoff_s_max=200.0))

    assert [rules.backoff_s(nth, 0.0) for nth in (1, 2, 3, 4, 5)] == [30.0, 60.0, 120.0, 200.0, 200.0]
    assert rules.backoff_s(1, 0.999) == pytest.approx(45.0, abs=0.1)
    assert rules.backoff_s(10_000, 0.0) == rules.backoff_s(10_000, 0.999) == 200.0


def test_a_series_that_doubles() -> None:
    assert [grown_s(1.0, nth, 10.0) for nth in (1, 2, 3, 4, 5, 5000)] == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]
