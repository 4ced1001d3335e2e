"""Pool: questions from one queue, answered by whichever process is free; what dies costs its own question."""

from __future__ import annotations

import asyncio
import functools
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gossamer.world.pool import PoolSeat, WorkerPool
from gossamer.world.process import birth_of
from gossamer.world.workers import DiedError, OverdueError, WorkerError

HERE = Path(__file__).parents[2]
PATHS = os.pathsep.join([str(HERE), str(HERE / "src")])
COMMAND = (sys.executable, "-c", "from tests.world.test_pool import serve; serve()")
WAITING_MAX = 2
LONG = 900_000
"""Bytes of an answer that no pipe holds."""


def serve() -> None:
    """Do what questions say, and answer with the process's number."""
    seat = PoolSeat(sys.stdout.buffer)
    while (question := seat.take()) is not None:
        seat.note(1)
        match question.head:
            case b"die":
                seat.note(2)
                os.kill(os.getpid(), signal.SIGKILL)
            case b"wait":
                while not Path(os.fsdecode(question.body)).exists():
                    time.sleep(0.01)
            case b"noise":
                os.write(1, b"what a library prints, much longer than a head")
            case b"file":
                assert question.file is not None
                seat.answer(os.pread(question.file, 100, 0))
                os.close(question.file)
                continue
            case b"echo":
                seat.answer(question.body)
                continue
            case b"interrupt":
                signal.signal(signal.SIGALRM, lambda *_: None)
                signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
                seat.answer(bytes(question.body) * LONG)
                signal.setitimer(signal.ITIMER_REAL, 0.0)
                continue
        seat.answer(b"%d" % os.getpid())


@asynccontextmanager
async def pool_of(
    processes: int, command: tuple[str, ...] = COMMAND, limit_s: float = 30.0
) -> AsyncIterator[WorkerPool]:
    environment = {**os.environ, "PYTHONPATH": PATHS}
    pool = WorkerPool(command, limit_s, processes, WAITING_MAX, environment, answer_bytes_max=1 << 20)
    try:
        async with asyncio.timeout(60):
            yield pool
    finally:
        await pool.close()


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @functools.wraps(test)
    def run(**given: object) -> None:
        asyncio.run(test(**given))

    return run


@in_loop
async def test_each_answer_is_that_of_its_question() -> None:
    async with pool_of(2) as pool:
        bodies = [b"%d" % number * (1 + number * 997) for number in range(60)]
        answers = await asyncio.gather(*(pool.ask(b"echo", body, bytes) for body in bodies))
        assert answers == bodies
        assert pool.starts <= 2


@in_loop
async def test_a_process_is_started_only_when_questions_wait() -> None:
    async with pool_of(8) as pool:
        assert pool.starts == 0
        for _ in range(5):
            await pool.ask(b"pid", b"", int)
        assert pool.starts == 1


@in_loop
async def test_a_slow_question_holds_up_no_other(tmp_path: Path) -> None:
    release = tmp_path / "release"
    async with pool_of(2) as pool, asyncio.TaskGroup() as group:
        slow = group.create_task(pool.ask(b"wait", os.fsencode(release), int))
        await asyncio.sleep(0)
        quick = [await pool.ask(b"pid", b"", int) for _ in range(30)]
        assert not slow.done()
        release.touch()
        assert await slow not in quick


@in_loop
async def test_only_so_many_questions_are_in_memory(tmp_path: Path) -> None:
    release = tmp_path / "release"
    async with pool_of(1) as pool, asyncio.TaskGroup() as group:
        asked = [group.create_task(pool.ask(b"wait", os.fsencode(release), int)) for _ in range(10)]
        await asyncio.sleep(0)
        assert len(pool._asked) == 1 + WAITING_MAX
        release.touch()
        assert len({await one for one in asked}) == 1


@in_loop
@pytest.mark.heavy
async def test_a_process_that_dies_costs_the_question_that_it_had_taken(tmp_path: Path) -> None:
    release = tmp_path / "release"
    async with pool_of(2) as pool:
        answers = await asyncio.gather(
            *(pool.ask(b"die" if number % 5 == 0 else b"pid", b"", int, steps=2) for number in range(20)),
            return_exceptions=True,
        )
        died = [answer for answer in answers if isinstance(answer, DiedError)]
        assert len(died) == 4
        assert all(isinstance(answer, int) for number, answer in enumerate(answers) if number % 5)
        assert {(one.returncode, one.begun) for one in died} == {(-signal.SIGKILL, 2)}
        release.touch()
        assert await pool.ask(b"wait", os.fsencode(release), int) > 0


@in_loop
async def test_a_process_that_dies_while_idle_costs_nothing() -> None:
    async with pool_of(1) as pool:
        pid = await pool.ask(b"pid", b"", int)
        os.kill(pid, signal.SIGKILL)
        while birth_of(pid):  # noqa: ASYNC110 - no event reports it; `pool_of` has the deadline
            await asyncio.sleep(0.01)
        assert await pool.ask(b"pid", b"", int) != pid


@in_loop
async def test_a_process_that_cannot_start_fails_each_question_once() -> None:
    async with pool_of(2, (sys.executable, "-c", "raise SystemExit(3)")) as pool:
        answers = await asyncio.gather(*(pool.ask(b"pid", b"", int) for _ in range(12)), return_exceptions=True)
        assert [str(answer) for answer in answers] == ["its process died (exit status 3)"] * 12
        assert 0 < pool.starts <= 14, "it does not start processes for ever"
    async with pool_of(2, ("/nowhere/at/all",)) as pool:
        with pytest.raises(FileNotFoundError):
            await pool.ask(b"pid", b"", int)


@in_loop
async def test_an_answer_that_cannot_be_read_costs_its_question() -> None:
    async with pool_of(1) as pool:
        with pytest.raises(WorkerError, match="answered what cannot be read"):
            await pool.ask(b"noise", b"", int)
        with pytest.raises(WorkerError, match="answered what cannot be read: invalid literal"):
            await pool.ask(b"echo", b"no number", int)
        with pytest.raises(WorkerError, match="answered what cannot be read: 1048577 bytes"):
            await pool.ask(b"echo", bytes((1 << 20) + 1), bytes)
        assert await pool.ask(b"pid", b"", int) > 0


@in_loop
async def test_a_question_without_an_answer_is_given_up_and_its_process_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with pool_of(1) as pool:
        process = await pool.ask(b"pid", b"", int)
        monkeypatch.setattr(pool, "_limit_s", 0.1)
        monkeypatch.setattr("gossamer.world.pool.START_S_MAX", 0.0)
        with pytest.raises(OverdueError):
            await pool.ask(b"wait", os.fsencode(tmp_path / "never"), int)
        monkeypatch.undo()
        assert await pool.ask(b"pid", b"", int) != process


@in_loop
async def test_signals_do_not_cut_long_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a buffer, a write of more than the pipe holds is cut short by a signal."""
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    async with pool_of(1) as pool:
        for _ in range(3):
            asking = asyncio.create_task(pool.ask(b"interrupt", b"x", bytes))
            await asyncio.sleep(0)
            assert await asking == b"x" * LONG
            assert await pool.ask(b"echo", b"next", bytes) == b"next"


@in_loop
async def test_a_file_is_handed_over_as_it_is() -> None:
    with tempfile.TemporaryFile() as file:
        file.write(b"on disk")
        file.flush()
        async with pool_of(1) as pool:
            assert await pool.ask(b"file", b"", bytes, file=file.fileno()) == b"on disk"
            assert await pool.ask(b"file", b"", bytes, file=file.fileno()) == b"on disk"


@in_loop
async def test_no_process_is_left_at_the_end(tmp_path: Path) -> None:
    async with pool_of(2) as pool:
        pids = {await pool.ask(b"pid", b"", int)}
        waiting = asyncio.create_task(pool.ask(b"wait", os.fsencode(tmp_path / "never"), int))
        pids.add(await pool.ask(b"pid", b"", int))
        waiting.cancel()
    assert [pid for pid in pids if birth_of(pid)] == []


def test_processes_end_with_the_one_that_asks() -> None:
    script = f"""
import asyncio, os, signal
from gossamer.world.pool import WorkerPool
async def main():
    pool = WorkerPool({COMMAND!r}, 30.0, 1, 2, answer_bytes_max=1 << 20)
    print(await pool.ask(b"pid", b"", int), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""
    ended = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": PATHS}, stdout=subprocess.PIPE, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert ended.returncode == -signal.SIGKILL
    while birth_of(int(ended.stdout)):
        time.sleep(0.01)
