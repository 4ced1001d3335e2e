"""Keeper: real processes that die in every way."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from gossamer.api.engine import MEMBER
from gossamer.cluster import shard_process
from gossamer.cluster.coordination import Look
from gossamer.cluster.job import ClusterPlan
from gossamer.cluster.reports import Orders
from gossamer.cluster.shard_process import RESTARTS_MAX, ShardProcess, ShardStart, start_of
from gossamer.model.product import __version__
from gossamer.state.slots import ShardSlots, death
from gossamer.world.clock import WallClock

SOURCE = Path(__file__).parents[2] / "src"
CHILD = """
import asyncio, json, os, socket, sys, time
from gossamer.cluster import shard_process as said
from gossamer.cluster.shard_process import FrameLine, read
from gossamer.state.slots import ShardSlots
from pathlib import Path

async def main():
    job = json.loads(sys.stdin.readline())
    line = await FrameLine.over(socket.socket(fileno=job["line"]))
    slots = ShardSlots(Path(job["slots"]))
    lives = Path(job["slots"], "lives")
    life = int(lives.read_text()) if lives.exists() else 0
    lives.write_text(str(life + 1))
    way = job["ways"][min(life, len(job["ways"]) - 1)]
    if way.startswith("commit "):
        slots.note_epoch(life + 1)
        way = way.removeprefix("commit ")
    if way.startswith("in a page "):
        slots.enter(0, 77, 2, time.time())
        way = way.removeprefix("in a page ")
    if way == "end":
        os._exit(0)
    if way == "refuse":
        line.send(said.LAST_WORDS, 1, b"a mistake of yours")
        await line.flush()
        os._exit(2)
    if way in ("full", "trouble"):
        line.send(said.LAST_WORDS, 0, b"the disk is full" if way == "full" else b"the disk fails")
        await line.flush()
        os._exit(said.TROUBLE)
    if way == "crash":
        line.send(said.LAST_WORDS, 0, b"internal error: ValueError: 7")
        await line.flush()
        os._exit(said.CRASHED)
    if way == "status 1":
        os._exit(1)
    if way.startswith("signal "):
        os.kill(os.getpid(), int(way.split()[1]))
    if way == "hang":
        time.sleep(60)
    while (message := await line.receive()) is not None:
        kind, number, rest = message
        if kind == said.QUESTION:
            verb = read(rest)["verb"]
            if verb == "end":
                os._exit(0)
            if verb == "stop":
                os.kill(os.getpid(), 19)
            if verb == "send":
                line.send(said.FRAME, 5, b"x" * 100)
            answer = {"state": "running", "holder": "me", "asked_at": 1.0, "renews": True, "status": {"pages": 3}}
            line.say(said.ANSWER, number, answer if verb == "look" else {"ok": True, "said": verb})
        elif kind in (said.FRAME, said.CARRIED, said.DROPPED):
            line.send(said.NOTE, 0, f"{kind} {number} {len(rest)}".encode())

asyncio.run(main())
"""


def keeper_of(
    tmp_path: Path,
    *ways: str,
    carry: Callable[[int, bytes], Awaitable[bool]] | None = None,
    process_s_max: float = 60.0,
    silent_s_max: float = 60.0,
) -> ShardProcess:
    ShardSlots(tmp_path).close()

    def job(line: int) -> bytes:
        return json.dumps({"line": line, "slots": str(tmp_path), "ways": ways}).encode() + b"\n"

    async def nowhere(to: int, frame: bytes) -> bool:
        return False

    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    start = ShardStart([sys.executable, "-c", CHILD], job, environment, tmp_path, process_s_max, silent_s_max)
    return ShardProcess(start, carry or nowhere, WallClock())


def test_a_page_that_a_process_died_of_is_accused_and_the_process_starts_again(tmp_path: Path) -> None:
    keeper = keeper_of(tmp_path, "in a page signal 11", "end")
    asyncio.run(keeper.run())
    assert (keeper.state, keeper.deaths) == ("done", 1)
    assert "SIGSEGV" in keeper.notes[0]
    assert [suspect.fingerprint for suspect in ShardSlots(tmp_path).take_suspects()] == [77]


def test_a_process_that_somebody_killed_accuses_nobody(tmp_path: Path) -> None:
    keeper = keeper_of(tmp_path, "in a page signal 9", "end")
    asyncio.run(keeper.run())
    assert (keeper.state, keeper.deaths) == ("done", 1)
    assert ShardSlots(tmp_path).take_suspects() == []


def test_a_process_that_hangs_in_a_page_is_ended_and_the_page_accused(tmp_path: Path) -> None:
    keeper = keeper_of(tmp_path, "in a page hang", "end", process_s_max=0.3)
    asyncio.run(keeper.run())
    assert "hung in a page" in keeper.notes[0]
    assert len(ShardSlots(tmp_path).take_suspects()) == 1


def test_a_machine_with_another_version_is_refused(tmp_path: Path) -> None:
    plan = ClusterPlan(
        directory=str(tmp_path), shards=2, partitions=b"", config="", command=MEMBER, tenure_s=20.0, round_s=0.5,
        answer_s_max=1.0, process_s_max=60.0, version="0.9.1",
    )  # fmt: skip

    async def nowhere(to: int, frame: bytes) -> bool:
        return False

    keeper = ShardProcess(start_of(plan, 1, "10.9.0.3-3f9a0c11"), nowhere, WallClock())
    asyncio.run(keeper.run())
    assert keeper.state == "refused"
    assert keeper.failure == (
        f"the crawl runs with gossamer 0.9.1, and machine 10.9.0.3-3f9a0c11 has {__version__}; install the same "
        "version on all machines"
    )


async def stop(keeper: ShardProcess) -> None:
    """Stop its process, which is then silent for too long; the next one has all the time that a busy machine needs."""
    start = keeper._start
    keeper._start = msgspec.structs.replace(start, silent_s_max=0.2)
    assert await keeper.ask({"verb": "stop"}, 60.0) is None
    keeper._start = start


async def until_answered(keeper: ShardProcess) -> None:
    while await keeper.ask({"verb": "hello"}, 60.0) is None:  # noqa: ASYNC110 - a process of its own begins
        await asyncio.sleep(0.01)


def test_a_process_that_does_not_answer_is_ended_and_starts_again(tmp_path: Path) -> None:
    """It may hang in the system, where neither the end of its lease nor an order reaches it. No page is accused."""

    async def run() -> None:
        keeper = keeper_of(tmp_path, "serve", "serve")
        keeping = asyncio.create_task(keeper.run())
        await until_answered(keeper)
        await stop(keeper)
        await until_answered(keeper)
        assert (keeper.deaths, keeper.state) == (1, "starting")
        assert keeper.notes[0] == "its process did not answer for 0 s and was ended; it continues from its last commit"
        await keeper.ask({"verb": "end"}, 60.0)
        await keeping

    asyncio.run(run())
    assert ShardSlots(tmp_path).take_suspects() == []


def test_a_process_that_cannot_be_killed_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It hangs in the system on a disk that has failed, for which a stopped one stands that nothing kills."""
    monkeypatch.setattr(shard_process, "UNKILLABLE_S", 0.2)
    monkeypatch.setattr(shard_process, "AGAIN_S", 0.1)

    async def run() -> None:
        keeper = keeper_of(tmp_path, "serve", "serve")
        keeping = asyncio.create_task(keeper.run())
        await until_answered(keeper)
        hung = keeper._process
        assert hung is not None
        monkeypatch.setattr(hung, "kill", lambda: None)
        await stop(keeper)
        await until_answered(keeper)
        assert hung.poll() is None
        why = "its process does not end although it was killed: its disk hangs"
        assert keeper.notes[0] == f"{why}; it is started again after 0 s, and the other shards go on"
        await keeper.ask({"verb": "end"}, 60.0)
        await keeping
        os.kill(hung.pid, 9)
        hung.wait()

    asyncio.run(run())


def test_a_process_may_take_long_to_start(tmp_path: Path) -> None:
    async def run() -> None:
        keeper = keeper_of(tmp_path, "serve", silent_s_max=0.0)
        keeping = asyncio.create_task(keeper.run())
        await until_answered(keeper)
        assert keeper.deaths == 0
        keeping.cancel()

    asyncio.run(run())


@pytest.mark.heavy
def test_deaths_without_progress_end_and_those_with_progress_do_not(tmp_path: Path) -> None:
    given_up = keeper_of(tmp_path, "signal 6")

    async def run() -> None:
        await given_up.look(1, "node", Look(orders=Orders(), gives_up=True), 60.0)
        await given_up.run()

    asyncio.run(run())
    assert (given_up.state, given_up.deaths) == ("failed", RESTARTS_MAX + 1)
    (tmp_path / "other").mkdir()
    lasting = keeper_of(tmp_path / "other", *["commit signal 6"] * (RESTARTS_MAX + 3), "end")
    asyncio.run(lasting.run())
    assert (lasting.state, lasting.deaths) == ("done", RESTARTS_MAX + 3)


@pytest.mark.heavy
@pytest.mark.promise(
    "Several shards", "A shard of a cluster that dies again and again, or cannot begin, does not end the crawl."
)
@pytest.mark.parametrize(
    ("lives", "why"),
    [
        (["signal 6"] * (RESTARTS_MAX + 1), "its process died of SIGABRT, for the 6th time without progress"),
        (["trouble"], "the disk fails"),
        # Its commits have pages that it gave up: they are no progress.
        (
            ["commit crash"] * (RESTARTS_MAX + 1),
            "its process ended: internal error: ValueError: 7, for the 6th time without progress",
        ),
        (["status 1"] * (RESTARTS_MAX + 1), "its process ended with status 1, for the 6th time without progress"),
        (["no program"], "its process cannot be started ([Errno 2] No such file or directory: 'no program')"),
    ],
)  # fmt: skip
def test_a_shard_that_fails_on_a_cluster_is_shown_and_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lives: list[str], why: str
) -> None:
    monkeypatch.setattr(shard_process, "AGAIN_S", 0.5)

    async def run() -> None:
        keeper = keeper_of(tmp_path, *lives, "serve")
        if lives == ["no program"]:
            command = keeper._start.command
            keeper._start = msgspec.structs.replace(keeper._start, command=["no program"])
        keeping = asyncio.create_task(keeper.run())
        while keeper.state != "failing":  # noqa: ASYNC110 - a process of its own ends
            await asyncio.sleep(0.01)
        seen = await keeper.look(1, "node", Look(orders=Orders()), 60.0)
        assert (seen.state, seen.failure, seen.holder) == ("failing", why, "")
        if lives == ["no program"]:
            keeper._start = msgspec.structs.replace(keeper._start, command=command)
        await until_answered(keeper)
        seen = await keeper.look(1, "node", Look(orders=Orders()), 60.0)
        assert (seen.state, seen.failure) == ("running", "")
        await keeper.ask({"verb": "end"}, 60.0)
        await keeping
        assert keeper.state == "done"

    asyncio.run(run())


def test_a_mistake_of_the_operators_is_not_tried_again(tmp_path: Path) -> None:
    keeper = keeper_of(tmp_path, "refuse")
    asyncio.run(keeper.run())
    assert (keeper.state, keeper.failure, keeper.deaths) == ("refused", "a mistake of yours", 0)


@pytest.mark.promise(
    "Several shards", "A full disk of one machine ends no crawl: its shards wait for room, others go on."
)
def test_a_shard_whose_disk_is_full_is_started_again_until_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard_process, "AGAIN_S", 0.01)
    keeper = keeper_of(tmp_path, *["full"] * (RESTARTS_MAX + 3), "end")
    asyncio.run(keeper.run())
    assert (keeper.state, keeper.failure, keeper.deaths) == ("done", "", 0)
    assert list(keeper.notes) == ["the disk is full; it is started again after 0 s, and the other shards go on"]


def test_a_crawl_can_be_stopped_while_a_shard_waits_for_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_process, "AGAIN_S", 0.01)

    async def run() -> None:
        keeper = keeper_of(tmp_path, "full")
        keeping = asyncio.create_task(keeper.run())
        while not keeper.notes:  # noqa: ASYNC110 - a process of its own ends
            await asyncio.sleep(0.01)
        assert (await keeper.look(1, "node", Look(orders=Orders()), 60.0)).state == "failing"
        await keeper.look(1, "node", Look(orders=Orders(end="stopped")), 60.0)
        await keeping
        assert keeper.state == "done"

    asyncio.run(run())


def test_a_death_is_said_in_words_whatever_the_signal() -> None:
    said = [death(status) for status in (3, -11, -200)]
    assert said == ["ended with status 3", "died of SIGSEGV", "died of signal 200"]


@pytest.mark.parametrize("arrives", [True, False])
def test_frames_are_carried_and_what_became_of_them_is_reported(tmp_path: Path, arrives: bool) -> None:
    carried: list[tuple[int, int]] = []

    async def carry(to: int, frame: bytes) -> bool:
        carried.append((to, len(frame)))
        return arrives

    async def run() -> list[str]:
        keeper = keeper_of(tmp_path, "serve", carry=carry)
        keeping = asyncio.create_task(keeper.run())
        await until_answered(keeper)
        assert await keeper.ask({"verb": "send"}, 60.0) == {"ok": True, "said": "send"}
        both = await asyncio.gather(*(keeper.ask({"verb": verb}, 60.0) for verb in ("one", "two")))
        assert both == [{"ok": True, "said": "one"}, {"ok": True, "said": "two"}]
        assert keeper.deliver(4, b"abc")
        while len(keeper.notes) < 2:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.01)
        seen = await keeper.look(1, "node", Look(orders=Orders()), 60.0)
        assert (seen.state, seen.holder, seen.status) == ("running", "me", {"pages": 3})
        assert seen.frames_carried == int(arrives)
        await keeper.ask({"verb": "end"}, 60.0)
        await keeping
        assert not keeper.deliver(4, b"abc")
        assert (await keeper.look(1, "node", Look(orders=Orders()), 60.0)).status == {"pages": 3}
        return sorted(seen.notes)

    assert asyncio.run(run()) == ["1 4 3", f"{2 if arrives else 3} 5 0"]
    assert carried == [(5, 100)]
