"""Pywb: the replay tool that archives use, serving WARC files on loopback from an environment of its own."""

from __future__ import annotations

import http.client
import os
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import gossamer
from tests.answering import free_port

PROJECT = Path(gossamer.__file__).parents[2]
VENV = PROJECT / os.environ.get("REPLAY", ".venv-replay")
DEADLINE_S = 60.0


class Replayed(NamedTuple):
    """What pywb sent."""

    status: int
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes


def tool(name: str) -> Path:
    """Return a program of pywb's environment, which has the old brotli that pywb and warcio want."""
    found = VENV / "bin" / name
    if not found.exists():
        raise RuntimeError(f"{found} is missing: `make acceptance` installs pywb there")
    return found


@dataclass
class Pywb:
    """Serves collections, which `added` and `indexed` make, while the context is open. Its files lie in `at`."""

    at: Path
    port: int = field(default=0, init=False)

    def added(self, name: str, warcs: list[Path]) -> None:
        """Make a collection by pywb's own means: it copies and indexes the files itself."""
        self._manage("init", name)
        self._manage("add", name, *map(str, warcs))

    def indexed(self, name: str, warcs: list[Path], index: Path) -> None:
        """Make a collection with the index that the crawl made."""
        self._manage("init", name)
        collection = self.at / "collections" / name
        (collection / "indexes").mkdir(exist_ok=True)
        shutil.copy(index, collection / "indexes/index.cdxj")
        for path in warcs:
            (collection / "archive" / path.name).symlink_to(path)

    def __enter__(self) -> Self:
        self.port = free_port()
        command = [tool("wayback"), "-b", "127.0.0.1", "-p", str(self.port), "-d", self.at]
        self._output = (self.at / "output").open("wb")
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=self._output, stderr=subprocess.STDOUT
        )  # fmt: skip
        ends_at = time.monotonic() + DEADLINE_S
        while time.monotonic() < ends_at and self._process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1.0).close()
            except OSError:
                time.sleep(0.05)
            else:
                return self
        self.__exit__(None, None, None)
        raise RuntimeError(f"pywb does not start: {(self.at / 'output').read_text()}")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait(DEADLINE_S)
        self._output.close()

    def get(self, collection: str, url: str, *, rewritten: bool = False, gzip: bool = True, at: str = "") -> Replayed:
        """Ask for a capture as a browser sees it (`rewritten`), or as the server sent it; with `at`, the one nearest
        to an instant (14 digits).
        """
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE_S)
        path = f"/{collection}/{at}{'mp_' if rewritten else 'id_'}/{url}"
        connection.request("GET", path, headers={"Accept-Encoding": "gzip"} if gzip else {})
        answer = connection.getresponse()
        headers = {name.lower(): value for name, value in answer.getheaders()}
        replayed = Replayed(answer.status, headers, answer.read())
        connection.close()
        if replayed.status in (302, 307) and "_/" in headers.get("location", "") and not rewritten:
            return self._at(headers["location"])
        return replayed

    def _at(self, location: str) -> Replayed:
        raise AssertionError(f"an address of its own was asked for, pywb sends us to {location}")

    def _manage(self, *words: str) -> None:
        self.at.mkdir(exist_ok=True)
        command = [tool("wb-manager"), *words]
        done = subprocess.run(command, cwd=self.at, capture_output=True, text=True, timeout=DEADLINE_S)
        if done.returncode:
            raise RuntimeError(f"{command}: {done.stdout}{done.stderr}")
