"""Browser: calls of one that died end with an error of its own, on every event loop."""

from __future__ import annotations

import asyncio
import os
import sys

import pytest
import uvloop

from gossamer.features.render.browser import Browser, BrowserError, open_pipe


async def _calls_of_a_dead_one() -> list[BaseException | dict[str, object]]:
    """Return what calls bring once the browser's end of the pipe is closed, its process still being about to end."""
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        "import sys; sys.stdin.read()",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    browser = Browser(process, await open_pipe(ours_in, ours_out))
    os.close(theirs_in)
    calls = [asyncio.create_task(browser.call("Browser.getVersion", within_s=120.0)) for _ in range(3)]
    for _ in range(10):
        await asyncio.sleep(0)
    calls += [asyncio.create_task(browser.call("Browser.getVersion", within_s=120.0)) for _ in range(3)]
    await asyncio.sleep(0.05)
    calls.append(asyncio.create_task(browser.call("Browser.getVersion", within_s=120.0)))
    browser._tasks = [asyncio.create_task(browser._read()), asyncio.create_task(browser._look())]
    os.close(theirs_out)
    assert process.stdin is not None
    process.stdin.close()
    found = await asyncio.gather(*calls, return_exceptions=True)
    await browser.close()
    return found


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_calls_of_a_browser_that_died_end_as_its_death(run) -> None:  # type: ignore[no-untyped-def]
    found = run(_calls_of_a_dead_one())
    assert [(type(one), str(one)) for one in found] == [(BrowserError, "the browser died")] * 7
