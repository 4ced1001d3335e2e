"""Health: what a host's answers and silences lead to."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from gossamer.model.visits import Contact
from gossamer.stages.frontier.host import Host
from gossamer.stages.frontier.options import FrontierOptions, PolitenessOptions, politeness
from gossamer.stages.frontier.origins import settle
from gossamer.stages.frontier.record import RECORD_VERSION, HostRecord, Origin
from tests.stages.frontier.names import T0

RULES = politeness(PolitenessOptions())
OPTIONS = FrontierOptions(host_failures_max=3, host_sleep_s_first=60.0, host_sleep_s_max=200.0, host_sleeps_max=4)
FAILED, ANSWERED, BUSY = Contact(0.05, "failed", error="refused"), Contact(0.05, "answered"), Contact(0.05, "busy")


def host_of(**rules: Any) -> Host:
    host = Host(HostRecord(RECORD_VERSION, "a.example"), 0, b"", 0, RULES)
    if rules:
        host.rules = politeness(PolitenessOptions(**rules))
    return host


def feel(host: Host, *contacts: Contact, at: float = T0, dice: float = 0.0, key: str = "http") -> list[float]:
    """Settle contacts that all end `at`; return how long the host is left alone after each."""
    rests = []
    for contact in contacts:
        host.record.delay_until = 0.0
        settle(host, key, contact, at, OPTIONS, dice)
        rests.append(host.record.delay_until - at)
    return rests


def waits(
    host: Host, *contacts: Contact, at: float = T0, key: str = "http", options: FrontierOptions = OPTIONS, **more: Any
) -> list[float]:
    """Settle contacts that all end `at`; return how long the origin waits after each; 0: it does not."""
    found = []
    for contact in contacts:
        if (one := origin(host, key)) is not None:
            one.wait_until = 0.0
        settle(host, key, contact, at, options, 0.0, **more)
        one = origin(host, key)
        found.append(max(one.wait_until - at, 0.0) if one is not None else 0.0)
    return found


def origin(host: Host, key: str = "http") -> Origin | None:
    return (host.record.origins or {}).get(key)


def test_an_answer_rests_the_host_and_is_counted() -> None:
    host = host_of()

    assert feel(host, ANSWERED) == [1.0]
    assert (host.record.requests, host.record.fetches_s, host.record.reason, host.record.closed) == (1, [0.05], "", "")
    assert host.record.origins is None, "what answers takes no room"


def test_the_mean_is_taken_over_the_last_five() -> None:
    host = host_of()
    feel(host, *(Contact(fetch_s, "answered") for fetch_s in (9.0, 0.1, 0.2, 0.3, 0.4, 0.5)))

    assert host.record.fetches_s == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert host.record.delay_until == pytest.approx(T0 + 3.0)


def test_a_lookup_that_failed_says_nothing_of_speed() -> None:
    host = host_of()
    feel(host, Contact(2.0, "answered"), Contact(0.0, "failed"))

    assert host.record.fetches_s == [2.0]
    assert host.record.requests == 2


def test_an_origin_that_never_answered_says_nothing_of_the_speed_of_its_host() -> None:
    """A port that swallows what is sent to it takes ten seconds to find out about; the others are no slower for it."""
    host = host_of()
    feel(host, ANSWERED)

    assert feel(host, Contact(10.0, "failed"), key="http:81") == [1.0]
    assert host.record.fetches_s == [0.05]
    assert host.probe_from == pytest.approx(T0 + 90.0), "and such requests take no more than a tenth of the time"
    assert feel(host, Contact(10.0, "failed"), key="http") == [pytest.approx(50.25)], "one that answered before says it"


def test_an_earlier_rest_that_is_longer_stays() -> None:
    host = host_of()
    host.record.delay_until = T0 + 500
    settle(host, "http", ANSWERED, T0, OPTIONS, 0.0)

    assert host.record.delay_until == T0 + 500


def test_an_origin_that_keeps_failing_waits_twice_as_long_each_time_and_is_closed_at_last() -> None:
    host = host_of()
    feel(host, ANSWERED)

    assert waits(host, *[FAILED] * 14) == [0, 0, 60, 0, 0, 120, 0, 0, 200, 0, 0, 200, 0, 0]
    one = origin(host)
    assert one is not None
    assert not one.closed
    assert "12 times in a row" in one.reason
    assert waits(host, FAILED) == [OPTIONS.errors_remembered_s]
    assert "4 waits" in one.closed
    assert "refused" in one.closed
    assert not host.record.closed


def test_an_origin_that_never_answered_waits_after_each_failure_and_is_closed_by_the_clock() -> None:
    host, options = host_of(), replace(OPTIONS, unanswered_failures_max=0)

    assert waits(host, *[FAILED] * 3, options=options) == [30, 60, 120]
    assert waits(host, FAILED, at=T0 + 210, options=options) == [240]
    assert waits(host, FAILED, at=T0 + 450, options=options) == [150], "not beyond the ten minutes"
    one = origin(host)
    assert one is not None
    assert not one.closed
    waits(host, FAILED, at=T0 + 600, options=options)
    assert one.closed == "it never answered: refused (6 attempts within 600 s)"


def test_an_origin_that_never_answered_is_closed_after_a_handful_of_failures() -> None:
    host = host_of()

    assert waits(host, *[FAILED] * 5) == [30, 60, 120, 240, OPTIONS.errors_remembered_s]
    one = origin(host)
    assert one is not None
    assert one.closed == "it never answered: refused (5 attempts)"


def test_failures_concern_their_origin_alone() -> None:
    host = host_of()
    feel(host, ANSWERED, key="https")

    assert feel(host, *[FAILED] * 4, key="http") == [1, 1, 1, 1], "the host is delayed as after any request"
    assert origin(host, "https") is None


def test_a_failed_robots_txt_leaves_it_to_its_room_when_to_try_again() -> None:
    assert waits(host_of(), FAILED, is_robots=True) == [0]


def test_one_answer_makes_up_for_all_failures() -> None:
    host = host_of()
    feel(host, ANSWERED, *[FAILED] * 12, ANSWERED)
    one = origin(host)
    assert one is not None
    assert (one.failures, one.sleeps, one.wait_until, one.reason) == (0, 0, 0.0, "")

    assert waits(host, *[FAILED] * 3) == [0, 0, 60]


def test_a_request_that_we_left_says_nothing_of_its_host() -> None:
    host = host_of()
    feel(host, FAILED, Contact(0.05, "left"))
    one = origin(host)

    assert one is not None
    assert (one.failures, host.record.requests) == (1, 2)


def test_requests_that_fail_at_once_close_no_origin() -> None:
    """Eight requests at once are more than the failures in a row after which an origin is given up."""
    host = host_of()
    feel(host, *[FAILED] * 8)
    one = origin(host)
    assert one is not None
    assert (one.failures, one.closed, one.wait_until) == (1, "", T0 + 30)
    feel(host, *[FAILED] * 8, at=T0 + 30)
    assert (one.failures, one.closed, one.wait_until) == (2, "", T0 + 90)
    feel(host, ANSWERED, *[FAILED] * 8, at=T0 + 90)
    assert (one.failures, one.sleeps, one.wait_until) == (3, 1, T0 + 150), "of those that it had answered three count"


def test_a_busy_answer_is_an_answer_too() -> None:
    host = host_of()
    feel(host, *[FAILED] * 5, BUSY)
    one = origin(host)

    assert one is not None
    assert (one.failures, one.sleeps) == (0, 0)


def test_a_busy_server_without_a_time_is_left_alone_twice_as_long_each_time() -> None:
    host = host_of()
    rests = feel(host, *[BUSY] * 9)

    assert rests == [30, 60, 120, 240, 480, 960, 1920, 3600, 3600]
    assert "busy" in host.record.reason
    assert feel(host, ANSWERED, BUSY) == [1, 30]


def test_requests_that_a_busy_server_refuses_at_once_are_one_refusal() -> None:
    host = host_of(preset="own", per_host=8)
    for number in range(8):
        settle(host, "http", BUSY, T0 + number, OPTIONS, 0.0)
    settle(host, "http", Contact(0.05, "busy", 0.0), T0 + 8, OPTIONS, 0.0)

    assert (host.record.backoffs, host.record.delay_until) == (1, T0 + 7 + 30)
    assert host.record.reason == "the server said that it is busy", "the reason of the longest delay"
    settle(host, "http", BUSY, T0 + 40, OPTIONS, 0.0)
    assert (host.record.backoffs, host.record.delay_until) == (2, T0 + 40 + 60)


def test_jitter_only_lengthens() -> None:
    assert feel(host_of(), BUSY, dice=0.5) == [pytest.approx(37.5)]


@pytest.mark.parametrize(("retry_after_s", "delay_s"), [(0.0, 1.0), (5.0, 5.0), (3600.0, 3600.0), (86_400.0, 86_400.0)])
def test_retry_after_is_obeyed(retry_after_s: float, delay_s: float) -> None:
    host = host_of()

    assert feel(host, Contact(0.05, "busy", retry_after_s)) == [delay_s]
    assert not host.record.closed


def test_a_retry_after_beyond_the_bound_closes_the_host() -> None:
    host = host_of(retry_after_s_max=60.0)

    assert feel(host, Contact(0.05, "busy", 61.0)) == [60.0]
    wait = "1 min 1 s (Retry-After), more than politeness.retry_after_s_max (1 min 0 s)"
    assert host.record.closed == f"it asked to wait for {wait}"


def test_crawl_delay_counts_in_every_rest() -> None:
    host = host_of()
    host.record.crawl_delay_s = 90.0

    assert feel(host, ANSWERED, FAILED, Contact(0.05, "busy", 10.0)) == [90.0, 90.0, 90.0]


def test_while_no_host_has_answered_failures_to_fetch_robots_txt_close_an_origin() -> None:
    host, options = host_of(), replace(OPTIONS, unanswered_failures_max=2)
    waits(host, FAILED, options=options, no_answers=True, is_robots=True)
    one = origin(host)
    assert one is not None
    assert not one.closed
    waits(host, FAILED, options=options, no_answers=True, is_robots=True)
    assert one.closed == "it never answered: refused (2 attempts)"

    for never in (
        {"options": options, "no_answers": False},
        {"options": replace(options, unanswered_failures_max=0), "no_answers": True},
    ):
        patient = host_of()
        waits(patient, *[FAILED] * 3, is_robots=True, **never)
        one = origin(patient)
        assert one is not None
        assert not one.closed
