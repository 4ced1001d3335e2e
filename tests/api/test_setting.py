"""Setting: a running crawl's keys change: whole or not at all, between commits, for good."""

from __future__ import annotations

import asyncio
import tomllib
from pathlib import Path

import pytest

from gossamer import Crawler
from gossamer.api.cluster_queries import ClusterSetting
from gossamer.api.engine import EngineCalls
from gossamer.api.setting import Setting, changes_of, make_refusal
from gossamer.config.gather import configure
from gossamer.config.live import change
from gossamer.config.schema import schema as schema_of_all
from gossamer.config.sections import Config, key_of, keys
from gossamer.model.errors import ConfigError
from gossamer.model.verbs import ChangedKey, HostSettings, Set
from gossamer.options import to_table
from gossamer.state.epoch import Epochs
from tests.api.conftest import Make, Run
from tests.api.site import Site, page, star


def setting(crawler: Crawler) -> Setting:
    assert crawler._shard is not None
    return Setting(crawler._shard, crawler._write_config, crawler._configure)


async def set_keys(crawler: Crawler, *assignments: str) -> list[ChangedKey]:
    answer = await setting(crawler).set(Set(assignments=assignments))
    assert isinstance(answer, dict)
    return [ChangedKey(**change) for change in answer["changed"]]


def refusal(*assignments: str) -> str:
    with pytest.raises(ConfigError) as raised:
        change(Config(), assignments)
    line = str(raised.value)
    assert "\n" not in line
    return line


def test_what_cannot_change_live_is_one_line_that_says_how_to_mend_it() -> None:
    assert "gossamer resume DIR --set 'seen.backend=\"bloom\"'" in refusal("seen.backend=bloom")
    assert refusal(" crawl.mode = continuous").startswith("crawl.mode cannot change"), "not a key whose default follows"
    assert refusal("crawl.concurency=3").startswith("no key crawl.concurency; did you mean crawl.concurrency?")
    assert "expected a whole number" in refusal("limits.max_pages=many")
    assert "write section.key=value; the key is crawl.concurrency" in refusal("concurrency=3")
    assert "RE2" in refusal('scope.exclude=["("]')
    assert "did you mean delay_s?" in refusal("host.example.org={delay = 3}")
    assert "no host's name" in refusal("host.EXAMPLE={delay_s = 3}")
    assert "no host's name" in refusal(f"host.{'a.' * 126}aa={{delay_s = 3}}")
    assert "too many values within each other" in refusal("scope.exclude=" + "[" * 5_000 + "]" * 5_000)


def test_a_running_crawl_can_be_left_to_find_out_how_many_requests_are_useful(run: Run, make: Make) -> None:
    async def scenario() -> None:
        async with Site(star(60)) as site:
            crawler = make(site.root, concurrency=3)
            async with asyncio.TaskGroup() as group:
                group.create_task(crawler.run())
                await site.asked(3)
                site.open.clear()
                changes = await set_keys(crawler, "crawl.concurrency=auto")
                assert [(one.before, one.after) for one in changes] == [("3", '"auto"')]
                assert crawler.status()["concurrency"] == 3
                site.open.set()
            assert Crawler.resume(crawler.directory).config.crawl.concurrency == "auto"
            assert refusal("crawl.concurrency=fast").endswith('is "fast", expected a whole number or auto')

    run(scenario())


@pytest.mark.promise(
    "Crash safety", "Values set while a crawl runs take effect together or not at all, and survive any crash."
)
def test_one_bad_value_among_good_ones_changes_nothing() -> None:
    assert "seen.backend" in refusal("crawl.concurrency=3", "seen.backend=bloom")


def test_all_mistakes_of_a_change_are_named() -> None:
    with pytest.raises(ConfigError) as raised:
        change(Config(), ("first", "second", "limits.max_pages=x"))
    said = str(make_refusal(raised.value, Path("crawl")))
    assert said.startswith("first: write section.key=value; second: write section.key=value; limits.max_pages is ")


def test_live_keys_are_marked_in_the_schema() -> None:
    schema = schema_of_all()
    live = {key for key in keys() if key_of(key).live}
    assert {"crawl.concurrency", "limits.max_pages", "politeness.delay_s_min", "scope.exclude"} <= live
    assert "archive.compression_level" not in live
    assert schema["$defs"]["CrawlOptions"]["properties"]["concurrency"]["live"] is True
    assert "live" not in schema["$defs"]["StateOptions"]["properties"]["cache_bytes"]


def test_limits_and_concurrency_change_while_it_runs_and_are_kept(run: Run, make: Make) -> None:
    async def scenario() -> None:
        async with Site(star(60)) as site:
            crawler = make(site.root, concurrency=1)
            async with asyncio.TaskGroup() as group:
                ended = group.create_task(crawler.run())
                await site.asked(3)
                site.open.clear()
                changes = await set_keys(crawler, "limits.max_pages=20", "crawl.concurrency=2")
                site.open.set()
                assert [(one.key, one.before, one.after) for one in changes] == [
                    ("limits.max_pages", "", "20"), ("crawl.concurrency", "1", "2"),
                ]  # fmt: skip
                assert crawler.config.limits.max_pages == 20
            assert ended.result() == "limit"
            assert crawler.status()["pages"] == 20
            kept = tomllib.loads((crawler.directory / "crawl.toml").read_text())
            assert kept["limits"]["max_pages"] == 20
            assert kept["crawl"]["concurrency"] == 2
            again = Crawler.resume(crawler.directory)
            assert again.config.origin("limits.max_pages") == "gossamer set"

    run(scenario())


@pytest.mark.promise(
    "Crash safety", "Values set while a crawl runs take effect together or not at all, and survive any crash."
)
def test_a_change_is_in_the_store_when_the_answer_comes(run: Run, make: Make) -> None:
    async def scenario() -> None:
        async with Site(star(40)) as site:
            crawler = make(site.root, per_host=1, delay=0.02)
            async with asyncio.TaskGroup() as group:
                group.create_task(crawler.run())
                await site.asked(3)
                await set_keys(crawler, "politeness.delay_s_min=0")
                assert crawler._shard is not None
                found = [
                    (one["key"], one["before"], one["after"])
                    for one in changes_of(Epochs(crawler._shard.kept.storage.store))
                ]
                assert found == [("politeness.delay_s_min", "0.02", "0.0")]

    run(scenario())


@pytest.mark.promise("What is fetched", "Every filter that can change during a crawl also judges queued URLs.")
def test_an_exclude_pattern_holds_for_what_is_queued_too(run: Run, make: Make) -> None:
    leaves = {f"/a/{n}": page() for n in range(20)} | {f"/b/{n}": page() for n in range(20)}

    async def scenario() -> None:
        async with Site({"/": page(*leaves), **leaves}) as site:
            crawler = make(site.root, per_host=1, delay=0.05)
            async with asyncio.TaskGroup() as group:
                group.create_task(crawler.run())
                await site.asked(4)
                site.open.clear()
                await site.asked(5)  # It is under way, and no other may be.
                seen = {path for path in site.counts if path.startswith("/b/")}
                await set_keys(crawler, 'scope.exclude=["/b/"]', "politeness.delay_s_min=0")
                site.open.set()
            assert {path for path in site.counts if path.startswith("/b/")} == seen
            assert sum(path.startswith("/a/") for path in site.counts) == 20
            outcomes = crawler.status()["outcomes"]
            assert isinstance(outcomes, dict)
            assert outcomes["excluded"] == 20 - len(seen)

    run(scenario())


@pytest.mark.promise("What is fetched", "Every filter that can change during a crawl also judges queued URLs.")
def test_filters_of_a_resume_hold_for_what_is_queued_too(run: Run, make: Make) -> None:
    leaves = {f"/b/{n}": page() for n in range(9)}

    async def scenario() -> None:
        async with Site({"/": page(*leaves), **leaves}) as site:
            first = make(site.root, max_pages=1)
            assert await first.run() == "limit"
            settings = {"limits.max_pages": None, "scope.exclude": ["/b/[0-4]"]}
            again = Crawler.resume(first.directory, settings=settings)
            assert await again.run() == "finished"
            assert {path for path in site.counts if path.startswith("/b/")} == {f"/b/{n}" for n in range(5, 9)}

    run(scenario())


def test_one_host_gets_rules_of_its_own_and_loses_them(run: Run, make: Make) -> None:
    async def scenario() -> None:
        async with Site(star(2_000)) as site:
            crawler = make(site.root, per_host=1, delay=0.01, politeness="polite")
            most = 0
            async with asyncio.TaskGroup() as group:
                running = group.create_task(crawler.run())
                await site.asked(3)
                answer = await setting(crawler).host(HostSettings("127.0.0.1", {"per_host": 3, "delay_s": 0}))
                assert isinstance(answer, dict)
                assert answer["changed"][0]["key"] == "host.127.0.0.1"
                site.open.clear()
                while most < 3 and not running.done():
                    await asyncio.sleep(0.01)
                    most = max(most, int(str(crawler.status()["in_flight"])))
                await setting(crawler).host(HostSettings("127.0.0.1", {"per_host": None, "delay_s": None}))
                assert crawler.config.host.overrides == {}
                crawler.stop()
                site.open.set()
            assert most == 3

    run(scenario())


def test_rules_of_one_host_that_are_set_at_once_all_hold(run: Run, make: Make) -> None:
    async def scenario() -> None:
        async with Site(star(2_000)) as site:
            crawler = make(site.root, per_host=1)
            async with asyncio.TaskGroup() as group:
                group.create_task(crawler.run())
                await site.asked(3)
                its = setting(crawler)
                wanted: list[dict[str, object]] = [{"per_host": 3}, {"delay_s": 0.5}]
                await asyncio.gather(*[its.host(HostSettings("127.0.0.1", one)) for one in wanted])
                crawler.stop()
            assert to_table(crawler.config.host.overrides["127.0.0.1"]) == {"per_host": 3, "delay_s": 0.5}

    run(scenario())


def test_a_hosts_pages_in_a_round_change_where_there_were_no_budgets(run: Run, make: Make) -> None:
    async def scenario() -> None:
        async with Site(star(30)) as site:
            crawler = make(site.root, per_host=2)
            async with asyncio.TaskGroup() as group:
                group.create_task(crawler.run())
                await site.asked(3)
                site.open.clear()
                await setting(crawler).host(HostSettings("127.0.0.1", {"pages": 4}))
                site.open.set()
            assert crawler.status()["pages"] == 31, "a budget defers, and drops nothing"
            assert int(str(crawler.status()["budget_round"])) > 4

    run(scenario())


def test_a_checkpoint_keeps_the_configuration_that_it_was_made_with(run: Run, make: Make, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Site(star(40)) as site:
            crawler = make(site.root, per_host=1, delay=0.02)
            async with asyncio.TaskGroup() as group:
                group.create_task(crawler.run())
                await site.asked(3)
                assert crawler._shard is not None
                copy = await crawler._shard.kept.checkpoint()
                await set_keys(crawler, "limits.max_pages=5")
            assert "max_pages" not in tomllib.loads((copy / "crawl.toml").read_text())["limits"]

    run(scenario())


class Accepting:
    """An engine of several shards, each of which accepts every request."""

    async def ask(self, _request: object, shards: list[int]) -> list[dict[str, object]]:
        return [{"ok": True, "result": {}} for _ in shards]

    async def call(self, _name: str, **_arguments: object) -> None:
        pass


def test_several_shards_answer_a_change_as_one_does(tmp_path: Path) -> None:
    config = configure(options={"workers": 2}, seeds=["http://a.test/"])
    calls = EngineCalls()
    calls.engine = Accepting()
    setting = ClusterSetting(tmp_path, lambda: config, calls, asyncio.Lock(), lambda _: None)
    answer = asyncio.run(setting.set(Set(assignments=("crawl.concurrency=64",))))
    assert answer == {"changed": [{"key": "crawl.concurrency", "before": "256", "after": "64"}]}
