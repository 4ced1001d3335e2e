"""Process: a synthetic web in its own process, for tests, benchmarks and the demo."""

import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import msgspec
from msgspec.structs import replace

from gossamer.lab.simweb.log import Logged, read_log
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.web import Web
from gossamer.model.errors import ConfigError
from gossamer.options import convert

READY_S_MAX = 60.0
END_S_MAX = 10.0
FREE_S_MAX = 5.0
FREE_LOOK_S = 0.25
"""How long the port of a web may stay in use after its crawl was killed, and the interval of checks."""


class SimwebProcess:
    """Serves a web while the context lasts. `web`, `port`, `hosts_file` and `dns` are there from its start.

    The process ends with the context, and also when the process that started it dies.
    """

    def __init__(self, options: SimwebOptions, directory: Path | None = None) -> None:
        """Keep log, hosts file and errors in `directory`; a temporary one, removed at the end, by default."""
        self._options = options
        self._temporary = tempfile.TemporaryDirectory(prefix="simweb-") if directory is None else None
        self.directory = Path(self._temporary.name) if self._temporary else directory or Path()
        self.log = self.directory / "requests.log"
        self.hosts_file = self.directory / "hosts"
        self.errors = self.directory / "errors.txt"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        if self._temporary is not None:
            self._temporary.cleanup()

    def start(self) -> None:
        """Start it and wait until it answers. Raises RuntimeError: it did not come up; the message has its output."""
        self.directory.mkdir(parents=True, exist_ok=True)
        options = msgspec.json.encode(self._options).decode()
        command = [sys.executable, "-m", "gossamer.lab.simweb", "--options", options, "--until-stdin-closes"]
        command += ["--log", str(self.log), "--hosts-file", str(self.hosts_file)]
        # The other process needs the import path of the package too.
        path = os.pathsep.join(filter(None, (str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", ""))))
        with self.errors.open("wb") as errors:
            self._process = subprocess.Popen(  # noqa: S603 (our own interpreter and module)
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=os.environ | {"PYTHONPATH": path},
                process_group=0,  # The terminal's Ctrl-C ends a crawl of it gently: until then it serves.
            )
        facts = self._ready_line()
        self.port = int(facts["port"])
        self.dns = str(facts["dns"])
        """`address:port` of the DNS answerer, as `--dns` takes it."""
        self.web = Web(replace(self._options, port=self.port))

    def stop(self) -> None:
        """End it and wait; the log is complete afterwards. May be called twice."""
        process = self._process
        if process is None:
            return
        self._process = None
        process.terminate()
        try:
            process.wait(END_S_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()

    @property
    def pid(self) -> int:
        """The process's number."""
        assert self._process is not None, "it does not run"
        return self._process.pid

    @property
    def options(self) -> str:
        """Specification of the web, as JSON: with the same addresses and port it makes the same web in any process."""
        return msgspec.json.encode(self.web.options if self._process is not None else self._options).decode()

    @property
    def seeds(self) -> tuple[str, ...]:
        """Addresses from which the whole web can be reached."""
        return self.web.seeds

    def requests(self) -> list[Logged]:
        """Return the requests logged so far; all of them after `stop`."""
        return read_log(self.log) if self.log.exists() else []

    def _ready_line(self) -> dict[str, str | int]:
        process = self._process
        assert process is not None
        assert process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            line = process.stdout.readline() if selector.select(READY_S_MAX) else b""
        if not line:
            self.stop()
            raise RuntimeError(f"simweb did not start: {self.errors.read_text().strip()}")
        facts: dict[str, str | int] = json.loads(line)
        return facts


@contextmanager
def serve_again(file: Path) -> Iterator[None]:
    """Serve the web whose options a file holds, at the addresses and the port that it had. Raises ConfigError: the port
    is taken, or the file is damaged.
    """
    try:
        options = convert(SimwebOptions, json.loads(file.read_bytes()))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file} does not say what web was crawled; gossamer demo makes a new one") from error
    web = SimwebProcess(options, file.parent / "web")
    gives_up_at = time.monotonic() + FREE_S_MAX
    while True:
        try:
            web.start()
            break
        except RuntimeError as error:
            if time.monotonic() > gives_up_at:
                raise ConfigError(
                    f"{' '.join(str(error).split())}; the synthetic web of {file.parent} needs the same port again: "
                    "end the program that uses it"
                ) from error
            time.sleep(FREE_LOOK_S)
    try:
        yield
    finally:
        web.stop()
