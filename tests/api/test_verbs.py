"""One table of verbs: whoever answers for a crawl knows all of them, and no others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gossamer.api.cluster import ClusterCrawler
from gossamer.api.looking import hosts_of_all
from gossamer.model.verbs import VERBS, RefusedError, read
from tests.api.conftest import Make, Run
from tests.api.site import Site, star


@pytest.mark.promise(
    "Console", "Commands, socket, HTTP API and its description offer the same verbs, for any number of shards."
)
def test_a_crawl_of_any_number_of_shards_knows_the_verbs_of_the_table(tmp_path: Path) -> None:
    crawler = ClusterCrawler(["https://a.example/"], workers=2, contact="a@example.org", output=tmp_path / "crawl")
    assert set(crawler._verbs()) == set(VERBS)


class Answering:
    """An engine that takes every call."""

    async def call(self, name: str, **arguments: object) -> None:
        """Take a call."""


def test_a_crawl_of_several_shards_answers_orders_with_its_status(tmp_path: Path, run: Run) -> None:
    crawler = ClusterCrawler(["https://a.example/"], workers=2, contact="a@example.org", output=tmp_path / "crawl")
    crawler._calls.engine = Answering()  # type: ignore[assignment]

    async def order() -> None:
        answer = await crawler._verbs()["stop"]({"verb": "stop"})
        assert isinstance(answer, dict)
        assert answer == {**crawler.status(), "state": "stopping", "waiting": None, "waiting_for": ""}
        assert "pages" in answer
        paused = await crawler._verbs()["pause"]({"verb": "pause"})
        assert isinstance(paused, dict)
        assert paused["state"] == "stopping"  # What ends goes on ending.

    run(order())


class Restarting:
    """An engine whose coordinator dies once, and has finished when it is back."""

    def __init__(self, status: Mapping[str, object]) -> None:
        over = {"is_over": True, "failure": "", "end": "finished", "refused": False}
        common = {
            "status": dict(status),
            "is_copied": False,
            "notes": [],
            "is_over": False,
            "departed": [],
            "wants_seeds": False,
        }
        self.answers = [common, None, None, {**common, **over}]

    async def standing(self) -> dict[str, Any]:
        answer = self.answers.pop(0)
        if answer is None:
            raise ConnectionError("it restarts")
        return answer


def test_a_coordinator_that_dies_is_noted_once(tmp_path: Path, run: Run) -> None:
    crawler = ClusterCrawler(["https://a.example/"], workers=2, contact="a@example.org", output=tmp_path / "crawl")
    notes: list[str] = []
    crawler.on_note(lambda _: 1 / 0)  # A listener's mistake neither ends the crawl nor keeps notes from others.
    crawler.on_note(notes.append)

    async def over() -> None:
        assert await crawler._until_over(Restarting(crawler.status())) == "finished"  # type: ignore[arg-type]

    run(over())
    assert notes == [
        "The coordinator does not answer: the shards crawl on, and it is started again.",
        "The coordinator answers again.",
    ]


def test_a_crawl_answers_each_verb_of_the_table_and_before_and_after_it_runs(make: Make, run: Run) -> None:
    async def work() -> None:
        async with Site(star(3)) as site:
            crawler = make(site.root)
            assert (await crawler.ask({"verb": "status"}))["result"] == {"state": "starting"}
            assert (await crawler.ask({"verb": "pause"}))["kind"] == "conflict"
            async with crawler:
                async for _ in crawler:
                    for verb in VERBS:
                        answer = await crawler.ask({"verb": verb, "no such field": 1})
                        assert answer["kind"] == "invalid", verb
                        assert f"{verb}: " in str(answer["error"])
                    assert (await crawler.ask({"verb": "dance"}))["kind"] == "invalid"
                    assert (await crawler.ask({"verb": "status"}))["ok"]
            status = (await crawler.ask({"verb": "status"}))["result"]
            assert isinstance(status, dict)
            assert status["state"] == "finished"
            assert (await crawler.ask({"verb": "seed", "urls": [site.root]}))["kind"] == "conflict"

    run(work())


def test_a_mistake_in_a_request_is_named_with_its_place() -> None:
    for fields, says in (
        ({}, "seed: urls: it is missing; add it"),
        ({"urls": ["http://a.example/", 1]}, 'seed: urls.1: expected a text, in quotes, such as "a"'),
        ({"urls": ["http://a.example/"], "url": 1}, "seed: url: there is no such key; did you mean urls?"),
        ({"urls": [""]}, "seed: urls.0: expected a text that is not empty"),
        ({"urls": ["x" * 9_000]}, "seed: urls.0: expected 8192 or less characters"),
        ({"urls": []}, "seed: urls: expected a list that is not empty"),
        ({"workers": 0}, "scale: workers: expected 1 or more"),
        ({"workers": 2_000}, "scale: workers: expected 1024 or less"),
        ({"workers": "2"}, "scale: workers: expected a whole number"),
    ):
        with pytest.raises(RefusedError) as refused:
            read(says.partition(":")[0], fields)  # type: ignore[arg-type]
        assert str(refused.value) == says
        assert refused.value.kind == "invalid"


def test_what_a_query_says_is_text_and_means_what_it_says() -> None:
    assert read("hosts", {"n": "5"}, from_texts=True) == read("hosts", {"n": 5})
    with pytest.raises(RefusedError):
        read("hosts", {"n": "5"})


def test_hosts_of_several_shards_are_reported_as_one() -> None:
    def host(name: str, fetch_s: float, failures: int) -> dict[str, object]:
        return {"host": name, "out": 1, "queued": failures, "fetch_s": fetch_s, "sleeps": 0, "failures": failures}

    answers = [
        {
            "limits": {"ready": 1, "lookup": 2},
            "active": [host(f"{shard}.example", shard, shard)],
            "slowest": [host(f"{shard}.example", shard, shard)],
            "failing": [host(f"{shard}.example", shard, shard)],
            "closed": [{"host": f"{shard}.example", "reason": "gone"}],
        }
        for shard in (1, 2, 3)
    ]
    told = hosts_of_all(answers, 2)
    assert isinstance(told, dict)
    assert told["limits"] == {"ready": 3, "lookup": 6}
    for name in ("active", "slowest", "failing"):
        assert [one["host"] for one in told[name]] == ["3.example", "2.example"]
    assert [one["host"] for one in told["closed"]] == ["2.example", "3.example"]
