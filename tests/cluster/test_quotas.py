"""A limit on pages is never passed, whatever is late or lost, and it is reached."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer.cluster.reports import LimitShare, Quotas, ShardReport


class Shard:
    """Fetches as long as its quota and its work last."""

    def __init__(self, work: int) -> None:
        self.work, self.pages, self.copy = work, 0, 0
        self.quota, self.serial = 0, 0
        self.orders: list[tuple[int, int]] = []

    def report(self, number: int) -> ShardReport:
        return ShardReport(number, 1, not self.work, 0, pages=self.pages, quota_serial=self.serial)


@pytest.mark.promise("Several shards", "A limit on pages is never exceeded by several shards together.")
@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 6), st.integers(1, 500))
def test_the_limit_is_never_passed_and_always_reached(seed: int, shards: int, pages_max: int) -> None:
    dice = random.Random(seed)
    quotas = Quotas(pages_max, shards)
    crawling = [Shard(dice.choice((0, 50, 10_000))) for _ in range(shards)]
    crawling[0].work = 10_000
    for _ in range(5_000):
        number = dice.randrange(shards)
        shard = crawling[number]
        match dice.choice(("report", "report", "obey", "fetch", "copy", "restore", "coordinator")):
            case "report":
                shard.orders.append(quotas.order(shard.report(number)))
            case "obey" if shard.orders:
                quota, serial = shard.orders.pop(dice.randrange(len(shard.orders)))
                if serial >= shard.serial:  # As a shard does: orders may come late.
                    shard.quota, shard.serial = quota, serial
            case "fetch" if shard.pages < shard.quota and shard.work:
                fetched = min(dice.randrange(1, 40), shard.quota - shard.pages, shard.work)
                shard.pages += fetched
                shard.work -= fetched
            case "copy":
                shard.copy = shard.pages
            case "restore" if dice.random() < 0.1:
                shard.work += shard.pages - shard.copy
                shard.pages = shard.copy
            case "coordinator" if dice.random() < 0.1:
                quotas = Quotas(
                    pages_max, shards, [LimitShare(one.quota, one.serial, one.most) for one in quotas.shares]
                )
        assert sum(one.pages for one in crawling) <= pages_max
        assert sum(max(one.quota, one.pages) for one in crawling) <= pages_max
        if quotas.is_exhausted([one.report(number) for number, one in enumerate(crawling)]):
            assert sum(one.pages for one in crawling) == pages_max
            return
    for _ in range(3_000):
        for number, shard in enumerate(crawling):
            shard.orders.clear()
            shard.quota, shard.serial = quotas.order(shard.report(number))
            fetched = max(0, min(shard.quota - shard.pages, shard.work))
            shard.pages += fetched
            shard.work -= fetched
    assert quotas.is_exhausted([one.report(number) for number, one in enumerate(crawling)])


def test_what_an_idle_shard_does_not_need_goes_to_the_others_once_it_said_so() -> None:
    quotas = Quotas(100, 2)
    idle = ShardReport(0, 1, False, 0, pages=10)
    quota, serial = quotas.order(idle)
    assert 10 < quota < 100
    used = ShardReport(0, 1, True, 0, pages=10, quota_serial=serial)
    lowered, later = quotas.order(used)
    assert lowered == 10
    assert quotas.pages_left == 100 - quota, "the shard has not said that it knows"
    quotas.order(ShardReport(0, 1, True, 0, pages=10, quota_serial=later))
    assert quotas.pages_left == 90


def test_pages_of_runs_before_count_for_the_limit() -> None:
    quotas = Quotas(60, 3)
    shards = [Shard(10_000) for _ in range(3)]
    shards[0].pages = 40
    reports = [shard.report(number) for number, shard in enumerate(shards)]
    for report in reports:
        quotas.note(report)
    for _ in range(20):
        for number in (2, 1, 0):
            shard = shards[number]
            shard.quota, shard.serial = quotas.order(shard.report(number))
            shard.pages = max(shard.pages, shard.quota)
    assert sum(shard.pages for shard in shards) == 60
