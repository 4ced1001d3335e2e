"""Schedules: the times that a text says, also where clocks change, and the crawls that a server starts by them."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import json
import os
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gossamer.console.fleet import Fleet, New
from gossamer.console.folder import OWN, Folder
from gossamer.console.schedule import read_schedule
from gossamer.console.service import Service
from gossamer.model.errors import ConfigError
from gossamer.model.verbs import RefusedError
from tests.console.conftest import Caller, Commands, until
from tests.console.test_serve import config_of, crawl_of, ended

MONDAY = datetime(2026, 11, 30, 1, tzinfo=UTC).timestamp()


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Local time with summer time, from 2026-03-29 2:00 to 2026-10-25 3:00."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()


def following(text: str, now: float, count: int = 1) -> list[str]:
    """Return the next times after `now` in UTC."""
    found = []
    for _ in range(count):
        now = read_schedule(text).next_after(now)
        found.append(f"{datetime.fromtimestamp(now, UTC):%m-%d %H:%M}")
    return found


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("every day at 3", ["11-30 02:00", "12-01 02:00"]),
        ("every Monday at 3", ["11-30 02:00", "12-07 02:00"]),
        ("Every  monday and Thursday at 18:30", ["11-30 17:30", "12-03 17:30"]),
        ("every mon, fri at 0:05", ["12-03 23:05", "12-06 23:05"]),
        ("every weekday at 2", ["12-01 01:00", "12-02 01:00"]),
        ("every month on day 1 at 23:59", ["12-01 22:59", "01-01 22:59"]),
        ("every Monday at 3am", ["11-30 02:00", "12-07 02:00"]),
        ("every day at 12:30 AM", ["11-30 23:30", "12-01 23:30"]),
        ("every day at 6:30 pm", ["11-30 17:30", "12-01 17:30"]),
        ("every month on day 28 at 3", ["12-28 02:00", "01-28 02:00"]),
    ],
)
def test_a_text_says_times_of_the_local_zone(berlin: None, text: str, times: list[str]) -> None:
    assert following(text, MONDAY, 2) == times


def test_a_time_that_is_skipped_comes_an_hour_later_and_one_that_occurs_twice_once(berlin: None) -> None:
    before = datetime(2026, 3, 28, 12, tzinfo=UTC).timestamp()
    assert following("every day at 2:30", before, 2) == ["03-29 01:30", "03-30 00:30"], "3:30, then 2:30"
    assert following("every day at 3", before, 1) == ["03-29 01:00"]
    autumn = datetime(2026, 10, 24, 12, tzinfo=UTC).timestamp()
    assert following("every day at 2:30", autumn, 2) == ["10-25 00:30", "10-26 01:30"]


@pytest.mark.parametrize("zone", ["America/Santiago", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Kolkata"])
@pytest.mark.parametrize("at", ["0:00", "0:30", "2:15", "23:30"])
def test_each_day_of_a_year_has_one_run_wherever_clocks_change(
    monkeypatch: pytest.MonkeyPatch, zone: str, at: str
) -> None:
    """Clocks change at midnight, by half an hour, and around Ramadan: kelektiv/node-cron#563, Hexagon/croner#132."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", zone)
        time.tzset()
        now = datetime(2026, 1, 1).timestamp() - 1  # noqa: DTZ001 - local time is meant
        days = []
        for _ in range(365):
            now = read_schedule(f"every day at {at}").next_after(now)
            days.append(datetime.fromtimestamp(now).date().toordinal())  # noqa: DTZ006
    time.tzset()
    assert days == list(range(days[0], days[0] + 365))


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "every", "at", "every at 3", "Monday at 3", "every Monday", "every Mondy at 3", "every Mo at 3",
        "every Monday at 24", "every Monday at 3:60", "every Monday at three", "every Monday at -1",
        "every day at \uff13",
        "every month on day 31 at 3", "every month on day 0 at 3", "every month at 3", "every at at at 3",
        "every day at 3 " + "x" * 150, "every month on day \u00b2 at 3", "and and and",
    ],
)  # fmt: skip
def test_a_text_that_says_no_schedule_is_one_line_with_those_that_do(text: str) -> None:
    with pytest.raises(RefusedError, match=r"is no schedule; write 'every day at 3:00', ") as refused:
        read_schedule(text)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("0 3 * * 1", "write 'every Monday at 3:00'"),
        ("5 18 * * 0", "write 'every Sunday at 18:05'"),
        ("30 3 * * *", "write 'every day at 3:30'"),
        ("0 3 * * MON", "write 'every Monday at 3:00'"),
        ("@weekly", "write 'every Monday at 3'"),
        ("every Monday at 3:00 UTC", "write the time without UTC"),
        ("every hour", 'with crawl.mode = "continuous"'),
        ("every 6 hours", 'with crawl.mode = "continuous"'),
        ("every day at 13pm", "write 'every day at 3:00'"),
        ("every day at 0am", "write 'every day at 3:00'"),
    ],
)
def test_a_schedule_as_cron_has_it_or_more_often_than_daily_is_answered(text: str, meant: str) -> None:
    with pytest.raises(RefusedError) as refused:
        read_schedule(text)
    assert meant in str(refused.value)


class Runs(Fleet):
    """Keeps schedules, and runs crawls without a process: each ends when its event is set."""

    ends: dict[str, asyncio.Event]

    async def _one_life(self, name: str, entry: Any, arguments: tuple[str, ...]) -> int | None:
        entry.has_process.set()
        await self.ends.setdefault(name, asyncio.Event()).wait()
        return 0


class Server:
    """One server after another for a folder, at the time that `now` says."""

    def __init__(self, path: Path, now: str, crawls_max: int = 4) -> None:
        self.path = path
        self.crawls_max = crawls_max
        self.ends: dict[str, asyncio.Event] = {}
        self.set(now)

    def set(self, now: str) -> None:
        """Set the clock to a time of the local zone."""
        self.now = datetime.fromisoformat(now).timestamp()

    @contextlib.asynccontextmanager
    async def up(self) -> AsyncIterator[Runs]:
        folder = Folder(self.path)
        try:
            async with asyncio.TaskGroup() as group, Service(4, 1.0) as service:
                fleet = Runs(folder, self.crawls_max, lambda _: None, group, service, lambda: self.now)
                fleet.ends = self.ends
                fleet.find_again()
                yield fleet
                for event in self.ends.values():
                    event.set()
                fleet.leave()
        finally:
            folder.close()

    def names(self, name: str = "one") -> list[str]:
        """Return the runs of a crawl that were begun."""
        return sorted(one for one in self.ends if one.startswith(f"{name}."))


async def eventually(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - what it waits for is no event
            await asyncio.sleep(0.005)


def in_loop(test: Callable[..., Coroutine[object, object, None]]) -> Callable[..., None]:
    """Return a test that runs a coroutine in a loop."""

    @functools.wraps(test)
    def run(**fixtures: object) -> None:
        asyncio.run(test(**fixtures))

    return run


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gossamer.console.fleet.SCHEDULE_LOOK_S", 0.005)


NEW = New("one", {"seeds": {"urls": ["http://127.0.0.1/"]}, "resolve": {"allow_private": True}}, start=False)


@in_loop
async def test_a_schedule_is_kept_over_restarts_and_the_end_of_summer_time(
    berlin: None, looks: None, tmp_path: Path
) -> None:
    server = Server(tmp_path, "2026-10-23 12:00")
    async with server.up() as fleet:
        found = await fleet.create(msgspec.structs.replace(NEW, when="every Monday at 3"))
        assert found.due_at == datetime(2026, 10, 26, 2, tzinfo=UTC).timestamp(), "3:00 of winter time"
    async with server.up() as fleet:
        server.now = found.due_at - 1
        await asyncio.sleep(0.05)
        assert server.names() == []
        server.now = found.due_at
        await eventually(server.names)
        server.ends["one.2026-10-26-0300"].set()
        await eventually(lambda: not fleet.runs("one.2026-10-26-0300"))
    server.set("2026-11-18 12:00")  # Off for three Mondays.
    async with server.up() as fleet:
        await eventually(lambda: len(server.names()) == 2)
        found = await fleet.summary("one")
        assert (found.last_run, found.due_at) == (
            "one.2026-11-02-0300",
            datetime(2026, 11, 23, 2, tzinfo=UTC).timestamp(),
        )
        server.set("2026-11-23 03:00")  # The run before is not over.
        await eventually(lambda: fleet._entry("one").target.skipped)
        found = await fleet.summary("one")
        assert found.skipped == "the run one.2026-11-23-0300 was skipped: 'one.2026-11-02-0300' was not over"
        assert found.due_at == datetime(2026, 11, 30, 2, tzinfo=UTC).timestamp()
    assert server.names() == ["one.2026-10-26-0300", "one.2026-11-02-0300"]


@in_loop
async def test_a_time_that_the_change_to_summer_time_skips_runs_an_hour_later(
    berlin: None, looks: None, tmp_path: Path
) -> None:
    server = Server(tmp_path, "2027-03-27 12:00")
    async with server.up() as fleet:
        await fleet.create(msgspec.structs.replace(NEW, when="every day at 2:30"))
        server.set("2027-03-28 03:29")
        await asyncio.sleep(0.05)
        assert server.names() == []
        server.set("2027-03-28 03:30")
        await eventually(server.names)
        assert server.names() == ["one.2027-03-28-0330"]
        found = await fleet.summary("one")
        assert found.due_at == datetime(2027, 3, 29, 0, 30, tzinfo=UTC).timestamp()


@in_loop
async def test_in_the_hour_that_occurs_twice_one_run_starts_over_a_restart_too(
    berlin: None, looks: None, tmp_path: Path
) -> None:
    first = datetime(2026, 10, 25, 0, 30, tzinfo=UTC).timestamp()
    server = Server(tmp_path, "2026-10-24 12:00")
    async with server.up() as fleet:
        await fleet.create(msgspec.structs.replace(NEW, when="every Sunday at 2:30"))
        server.now = first
        await eventually(lambda: fleet._entry("one").target.last_run)
        await eventually(server.names)
    async with server.up() as fleet:
        server.now = first + 3_600  # 2:30 once more.
        await asyncio.sleep(0.05)
        found = await fleet.summary("one")
        assert (found.last_run, found.skipped) == ("one.2026-10-25-0230", "")
        assert found.due_at == datetime(2026, 11, 1, 1, 30, tzinfo=UTC).timestamp()
    assert server.names() == ["one.2026-10-25-0230"]


@in_loop
async def test_a_machine_that_slept_over_several_times_makes_up_for_one(
    berlin: None, looks: None, tmp_path: Path
) -> None:
    """What APScheduler calls coalesce and misfire: Gerapy/Gerapy#323."""
    server = Server(tmp_path, "2026-10-19 12:00")
    async with server.up() as fleet:
        await fleet.create(msgspec.structs.replace(NEW, when="every day at 3"))
        server.set("2026-10-24 09:10")
        await eventually(server.names)
        await eventually(lambda: fleet._entry("one").target.due_at > server.now)
        await asyncio.sleep(0.05)
        assert server.names() == ["one.2026-10-20-0300"]
        found = await fleet.summary("one")
        assert found.due_at == datetime(2026, 10, 25, 2, tzinfo=UTC).timestamp()
        server.ends["one.2026-10-20-0300"].set()
        await eventually(lambda: not fleet.runs("one.2026-10-20-0300"))
        server.set("2026-10-24 02:59")  # The clock goes back: the same time comes again.
        await asyncio.sleep(0.05)
        server.set("2026-10-24 03:00")
        await asyncio.sleep(0.05)
        assert (server.names(), fleet._entry("one").target.skipped) == (["one.2026-10-20-0300"], "")


@in_loop
async def test_a_time_that_a_wrong_clock_set_is_set_anew(berlin: None, looks: None, tmp_path: Path) -> None:
    server = Server(tmp_path, "2036-01-01 00:00")
    async with server.up() as fleet:
        await fleet.create(msgspec.structs.replace(NEW, when="every Monday at 3"))
        server.set("2026-11-21 12:00")
        await eventually(lambda: fleet._entry("one").target.due_at == datetime(2026, 11, 23, 2, tzinfo=UTC).timestamp())
        server.set("2026-11-23 03:00")
        await eventually(server.names)
        assert server.names() == ["one.2026-11-23-0300"]


@in_loop
async def test_of_two_servers_of_a_folder_one_keeps_the_schedules(berlin: None, looks: None, tmp_path: Path) -> None:
    server = Server(tmp_path, "2026-10-23 12:00")
    async with server.up() as fleet:
        await fleet.create(msgspec.structs.replace(NEW, when="every Monday at 3"))
        with pytest.raises(ConfigError, match="is another server's; stop that one"):
            async with server.up():
                pass
        server.set("2026-10-26 03:00")
        await eventually(server.names)
        assert server.names() == ["one.2026-10-26-0300"]


@in_loop
async def test_a_schedule_that_cannot_be_saved_is_noted_and_ends_no_server(
    berlin: None, looks: None, tmp_path: Path
) -> None:
    server = Server(tmp_path, "2026-10-23 12:00")
    async with server.up() as fleet:
        await fleet.create(msgspec.structs.replace(NEW, when="every Monday at 3"))
        notes: list[str] = []
        fleet.note = notes.append  # type: ignore[method-assign]
        keep = fleet.folder.keep
        fleet.folder.keep = full_disk  # type: ignore[method-assign]
        server.set("2026-10-26 03:00")
        await eventually(lambda: notes)
        assert notes[0].startswith("one: the run one.2026-10-26-0300 was skipped: [Errno 28]")
        fleet.folder.keep = keep  # type: ignore[method-assign]
        server.set("2026-11-02 03:00")
        await eventually(server.names)
    assert server.names() == ["one.2026-11-02-0300"]


def full_disk(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@in_loop
async def test_of_two_crawls_at_the_same_time_one_waits_where_one_may_run(
    berlin: None, looks: None, tmp_path: Path
) -> None:
    server = Server(tmp_path, "2026-10-23 12:00", crawls_max=1)
    async with server.up() as fleet:
        for name in ("one", "two"):
            await fleet.create(msgspec.structs.replace(NEW, name=name, when="every Monday at 3"))
        server.set("2026-10-26 03:00")
        await eventually(lambda: fleet._entry("two").target.skipped)
        assert (server.names("one"), server.names("two")) == (["one.2026-10-26-0300"], [])
        assert "1 crawls run already" in (await fleet.summary("two")).skipped
        server.ends["one.2026-10-26-0300"].set()
        server.set("2026-10-26 05:00")
        await eventually(lambda: server.names("two"))
        assert server.names("two") == ["two.2026-10-26-0300"], "named after the time at which it was due"


def wish(run: Commands, name: str, **values: object) -> Any:
    """Return what a server keeps of a crawl, after setting `values`."""
    file = run.directory / OWN / f"{name}.json"
    found = json.loads(file.read_text()) | values
    file.write_text(json.dumps(found))
    return found


def names(call: Caller) -> list[str]:
    return [one["name"] for one in call.get("/api/crawls").json["crawls"]]


@pytest.mark.heavy
@pytest.mark.promise("Console", "A scheduled crawl runs again as a new one; a run that was missed is made up for once.")
def test_a_run_that_was_missed_is_made_up_for_once(run: Commands, web: str) -> None:
    call, server = run.served("serve", "--port", "0")
    call.post("/api/crawls", name="one", config=config_of(web, limits={"max_pages": 2}), start=False)
    assert "write 'every Monday at 3:00'" in call.post("/api/crawls/one/schedule", when="0 3 * * 1").error
    assert call.post("/api/crawls/none/schedule", when="every day at 3").status == 404
    wrong = call.post("/api/crawls", name="two", config=config_of(web), when="every Mondy at 3")
    assert "is no schedule; write" in wrong.error
    assert names(call) == ["one"], "nothing is begun"
    planned = call.post("/api/crawls/one/schedule", when=" every  Monday at 3").json
    assert (planned["schedule"], planned["state"]) == ("every Monday at 3", "created")
    assert time.time() < planned["due_at"] < time.time() + 8 * 86_400
    assert ended(server) == 0
    due_at = datetime(2026, 11, 9, 3).timestamp()  # noqa: DTZ001 - local time is meant
    wish(run, "one", due_at=due_at)
    call, server = run.served("serve", "--port", "0")
    until(lambda: names(call) == ["one", "one.2026-11-09-0300"])
    until(lambda: crawl_of(call, "one.2026-11-09-0300")["state"] == "finished")
    found = crawl_of(call, "one")
    assert found["due_at"] > time.time()
    assert (found["last_run"], found["skipped"], found["state"]) == ("one.2026-11-09-0300", "", "created")
    assert call.post("/api/crawls/one/schedule", when="").json["due_at"] is None
    assert names(call) == ["one", "one.2026-11-09-0300"], "one run for three weeks"
    assert ended(server) == 0
    assert (wish(run, "one")["schedule"], wish(run, "one")["due_at"]) == ("", 0.0)


@pytest.mark.heavy
def test_no_two_runs_of_one_crawl_are_at_the_same_time(run: Commands, web: str) -> None:
    call, server = run.served("serve", "--port", "0")
    call.post("/api/crawls", name="one", config=config_of(web))
    until(lambda: crawl_of(call, "one")["pages"] > 0)
    call.post("/api/crawls/one/schedule", when="every day at 3")
    assert ended(server) == 0
    wish(run, "one", due_at=1.0)
    call, server = run.served("serve", "--port", "0")
    until(lambda: "was not over" in crawl_of(call, "one")["skipped"])
    assert names(call) == ["one"]
    assert crawl_of(call, "one")["due_at"] > time.time()
    call.post("/api/crawls/one/stop", now=True)
    until(lambda: crawl_of(call, "one")["state"] == "stopped")
    assert crawl_of(call, "one")["schedule"] == "every day at 3", "the end of a run is not the end of its schedule"
    assert ended(server) == 0


@pytest.mark.heavy
def test_a_crawl_that_the_server_did_not_begin_runs_again_with_its_configuration(run: Commands, web: str) -> None:
    assert (
        run("crawl", web, "-o", "theirs", "--allow-private", "--delay", "0.05", "--max-pages", "3", "--quiet")[0] == 0
    )
    (run.directory / OWN).mkdir(exist_ok=True)
    (run.directory / OWN / "theirs.json").write_text('{"schedule": "every day at 3", "due_at": 1.0}')
    call, server = run.served("serve", "--port", "0")
    until(lambda: len(names(call)) == 2)
    again = names(call)[1]
    assert again.startswith("theirs.19")
    until(lambda: crawl_of(call, again)["pages"] == 3)
    assert ended(server) == 0
