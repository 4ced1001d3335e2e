"""How a crawl of several shards stands: what is told of one shard is told of all, and of each how it is."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import cast

import pytest

from gossamer import Crawler
from gossamer.api.cluster_queries import ClusterQueries
from gossamer.api.engine import EngineCalls
from gossamer.api.status import status_of
from gossamer.assembly.building import assemble
from gossamer.cluster.aggregate import LISTED_MAX, REVISIT_SUMS, combine, with_earlier
from gossamer.cluster.coordination import Coordination, Limits, ShardAnswer
from gossamer.cluster.partitions import PartitionMap
from gossamer.cluster.reports import ShardReport
from gossamer.config import configure, effective_toml
from gossamer.engine.counters import Timeline
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.model.modules import ModuleCounts, module_facts
from gossamer.model.verbs import ConflictError, Nothing, StatusOf
from tests.cluster.crawls import config_of
from tests.faults.shards import Shards


def shard(number: int, **more: object) -> dict[str, object]:
    health = {"shard": 0, "epoch": number, "commit_s": 0.5, "commit_stage": "", "loop_lag_s": 0.0, "alarms": ["disk"]}
    return {"state": "running", "pages": 10 * number, "concurrency": 4, "shards": [health], "node": "n", **more}


def test_a_shard_that_is_to_have_nothing_is_no_warning() -> None:
    """Its partitions are on their way to it, or went to others when the crawl was scaled."""
    coordination = Coordination(PartitionMap.even(3), Limits(), 20.0, 0.0, None, lambda _: None)
    busy = {"discovered": 50, "attempts": 10, "state": "running"}
    answers = [
        ShardAnswer(shard=number, state="running", status=status, report=ShardReport(number, 1, False, 1))
        for number, status in enumerate([busy, busy, {"state": "running"}])
    ]
    coordination.process_round(answers, 1.0)
    assert len(cast("list[str]", coordination.status()["warnings"])) == 1
    coordination.scale(2)
    for now in range(2, 200):
        moves = coordination.kept.moves.under_way
        for answer in answers if moves else ():
            settled = [one.version for one in moves if one.to == answer.shard]
            answer.report.settled[:] = settled  # type: ignore[union-attr]
        coordination.process_round(answers, float(now))
        assert coordination.status()["warnings"] == []
    assert not coordination.moves.is_moving
    assert set(coordination.moves.owners) == {0, 1}


def test_counters_and_levels_are_sums() -> None:
    found = combine([
        shard(1, media_types={"text/html": 3}, levels={"0": 1, "7": 2}),
        shard(2, media_types={"text/html": 4, "image/png": 1}, levels={"7": 5}),
    ])  # fmt: skip
    assert found["media_types"] == {"text/html": 7, "image/png": 1}
    assert found["levels"] == {"0": 1, "7": 7}
    assert (found["pages"], found["concurrency"]) == (30, 8)


def test_each_shard_tells_how_it_is() -> None:
    first, second, third = combine([shard(1), shard(2), {"state": "starting"}])["shards"]  # type: ignore[misc]
    assert (first["shard"], first["epoch"], first["commit_s"], first["alarms"]) == (0, 1, 0.5, ["disk"])
    assert (second["shard"], second["epoch"], second["pages"]) == (1, 2, 20)
    assert third == {"shard": 2, "state": "starting", "idle": False}


def test_alarms_and_closings_of_all_are_reported_within_a_bound() -> None:
    alarm = {"name": "disk", "since": 1.0, "says": "full"}
    closing = {"host": "a.test", "reason": "gone"}
    found = combine([shard(1, alarms=[alarm]), shard(2, alarms=[alarm], closings=[closing] * 100)])
    assert found["alarms"] == [alarm, alarm]
    assert found["closings"] == [closing] * LISTED_MAX


def test_no_seed_was_fetched_where_none_was_by_any_shard() -> None:
    one = {"url": "http://a.test/", "state": "dns_error", "reason": "no such name"}
    none = {"count": 1, "any_fetched": False, "not_fetched": [one]}
    found = combine([shard(1, seeds=none), shard(2, seeds=none)])["seeds"]
    assert found == {"count": 2, "any_fetched": False, "not_fetched": [one, one]}
    some = {"count": 1, "any_fetched": True, "not_fetched": []}
    assert combine([shard(1, seeds=none), shard(2, seeds=some)])["seeds"] == {**some, "count": 2, "not_fetched": [one]}
    moved = {"url": "http://b.test/", "state": "unknown", "reason": "the shard that counted it has it no more"}
    there = {"count": 1, "any_fetched": True, "not_fetched": [moved]}
    assert combine([shard(1, seeds=there), shard(2, seeds=some)])["seeds"] == {**some, "count": 2}


def test_figures_stay_while_shards_start_again_but_not_their_machines() -> None:
    ran = combine([shard(1, runs=1, pages_s=2.0, node="one"), shard(2, runs=1, node="two")])
    starting = {**combine([{"state": "starting"}] * 3), "waiting_for": "the Ray cluster"}
    found = with_earlier(starting, ran)
    assert (found["pages"], found["pages_s"], found["state"]) == (30, 0.0, "starting")
    assert (found["waiting_for"], found["workers"]) == ("the Ray cluster", 3)
    assert [one.get("pages") for one in found["shards"]] == [10, 20, None]  # type: ignore[attr-defined]
    assert not any("node" in one for one in found["shards"])  # type: ignore[attr-defined]
    partly = with_earlier(combine([shard(3, runs=2), {"state": "starting"}, shard(1, runs=1)]), found)
    assert (partly["pages"], [one["pages"] for one in partly["shards"]]) == (30, [30, 20, 10])  # type: ignore[attr-defined]
    again = combine([shard(3, runs=2), shard(2, runs=2), shard(1, runs=1)])
    assert with_earlier(again, partly) == again
    assert with_earlier(starting, {}) == starting


def test_shards_with_nothing_to_fetch_are_a_warning_once_there_was_time() -> None:
    busy, idle = shard(1, discovered=50, attempts=10), shard(2, discovered=0, attempts=0)
    found = combine([busy, idle, idle])
    [warning] = cast("list[str]", found["warnings"])
    assert [one["idle"] for one in cast("list[dict[str, object]]", found["shards"])] == [False, True, True]
    assert str(warning).startswith("2 of 3 shards have nothing to fetch")
    for statuses in ([busy, busy], [shard(1, discovered=50, attempts=9), idle], [busy, {"state": "starting"}]):
        found = combine(statuses)
        assert found["warnings"] == []
        assert not any(one["idle"] for one in cast("list[dict[str, object]]", found["shards"]))


def test_where_many_hosts_are_of_few_sites_the_warning_names_the_key_that_divides_them() -> None:
    busy, idle = shard(1, discovered=50, attempts=10, hosts_known=26), shard(2, discovered=0, attempts=0)
    [warning] = cast("list[str]", combine([busy, idle, idle])["warnings"])
    assert "the 26 hosts found are of few" in warning
    assert "url.split_sites" in warning
    [warning] = cast("list[str]", combine([{**busy, "hosts_known": 2}, idle, idle])["warnings"])
    assert "url.split_sites" not in warning


def test_processing_modules_of_all_shards_are_counted_together() -> None:
    one = {"words": ModuleCounts(10, 4, 1, 0, "ValueError: a", "http://a.test/"), "links": ModuleCounts(20)}
    other = {"words": ModuleCounts(5, 5, 0, 2, "its process died (signal 11)", "http://b.test/")}
    modules = combine([{"modules": module_facts(one)}, {"modules": module_facts(other)}, {}])["modules"]
    assert isinstance(modules, dict)
    assert modules["words"] == {
        "pages": 15, "failed": 9, "timeouts": 1, "died": 2, "error": "ValueError: a", "url": "http://a.test/",
        "says": "module words failed on 9 of 15 pages (1 timed out, 2 died): ValueError: a, last on http://a.test/",
        "found": 0, "unmatched": "",
    }  # fmt: skip
    assert (modules["links"]["pages"], modules["links"]["says"]) == (20, "")


def test_revisits_of_all_shards_are_counted_together() -> None:
    promise = {"pattern": "^a", "max_age_s": 60.0, "pages": 1, "older_now": 0, "kept": 2, "broken": 1}
    parts: list[dict[str, object]] = []
    for importance, fresh, late in ((1.0, 0.5, 7.0), (3.0, 0.9, 5.0)):
        facts: dict[str, object] = dict.fromkeys(REVISIT_SUMS, 2)
        facts |= {"importance": importance, "expected_freshness": fresh, "promises": [promise | {"late_s_worst": late}]}
        parts.append(facts)
    found = combine([shard(1, revisits=parts[0]), shard(2, revisits=parts[1]), {"state": "starting"}])["revisits"]
    assert isinstance(found, dict)
    assert set(found) == set(parts[0])
    assert (found["pages"], found["overdue"], found["importance"]) == (4, 4, 4.0)
    assert found["expected_freshness"] == pytest.approx(0.8)
    assert found["promises"] == [promise | {"pages": 2, "kept": 4, "broken": 2, "late_s_worst": 7.0}]
    assert combine([shard(1), shard(2)])["revisits"] is None


def test_one_shard_and_several_have_the_same_keys(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    sets = (
        f"fetch.file_roots=['{tmp_path}']",
        "scope.schemes=['file']",
        "crawl.mode='continuous'",
        "resolve.allow_private=true",
    )
    config = configure(sets=sets, seeds=[(tmp_path / "page.html").as_uri()])
    (tmp_path / "page.html").write_text("<title>Here</title>")
    crawler = Crawler(output=directory, config=config)
    keys: list[tuple[set[str], set[str]]] = []

    async def crawl() -> None:
        async with crawler:
            async for _ in crawler:
                one = crawler.status()
                keys.append((set(one), set(combine([one, one]))))
                break

    asyncio.run(crawl())
    stopped = status_of(directory)
    keys.append((set(stopped), set(combine([stopped, stopped]))))
    assert len(keys) == 2
    for one, several in keys:
        assert one == several


def test_there_are_no_metrics_before_every_shard_has_read_its_counts(tmp_path: Path) -> None:
    statuses = [{"state": "running", "pages": 5, "runs": 2}, {"state": "starting"}]

    class Answering(EngineCalls):
        async def ask(self, verb: str, request: object, shards: list[int], *, some: bool = False) -> list[object]:
            lists: dict[str, list[object]] = {"active": [], "slowest": [], "failing": [], "closed": []}
            return [{"limits": {"delay": 1 + number}, **lists} for number in shards]

    def status(*, detail: bool = False) -> dict[str, object]:
        return combine(statuses)

    config = configure(options={"contact": "a@example.org"}, sets=("cluster.workers=2",))
    queries = ClusterQueries(tmp_path, lambda: config, Answering(), status, Timeline())
    with pytest.raises(ConflictError, match="starting; try again"):
        asyncio.run(queries.metrics(Nothing()))
    statuses[1] = {"state": "running", "pages": 4, "runs": 2}
    found = asyncio.run(queries.metrics(Nothing()))
    assert isinstance(found, dict)
    assert "gossamer_pages_total 9.0" in found["metrics"]
    assert 'gossamer_active_hosts_by_limit{limit="delay"} 3.0' in found["metrics"]


def test_of_a_stopped_crawl_the_limit_of_all_shards_is_named(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    directory.mkdir()
    with SimwebProcess(SimwebOptions.plain(hosts=6, pages=200), tmp_path / "web") as simweb:
        config = config_of(simweb, directory, 2, max_pages=12)
        (directory / "crawl.toml").write_text(effective_toml(config))
        assert asyncio.run(Shards(config, directory, 2, assemble).run()) == "limit"
    status = status_of(directory)
    assert (status["pages"], status["ended_says"]) == (12, "limit of 12 pages reached")
    says = f"limit of 12 pages reached; `gossamer resume {directory} --max-pages N` continues with a higher limit N"
    assert status["waiting_for"] == says


def test_a_status_does_not_wait_for_a_shard_that_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Silent(EngineCalls):
        def __init__(self) -> None:
            self.shards: list[int] = []

        async def ask(self, verb: str, request: object, shards: list[int], *, some: bool = False) -> list[object]:
            self.shards = shards
            await asyncio.sleep(60.0 if len(shards) > 1 else 0.0)
            return []

    monkeypatch.setattr("gossamer.api.cluster_queries.HOSTS_S_MAX", 0.05)
    statuses = [shard(1), shard(2)]
    calls = Silent()
    config = configure(options={"contact": "a@example.org"}, sets=("cluster.workers=2",))

    def status(*, detail: bool = False) -> dict[str, object]:
        return combine(statuses)

    queries = ClusterQueries(tmp_path, lambda: config, calls, status, Timeline())
    found = asyncio.run(queries.status(StatusOf(detail=True)))
    assert isinstance(found, dict)
    assert (found["pages"], "hosts" in found) == (30, False)
    statuses[1] |= {"state": "silent", "heard_s": 12.0}
    found = asyncio.run(queries.status(StatusOf(detail=True)))
    assert isinstance(found, dict)
    assert (calls.shards, "hosts" in found) == ([0], True)


@pytest.mark.parametrize("absent", ["silent", "failing"])
@pytest.mark.parametrize("state", ["paused", "stopping", "running", "starting"])
def test_the_state_is_that_of_the_shards_that_answer(state: str, absent: str) -> None:
    assert combine([{"state": state}, {"state": absent}])["state"] == state
    assert combine([{"state": absent}, {"state": absent}])["state"] == "running"
