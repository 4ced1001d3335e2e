"""No two processes crawl as one shard at any time, and a shard comes to crawl again."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer.cluster.coordination import Tenancy, Tenure

TERM_S, REQUEST_S_MAX = 5.0, 3.0


class Process:
    """One that wants the shard: asks, is answered late or never, and begins requests while it holds."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.tenure = Tenure(TERM_S)
        self.requesting_until = 0.0
        self.answers: list[tuple[float, float]] = []
        """When the answer comes, and when it was asked for."""


@pytest.mark.promise("Several shards", "No two processes crawl as one shard.")
@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32))
def test_never_two_at_once(seed: int) -> None:
    dice = random.Random(seed)
    now = 1_000.0
    tenancy = Tenancy(TERM_S, REQUEST_S_MAX, now, is_new=True)
    processes = [Process("first"), Process("second"), Process("third")]
    crawled = set()
    for _ in range(2_000):
        now += 0.1
        if dice.random() < 0.002:  # The lender forgets everything.
            tenancy = Tenancy(TERM_S, REQUEST_S_MAX, now, is_new=False)
        for process in processes:
            if dice.random() < 0.2:
                renews = process.tenure.holds(now)
                arrives = dice.random() < 0.8
                if arrives and not tenancy.ask(0, process.name, now, renews=renews) and dice.random() < 0.8:
                    process.answers.append((now + dice.random() * 8.0, now))
            for at, asked_at in [one for one in process.answers if one[0] <= now]:
                process.answers.remove((at, asked_at))
                process.tenure.renew(asked_at)
            if process.tenure.holds(now) and process.requesting_until <= now and dice.random() < 0.5:
                process.requesting_until = now + dice.random() * REQUEST_S_MAX
                crawled.add(process.name)
        assert sum(process.requesting_until > now for process in processes) <= 1
    assert crawled


def test_a_successor_waits_for_the_lease_and_the_longest_request() -> None:
    tenancy = Tenancy(TERM_S, REQUEST_S_MAX, 0.0, is_new=True)
    assert tenancy.ask(0, "first", 0.0) == 0.0
    assert tenancy.ask(0, "second", 1.0) == TERM_S + REQUEST_S_MAX - 1.0
    assert tenancy.ask(0, "second", TERM_S + REQUEST_S_MAX) == 0.0
    assert tenancy.ask(0, "first", TERM_S + REQUEST_S_MAX) == TERM_S + REQUEST_S_MAX, "the second one has it"
    assert tenancy.ask(0, "third", 8.5, proven=True) == 0.0, "its lock was let go: it is dead"


def test_a_lender_that_forgot_lets_holders_go_on_and_others_wait() -> None:
    tenancy = Tenancy(TERM_S, REQUEST_S_MAX, 100.0, is_new=False)
    assert tenancy.ask(0, "new", 101.0) == TERM_S + REQUEST_S_MAX - 1.0
    assert tenancy.ask(0, "old", 101.0, renews=True) == 0.0


def test_a_shard_begins_nothing_without_its_lease() -> None:
    tenure = Tenure(TERM_S)
    assert not tenure.holds(0.0)
    tenure.renew(10.0)
    assert tenure.holds(10.0 + TERM_S - 0.01)
    assert not tenure.holds(10.0 + TERM_S)
