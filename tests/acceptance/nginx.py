"""Nginx: a real web server on loopback, started for a test or a benchmark and ended with it."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from tests.answering import free_port

NGINX = shutil.which("nginx", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"]))
PORTS_TRIED = 5
DEADLINE_S = 60.0
CONFIGURATION = """\
{user}daemon off;
pid {at}/pid;
worker_processes 1;
events {{ worker_connections 1024; }}
http {{
    include /etc/nginx/mime.types;
    log_format columns '$request_method $request_uri $status $server_protocol $connection $body_bytes_sent '
                       '"$http_user_agent" $server_addr "$sent_http_content_type" '
                       '$sent_http_content_encoding $msec $request_time';
    access_log {at}/access.log columns;
    keepalive_requests 1000000;
    sendfile on;
    client_body_temp_path {at}/body; proxy_temp_path {at}/proxy; fastcgi_temp_path {at}/fastcgi;
    uwsgi_temp_path {at}/uwsgi; scgi_temp_path {at}/scgi;
{http}
    server {{
{listen}
        root {root};
{server}
    }}
}}
"""
GZIP = "    gzip on; gzip_comp_level 1; gzip_types *;"


class Logged(NamedTuple):
    """One request as the server saw it."""

    method: str
    path: str
    status: int
    protocol: str
    connection: int
    body_bytes: int
    agent: str
    host: str
    media_type: str
    coding: str
    began_at: float
    ended_at: float


@dataclass
class Nginx:
    """Serves `root` at a free port of 127.0.0.1 while the context is open; its files lie in `at`."""

    root: Path
    at: Path
    gzip: bool = False
    certificate: Path | None = None
    """A PEM file with a certificate and its key: HTTPS then."""
    h2: bool = True
    """Whether HTTPS offers h2."""
    server: str = ""
    """Further directives of the server block."""
    addresses: int = 1
    """How many addresses from 127.0.0.1 up it listens on: as many hosts."""
    port: int = field(default=0, init=False)

    @property
    def origin(self) -> str:
        return f"https://localhost:{self.port}" if self.certificate else f"http://127.0.0.1:{self.port}"

    @property
    def origins(self) -> list[str]:
        """One for each address."""
        scheme = "https" if self.certificate else "http"
        return [f"{scheme}://{address}:{self.port}" for address in self._addresses]

    @property
    def _addresses(self) -> list[str]:
        return [f"127.0.0.{n}" for n in range(1, self.addresses + 1)]

    def __enter__(self) -> Self:
        if NGINX is None:
            raise RuntimeError("nginx is missing: `make acceptance` installs it (package nginx-light)")
        if not self.root.is_dir():
            raise RuntimeError(f"{self.root} is missing: `make acceptance` installs it")
        self.at.mkdir(parents=True)
        for _ in range(PORTS_TRIED):  # The port is free when we ask, and may be taken when nginx does.
            self.port = free_port()
            self.start()
            if self._answers():
                return self
            self.stop()
        raise RuntimeError(f"nginx does not start: {(self.at / 'error.log').read_text()}")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        return self._process.pid

    def log(self) -> list[Logged]:
        """Return the requests that have ended so far, in the order in which they did."""
        requests = []
        for line in (self.at / "access.log").read_text().splitlines():
            front, agent, host, content_type, back = line.split('"')
            coding, ended_at, took_s = back.split()
            method, path, status, protocol, connection, body_bytes = front.split()
            numbers = int(status), protocol, int(connection), int(body_bytes)
            media_type = content_type.partition(";")[0]
            times = float(ended_at) - float(took_s), float(ended_at)
            requests.append(Logged(method, path, *numbers, agent, host.strip(), media_type, coding, *times))
        return requests

    def start(self) -> None:
        """Start it at its port."""
        assert NGINX is not None
        tls, server = "", self.server
        if self.certificate:
            tls = " ssl http2" if self.h2 else " ssl"
            server = f"ssl_certificate {self.certificate}; ssl_certificate_key {self.certificate};\n{server}"
        user = f"user {getpass.getuser()};\n" if os.geteuid() == 0 else ""  # Else it is ours already.
        (self.at / "nginx.conf").write_text(
            CONFIGURATION.format(
                user=user,
                at=self.at,
                listen="\n".join(f"        listen {address}:{self.port}{tls};" for address in self._addresses),
                root=self.root,
                http=GZIP if self.gzip else "",
                server=server,
            )
        )
        command = [NGINX, "-p", self.at, "-c", self.at / "nginx.conf", "-e", self.at / "error.log"]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL)

    def _answers(self) -> bool:
        ends_at = time.monotonic() + DEADLINE_S
        while time.monotonic() < ends_at and self._process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1.0).close()
            except OSError:
                time.sleep(0.01)
            else:
                return True
        return False

    def stop(self) -> None:
        """End it and wait."""
        self._process.terminate()
        self._process.wait(DEADLINE_S)
