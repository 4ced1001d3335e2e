"""Processing modules that do on each page what an attacker's code would, and count in a column how often it worked."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from gossamer.model.pages import Findings, Page


class Escaping:
    """Tries everything; `ESCAPE` is a folder with a file `secret`, `ESCAPE_PORT` that of a listener, `ESCAPE_PID` a
    process that is none of the crawl's.
    """

    name = "escaping"
    columns: ClassVar = {"escaped": "text"}

    def wants(self, media_type: str) -> bool:
        return media_type == "text/html"

    def process(self, page: Page, findings: Findings) -> None:
        folder = Path(os.environ["ESCAPE"])
        own = Path(os.environ["ESCAPE_CRAWL"])
        tries: dict[str, Callable[[], object]] = {
            "read": (folder / "secret").read_bytes,
            "list": lambda: [*folder.iterdir()],
            "write": lambda: (folder / "made").write_text("x"),
            "truncate": lambda: os.truncate(folder / "secret", 0),
            "remove": (folder / "victim").unlink,
            "link": lambda: os.link(folder / "secret", own / "stolen"),
            "symlink": lambda: (own / "way").symlink_to(folder),
            "memory": lambda: Path(f"/proc/{os.environ['ESCAPE_PID']}/environ").read_bytes(),
            "signal": lambda: os.kill(int(os.environ["ESCAPE_PID"]), signal.SIGTERM),
            "child": lambda: subprocess.run(["/bin/cat", folder / "secret"], check=True, capture_output=True),
            "run": lambda: self.run(own / "program"),
            "unix": lambda: self.connect(socket.AF_UNIX, os.environ["ESCAPE_SOCKET"]),
            "abstract": lambda: self.connect(socket.AF_UNIX, "\0" + os.environ["ESCAPE_SOCKET"]),
            "tcp": lambda: self.connect(socket.AF_INET, ("127.0.0.1", int(os.environ["ESCAPE_PORT"]))),
            "udp": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close(),
        }
        worked = []
        for name, attempt in tries.items():
            with suppress(OSError, subprocess.CalledProcessError):
                attempt()
                worked.append(name)
        findings.columns["escaped"] = " ".join(worked)

    def run(self, program: Path) -> None:
        program.write_text("#!/bin/sh\n")
        program.chmod(0o700)
        subprocess.run([program], check=True, capture_output=True)

    def connect(self, family: int, address: object) -> None:
        with socket.socket(family) as line:
            line.settimeout(5.0)
            line.connect(address)


class Alone(Escaping):
    """The same in an isolated process."""

    isolated = True


class Widening:
    """Writes into the configuration what would end the sandbox, and dies once; then it is `Escaping`."""

    name = "widening"
    columns = Escaping.columns

    def wants(self, media_type: str) -> bool:
        return media_type == "text/html"

    def process(self, page: Page, findings: Findings) -> None:
        own = Path(os.environ["ESCAPE_CRAWL"])
        if not (own / "died").exists() and page.url.endswith("page-3.html"):
            (own / "died").touch()
            written = (own / "crawl.toml").read_text()
            assert 'sandbox = "on"' in written
            (own / "crawl.toml").write_text(written.replace('sandbox = "on"', 'sandbox = "off"'))
            os.kill(os.getpid(), signal.SIGSEGV)
        Escaping().process(page, findings)


class Quiet:
    """Tries nothing."""

    name = "quiet"

    def wants(self, media_type: str) -> bool:
        return False

    def process(self, page: Page, findings: Findings) -> None:
        pass
