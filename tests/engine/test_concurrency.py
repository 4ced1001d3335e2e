"""Adaptive concurrency: it settles near the capacity of a modelled line, and gives back what brings nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import median

import pytest
from msgspec.structs import replace

from gossamer.engine.concurrency import (
    BYTES_A_REQUEST,
    HOLD_S_MAX,
    AdaptiveConcurrency,
    RequestLimit,
    Window,
    next_limit,
)
from gossamer.engine.options import AUTO_FIRST, AUTO_MAX
from gossamer.engine.watchdogs import REQUESTS_MIN, Gauges
from gossamer.world.clock import WallClock
from tests.engine.ring import Ring

WINDOW_S = 10.0
Line = Callable[[int, float], tuple[float, float]]
"""Returns answers per second, and the share of requests without a byte, for a number of requests at a time."""


def line(capacity: float, answer_s: float = 1.0, decline: float = 0.0) -> Line:
    """A line that is full at `capacity` requests; with `decline` it brings less beyond that, as an overloaded one."""

    def rate(requests: int, _: float) -> tuple[float, float]:
        over = max(1.0, requests / capacity)
        return min(requests, capacity) / answer_s / over**decline, 0.0

    return rate


class Trial:
    """A shard with always enough ready hosts, whose rate is that of a line, with noise."""

    def __init__(self, of: Line, limit: RequestLimit | None = None, ceiling: int = AUTO_MAX, seed: int = 1) -> None:
        self.line = of
        self.limit = limit or RequestLimit()
        self.ceiling = ceiling
        self.now = 0.0
        self.ready = 10 * AUTO_MAX
        self.random = Random(seed)
        self.used: list[int] = []

    def run(self, seconds: float) -> Trial:
        ends_at = self.now + seconds
        while self.now < ends_at:
            most = self.limit.most
            used = min(most, self.ready)
            rate, silent = self.line(used, self.now)
            answers = max(0, round(rate * WINDOW_S * self.random.gauss(1.0, 0.04)))
            lost = round(silent / (1 - silent) * answers) if silent < 1 else used
            crowded = float(self.ready > most)
            self.now += WINDOW_S
            self.limit = next_limit(self.limit, Window(WINDOW_S, answers, lost, crowded, used), self.ceiling, self.now)
            self.used.append(most)
        return self


@pytest.mark.promise("Politeness", "With crawl.concurrency = auto a crawl uses as many requests as the line can carry.")
@pytest.mark.parametrize("capacity", [20, 50, 90, 140, 200, 333, 700, 1_500])
@pytest.mark.parametrize("decline", [0.0, 0.5])
def test_it_settles_within_a_fifth_of_the_capacity_and_stays(capacity: int, decline: float) -> None:
    for seed in range(8):
        trial = Trial(line(capacity, decline=decline), seed=seed).run(1_200)
        trial.used.clear()
        trial.run(7_200)
        near = [abs(used / capacity - 1) <= 0.2 for used in trial.used]
        assert 0.8 * capacity <= median(trial.used) <= 1.2 * capacity
        assert sum(near) / len(near) > 0.8, (seed, sorted(trial.used))


def test_it_reaches_a_large_capacity_within_minutes() -> None:
    assert max(Trial(line(1_000)).run(120).used) >= 800


def test_dead_hosts_from_the_beginning_on_are_no_sign_of_a_full_line() -> None:
    """Of random domains two in five do not answer."""
    assert max(Trial(lambda requests, now: (line(1_000)(requests, now)[0], 0.4)).run(60).used) >= 800


def test_a_line_that_is_narrower_than_the_first_number_is_found_within_minutes() -> None:
    assert 13 <= Trial(line(16, answer_s=0.5)).run(180).limit.proven <= 20


def test_it_follows_a_line_that_becomes_narrower_and_wider_again() -> None:
    def rate(requests: int, now: float) -> tuple[float, float]:
        return line(100 if 3_600 <= now < 7_200 else 400)(requests, now)

    trial = Trial(rate).run(3_600)
    trial.used.clear()
    trial.run(3_600)
    assert 80 <= median(trial.used[60:]) <= 120
    trial.used.clear()
    trial.run(3_600)
    assert 320 <= median(trial.used[180:]) <= 480


def test_hosts_that_become_slower_do_not_take_requests_away() -> None:
    """A mix of hosts that answers three times as slowly, on a line that is not full, needs as many requests or more."""

    def rate(requests: int, now: float) -> tuple[float, float]:
        return line(400, answer_s=1.0 if now < 3_600 else 3.0)(requests, now)

    trial = Trial(rate).run(3_600)
    trial.used.clear()
    trial.run(3_600)
    assert median(trial.used) >= 320
    assert min(trial.used) >= 200


def test_an_outage_changes_nothing_and_the_crawl_goes_on_where_it_was() -> None:
    """A gradient of response times grows to its bound when all requests end in the same timeout."""

    def rate(requests: int, now: float) -> tuple[float, float]:
        return (0.0, 1.0) if 3_600 <= now < 7_200 else line(200)(requests, now)

    trial = Trial(rate).run(3_600)
    before = trial.limit.proven
    trial.run(3_600)
    assert trial.limit.proven == before
    assert trial.limit.why == "no request was answered"
    trial.used.clear()
    trial.run(600)
    assert min(trial.used) >= 0.6 * before


def test_timeouts_that_rise_with_the_requests_lower_them() -> None:
    """A router with room for 200 connections drops those beyond; what remains is as fast as before."""

    def rate(requests: int, now: float) -> tuple[float, float]:
        room = 200 if now > 1_200 else 2_000
        kept = min(requests, room)
        return kept * (room / requests if requests > room else 1.0), 1.0 - kept / requests

    trial = Trial(rate).run(1_200)
    trial.used.clear()
    trial.run(2_400)
    assert median(trial.used[60:]) <= 250


def test_dead_hosts_do_not_lower_it() -> None:
    def rate(requests: int, now: float) -> tuple[float, float]:
        return line(400)(requests, now)[0] * (0.4 if now > 1_200 else 1.0), 0.6 if now > 1_200 else 0.0

    trial = Trial(rate).run(3_600)
    assert trial.limit.proven >= 320


def test_requests_that_no_host_needs_are_given_back_down_to_the_first_number() -> None:
    trial = Trial(line(1_000)).run(600)
    trial.ready = 5
    trial.run(600)
    assert trial.limit.most == AUTO_FIRST
    assert trial.limit.why == "few hosts wait for one"


def test_a_number_of_ready_hosts_between_two_steps_is_no_reason_to_go_back_and_forth() -> None:
    trial = Trial(line(5_000)).run(60)
    trial.ready = 300
    trial.run(600)
    trial.used.clear()
    trial.run(3_600)
    assert len(set(trial.used)) == 1
    assert trial.used[0] >= 300


@pytest.mark.parametrize("ceiling", [1, 5, 8, 100])
def test_it_never_exceeds_what_resources_permit_nor_falls_below_the_least(ceiling: int) -> None:
    trial = Trial(line(50), ceiling=ceiling).run(3_600)
    assert max(trial.used[1:]) <= ceiling
    assert min(trial.used) >= min(ceiling, REQUESTS_MIN)


def test_a_full_processor_and_a_late_loop_stop_its_growth() -> None:
    window = Window(WINDOW_S, 1_000, 0, 1.0, 64)
    assert next_limit(RequestLimit(), window, AUTO_MAX, 0.0).most == 128
    busy = next_limit(RequestLimit(), window._replace(busy=0.95), AUTO_MAX, 0.0)
    assert (busy.most, busy.why) == (64, "the processor is full")
    late = next_limit(RequestLimit(), window._replace(lag_s=0.5), AUTO_MAX, 0.0)
    assert (late.most, late.goes, late.why) == (51, "down", "the event loop is late")


def test_a_loop_that_is_late_for_other_reasons_does_not_take_requests_away() -> None:
    limit = RequestLimit(200)
    for number in range(360):
        window = Window(WINDOW_S, 20 * limit.most, 0, 1.0, limit.most, lag_s=0.5)
        limit = next_limit(limit, window, 200, number * WINDOW_S)
    assert limit.proven == 200
    assert limit.hold_s == HOLD_S_MAX


def test_experiments_that_bring_nothing_become_rare() -> None:
    """Two changes each, one there and one back: every few minutes, and no more because of the noise."""
    for seed in range(8):
        used = Trial(line(200), seed=seed).run(4 * 3_600).used[360:]
        assert sum(a != b for a, b in pairwise(used)) <= 3 * 40


def test_a_resumed_crawl_begins_with_what_was_useful() -> None:
    trial = Trial(line(300), replace(RequestLimit(), most=290)).run(1_200)
    assert min(trial.used) >= 200


def test_a_shard_follows_it_and_a_number_of_the_operator_replaces_it(tmp_path: Path) -> None:
    """All requests permitted are under way and hosts wait: more are tried, as far as memory permits."""

    async def scenario(ring: Ring) -> None:
        ring.web.held = asyncio.Event()
        loop = ring.shard()
        adaptive = AdaptiveConcurrency(loop, ring.telemetry, Gauges(memory_budget_bytes=100 * BYTES_A_REQUEST))
        async with asyncio.TaskGroup() as group:
            ended = group.create_task(loop.run())
            await ring.web.asked(AUTO_FIRST)
            assert loop.brakes.concurrency == AUTO_FIRST
            assert loop.is_crowded
            for second in range(6):
                for _ in range(70):
                    ring.counters.count_bytes(1, second)
                adaptive.observe(ring.clock.now() + second)
            assert loop.brakes.concurrency == 100
            assert loop.brakes.why == "of at most 100, because all are in use and hosts wait for one"
            assert ring.counters.totals.concurrency == AUTO_FIRST
            loop.reconfigure(replace(ring.options, concurrency=80), ring.limits)
            adaptive.observe(ring.clock.now() + 7)
            assert (loop.brakes.concurrency, loop.brakes.why, ring.counters.totals.concurrency) == (80, "", 0)
            loop.reconfigure(ring.options, ring.limits)
            adaptive.observe(ring.clock.now() + 30)
            assert loop.brakes.concurrency == 80
            assert loop.brakes.why == "of at most 100, because nothing is measured yet"
            ring.web.held.set()
        assert ended.result() == "finished"

    with Ring(tmp_path, crawl={"concurrency": "auto"}, clock=WallClock()) as ring:
        ring.seed(*(f"http://h{n}.example/" for n in range(150)))
        asyncio.run(scenario(ring))
        ring.counters.totals.concurrency = 90
        assert ring.shard().brakes.concurrency == 90


def test_the_reason_of_a_number_is_what_its_experiment_showed() -> None:
    limit = RequestLimit(50, before=100, rate=100.0, goes="down")
    after = next_limit(limit, Window(WINDOW_S, 500, 0, 1.0, limit.most), AUTO_MAX, WINDOW_S)
    assert (after.most, after.why) == (100, "fewer brought less")
