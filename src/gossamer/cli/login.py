"""Login: the command `login`, for a person before a browser."""

import asyncio
import json
import os
import shutil
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option, Typer, echo

from gossamer.assembly.home import refuse_root
from gossamer.cli.arguments import Place
from gossamer.cli.directory import holds_crawl
from gossamer.cli.output import Exit
from gossamer.config.gather import reopen
from gossamer.config.live import save
from gossamer.features.render.browser import BrowserError
from gossamer.features.render.visible import LoginByHand, ShownPage, log_in_by_hand
from gossamer.model.errors import ConfigError
from gossamer.model.product import LOCK
from gossamer.model.words import counted, shell_word
from gossamer.url.name import host_of
from gossamer.url.site import site_of
from gossamer.world.files import make_directory, write_whole
from gossamer.world.process import DirectoryLock

commands = Typer()
BROWSERS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")
DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")
PORT = 9222
FILE = Path("state/login.json")
"""In a crawl's directory: the cookies of the last login by hand, which its next run takes in."""
OWNERS_ALONE = 0o700


@commands.command("login")
def login(
    directory: Place,
    url: Annotated[str, Argument(metavar="URL", help="The login page, or a page that needs a login.")],
    port: Annotated[
        int,
        Option(
            "--remote-debugging", metavar="PORT",
            help="Open no window; another browser takes control through this port of loopback.", show_default=False,
        ),
    ] = 0,
    program: Annotated[str, Option("--browser", metavar="PATH", help="The browser (Chromium or Chrome).")] = "",
    *,
    unsandboxed: Annotated[
        bool, Option("--unsandboxed", help="Run the browser without its sandbox, as root must.")
    ] = False,
) -> int:  # fmt: skip
    """Log in by hand in a browser, and crawl with its cookies.

    Logins with two factors, scripts, or single sign-on through another site. The cookies of the URL's site go to DIR,
    and are credentials: only you can read them there.
    """
    host = host_of(url) if url.startswith(("http://", "https://")) else None
    if host is None:
        raise ConfigError(f"{url} is no http or https URL; write that of the login page")
    path = _browser(program)
    if os.getuid() == 0 and not unsandboxed:
        raise ConfigError("Chromium has no sandbox as root: log in as another user, or add --unsandboxed")
    if not (port or any(os.environ.get(name) for name in DISPLAYS)):
        shown = f"gossamer login {shell_word(directory)} {shell_word(url)} --remote-debugging {PORT}"
        raise ConfigError(f"there is no display for a window of the browser; run `{shown}`, which says what to open")
    _require_stopped(directory)
    if port:
        _require_free(port)
    site = site_of(host)
    sandbox = ["--no-sandbox"] if unsandboxed else []
    remote = [f"--remote-debugging-port={port}", "--headless"] if port else []
    try:
        found = asyncio.run(_log_in([path, *sandbox, *remote, url], port))
    except BrowserError as error:
        raise ConfigError(f"{path}: {error}; try it by hand, or name another with --browser PATH") from None
    cookies = [one for one in found.cookies if site_of(str(one["domain"]).removeprefix(".")) == site]
    pages = [page for page in found.pages if (at := host_of(page.url)) is not None and site_of(at) == site]
    _require_login(site, cookies, pages)
    _store(directory, cookies)
    echo(f"{counted(len(cookies), 'cookie')} stored in {directory / FILE}")
    step = f"gossamer resume {shell_word(directory)}"
    if not holds_crawl(directory):
        seed = pages[-1].url if pages else url
        step = f"gossamer crawl {shell_word(seed)} -o {shell_word(directory)} --cookies {shell_word(directory / FILE)}"
    echo(f"Next: {step}")
    return Exit.FINISHED


def _browser(program: str) -> str:
    for name in (program,) if program else BROWSERS:
        if (found := shutil.which(name)) is not None:
            return found
    what = f"no {program}" if program else "no Chromium and no Chrome"
    raise ConfigError(f"there is {what}; install it (Debian: apt-get install chromium), or name it with --browser PATH")


def _require_free(port: int) -> None:
    if not 0 < port < 65_536:
        raise ConfigError(f"--remote-debugging {port}: expected a number from 1 to 65535")
    try:  # The browser says nothing of it, and another program would be found there.
        socket.create_server(("127.0.0.1", port)).close()
    except OSError as error:
        raise ConfigError(f"--remote-debugging {port}: {os.strerror(error.errno or 0)}; name another port") from None


def _require_login(site: str, cookies: list[dict[str, Any]], pages: list[ShownPage]) -> None:
    if any(page.passwords == 1 for page in pages):
        [asking, *_] = [page.url for page in pages if page.passwords == 1]
        raise ConfigError(
            f"{asking} still asks for a password, and nothing was stored; log in, wait for the page after the login, "
            "and close the window then"
        )
    if not cookies:
        why = " (what the page has in localStorage is not kept)" if any(page.stored for page in pages) else ""
        raise ConfigError(f"the browser has no cookies of {site}{why}; log in before you close its window")


def _store(directory: Path, cookies: list[dict[str, Any]]) -> None:
    _require_stopped(directory)
    file = (directory / FILE).absolute()
    make_directory(file.parent)
    file.parent.chmod(OWNERS_ALONE)
    write_whole(file, json.dumps({"cookies": cookies}).encode(), private=True)
    if holds_crawl(directory):
        save(reopen(directory / "crawl.toml", sets=[f"cookies.file={json.dumps(str(file))}"]), directory)


def _require_stopped(directory: Path) -> None:
    if directory.is_file():
        raise ConfigError(f"{directory} is a file; name the directory of a crawl")
    refuse_root(directory)
    if DirectoryLock.is_held(directory / LOCK):
        raise ConfigError(f"{directory}: its crawl runs; stop it with `gossamer stop {shell_word(directory)}` first")


async def _log_in(command: list[str], port: int) -> LoginByHand:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def read_line() -> None:
        is_line = bool(sys.stdin.readline())
        loop.remove_reader(sys.stdin)
        if is_line and not done.done():
            done.set_result(None)

    def show() -> None:
        says = "Log in in the window of the browser, then close it, or press Enter here."
        if port:
            at = f"127.0.0.1:{port}"
            says = (
                f"The browser is at http://{at} (from another machine first: ssh -L {port}:{at} HOST). Open "
                f"chrome://inspect in Chrome or Chromium, add {at} under Configure, and log in in the page that it "
                "lists; then press Enter here."
            )
        echo(says)

    with suppress(OSError, ValueError):  # What cannot be waited for, such as a file, has no Enter.
        loop.add_reader(sys.stdin, read_line)
    return await log_in_by_hand(command, done, show)
