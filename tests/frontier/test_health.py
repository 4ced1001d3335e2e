"""Health: what a host's answers and silences lead to."""

from __future__ import annotations

from typing import Any

import pytest

from gossamer.frontier.health import settle
from gossamer.frontier.options import FrontierOptions, PolitenessOptions
from gossamer.frontier.politeness import politeness
from gossamer.frontier.record import RECORD_VERSION, HostRecord
from gossamer.model.visits import Contact
from tests.frontier.names import T0

RULES = politeness(PolitenessOptions())
OPTIONS = FrontierOptions(host_failures_max=3, host_sleep_s_first=60.0, host_sleep_s_max=200.0, host_sleeps_max=4)
FAILED, ANSWERED, BUSY = Contact(0.05, "failed", error="refused"), Contact(0.05, "answered"), Contact(0.05, "busy")


def record() -> HostRecord:
    return HostRecord(RECORD_VERSION, "a.example")


def feel(host: HostRecord, *contacts: Contact, at: float = T0, dice: float = 0.0, **rules: Any) -> list[float]:
    """Settle contacts that all end `at`; return how long the host rests after each."""
    rests = []
    for contact in contacts:
        host.rest_until = 0.0
        settle(host, contact, at, politeness(PolitenessOptions(**rules)) if rules else RULES, OPTIONS, dice)
        rests.append(host.rest_until - at)
    return rests


def test_an_answer_rests_the_host_and_is_counted() -> None:
    host = record()

    assert feel(host, ANSWERED) == [1.0]
    assert (host.requests, host.fetches_s, host.reason, host.closed) == (1, [0.05], "", "")


def test_the_mean_is_taken_over_the_last_five() -> None:
    host = record()
    feel(host, *(Contact(fetch_s, "answered") for fetch_s in (9.0, 0.1, 0.2, 0.3, 0.4, 0.5)))

    assert host.fetches_s == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert host.rest_until == pytest.approx(T0 + 3.0)


def test_a_lookup_that_failed_says_nothing_of_speed() -> None:
    host = record()
    feel(host, Contact(2.0, "answered"), Contact(0.0, "failed"))

    assert host.fetches_s == [2.0]
    assert (host.requests, host.failures) == (2, 1)


def test_an_earlier_rest_that_is_longer_stays() -> None:
    host = record()
    host.rest_until = T0 + 500
    settle(host, ANSWERED, T0, RULES, OPTIONS, 0.0)

    assert host.rest_until == T0 + 500


def test_a_host_that_keeps_failing_sleeps_twice_as_long_each_time_and_is_closed_at_last() -> None:
    host = record()
    rests = feel(host, *[FAILED] * 14)

    assert rests == [1, 1, 60, 1, 1, 120, 1, 1, 200, 1, 1, 200, 1, 1]
    assert not host.closed
    assert "3 times in a row" in host.reason or not host.reason
    feel(host, FAILED)
    assert "4 sleeps" in host.closed
    assert "refused" in host.closed


def test_one_answer_makes_up_for_all_failures() -> None:
    host = record()
    feel(host, *[FAILED] * 12, ANSWERED)
    assert (host.failures, host.sleeps, host.reason) == (0, 0, "")

    assert feel(host, *[FAILED] * 3) == [1, 1, 60]


def test_a_request_that_we_left_says_nothing_of_its_host() -> None:
    host = record()
    feel(host, *[FAILED] * 2, Contact(0.05, "left"))

    assert (host.failures, host.requests) == (2, 3)


def test_a_busy_answer_is_an_answer_too() -> None:
    host = record()
    feel(host, *[FAILED] * 5, BUSY)

    assert (host.failures, host.sleeps) == (0, 0)


def test_a_busy_server_without_a_time_is_left_alone_twice_as_long_each_time() -> None:
    host = record()
    rests = feel(host, *[BUSY] * 9)

    assert rests == [30, 60, 120, 240, 480, 960, 1920, 3600, 3600]
    assert "busy" in host.reason
    assert feel(host, ANSWERED, BUSY) == [1, 30]


def test_jitter_only_lengthens() -> None:
    assert feel(record(), BUSY, dice=0.5) == [pytest.approx(37.5)]


@pytest.mark.parametrize(("retry_after_s", "rest_s"), [(0.0, 1.0), (5.0, 5.0), (3600.0, 3600.0), (86_400.0, 86_400.0)])
def test_retry_after_is_obeyed(retry_after_s: float, rest_s: float) -> None:
    host = record()

    assert feel(host, Contact(0.05, "busy", retry_after_s)) == [rest_s]
    assert not host.closed


def test_a_retry_after_beyond_the_bound_closes_the_host() -> None:
    host = record()

    assert feel(host, Contact(0.05, "busy", 61.0), retry_after_s_max=60.0) == [60.0]
    assert "61 s" in host.closed


def test_crawl_delay_counts_in_every_rest() -> None:
    host = record()
    host.crawl_delay_s = 90.0

    assert feel(host, ANSWERED, FAILED, Contact(0.05, "busy", 10.0)) == [90.0, 90.0, 90.0]


def test_as_long_as_nobody_answered_a_failing_host_is_closed_without_sleeping() -> None:
    host, options = record(), OPTIONS.model_copy(update={"unanswered_failures_max": 2})
    for _ in range(2):
        assert not host.closed
        settle(host, FAILED, T0, RULES, options, 0.0, nobody_answered=True)
    assert host.closed == "it never answered: refused"

    patient = record()
    for _ in range(3):
        settle(patient, FAILED, T0, RULES, options, 0.0, nobody_answered=False)
    assert not patient.closed
    for _ in range(2):
        settle(
            patient,
            FAILED,
            T0,
            RULES,
            options.model_copy(update={"unanswered_failures_max": 0}),
            0.0,
            nobody_answered=True,
        )
    assert not patient.closed, "0 switches it off"
