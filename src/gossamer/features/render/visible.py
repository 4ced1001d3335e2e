"""Visible: a browser in which a person logs in by hand. It returns the cookies and the pages that it has then."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec

from gossamer.features.render.browser import START_S_MAX, Browser, BrowserError

LOGIN_S_MAX: Final = 3_600.0
"""Longest time for a login by hand."""
LOOK_S: Final = 0.5
"""Seconds between two readings of the cookies."""
PAGE_S_MAX: Final = 2.0
"""Longest time for reading a page: one that shows a dialog does not answer."""
_READ: Final = """(() => {
    const visible = [...document.querySelectorAll("input[type=password]")].filter(one => one.getClientRects().length);
    let stored = 0;
    try { stored = localStorage.length } catch {}
    return { url: location.href, passwords: visible.length, stored };
})()"""
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


class ShownPage(msgspec.Struct, frozen=True):
    """A page of the window, as it was when it was last read."""

    url: str
    passwords: int
    """Visible fields for passwords."""
    stored: int
    """Entries of its localStorage."""


class LoginByHand(msgspec.Struct, frozen=True):
    """The state of a browser at the end of a login."""

    cookies: list[dict[str, Any]]
    """As its protocol has them."""
    pages: list[ShownPage]


async def log_in_by_hand(
    command: Sequence[str], is_done: Awaitable[object], on_start: Callable[[], None]
) -> LoginByHand:
    """Run a browser without a profile until its window is closed or `is_done`. `command`: its path, arguments and URL;
    `on_start` is called when it runs. Raises BrowserError: it did not start, or died before the first reading.
    """
    with tempfile.TemporaryDirectory(prefix="gossamer-login-", ignore_cleanup_errors=True) as folder:
        program, *arguments = command
        flags = (program, *_FLAGS, f"--user-data-dir={folder}", *arguments)
        browser = await Browser.launch(("-c", _LAUNCH), flags, asyncio.subprocess.DEVNULL)
        browser.listen(has_guard=False)
        try:
            await browser.call("Browser.getVersion", within_s=START_S_MAX)
            on_start()
            return await _watch(browser, asyncio.ensure_future(is_done))
        finally:
            await browser.close()


async def _watch(browser: Browser, done: asyncio.Future[object]) -> LoginByHand:
    found: LoginByHand | None = None
    sessions: dict[str, str] = {}
    try:
        async with asyncio.timeout(LOGIN_S_MAX):
            while True:
                is_last = bool((await asyncio.wait((done,), timeout=LOOK_S))[0])
                targets = (await browser.call("Target.getTargets"))["targetInfos"]
                open_pages = [one["targetId"] for one in targets if one.get("type") == "page"]
                if found is not None and not open_pages:
                    return found  # With its last page the browser drops its cookies.
                cookies = (await browser.call("Storage.getCookies"))["cookies"]
                pages = [page for one in open_pages if (page := await _read_page(browser, one, sessions)) is not None]
                if found is not None:
                    cookies = cookies or found.cookies
                    pages = pages or found.pages
                found = LoginByHand(cookies, pages)
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


async def _read_page(browser: Browser, target: str, sessions: dict[str, str]) -> ShownPage | None:
    """Return a page; None if it shows a dialog, or is being closed. `sessions` are those of pages read before."""
    with suppress(BrowserError, msgspec.ValidationError):
        if target not in sessions:
            attached = await browser.call("Target.attachToTarget", {"targetId": target, "flatten": True})
            sessions[target] = attached["sessionId"]
        asked = {"expression": _READ, "returnByValue": True}
        read = await browser.call("Runtime.evaluate", asked, sessions[target], within_s=PAGE_S_MAX)
        return msgspec.convert(read["result"].get("value"), ShownPage)
    return None
