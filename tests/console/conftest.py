"""Crawls as processes, a web without end for them on loopback, and a caller of what they serve."""

from __future__ import annotations

import http.client
import http.server
import json
import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from gossamer.console.folder import OWN
from gossamer.world.process import birth_of
from tests.answering import Answering
from tests.cli.conftest import Real

DEADLINE_S = 60.0
SMALL = (
    "crawl.commit_s=0.1", "state.cache_bytes=1048576", "state.write_buffer_bytes=1048576", "watch.stall_s=60",
    "watch.commit_s_max=60",
)  # fmt: skip
"""Small, and without alarms for what a busy machine holds up."""
QUICK = tuple(word for text in SMALL for word in ("--set", text))


def until(condition: Callable[[], object]) -> None:
    """Wait for a condition, and fail when it does not come true."""
    ends_at = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < ends_at, "waited in vain"
        time.sleep(0.02)


class Answer:
    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self) -> Any:
        assert self.headers["content-type"] == "application/json"
        return json.loads(self.body)

    @property
    def error(self) -> str:
        """The one line that says what is wrong, and nothing beside it."""
        assert list(self.json) == ["error"]
        says: str = self.json["error"]
        assert says
        assert "\n" not in says
        return says


class Caller:
    """Asks one server over HTTP."""

    def __init__(self, port: int, token: str) -> None:
        self.port = port
        self.token = token
        self.token_path = ""

    @classmethod
    def at(cls, link: str) -> Caller:
        """Take what a command prints: an address, and in its fragment the token."""
        address, _, token = link.strip().partition("/#token=")
        assert len(token) >= 32
        return cls(int(address.rpartition(":")[2]), token)

    def __call__(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None, *, token: str = ""
    ) -> Answer:
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        given = {"Content-Type": "application/json"} if data is not None else {}
        if token:
            given["Authorization"] = f"Bearer {token}"
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE_S)
        try:
            line.request(method, path, data, {**given, **(headers or {})})
            answer = line.getresponse()
            return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        finally:
            line.close()

    def get(self, path: str) -> Answer:
        return self("GET", path)

    def post(self, path: str, **fields: object) -> Answer:
        return self("POST", path, fields, token=self.token)

    def status(self, prefix: str = "/api/") -> Any:
        return self.get(f"{prefix}status").json


class Commands(Real):
    """Runs commands, with what really crawls and serves, in a directory of its own."""

    deadline_s = DEADLINE_S

    def served(self, *arguments: str) -> tuple[Caller, subprocess.Popen[str]]:
        """Start what serves, and return who can call it."""
        process = self.start(*arguments)
        assert process.stdout is not None
        for line in process.stdout:
            if "/#token=" in line:
                return Caller.at(line.removeprefix("The console: ")), process
        raise AssertionError(process.communicate()[1])

    def close(self) -> None:
        for process in self.started:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.communicate()
        for file in self.directory.rglob(f"{OWN}/*.json"):  # A server's crawls outlive it.
            wish = json.loads(file.read_text())
            if wish["born"] and birth_of(wish["pid"]) == wish["born"]:
                os.kill(wish["pid"], signal.SIGKILL)


class _Web(Answering):
    """Each page leads to three others, and there is no end of them. Each has a text of its own: it is no trap."""

    def get(self) -> None:
        number = self.path.strip("/") or "0"
        found = number.isdecimal()
        links = "".join(f'<a href="/{3 * int(number) + n}">on</a>' for n in (1, 2, 3)) if found else ""
        text = random.Random(number).randbytes(300).hex(" ", 4)
        body = f"<title>Page &lt;{number}&gt;</title><p>words {text} {links}".encode()
        self.answer(200 if found else 404, body)


@pytest.fixture(scope="session")
def web() -> Iterator[str]:
    """A web on loopback, and where to begin in it."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Web)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Commands]:
    commands = Commands(tmp_path)
    yield commands
    commands.close()


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    """As `run`, for the tests of a whole module."""
    commands = Commands(tmp_path_factory.mktemp("served"))
    yield commands
    commands.close()
