"""`Crawler`: what a program sees of a crawl."""

from __future__ import annotations

import asyncio
import re
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pytest

from gossamer import Crawler
from gossamer.api import status_of, why_of
from gossamer.api.life import ShardLife
from gossamer.api.page import CrawledPage
from gossamer.config import reopen
from gossamer.model.errors import ConfigError
from tests.api.conftest import Make, Run
from tests.api.site import Site, page, star


async def read(crawler: Crawler) -> list[CrawledPage]:
    return [page async for page in crawler]


def rows_of(directory: Path, columns: str = "url, outcome") -> list[tuple[Any, ...]]:
    return duckdb.sql(f"SELECT {columns} FROM '{directory}/pages/*.parquet' ORDER BY ALL").fetchall()


@pytest.mark.parametrize(
    ("usable_bytes", "warnings"),
    [(400 << 20, ["the crawl may use more memory than there is here: --memory 360MiB bounds it"]), (1 << 30, [])],
)
def test_a_budget_that_the_memory_here_does_not_hold_is_a_warning(
    run: Run, make: Make, monkeypatch: pytest.MonkeyPatch, usable_bytes: int, warnings: list[str]
) -> None:
    """A container's limit of memory is less: its kernel would kill the crawl."""

    async def scenario() -> None:
        async with Site({"/": page()}) as site:
            crawler = make(site.root)
            notes: list[str] = []
            crawler.on_note(notes.append)
            await crawler.run()
            assert crawler.status()["warnings"] == warnings
            assert [one for one in notes if "memory" in one] == warnings

    monkeypatch.setattr("gossamer.api.crawler.usable_bytes", partial(int, usable_bytes))
    run(scenario())


# ---- iteration


@pytest.mark.promise("Components and Python", "In Python each page reaches its reader once, after its commit.")
def test_every_page_comes_once_after_its_commit(run: Run, make: Make) -> None:
    async def scenario() -> None:
        async with Site(star(120)) as site:
            crawler = make(site.root)
            paths = []
            async with crawler:
                async for one in crawler:
                    paths.append(one.url.removeprefix(site.root.rstrip("/")))
                    assert crawler.status()["epoch"]
            fetched = [path for path in paths if path != "/robots.txt"]
            assert sorted(fetched) == sorted(star(120))
            assert fetched[0] == "/"
            assert site.counts == {"/robots.txt": 1, **dict.fromkeys(star(120), 1)}
            assert crawler.status()["state"] == "finished"
            assert rows_of(crawler.directory, "count(*)") == [(121,)]

    run(scenario())


def test_a_page_says_what_came(run: Run, make: Make) -> None:
    async def scenario() -> None:
        pages = {"/": page("/next", "/gone", title="Home & more", text="Some words")}
        async with Site(pages, {"X-Odd": "yes"}) as site:
            async with make(site.root) as crawler:
                by_url = {one.url.removeprefix(site.root): one for one in await read(crawler)}
            home = by_url[""]
            assert (home.status, home.outcome, home.title, home.depth) == (200, "fetched", "Home & more", 0)
            assert home.body == pages["/"]
            assert ("X-Odd", "yes") in home.headers
            assert [(link.url, link.link_type, link.anchor_text) for link in home.links] == [
                (site.root + "next", "anchor", "to /next"),
                (site.root + "gone", "anchor", "to /gone"),
            ]
            assert "Some words" in home.text
            assert "<p>" not in home.text
            assert home.row.digest.startswith("sha1:")
            assert repr(home) == f"<Page {site.root} fetched 200>"
            gone = by_url["gone"]
            assert (gone.status, gone.outcome, gone.title, gone.text, gone.links) == (404, "http_error", "", "", [])

    run(scenario())


def test_a_page_that_never_came_is_a_page_too(run: Run, make: Make) -> None:
    async def scenario() -> None:
        async with Site({}) as site:
            root = site.root
        async with make(root, settings={"frontier.attempts_max": 1, "robots.obey": False}) as crawler:
            (failed,) = await read(crawler)
        assert (failed.outcome, failed.status, failed.body, failed.headers) == ("connect_error", None, b"", ())
        assert failed.text == ""
        assert failed.row.error

    run(scenario())


@pytest.mark.promise("Components and Python", "A reader that stops early leaves a crawl that can be resumed.")
def test_whoever_leaves_early_ends_the_crawl_with_everything_committed(run: Run, make: Make) -> None:
    async def scenario() -> None:
        async with Site(star(300)) as site:
            crawler = make(site.root, concurrency=4)
            seen = []
            async with crawler:
                async for one in crawler:
                    seen.append(one.url)
                    if len(seen) == 10:
                        break
            assert crawler.status()["state"] == "stopped"
            recorded = {url for url, _ in rows_of(crawler.directory)}
            assert set(seen) <= recorded
            assert len(recorded) == crawler.status()["attempts"]
            asked = sum(site.counts.values()) - site.counts["/robots.txt"]
            assert len(recorded) == asked
            resumed = Crawler.resume(crawler.directory)
            assert await resumed.run() == "finished"
            assert {path for path, count in site.counts.items() if count > 1} <= {"/robots.txt"}
            assert len(site.counts) == 302

    run(scenario())


def test_an_error_in_the_readers_loop_is_his_and_everything_is_committed(run: Run, make: Make) -> None:
    async def scenario() -> None:
        async with Site(star(100)) as site:
            crawler = make(site.root)

            async def failing() -> None:
                async with crawler:
                    async for _ in crawler:
                        raise ZeroDivisionError

            with pytest.raises(ZeroDivisionError):
                await failing()
            assert crawler.status()["state"] in {"stopped", "finished"}
            status = status_of(crawler.directory)
            assert status["attempts"] == crawler.status()["attempts"]

    run(scenario())


def test_whoever_does_not_iterate_ends_the_crawl_at_the_end_of_his_block(run: Run, make: Make) -> None:
    async def scenario() -> None:
        async with Site(star(2_000)) as site:
            async with make(site.root, concurrency=2) as crawler:
                await site.asked(5)
            assert crawler.status()["state"] == "stopped"

    run(scenario())


def test_a_slow_reader_bounds_what_is_held(run: Run, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gossamer.engine.delivery.Delivery.__init__.__defaults__", (40, 1 << 30))

    async def scenario() -> None:
        async with Site(star(400)) as site:
            held, seen = [], set()
            crawler = make(site.root, concurrency=8)
            async with crawler:
                async for one in crawler:
                    seen.add(one.url)
                    assert crawler._delivery is not None
                    if len(seen) in {1, 50, 100}:
                        while crawler._delivery.pages < 20:  # noqa: ASYNC110 - as fast as the machine crawls
                            await asyncio.sleep(0.01)
                        await asyncio.sleep(0.3)
                    held.append(crawler._delivery.pages)
            assert len(seen) == 401
            assert 20 <= max(held) <= 40 + 8

    run(scenario())


def test_a_reader_may_come_when_the_crawl_has_ended(run: Run, make: Make) -> None:
    async def scenario() -> None:
        async with Site(star(20)) as site, make(site.root) as crawler:
            while crawler.status()["state"] != "finished":  # noqa: ASYNC110 - nothing tells, and nothing must
                await asyncio.sleep(0.01)
            assert len(await read(crawler)) == 21

    run(scenario())


@pytest.mark.promise("Components and Python", "A reader that stops early leaves a crawl that can be resumed.")
def test_a_cancelled_reader_leaves_a_crawl_that_can_be_resumed(run: Run, make: Make) -> None:
    async def scenario() -> None:
        async with Site(star(50)) as site:
            crawler = make(site.root)
            site.open.clear()

            async def reading() -> None:
                async with crawler:
                    await read(crawler)

            task = asyncio.create_task(reading())
            await site.asked(1)
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()
            site.open.set()
            assert await Crawler.resume(crawler.directory).run() == "finished"
            assert len(rows_of(crawler.directory)) == 51

    run(scenario())


def test_a_reader_who_says_stop_reads_what_was_fetched(run: Run, make: Make) -> None:
    async def scenario() -> None:
        async with Site(star(500)) as site:
            seen = 0
            async with make(site.root, concurrency=4) as crawler:
                async for _ in crawler:
                    seen += 1
                    crawler.stop()
            assert 0 < seen == crawler.status()["attempts"] < 501

    run(scenario())


# ---- running, stopping, resuming


def test_run_says_how_it_ended_and_limits_can_be_changed(run: Run, make: Make) -> None:
    async def scenario() -> None:
        async with Site(star(30)) as site:
            crawler = make(site.root, max_pages=7)
            assert await crawler.run() == "limit"
            assert crawler.status()["pages"] == 7
            again = Crawler.resume(crawler.directory, max_pages=20)
            assert await again.run() == "limit"
            assert again.status()["pages"] == 20
            last = Crawler.resume(crawler.directory, settings={"limits.max_pages": None})
            assert await last.run() == "finished"
            assert (last.status()["pages"], last.status()["runs"]) == (31, 3)
            assert max(site.counts.values()) == 1
            assert len(rows_of(crawler.directory)) == 31

    run(scenario())


def test_a_stop_finishes_what_is_in_flight_and_can_come_before_the_start(run: Run, make: Make) -> None:
    async def scenario() -> None:
        async with Site(star(500)) as site:
            early = make(site.root, output="early")
            early.stop()
            assert await early.run() == "stopped"
            assert not site.counts

            crawler = make(site.root, concurrency=4)
            async with asyncio.TaskGroup() as group:
                running = group.create_task(crawler.run())
                await site.asked(10)
                crawler.stop()
            assert running.result() == "stopped"
            attempts = sum(site.counts.values()) - site.counts["/robots.txt"]
            assert crawler.status()["attempts"] == attempts

    run(scenario())


def test_a_stop_at_once_does_not_wait_for_a_server(run: Run, make: Make) -> None:
    async def scenario() -> None:
        async with Site(star(5)) as site:
            crawler = make(site.root, no_robots=True)
            site.open.clear()
            async with asyncio.TaskGroup() as group:
                running = group.create_task(crawler.run())
                await site.asked(1)
                crawler.stop()
                await asyncio.sleep(0.05)
                assert not running.done()
                crawler.stop(now=True)
            assert running.result() == "stopped"
            assert crawler.status()["attempts"] == 0
            assert status_of(crawler.directory)["queued"] == 1

    run(scenario())


def test_a_run_that_is_cancelled_has_saved_everything(run: Run, make: Make) -> None:
    async def scenario() -> None:
        async with Site(star(50)) as site:
            crawler = make(site.root, concurrency=4, settings={"crawl.commit_s": 60.0})
            task = asyncio.create_task(crawler.run())
            await site.asked(20)
            site.open.clear()
            await site.asked(24)
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()
            attempts = crawler.status()["attempts"]
            assert isinstance(attempts, int)
            assert attempts >= 15
            assert status_of(crawler.directory)["attempts"] == attempts
            site.open.set()
            assert await Crawler.resume(crawler.directory).run() == "finished"
            assert len(rows_of(crawler.directory)) == 51
            assert sum(site.counts.values()) <= 52 + 5

    run(scenario())


def test_status_is_there_before_while_and_after(run: Run, make: Make) -> None:
    async def scenario() -> None:
        async with Site(star(10)) as site:
            crawler = make(site.root)
            assert crawler.status()["state"] == "starting"
            site.open.clear()
            async with asyncio.TaskGroup() as group:
                group.create_task(crawler.run())
                await site.asked(1)
                status = crawler.status()
                assert (status["state"], status["in_flight"], status["pages"]) == ("running", 1, 0)
                assert status["discovered"] == 1
                site.open.set()
            status = crawler.status()
            assert (status["state"], status["pages"], status["queued"], status["in_flight"]) == ("finished", 11, 0, 0)
            stopped = status_of(crawler.directory)
            same = ("pages", "attempts", "discovered", "terminal", "outcomes", "wire_bytes", "state", "hosts_known")
            assert {key: stopped[key] for key in same} == {key: status[key] for key in same}
            assert set(stopped) == set(status)
            assert why_of(crawler.directory, site.root + "3")["state"] == "fetched"

    run(scenario())


def test_a_seed_that_redirects_is_noted(run: Run, make: Make) -> None:
    async def scenario() -> None:
        async with Site(star(3)) as site, Site({}) as door:
            door.moved["/"] = site.root
            crawler = make(door.root)
            notes: list[str] = []

            def clumsy(_: str) -> None:
                raise KeyError("the listener's own")

            crawler.on_note(clumsy)
            crawler.on_note(notes.append)
            assert await crawler.run() == "finished"
            assert crawler.status()["outcomes"] == {"fetched": 4, "redirected": 1}
            (line,) = (crawler.directory / "logs/critical.log").read_bytes().splitlines()
            assert msgspec.json.decode(line)["event"] == "listener_failed"
            assert len(notes) == 1
            assert site.root in notes[0] or "127.0.0.1" in notes[0]

    run(scenario())


def test_two_crawls_in_one_process_do_not_know_each_other(run: Run, make: Make) -> None:
    async def scenario() -> None:
        async with Site(star(40)) as one, Site(star(60)) as other:
            first, second = make(one.root, output="first"), make(other.root, output="second")
            async with first, second, asyncio.TaskGroup() as group:
                reads = [group.create_task(read(crawler)) for crawler in (first, second)]
            assert [len(task.result()) for task in reads] == [41, 61]

    run(scenario())


def test_a_directory_in_use_is_refused_and_its_crawl_goes_on(
    run: Run, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gossamer.api.crawler.LOCK_S_MAX", 0.2)

    async def scenario() -> None:
        async with Site(star(30)) as site:
            crawler, twin = make(site.root), make(site.root)
            site.open.clear()
            async with asyncio.TaskGroup() as group:
                running = group.create_task(crawler.run())
                await site.asked(1)
                with pytest.raises(ConfigError, match="in use"):
                    await twin.run()
                with pytest.raises(ConfigError, match="already holds a crawl"):
                    make(site.root)
                site.open.set()
            assert running.result() == "finished"
            assert twin.status()["state"] == "starting"

    run(scenario())


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine at its limit the earlier crawl takes longer to end than the later one waits."""
    monkeypatch.setattr("gossamer.api.crawler.LOCK_S_MAX", 50.0)


def test_of_two_that_begin_in_a_directory_at_once_the_later_is_refused(run: Run, make: Make, patient: None) -> None:
    async def scenario() -> None:
        async with Site(star(5)) as site:
            ends = await asyncio.gather(*(make(site.root).run() for _ in range(2)), return_exceptions=True)
        assert "finished" in ends
        [refused] = (str(end) for end in ends if isinstance(end, ConfigError))
        # The command prints it too.
        assert re.fullmatch(
            r"\S+ already holds a crawl; `gossamer resume \S+`, or or_resume=True in Python, .*", refused
        )

    run(scenario())


def test_a_crawl_waits_for_one_that_is_about_to_end(run: Run, make: Make, patient: None) -> None:
    async def scenario() -> None:
        async with Site(star(30)) as site:
            crawler = make(site.root)
            site.open.clear()
            async with asyncio.TaskGroup() as group:
                group.create_task(crawler.run())
                await site.asked(1)
                next_one = group.create_task(Crawler.resume(crawler.directory).run())
                await asyncio.sleep(0.1)
                site.open.set()
            assert next_one.result() == "finished"

    run(scenario())


# ---- what the operator can mend


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"max_page": 3}, "no option 'max_page'; did you mean max_pages?"),
        ({"scop": "host"}, "did you mean scope?"),
        ({"max_pages": "many"}, 'max_pages "many"'),
        ({"scope": "planet"}, 'scope "planet"'),
        ({"settings": {"crawl.comit_s": 1}}, "did you mean crawl.commit_s?"),
        ({"settings": {"crawl.commit_s": "soon"}}, "crawl.commit_s"),
        ({"settings": {"commit_s": 1}}, "section.key"),
        ({"allow_private": False}, "private address"),
    ],
)
def test_a_wrong_option_is_reported_with_the_nearest_right_one(make: Make, options: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make("http://127.0.0.1:1/", **options)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("seeds", "told"),
    [
        ((), "no seeds"),
        (("example.org",), "no scheme"),
        (("https://example.org/",), "add contact with"),
        (("",), "empty"),
    ],
)
def test_a_wrong_seed_is_reported_before_anything_starts(
    make: Make, tmp_path: Path, seeds: tuple[str], told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        make(*seeds)
    assert not (tmp_path / "crawl").exists()


def test_there_must_be_a_crawl_to_resume(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"holds no crawl"):
        Crawler.resume(tmp_path)
    for asking in (status_of, lambda directory: why_of(directory, "http://a.example/")):
        with pytest.raises(ConfigError):
            asking(tmp_path)  # type: ignore[operator]


def test_one_seed_may_be_given_as_it_is(tmp_path: Path) -> None:
    crawler = Crawler("http://127.0.0.1:1/", output=tmp_path / "crawl", allow_private=True)
    assert crawler.config.seeds.urls == ("http://127.0.0.1:1/",)


def test_what_cannot_be_assembled_holds_nothing(run: Run, make: Make) -> None:
    async def scenario() -> None:
        async with Site(star(3)) as site:
            wrong = make(site.root, settings={"process.modules": ["nowhere.to.be.found:Module"]})
            with pytest.raises(ConfigError, match="nowhere"):
                await wrong.run()
            async with make(site.root, settings={"process.modules": ["nowhere:Module"]}) as crawler:
                with pytest.raises(ConfigError, match="nowhere"):
                    await read(crawler)
            assert await make(site.root).run() == "finished"

    run(scenario())


def test_the_effective_configuration_says_where_it_lies_and_where_it_came_from(run: Run, make: Make) -> None:
    async def scenario() -> None:
        async with Site(star(1)) as site:
            crawler = make(site.root, max_depth=3)
            await crawler.run()
            config = reopen(crawler.directory / "crawl.toml")
            assert config.output.directory == str(crawler.directory)
            assert (config.scope.depth_max, config.origin("scope.depth_max")) == (3, "--max-depth")
            assert (config.crawl.commit_s, config.origin("crawl.commit_s")) == (0.05, "--set")

    run(scenario())


def test_a_full_disk_is_the_readers_error(run: Run, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    async def scenario() -> None:
        async with Site(star(20)) as site:
            crawler = make(site.root)

            async def reading() -> None:
                async with crawler:
                    await read(crawler)

            with monkeypatch.context() as patch:
                patch.setattr("gossamer.state.journals.Journals.sync", full)
                with pytest.raises(OSError, match="No space left"):
                    await reading()
            assert crawler.status()["state"] == "failed"
            assert await Crawler.resume(crawler.directory).run() == "finished"
            assert len(rows_of(crawler.directory)) == 21

    run(scenario())


# ---- the control socket of a crawl in this process


async def ask(directory: Path, **request: object) -> dict[str, Any]:
    reader, writer = await asyncio.open_unix_connection(str(directory / "state/control.sock"))
    writer.write(msgspec.json.encode(request) + b"\n")
    answer: dict[str, Any] = msgspec.json.decode(await reader.readline())
    writer.close()
    return answer


def test_a_running_crawl_answers_questions_and_takes_commands(run: Run, make: Make) -> None:
    async def scenario() -> None:
        async with Site(star(10)) as site, Site(star(5)) as other, Site(star(5)) as shunned:
            crawler = make(site.root)
            site.open.clear()
            async with asyncio.TaskGroup() as group:
                group.create_task(crawler.run())
                await site.asked(1)
                directory = crawler.directory
                assert (await ask(directory, verb="status"))["result"]["state"] == "running"
                assert (await ask(directory, verb="pause"))["result"]["state"] == "paused"
                assert (await ask(directory, verb="why", url=site.root))["result"]["state"] in {"queued", "in_flight"}
                assert (await ask(directory, verb="seed", urls=[other.root]))["result"] == {
                    "added": 1, "known": 0, "rejected": 0,
                }  # fmt: skip
                again = (await ask(directory, verb="seed", urls=[other.root, other.root + "9"]))["result"]
                assert again == {"added": 1, "known": 1, "rejected": 0}
                assert (await ask(directory, verb="why", url=other.root))["result"]["state"] == "queued"
                refused = await ask(directory, verb="seed", urls=["nonsense"])
                assert (refused["ok"], "no scheme" in refused["error"]) == (False, True)
                anonymous = await ask(directory, verb="seed", urls=[other.root + "0", "https://example.org/"])
                assert "--contact" in anonymous["error"]
                assert (await ask(directory, verb="why", url=other.root + "0"))["result"]["state"] == "unknown"
                assert "missing" in (await ask(directory, verb="why"))["error"]
                assert "urls: expected a list" in (await ask(directory, verb="seed", urls="http://a/"))["error"]
                assert "hosts.0: expected a text" in (await ask(directory, verb="exclude", hosts=[1]))["error"]
                excluded = await ask(directory, verb="exclude", hosts=["shunned.example"])
                assert excluded["result"] == {"excluded": ["shunned.example"]}
                assert (await ask(directory, verb="unpause"))["result"]["state"] == "running"
                site.open.set()
            assert crawler.status()["pages"] == 17
            assert not shunned.counts

    run(scenario())


def test_it_can_be_asked_until_its_files_are_finished(run: Run, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with Site(star(3)) as site:
            crawler = make(site.root)
            asked: list[dict[str, Any]] = []
            finish = ShardLife.finish_files

            async def finishing(life: ShardLife) -> None:
                asked.append(await ask(crawler.directory, verb="status"))
                await finish(life)

            monkeypatch.setattr(ShardLife, "finish_files", finishing)
            assert await crawler.run() == "finished"
            assert asked[0]["result"]["pages"] == 4
            assert not (crawler.directory / "state/control.sock").exists()

    run(scenario())


def test_a_running_crawl_can_be_stopped_over_its_socket(run: Run, make: Make) -> None:
    async def scenario() -> None:
        async with Site(star(2_000)) as site:
            crawler = make(site.root, concurrency=2)
            async with asyncio.TaskGroup() as group:
                running = group.create_task(crawler.run())
                await site.asked(5)
                assert (await ask(crawler.directory, verb="stop"))["ok"]
            assert running.result() == "stopped"

    run(scenario())


@pytest.mark.heavy
def test_a_copy_of_a_checkpoint_resumes_to_the_same_end(run: Run, make: Make, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Site(star(200)) as site:
            crawler = make(site.root, concurrency=2)
            async with asyncio.TaskGroup() as group:
                group.create_task(crawler.run())
                checkpoints = []
                for asked in (20, 60):
                    await site.asked(asked)
                    site.open.clear()  # What is in flight stays there meanwhile, and the crawl cannot end.
                    checkpoints.append((await ask(crawler.directory, verb="checkpoint"))["result"]["checkpoint"])
                    site.open.set()
            assert len(set(checkpoints)) == 2
            whole = rows_of(crawler.directory)
            assert len(whole) == 201
            for number, checkpoint in enumerate(checkpoints):
                copy = tmp_path / f"copy{number}"
                shutil.copytree(checkpoint, copy)
                before = status_of(copy)["attempts"]
                assert isinstance(before, int)
                assert 10 <= before < 201
                resumed = Crawler.resume(copy, settings={"politeness.address_delay_s": 0.0})
                assert await resumed.run() == "finished"
                assert rows_of(copy) == whole
                assert resumed.status()["attempts"] == 201

    run(scenario())


def test_a_crawl_that_goes_on_with_more_seeds_in_its_configuration_adds_them(run: Run, make: Make) -> None:
    async def scenario() -> None:
        async with Site({"/": page(), "/more": page("/further"), "/further": page()}) as site:
            crawler = make(site.root)
            assert await crawler.run() == "finished"
            path = crawler.directory / "crawl.toml"
            written = path.read_text()
            path.write_text(written.replace('urls = ["', f'urls = ["{site.root}more", "'))
            for _ in range(2):
                resumed = Crawler.resume(crawler.directory)
                assert await resumed.run() == "finished"
                assert resumed.status()["seeds"]["count"] == 2
            expected = dict.fromkeys(("/robots.txt", "/", "/more", "/further"), 1)
            assert {path: count for path, count in site.counts.items() if count} == expected

    run(scenario())
