"""Browser: one Chromium without a network, driven over a pipe by the Chrome DevTools Protocol."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from gossamer.features.render import guard
from gossamer.features.render.options import RenderOptions
from gossamer.model.errors import ConfigError
from gossamer.world.loop import wait_at_most
from gossamer.world.workers import end_process

CALL_S_MAX: Final = 15.0
"""An answer that takes longer does not come: every call is answered by the browser's own process."""
START_S_MAX: Final = 30.0
MESSAGE_BYTES_MAX: Final = 64 << 20
"""A browser that sends a longer message is ended."""
END_S_MAX: Final = 5.0
CLEAR_S: Final = 0.05
NO_NETWORK: Final = (
    # Nothing listens there, and not even loopback goes around it: measured with preconnect, navigation and WebSocket.
    "--proxy-server=http://127.0.0.1:9", "--proxy-bypass-list=<-loopback>", "--dns-prefetch-disable",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--disable-background-networking",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp", "--webrtc-ip-handling-policy=disable_non_proxied_udp",
)  # fmt: skip
FLAGS: Final = (
    "--headless", "--remote-debugging-pipe", "--no-first-run", "--no-default-browser-check", "--disable-gpu",
    "--disable-dev-shm-usage", "--disable-extensions", "--disable-sync", "--disable-component-update",
    "--disable-default-apps", "--disable-breakpad", "--disable-client-side-phishing-detection", "--mute-audio",
    "--block-new-web-contents", "--deny-permission-prompts", "--disable-back-forward-cache", "--metrics-recording-only",
    "--disable-features=Translate,MediaRouter,OptimizationHints,InterestFeedContentSuggestions,AutofillServerCommunication",
    "--disk-cache-size=1", "--use-mock-keychain", "--password-store=basic", "--window-size=1280,1024",
)  # fmt: skip

UNPRIVILEGED: Final = 65_534
"""By convention the user who owns nothing."""
SANDBOX: Final = "/usr/lib/chromium/chrome-sandbox"
"""Debian's package chromium-sandbox: a sandbox that needs no user namespaces."""
Event = Mapping[str, Any]
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class BrowserError(Exception):
    """A browser that died, hangs, or refused a call; the text says so in one line."""

    def __init__(self, text: str, reason: str = "crashed") -> None:
        """`reason` is one of those of `PageRow.rendered`."""
        super().__init__(text)
        self.reason = reason


class Pipe(NamedTuple):
    """Both directions of a browser's pipe."""

    reader: asyncio.StreamReader
    reading: asyncio.ReadTransport
    """Below `reader`: the end of a stream does not close it on every event loop."""
    writer: asyncio.StreamWriter


class Browser:
    """One browser process with its guard. Make it by `start`; `close` it."""

    def __init__(self, process: asyncio.subprocess.Process, pipe: Pipe) -> None:
        self._process = process
        self._pipe = pipe
        self._calls: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._number = 0
        self._tasks: list[asyncio.Task[None]] = []
        self.folder = ""
        self.on_event: Callable[[str, str, Event], None] = ignore
        """Hears the session, the name and the parameters of each event. Must not raise."""
        self.cpu_s = 0.0
        """Processor seconds of all its processes so far."""
        self.memory_bytes = 0
        """Of all of them now."""
        self.ended = ""
        """Why it does not answer any more; empty while it does."""
        self.reason = ""
        """The same in a word."""

    @classmethod
    async def start(cls, options: RenderOptions) -> Browser:
        """Start a browser: about 0.5 s. Raises BrowserError: it did not start."""
        folder = tempfile.mkdtemp(prefix="gossamer-browser-")
        starter = (guard.__file__, folder, str(options.memory_bytes_max), *map(str, user_of(options)))
        command = (
            program_of(options), *FLAGS, *NO_NETWORK, f"--user-data-dir={folder}",
            *(("--no-sandbox",) if options.unsandboxed else ()), "about:blank",
        )  # fmt: skip
        environment = {"HOME": folder, "TMPDIR": folder, "PATH": os.defpath, "LANG": "C.UTF-8", "TZ": "UTC"}
        try:
            browser = await cls.launch(starter, command, asyncio.subprocess.PIPE, environment)
        except BrowserError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        browser.folder = folder
        browser.listen()
        try:
            await browser.call("Browser.getVersion", within_s=START_S_MAX)
        except BaseException:
            await browser.close()
            raise
        return browser

    @classmethod
    async def launch(
        cls, starter: Sequence[str], command: Sequence[str], output: int, environment: Mapping[str, str] | None = None
    ) -> Browser:
        """Run Python with arguments: `starter`, both descriptors of a pipe, and the command that it is to start."""
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-I", "-S", *starter, str(theirs_in), str(theirs_out), *command,
                stdin=asyncio.subprocess.PIPE, stdout=output, stderr=asyncio.subprocess.DEVNULL,
                pass_fds=(theirs_in, theirs_out), start_new_session=True, env=environment,
            )  # fmt: skip
        except OSError as error:
            for one in (ours_in, ours_out):
                os.close(one)
            raise BrowserError(f"the browser did not start: {error.strerror}") from error
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        return cls(process, await open_pipe(ours_in, ours_out))

    def listen(self, *, has_guard: bool = True) -> None:
        """Begin to read what the browser and its guard say."""
        self._tasks = [asyncio.create_task(self._read())]
        if has_guard:
            self._tasks.append(asyncio.create_task(self._look()))

    async def call(
        self, method: str, params: Event | None = None, session: str = "", within_s: float = CALL_S_MAX
    ) -> dict[str, Any]:
        """Return the result of a command. Raises BrowserError: it was refused, or there is no answer."""
        if self.ended:
            raise BrowserError(self.ended, self.reason)
        self._number += 1
        number = self._number
        message: dict[str, Any] = {"id": number, "method": method, "params": params or {}}
        if session:
            message["sessionId"] = session
        future = self._calls[number] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(within_s):
                # A pipe that broke is closed before `_read` has found of what the browser died.
                if not self._pipe.writer.is_closing():
                    self._pipe.writer.write(msgspec.json.encode(message) + b"\0")
                    with suppress(ConnectionError):
                        await self._pipe.writer.drain()
                result: dict[str, Any] = await future
        except TimeoutError:
            raise BrowserError(f"the browser did not answer {method} within {within_s:g} s", "hangs") from None
        finally:
            self._calls.pop(number, None)
        return result

    async def close(self) -> None:
        """End the browser with all its processes."""
        self._end("the browser was closed")
        for task in self._tasks:
            task.cancel()
        self._pipe.writer.close()
        self._pipe.reading.close()
        assert self._process.stdin is not None
        self._process.stdin.close()
        if not await wait_at_most(END_S_MAX, self._process.wait()):
            await end_process(self._process)  # The browser dies with its guard.
        await wait_at_most(END_S_MAX, self._clear())

    async def _clear(self) -> None:
        """Remove the folder of a browser whose guard was killed: its processes end a little later."""
        while os.path.lexists(self.folder):  # noqa: ASYNC240 - a look takes microseconds
            shutil.rmtree(self.folder, ignore_errors=True)
            await asyncio.sleep(CLEAR_S)

    async def _read(self) -> None:
        try:
            while True:
                message = _decode((await self._pipe.reader.readuntil(b"\0"))[:-1])
                if (number := message.get("id")) is not None:
                    future = self._calls.get(number)
                    if future is None or future.done():
                        continue
                    if (error := message.get("error")) is not None:
                        future.set_exception(BrowserError(f"the browser refused: {error.get('message', '')}"))
                    else:
                        future.set_result(message.get("result", {}))
                else:
                    self.on_event(message.get("sessionId", ""), message.get("method", ""), message.get("params", {}))
        except (asyncio.IncompleteReadError, ConnectionError):
            await wait_at_most(END_S_MAX, self._process.wait())
            if self._process.returncode == guard.OUT_OF_MEMORY:
                self._end("its browser took more than render.memory_bytes_max", "memory")
            else:
                self._end("the browser died")
        except (asyncio.LimitOverrunError, msgspec.DecodeError):
            self._end("the browser sent what cannot be read")

    async def _look(self) -> None:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            used, held = line.split()
            self.cpu_s = float(used)
            self.memory_bytes = int(held)

    def _end(self, why: str, reason: str = "crashed") -> None:
        if not self.ended:
            self.ended = why
            self.reason = reason
        for future in self._calls.values():
            if not future.done():
                future.set_exception(BrowserError(self.ended, self.reason))


def program_of(options: RenderOptions) -> str:
    """Return the path of the browser. Raises ConfigError: there is none."""
    found = options.find_program()
    if found is None:
        what = f"no {options.program!r}" if options.program else "none"
        raise ConfigError(
            f"crawl.render needs Chromium, and there is {what}: install it (Debian: apt-get install "
            "chromium-headless-shell), or set render.program to its path"
        )
    return str(Path(found).resolve()) if "/" in options.program else found


def user_of(options: RenderOptions) -> tuple[int, int]:
    """Return the user and the group that a browser becomes; -1: ours. Raises ConfigError: there is no such user."""
    if os.getuid() != 0 or options.unsandboxed:
        return -1, -1
    try:
        found = pwd.getpwnam(options.user) if options.user else pwd.getpwuid(UNPRIVILEGED)
    except KeyError:
        raise ConfigError(f"render.user: there is no user {options.user!r}; name an unprivileged one") from None
    if found.pw_uid == 0:
        raise ConfigError("render.user: browsers do not run as root; name an unprivileged user")
    return found.pw_uid, found.pw_gid


def require_browser(options: RenderOptions) -> None:
    """Raise ConfigError if there is no browser, or it would have no sandbox, or no folder. About 40 ms."""
    program_of(options)
    status = probe(options)
    if status == guard.NO_ENTRY:
        raise ConfigError(
            f"crawl.render: browsers run as user {user_of(options)[0]}, who may not enter {tempfile.gettempdir()}; set "
            "TMPDIR to a folder that every user may enter"
        )
    if status and not (options.unsandboxed or Path(SANDBOX).exists()):
        raise ConfigError(
            "crawl.render: browsers would have no sandbox, for this system permits no user namespaces, or no chroot in "
            "them; permit both (in a container: --cap-add SYS_CHROOT, see docs/how-to/container.md), or run without "
            "one at your own risk: --set render.unsandboxed=true"
        )


def probe(options: RenderOptions) -> int:
    """Return 0 if browsers may have user namespaces, for their sandbox; `guard.NO_ENTRY`: they may not enter TMPDIR."""
    user, group = user_of(options)
    command = (sys.executable, "-I", "-S", guard.__file__, guard.PROBE, str(user), str(group), tempfile.gettempdir())
    return subprocess.run(command, check=False, timeout=START_S_MAX, capture_output=True).returncode  # noqa: S603 - ourselves


async def open_pipe(reads: int, writes: int) -> Pipe:
    """Return the streams to read from and write to a browser by two file descriptors, which it closes."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=MESSAGE_BYTES_MAX)
    reading, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reads, "rb", 0))
    writing, _ = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(writes, "wb", 0)
    )
    return Pipe(reader, reading, asyncio.StreamWriter(writing, writing.get_protocol(), None, loop))


def ignore(session: str, name: str, params: Event) -> None:
    """Take an event that nothing waits for."""
