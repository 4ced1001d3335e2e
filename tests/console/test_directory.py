"""A crawl that does not run: what is told of it, and how often its store is opened for that."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gossamer import Crawler
from gossamer.console import directory as module
from gossamer.console import views
from gossamer.console.directory import Directory
from gossamer.model.product import LOCK
from gossamer.model.verbs import Nothing
from gossamer.world.process import MAINTENANCE, DirectoryLock
from tests.api.site import Site, star


@pytest.fixture
def crawl(tmp_path: Path) -> Path:
    async def crawled() -> None:
        async with Site(star(3)) as site:
            small = {"crawl.commit_s": 0.05, "state.cache_bytes": 1 << 20, "state.write_buffer_bytes": 1 << 20}
            output = tmp_path / "crawl"
            await Crawler(site.root, output=output, allow_private=True, politeness="own", settings=small).run()

    asyncio.run(crawled())
    return tmp_path / "crawl"


def asked(crawl: Path, *requests: dict[str, object], kept_s: float = 0.0) -> tuple[list[dict[str, object]], int]:
    """Return the answers, and how often the status was read."""
    read = 0

    class Counted(Directory):
        async def _status_now(self, *, again: bool = False) -> dict[str, object]:
            nonlocal read
            read += 1
            return await super()._status_now(again=again)

    async def work() -> list[dict[str, object]]:
        desk = Counted(crawl, pytest.fail)
        return [await desk.ask(request) for request in requests]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "KEPT_S", kept_s)
        return asyncio.run(work()), read


STATUS: dict[str, object] = {"verb": "status"}


def test_its_status_is_read_once_as_long_as_nobody_opens_it(crawl: Path) -> None:
    answers, read = asked(crawl, STATUS, STATUS, STATUS)
    assert {str(answer["result"]["state"]) for answer in answers} == {"finished"}  # type: ignore[index]
    assert read == 1


@pytest.mark.heavy
def test_it_is_read_again_when_somebody_has_had_it(crawl: Path) -> None:
    async def work() -> list[object]:
        desk = Directory(crawl, pytest.fail)
        first = (await desk.ask(STATUS))["result"]
        lock = DirectoryLock(crawl / "state/lock")
        assert lock.acquire(1.0)
        held = (await desk.ask(STATUS))["result"]
        lock.release()
        return [first, held, (await desk.ask(STATUS))["result"]]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "KEPT_S", 0.0)
        first, held, last = asyncio.run(work())
    assert isinstance(first, dict)
    assert isinstance(last, dict)
    assert isinstance(held, dict)
    assert {**first, "disk_bytes": 0} == {**last, "disk_bytes": 0}, "a store writes files when it is opened"
    assert held["state"] == "starting"
    assert "in use" in held["waiting_for"]


@pytest.mark.parametrize(("maintained", "state"), [(False, "starting"), (True, "finished")])
def test_a_crawl_that_its_supervisor_is_about_to_start_again_is_not_called_stopped(
    crawl: Path, *, maintained: bool, state: str
) -> None:
    with DirectoryLock(crawl) as supervisor, DirectoryLock(crawl / MAINTENANCE) as command:
        assert supervisor.acquire(1.0)
        assert not maintained or command.acquire(1.0)
        [answer], _ = asked(crawl, STATUS)
    (crawl / MAINTENANCE).unlink()
    [after], _ = asked(crawl, STATUS)
    assert [answer["result"]["state"], after["result"]["state"]] == [state, "finished"]  # type: ignore[index]


def test_a_crawl_whose_configuration_cannot_be_read_has_failed(crawl: Path) -> None:
    whole = (crawl / "crawl.toml").read_text()
    (crawl / "crawl.toml").write_text(whole + "nonsense\n")
    [answer], _ = asked(crawl, STATUS)
    assert answer["result"]["state"] == "failed"  # type: ignore[index]
    assert "crawl.toml is not TOML" in answer["result"]["waiting_for"]  # type: ignore[index]


def test_what_is_no_request_and_what_is_no_crawl(crawl: Path, tmp_path: Path) -> None:
    answers, _ = asked(crawl, {"verb": "dance"}, {"verb": "why"}, {"verb": "pause"}, {"verb": "seed", "urls": ["x"]})
    assert [answer["kind"] for answer in answers] == ["invalid", "invalid", "conflict", "conflict"]
    answers, _ = asked(tmp_path / "nothing", STATUS)
    assert answers[0]["kind"] == "missing"


def test_its_report_is_made_once_until_its_lock_is_taken(crawl: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class NoService:
        searches = reads = replay = None

    made = 0

    async def make_report(_: Path) -> dict[str, object]:
        nonlocal made
        made += 1
        return {"made": made}

    async def work() -> list[object]:
        read = views.Views(crawl, NoService())  # type: ignore[arg-type]
        first = [await read.report(Nothing()) for _ in range(2)]
        lock = DirectoryLock(crawl / LOCK)
        assert lock.acquire(1.0)
        running = [await read.report(Nothing()) for _ in range(2)]
        lock.release()
        return [*first, *running, await read.report(Nothing()), await read.report(Nothing())]

    monkeypatch.setattr(views, "REPORT_KEPT_S", -1.0)
    monkeypatch.setattr(views, "_make_report", make_report)
    assert asyncio.run(work()) == [{"made": number} for number in (1, 1, 2, 3, 4, 4)]
