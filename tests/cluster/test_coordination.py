"""Coordination: what shards are told, out of what they said."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from gossamer.cluster.coordination import TENURE_MARGIN_S, Coordination, CoordinatorRecord, Limits, Look, ShardAnswer
from gossamer.cluster.coordinator import QUICK_ROUND_S, QUICK_ROUNDS_MAX, Coordinator, decoded, encoded
from gossamer.cluster.job import HERE, ClusterPlan
from gossamer.cluster.partitions import PartitionMap
from gossamer.cluster.reports import ShardReport

TENURE_S = 10.0


class Story:
    """A coordinator with a clock, and what it saved."""

    def __init__(self, shards: int = 2, limits: Limits | None = None, kept: CoordinatorRecord | None = None) -> None:
        self.now = 100.0
        self.saved: list[bytes] = []
        self.coordination = Coordination(
            PartitionMap.even(shards),
            limits or Limits(),
            TENURE_S,
            self.now,
            kept,
            lambda kept: self.saved.append(_copy(kept)),
        )

    def round(self, *answers: ShardAnswer) -> None:
        self.now += 1.0
        self.coordination.process_round(answers, self.now)


def _copy(kept: CoordinatorRecord) -> bytes:
    return msgspec.json.encode(kept)


def seen(
    shard: int,
    *,
    passive: bool = True,
    activity: int = 5,
    pages: int = 0,
    hosts: int | None = None,
    channels: dict[str, object] | None = None,
    **more: object,
) -> ShardAnswer:
    report = ShardReport(shard, 1, passive, activity, seeds_open=False, pages=pages, hosts_left=hosts)
    report = msgspec.structs.replace(report, **channels or {})
    fields: dict[str, object] = {"holder": f"node/{shard}", "asked_at": 50.0, "report": report, **more}
    return ShardAnswer(shard=shard, state="running", **fields)  # type: ignore[arg-type]


def test_it_is_over_after_two_equal_rounds_of_all() -> None:
    story = Story()
    story.round(seen(0), seen(1))
    assert story.coordination.kept.end == ""
    story.round(seen(0))
    story.round(seen(0), seen(1))
    assert story.coordination.kept.end == ""
    story.round(seen(0), seen(1))
    assert story.coordination.look(1).orders.end == "finished"


def test_the_end_waits_until_all_is_safe() -> None:
    story = Story()
    for _ in range(3):
        story.round(seen(0), seen(1, secured=False))
    assert story.coordination.kept.end == ""
    assert story.coordination.look(1).secure
    story.round(seen(0), seen(1, secured=True, activity=6))  # It went back to its checkpoint, and did something.
    assert not story.coordination.look(1).secure
    for _ in range(2):
        story.round(seen(0), seen(1, activity=6))
    assert story.coordination.kept.end == "finished"


def test_shards_wait_for_a_round_where_they_begin_and_where_no_work_is_left() -> None:
    story = Story()
    assert story.coordination.is_awaited
    story.round(seen(0, passive=False))
    assert story.coordination.is_awaited
    for _ in range(2):  # Seeds are final after two equal rounds.
        assert story.coordination.is_awaited
        story.round(seen(0, passive=False), seen(1))
    assert not story.coordination.is_awaited
    story.round(seen(0), seen(1))
    assert story.coordination.is_awaited


class Lonely(Coordinator):
    """A coordinator whose shards never come."""

    async def _look(self, shard: int, question: Look) -> ShardAnswer | None:
        return None

    async def _ask(self, shard: int, question: bytes) -> bytes | None:
        return None


def test_a_verb_for_a_silent_shard_is_refused_at_once(tmp_path: Path) -> None:
    """Its commands would wait longer than they may, and say nothing of the shard."""
    (tmp_path / "state").mkdir()
    plan = ClusterPlan(
        directory=str(tmp_path), shards=2, partitions=PartitionMap.even(2).encode(), config="", node=HERE,
        tenure_s=20.0, round_s=0.5, answer_s_max=1.0, process_s_max=60.0,
    )  # fmt: skip
    coordinator = Lonely(plan)
    coordinator.coordination.process_round([seen(0), seen(1)], 100.0)
    coordinator.coordination.process_round([seen(0)], 113.0)
    first, second = map(decoded, asyncio.run(coordinator.ask(encoded({"verb": "recent"}), [0, 1])))
    assert first["error"] == "shard 0 is restarting; try again"
    assert second == {"ok": False, "error": "shard 1 has not answered for 13 s; try again when it does"}


@pytest.mark.parametrize("round_s", [30.0, 0.01])
def test_rounds_are_quick_where_shards_wait_for_them_but_not_for_long(
    round_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == QUICK_ROUNDS_MAX + 5:
            raise EOFError

    monkeypatch.setattr("gossamer.cluster.coordinator.asyncio.sleep", sleep)
    (tmp_path / "state").mkdir()
    partitions = PartitionMap.even(2).encode()
    plan = ClusterPlan(
        directory=str(tmp_path), shards=2, partitions=partitions, config="", node=HERE, command=(), tenure_s=20.0,
        round_s=round_s, answer_s_max=1.0, process_s_max=60.0,
    )  # fmt: skip
    with pytest.raises(EOFError):
        asyncio.run(Lonely(plan).run())
    quick_s = min(QUICK_ROUND_S, round_s)
    assert max(waits[:QUICK_ROUNDS_MAX]) <= quick_s
    assert len(waits[QUICK_ROUNDS_MAX:]) == 5
    assert all(quick_s < wait <= round_s or quick_s == round_s for wait in waits[QUICK_ROUNDS_MAX:])


def test_pages_are_handed_out_once_also_by_a_coordinator_that_comes_back() -> None:
    limits = Limits(max_pages=100)
    story = Story(limits=limits)
    story.round(seen(0, passive=False), seen(1, passive=False))
    told = [story.coordination.look(shard).orders.quota or 0 for shard in (0, 1)]
    assert all(told)
    assert sum(told) <= 100
    later = Story(limits=limits, kept=msgspec.json.decode(story.saved[-1], type=CoordinatorRecord))
    for _ in range(20):
        later.round(seen(0, passive=False), seen(1, passive=False))
    assert sum(later.coordination.look(shard).orders.quota or 0 for shard in (0, 1)) <= 100


def test_a_limit_that_is_lowered_raised_or_removed_holds_also_for_a_coordinator_that_comes_back() -> None:
    story = Story(limits=Limits(max_pages=1_000))
    serials = [0, 0]

    def quotas(pages: int) -> list[int]:
        """Return the quotas after some rounds of shards that have fetched `pages` each, and obey."""
        for _ in range(20):
            said = [{"quota_serial": serial} for serial in serials]
            story.round(*(seen(shard, passive=False, pages=pages, channels=said[shard]) for shard in (0, 1)))
            orders = [story.coordination.look(shard).orders for shard in (0, 1)]
            serials[:] = [one.quota_serial for one in orders]
        return [one.quota or 0 for one in orders]

    assert sum(quotas(20)) > 100
    story.coordination.limit(Limits(max_pages=50))
    assert 40 <= sum(quotas(20)) <= 50
    story.coordination = Story(
        limits=Limits(max_pages=1_000), kept=msgspec.json.decode(story.saved[-1], type=CoordinatorRecord)
    ).coordination
    assert sum(quotas(20)) <= 50
    story.coordination.limit(Limits())
    assert min(quotas(20)) > 1_000
    story.coordination.limit(Limits(max_pages=60))
    assert sum(quotas(20)) <= 60
    assert story.coordination.kept.end == ""
    quotas(30)
    assert story.coordination.kept.end == "limit"


def test_counts_stay_while_a_shard_starts_again() -> None:
    story = Story()
    story.round(*(seen(shard, status={"state": "running", "pages": 5, "runs": 1}) for shard in (0, 1)))
    again = ShardAnswer(shard=1, state="starting", status={"state": "starting", "pages": 0, "runs": 0}, deaths=1)
    story.round(seen(0, status={"state": "running", "pages": 6, "runs": 1}), again)
    status = story.coordination.status()
    assert (status["state"], status["pages"]) == ("starting", 11)
    story.round(seen(1, status={"state": "running", "pages": 6, "runs": 2}))
    assert story.coordination.status()["pages"] == 12


def test_a_limit_of_bytes_or_time_is_that_of_the_whole() -> None:
    for limits, statuses in (
        (Limits(max_bytes=100), ({"wire_bytes": 60}, {"wire_bytes": 60})),
        (Limits(max_time_s=9.0), ({"elapsed_s": 3.0}, {"elapsed_s": 9.5})),
    ):
        story = Story(limits=limits)
        story.round(*(seen(shard, passive=False, status=status) for shard, status in enumerate(statuses)))
        assert story.coordination.kept.end == "limit"


def test_few_hosts_in_all_shards_end_a_crawl_that_had_enough_also_with_another_coordinator() -> None:
    limits = Limits(hosts_min=5)
    story = Story(limits=limits)
    for hosts in ((1, 1), (None, 4), (4, None), (2, 3), (9, 0)):  # Never enough; seeds to come, twice; enough.
        story.round(*(seen(shard, passive=False, hosts=one) for shard, one in enumerate(hosts)))
        assert story.coordination.kept.end == ""
    later = Story(limits=limits, kept=msgspec.json.decode(story.saved[-1], type=CoordinatorRecord))
    later.coordination.pause(paused=True)
    later.round(*(seen(shard, passive=False, hosts=2) for shard in (0, 1)))
    assert later.coordination.kept.end == ""
    later.coordination.pause(paused=False)
    later.round(seen(0, passive=False, hosts=2))
    assert later.coordination.kept.end == ""
    later.round(*(seen(shard, passive=False, hosts=2) for shard in (0, 1)))
    assert later.coordination.look(1).orders.end == "low_water"
    assert "frontier.hosts_min = 5" in later.coordination.take_notes()[0]


def few(story: Story, sent: int, taken: int, incarnation: int = 1, hosts: int = 2) -> str:
    """Have a round in which few hosts are left, and one shard sent links to the other; return whether it is the end."""
    story.round(
        seen(0, passive=False, hosts=hosts, channels={"incarnation": incarnation, "sent": {1: sent}}),
        seen(1, passive=False, hosts=1, channels={"taken": {0: (1, taken)}}),
    )
    return story.coordination.kept.end


def test_few_hosts_are_not_the_end_while_more_may_be_between_shards() -> None:
    story = Story(limits=Limits(hosts_min=5))
    assert few(story, 3, 3, hosts=9) == ""
    assert few(story, 4, 3) == "", "a batch is on its way"
    assert few(story, 5, 4, hosts=9) == "", "it brought more"
    assert few(story, 5, 4) == ""
    assert few(story, 6, 4, incarnation=2) == "", "the sender was restored, and sends again"
    assert few(story, 6, 4, incarnation=2) == ""
    story.coordination.kept.moves.wanted = 3
    assert few(story, 6, 6) == "", "hosts move"
    story.coordination.kept.moves.wanted = 0
    assert few(story, 7, 6) == ""
    assert few(story, 9, 7) == "low_water", "later ones come from the few that are left"


def test_a_tenure_is_renewed_to_its_holder_and_lent_to_another_machine_when_it_has_run_out() -> None:
    story = Story()
    story.round(seen(0))
    assert story.coordination.look(0).granted == 50.0
    story.round(seen(0, holder="elsewhere/1"))
    assert story.coordination.look(0).granted is None
    story.now += TENURE_S + TENURE_MARGIN_S
    story.round(seen(0, holder="elsewhere/1"))
    assert story.coordination.look(0).granted == 50.0
    story.round(seen(0))
    assert story.coordination.look(0).granted is None


def test_on_the_same_machine_nobody_waits() -> None:
    story = Story()
    story.round(seen(0))
    story.round(seen(0, holder="node/another process"))
    assert story.coordination.look(0).granted == 50.0


def test_a_coordinator_that_comes_back_knows_the_machines() -> None:
    story = Story()
    story.round(seen(0))
    later = Story(kept=msgspec.json.decode(story.saved[-1], type=CoordinatorRecord))
    later.round(seen(0, holder="node/another process"), seen(1, holder="never seen/1"))
    assert later.coordination.look(0).granted == 50.0
    assert later.coordination.look(1).granted is None


def test_after_an_end_in_order_nobody_waits_for_those_of_before() -> None:
    story = Story()
    story.round(seen(0), seen(1))
    story.round(ShardAnswer(shard=0, state="done"), seen(1))
    assert not story.coordination.kept.closed
    story.round(ShardAnswer(shard=0, state="done"), ShardAnswer(shard=1, state="done"))
    later = Story(kept=msgspec.json.decode(story.saved[-1], type=CoordinatorRecord))
    later.round(seen(0, holder="elsewhere/1"))
    assert later.coordination.look(0).granted == 50.0
    killed = Story(kept=msgspec.json.decode(later.saved[-1], type=CoordinatorRecord))
    killed.round(seen(0, holder="here/1"), seen(1, holder="here/2"))
    assert [killed.coordination.look(shard).granted for shard in (0, 1)] == [None, None]


def test_a_shard_that_has_failed_ends_the_others_in_order() -> None:
    story = Story()
    story.round(seen(0), ShardAnswer(shard=1, state="failed", failure="the disk is full"))
    assert story.coordination.look(0).orders.end == "stopped"
    assert story.coordination.failure == ("shard 1: the disk is full", False)
    assert not story.coordination.is_over
    story.round(ShardAnswer(shard=0, state="done"))
    assert story.coordination.is_over


def test_the_status_is_the_sum_and_what_is_gone_for_a_moment_still_counts() -> None:
    story = Story(limits=Limits(max_pages=500))
    status = {"pages": 10, "queued": 3, "state": "running", "outcomes": {"fetched": 10}, "waiting_for": "a host"}
    story.round(seen(0, status=status), seen(1, status={**status, "waiting_for": ""}))
    story.round(seen(0, status=status), ShardAnswer(shard=1, state="starting"))
    told = story.coordination.status()
    assert (told["pages"], told["queued"], told["outcomes"]) == (20, 6, {"fetched": 20})
    assert (told["max_pages"], told["state"], told["waiting_for"]) == (500, "starting", "")
    assert [one["pages"] for one in told["shards"]] == [10, 10]  # type: ignore[attr-defined]


def test_a_shard_that_does_not_answer_is_silent_with_its_last_figures_and_their_age() -> None:
    story = Story()
    status = {"state": "running", "pages": 5, "runs": 1, "pages_s": 3.0, "in_flight": 2}
    story.round(*(seen(shard, status=status) for shard in (0, 1)))
    for _ in range(12):
        story.round(seen(0, status=status))
    told = story.coordination.status()
    shards: list[dict[str, object]] = told["shards"]  # type: ignore[assignment]
    assert [one["state"] for one in shards] == ["running", "silent"]
    assert 11.0 <= float(str(shards[1]["heard_s"])) <= 13.0
    assert "heard_s" not in shards[0]
    assert (told["state"], told["pages"], told["in_flight"], told["pages_s"]) == ("running", 10, 2, 3.0)
    notes = story.coordination.take_notes()
    assert notes == ["shard 1: no answer for 10 s; its sites wait until it goes on elsewhere"]
    story.round(seen(0, status=status), seen(1, status=status))
    assert story.coordination.take_notes() == ["shard 1: answers again"]
    assert [one["state"] for one in story.coordination.status()["shards"]] == ["running", "running"]  # type: ignore[attr-defined]


def test_more_seeds_are_requested_before_the_end_and_with_few_hosts() -> None:
    story = Story(limits=Limits(hosts_min=5, asks_seeds=True))
    coordination = story.coordination
    assert few(story, 3, 3) == ""
    assert few(story, 3, 3) == ""
    assert coordination.wants_seeds, "few hosts are left, though there were never enough"
    coordination.note_seeds()
    assert not coordination.wants_seeds
    over = [seen(shard, hosts=0) for shard in (0, 1)]
    story.round(*over)
    assert not coordination.wants_seeds, "what came before the seeds is no sign of the end"
    story.round(*over)
    story.round(*over)
    assert (coordination.wants_seeds, coordination.kept.end) == (True, "")
    coordination.end_seeds()
    later = Story(limits=coordination._limits, kept=msgspec.json.decode(story.saved[-1], type=CoordinatorRecord))
    for _ in range(3):
        later.round(*over)
    assert (later.coordination.wants_seeds, later.coordination.kept.end) == (False, "finished")
