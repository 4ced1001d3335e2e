"""Health: what a status amounts to, in words."""

from __future__ import annotations

import pytest

from gossamer.model.health import LIMITS, Level, health_of
from gossamer.model.status import Alarm, SeedsState, ShardHealth, Status, WaitingReason
from gossamer.stages.frontier.overview import limit_of

LOST = SeedsState(count=1, any_fetched=False, not_fetched=[])
RUNNING = {"state": "running", "pages": 50, "attempts": 60, "pages_s": 5.0, "elapsed_s": 60.0}


def running(**fields: object) -> Status:
    return Status(**{**RUNNING, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("status", "level", "says"),
    [
        (running(), "good", "running well"),
        (running(alarms=[Alarm("disk", 0.0, "the disk is nearly full")]), "bad", "the disk is nearly full"),
        (running(state="paused", waiting_for="the operator"), "warning", "paused: the operator"),
        (
            running(outcomes={"fetched": 20, "timeout": 30, "http_error": 9}),
            "warning",
            "65% of attempts failed, most often: timeout",
        ),
        (
            running(attempts=1000, outcomes={"fetched": 3, "http_error": 997}),
            "warning",
            "99% of attempts failed, most often: HTTP error",
        ),
        (running(outcomes={"fetched": 20, "robots_denied": 400}), "good", "running well"),
        (
            running(pages=0, pages_s=0.0, outcomes={"dns_error": 60}, answers=900),
            "good",
            "no page yet: 900 hosts answered for robots.txt, and pages wait for their delays",
        ),
        (running(pages=0, pages_s=0.0, outcomes={"dns_error": 60}, answers=9), "warning", "100% of attempts failed"),
        (running(modules={"text": {"says": "module text failed"}}), "warning", "module text failed"),
        (running(pages_s=0.0, waiting_for="a.example"), "warning", "no page in the last 10 s: waiting for a.example"),
        (running(pages_s=0.0, elapsed_s=2.0), "good", "running well"),
        (
            running(pages_s=0.0, shards=[ShardHealth(shard=0, state="running"), ShardHealth(shard=2, state="silent")]),
            "warning",
            "shard 2 does not answer: sites there and hosts at addresses that it leases out wait",
        ),
        (running(shards=[ShardHealth(shard=1, state="failing")]), "warning", "shard 1 fails: sites there"),
        (Status(state="starting"), "good", "starting"),
        (
            Status(state="failed"),
            "bad",
            "the crawl failed; `gossamer resume` continues it, or names what must be restored",
        ),
        (Status(state="finished", ended_says="no URLs left"), "over", "finished: no URLs left"),
        (Status(state="finished", seeds=LOST), "bad", "no seed could be fetched"),
        (Status(state="stopped", seeds=LOST), "over", "stopped"),
        (Status(state="stopped", ended_says="stopped on request"), "over", "stopped on request"),
    ],
)
def test_a_crawl_is_well_or_the_reason_is_named(status: Status, level: Level, says: str) -> None:
    health = health_of(status)
    assert health.level == level
    assert health.says.startswith(says)


def test_what_most_hosts_wait_for_limits_a_crawl() -> None:
    hosts = {"limits": {"politeness": 2, "crawl_delay": 2, "fetching": 3, "lookup": 1}}
    assert health_of(running(hosts=hosts)).limited_by == "delays between requests to a host (4 of 8 active hosts)"
    assert health_of(running(hosts={"limits": {"ready": 9}})).limited_by.startswith("this machine")
    assert "crawl.concurrency" in health_of(running(hosts=hosts, in_flight=64, concurrency=64)).limited_by
    assert health_of(running(state="paused", waiting_for="the operator", hosts=hosts)).limited_by == "the operator"
    waiting = WaitingReason(kind="lookup", says="DNS")
    assert health_of(running(waiting=waiting, waiting_for="DNS")).limited_by == "DNS"
    assert health_of(Status(state="finished", hosts=hosts)).limited_by == ""


def test_each_limit_of_a_host_has_its_words() -> None:
    names = {name for name in limit_of.__code__.co_consts if isinstance(name, str) and name.isidentifier()}
    assert len(names) > 5
    assert names <= set(LIMITS)


@pytest.mark.parametrize(
    ("before", "now", "trend"),
    [(5.0, 5.5, "steady"), (5.0, 9.0, "rising"), (5.0, 0.0, "falling"), (0.0, 0.0, "steady")],
)
def test_the_trend_compares_the_last_half_minute_with_the_one_before(before: float, now: float, trend: str) -> None:
    course = [(5.0 * n, before if n < 6 else now, 0.0) for n in range(12)]
    assert health_of(running(course=course)).trend == trend
    assert health_of(running(course=course[1:])).trend == ""


def test_an_estimate_is_there_only_where_it_means_something() -> None:
    assert health_of(running(queued=600)).remaining == "about 2 min 0 s for 600 queued URLs at this rate"
    assert health_of(running(queued=600, eta_s=30.0)).remaining == "about 30 s to the limit"
    assert health_of(running(queued=600, mode="continuous")).remaining == ""
    assert health_of(running(queued=600, pages_s=0.0)).remaining == ""
    assert health_of(running(queued=600, state="paused")).remaining == ""
    assert health_of(running(queued=600, hosts={"limits": {"failing": 1}})).remaining == ""
