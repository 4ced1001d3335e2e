"""A real FTP server (pyftpdlib) as a process of its own, and the log of what it was asked."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SCRIPT = Path(__file__).with_name("ftp_serving.py")


@dataclass
class FtpServer:
    port: int
    log_file: Path

    def log(self) -> list[tuple[str, str]]:
        """Return (command, argument) of every command so far."""
        lines = self.log_file.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
        return [(command, rest) for command, _, rest in (line.partition(" ") for line in lines)]

    def asked(self, *commands: str) -> list[str]:
        return [argument for command, argument in self.log() if command in commands]


@contextmanager
def ftp_server(root: Path, at: Path, **options: str) -> Iterator[FtpServer]:
    """Serve `root`; options: `certificate` (a PEM file: implicit TLS), `user`, `password`, `banner`, `max_cons`,
    `refusal` (answer to EPSV and MDTM), `sizes` (SIZE is answered with the name of the file, without its extension).
    """
    at.mkdir(parents=True, exist_ok=True)
    log_file = at / "ftp.log"
    log_file.touch()
    arguments = json.dumps({"root": str(root), "log": str(log_file), **options})
    process = subprocess.Popen([sys.executable, SCRIPT, arguments], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield FtpServer(int(process.stdout.readline()), log_file)
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
