"""Visible: a browser in which a person logs in by hand. It returns the cookies that it has then."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from gossamer.features.render.browser import START_S_MAX, Browser, BrowserError, open_pipe

LOGIN_S_MAX: Final = 3_600.0
"""Longest time for a login by hand."""
LOOK_S: Final = 0.5
"""Seconds between two readings of the cookies."""
_LAUNCH: Final = (
    "import fcntl, os, sys\n"
    "ends = [fcntl.fcntl(int(one), fcntl.F_DUPFD_CLOEXEC, 10) for one in sys.argv[1:3]]\n"
    "[os.close(int(one)) for one in sys.argv[1:3]]\n"
    "[os.dup2(one, at) for one, at in zip(ends, (3, 4))]\n"
    "os.execv(sys.argv[3], sys.argv[3:])\n"
)
"""Starts the browser, which reads commands from descriptor 3 and writes answers to descriptor 4."""
_FLAGS: Final = (
    "--remote-debugging-pipe", "--no-first-run", "--no-default-browser-check", "--disable-sync", "--disable-extensions",
    "--password-store=basic", "--use-mock-keychain", "--window-size=1280,1024",
)  # fmt: skip


async def cookies_of_login(
    command: Sequence[str], is_done: Awaitable[object], on_start: Callable[[], None]
) -> list[dict[str, Any]]:
    """Run a browser without a profile, and wait until its window is closed or `is_done`. Return its cookies, as its
    protocol has them. `command` are its path and its arguments, with the URL; `on_start` is called when it runs.

    Raises:
        BrowserError: it did not start, or died before the first reading.
    """
    with tempfile.TemporaryDirectory(prefix="gossamer-login-", ignore_cleanup_errors=True) as folder:
        browser = await _start(command, folder)
        try:
            await browser.call("Browser.getVersion", within_s=START_S_MAX)
            on_start()
            return await _read_cookies(browser, asyncio.ensure_future(is_done))
        finally:
            await browser.close()


async def _read_cookies(browser: Browser, done: asyncio.Future[object]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] | None = None
    try:
        async with asyncio.timeout(LOGIN_S_MAX):
            while True:
                is_last = bool((await asyncio.wait((done,), timeout=LOOK_S))[0])
                targets = await browser.call("Target.getTargets")
                if found is not None and not any(one.get("type") == "page" for one in targets["targetInfos"]):
                    return found  # With its last page the browser drops its cookies.
                found = (await browser.call("Storage.getCookies"))["cookies"] or found or []
                if is_last:
                    return found
    except BrowserError:
        if found is None:
            raise
        return found
    except TimeoutError:
        raise BrowserError(f"no end of the login within {LOGIN_S_MAX / 60:g} minutes") from None
    finally:
        done.cancel()


async def _start(command: Sequence[str], folder: str) -> Browser:
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    program, *arguments = command
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", "-c", _LAUNCH, str(theirs_in), str(theirs_out), program, *_FLAGS,
            f"--user-data-dir={folder}", *arguments,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
            pass_fds=(theirs_in, theirs_out), start_new_session=True,
        )  # fmt: skip
    finally:
        os.close(theirs_in)
        os.close(theirs_out)
    browser = Browser(process, await open_pipe(ours_in, ours_out))
    browser.listen(has_guard=False)
    return browser
