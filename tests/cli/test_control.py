"""Control: a real socket on the other side, and everything that may be wrong with it."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gossamer.api.asking import NotRunningError
from gossamer.cli.control import ask
from gossamer.model.errors import ConfigError
from gossamer.world.process import DirectoryLock


class Answerer:
    """Listens as a crawl does, and gives each request the same reply."""

    def __init__(self, directory: Path) -> None:
        self.reply: bytes | None = b'{"ok": true, "result": {"n": 1}}\n'
        self.requests: list[object] = []
        state = directory / "state"
        state.mkdir(parents=True, exist_ok=True)
        self._folder = os.open(state, os.O_RDONLY | os.O_DIRECTORY)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"/proc/self/fd/{self._folder}/control.sock")
        self._listener.listen()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            client, _ = self._listener.accept()
            with client, client.makefile("rb") as lines:
                line = lines.readline()
                if self._done.is_set():
                    return
                self.requests.append(json.loads(line))
                if self.reply is None:
                    self._done.wait(100)
                else:
                    client.sendall(self.reply)

    def close(self) -> None:
        self._done.set()
        with socket.socket(socket.AF_UNIX) as last:
            last.connect(f"/proc/self/fd/{self._folder}/control.sock")
        self._thread.join()
        self._listener.close()
        os.close(self._folder)


@pytest.fixture(params=["short", "deep/" * 40 + "x"], ids=["short", "long"])
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A crawl's directory, also one whose socket's path is longer than the system takes."""
    found: Path = tmp_path / str(request.param)
    return found


@pytest.fixture
def answerer(directory: Path) -> Iterator[Answerer]:
    server = Answerer(directory)
    yield server
    server.close()


def test_a_request_has_its_answer(directory: Path, answerer: Answerer) -> None:
    assert ask(directory, "seed", {"urls": ["http://a/"]}) == {"n": 1}
    assert answerer.requests == [{"verb": "seed", "urls": ["http://a/"]}]


def test_an_answer_may_be_long(directory: Path, answerer: Answerer) -> None:
    answerer.reply = json.dumps({"ok": True, "result": "x" * 1_000_000}).encode() + b"\n"
    assert ask(directory, "why", {"url": "http://a/"}) == "x" * 1_000_000


def test_a_refusal_is_one_line(directory: Path, answerer: Answerer) -> None:
    answerer.reply = b'{"ok": false, "error": "no\\nsuch host"}\n'
    with pytest.raises(ConfigError, match=r"^no such host$"):
        ask(directory, "exclude", {"hosts": ["a.test"]})


@pytest.mark.parametrize("reply", [b"HTTP/1.1 400\n", b"[1]\n", b"{}\n"])
def test_what_is_no_crawl_is_recognized(directory: Path, answerer: Answerer, reply: bytes) -> None:
    answerer.reply = reply
    with pytest.raises(ConfigError, match="no crawl of this version"):
        ask(directory, "status")


def test_a_crawl_that_ends_instead_of_answering_is_not_running(directory: Path, answerer: Answerer) -> None:
    answerer.reply = b'{"ok": tr'
    with pytest.raises(NotRunningError):
        ask(directory, "status")


def test_no_answer_within_the_deadline_is_said(directory: Path, answerer: Answerer) -> None:
    answerer.reply = None
    with pytest.raises(ConfigError, match=r"did not answer within 0\.2 s"):
        ask(directory, "status", deadline_s=0.2)


def test_without_a_socket_nobody_runs(directory: Path) -> None:
    with pytest.raises(NotRunningError):
        ask(directory, "status")
    (directory / "state").mkdir(parents=True)
    with pytest.raises(NotRunningError):
        ask(directory, "status")


@pytest.mark.parametrize("holder", ["state/lock", "."])
def test_a_crawl_that_begins_is_waited_for(directory: Path, holder: str) -> None:
    """It holds the directory before it listens, also beside a socket that a crash left behind; between the death of its
    process and the start of the next one its supervisor does.
    """
    Answerer(directory).close()
    lock = DirectoryLock(directory / holder)
    assert lock.acquire(0.0)
    with ThreadPoolExecutor(1) as threads:
        answer = threads.submit(ask, directory, "status")
        with pytest.raises(TimeoutError):
            answer.result(0.3)
        (directory / "state/control.sock").unlink()
        begun = Answerer(directory)
        try:
            assert answer.result(100) == {"n": 1}
        finally:
            begun.close()
            lock.release()


def test_a_socket_that_a_crash_left_behind_is_nobody(directory: Path) -> None:
    server = Answerer(directory)
    server.close()
    assert (directory / "state/control.sock").exists()
    with pytest.raises(NotRunningError):
        ask(directory, "status")
