"""Processes that we start are gone when they are to be, whatever they write."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any

import pytest
import uvloop
from starlette.types import Message

from gossamer.console import exports
from gossamer.console.service import Service
from gossamer.world import workers
from gossamer.world.workers import end_process

WITHIN_S = 60.0
Run = Callable[[Coroutine[Any, Any, int | None]], int | None]
WITHOUT_END = "import sys\nwhile True: sys.{}.write('x' * 65536)"


async def begun(code: str) -> asyncio.subprocess.Process:
    """Return a process whose pipes are full."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdin=DEVNULL, stdout=PIPE, stderr=PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    async with asyncio.timeout(WITHIN_S):
        while not (process.stdout._paused or process.stderr._paused):  # type: ignore[attr-defined] # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return process


@pytest.mark.parametrize("loop", [asyncio.run, uvloop.run])
@pytest.mark.parametrize("pipe", ["stdout", "stderr"])
def test_a_process_whose_pipe_is_full_is_ended(pipe: str, loop: Run) -> None:
    async def end() -> int | None:
        process = await begun(WITHOUT_END.format(pipe))
        async with asyncio.timeout(WITHIN_S):
            await end_process(process)
        return process.returncode

    assert loop(end()) == -signal.SIGKILL


def test_of_a_pipe_that_another_process_holds_the_end_is_not_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "END_S_MAX", 0.2)
    code = (
        "import os, subprocess, sys\n"
        "held = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)\n"
        "print(held.pid, flush=True)\n"
        "held.wait()"
    )

    async def run() -> None:
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=PIPE)
        assert process.stdout is not None
        held = int(await process.stdout.readline())
        async with asyncio.timeout(WITHIN_S):
            await end_process(process)
        assert process.returncode == -signal.SIGKILL
        os.kill(held, signal.SIGKILL)
        assert await process.stdout.read() == b""

    asyncio.run(run())


def test_a_reader_who_leaves_during_an_export_does_not_keep_others_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exports._ItemsFile, "_start_process", lambda _: begun(WITHOUT_END.format("stdout")))

    async def run() -> None:
        turn, taken = asyncio.Lock(), asyncio.Event()
        file = exports._ItemsFile(Path(), exports.ItemsExport(kind="product"), Service(4, 1.0), turn)

        async def leaves() -> Message:
            await taken.wait()
            return {"type": "http.disconnect"}

        async def takes_no_more(message: Message) -> None:
            if message["type"] == "http.response.body":
                taken.set()
                await asyncio.Event().wait()

        async with asyncio.timeout(WITHIN_S):
            await file({"type": "http"}, leaves, takes_no_more)
        assert not turn.locked()

    asyncio.run(run())
