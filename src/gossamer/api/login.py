"""Login: a person logs in by hand in a browser; its cookies become those of a crawl."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path

from gossamer.config.gather import reopen
from gossamer.config.live import save
from gossamer.features.render.visible import BrowserWindow, cookies_of_login
from gossamer.model.errors import ConfigError
from gossamer.model.product import LOCK
from gossamer.model.words import shell_word
from gossamer.url.name import host_of
from gossamer.url.site import site_of
from gossamer.world.files import make_directory, write_whole
from gossamer.world.process import DirectoryLock

FILE = Path("state/login.json")
"""In a crawl's directory: the cookies of the last login by hand, which the next run takes in."""
OWNERS_ALONE = 0o700


async def log_in(
    directory: Path, url: str, window: BrowserWindow, is_done: Awaitable[object], on_start: Callable[[], None]
) -> int:
    """Have a person log in at a URL, and store the cookies of its site for the crawl in a directory: its next run, or
    its first one with `cookies.file`, takes them in. Return their number. The other arguments are as in
    `cookies_of_login`.

    Raises:
        ConfigError: the crawl runs, the URL is none, or the browser has no cookies of its site.
        BrowserError: the browser did not start, or died.
    """
    host = host_of(url) if url.startswith(("http://", "https://")) else None
    if host is None:
        raise ConfigError(f"{url} is no http or https URL; write that of the login page")
    _require_stopped(directory)
    site = site_of(host)
    found = await cookies_of_login(url, window, is_done, on_start)
    cookies = [one for one in found if site_of(str(one["domain"]).removeprefix(".")) == site]
    if not cookies:
        raise ConfigError(f"the browser has no cookies of {site}; log in before you close its window")
    _require_stopped(directory)
    file = (directory / FILE).absolute()
    make_directory(file.parent)
    file.parent.chmod(OWNERS_ALONE)
    write_whole(file, json.dumps({"cookies": cookies}).encode(), private=True)
    if (directory / "crawl.toml").exists():
        save(reopen(directory / "crawl.toml", sets=[f"cookies.file={json.dumps(str(file))}"]), directory)
    return len(cookies)


def _require_stopped(directory: Path) -> None:
    if DirectoryLock.is_held(directory / LOCK):
        raise ConfigError(f"{directory}: its crawl runs; stop it with `gossamer stop {shell_word(directory)}` first")
