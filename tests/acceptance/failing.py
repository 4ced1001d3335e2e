"""What chaos crawls: a synthetic web with a name server, and real pages behind nginx. Both can be made to fail."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path

from msgspec.structs import replace

from gossamer.lab.simweb.judge import TOLERANCE_S, Promise, judge
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.lab.simweb.server import answer
from gossamer.lab.simweb.web import Web
from tests.acceptance.nginx import Nginx
from tests.cluster.nodes import descendants

WEB_DELAY_S = 0.1
NGINX_DELAY_S = 0.02
WAKING_S = 0.2
LATE_S = 15.0
"""After a cut of the network, the kernel may still deliver what a process sent that was killed meanwhile."""
NEXT_S = 0.5
"""So long after such a request, the next one may seem to be too early."""
DOCUMENTS = Path("/usr/share/doc/python3-doc/html")
NOWHERE = "127.255.255.254"
WEB = SimwebOptions(
    seed=4, hosts=24, hosts_per_site=1, pages=400, names_per_address=2, latency_s=0.02, bytes_median=3_000,
    zipf_exponent=0.3,
    behaviours=("redirects", "robots_part", "robots_redirect_host", "nofollow", "frames", "distinct", "compressed"),
)  # fmt: skip


class NameServer(threading.Thread):
    """Answers for a synthetic web; `mode` says how badly."""

    MODES = ("dead", "slow", "refuses", "other number", "rubbish", "elsewhere")

    def __init__(self, web: Web) -> None:
        super().__init__(daemon=True)
        self.mode = ""
        self._web = web
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.server = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self.start()

    def run(self) -> None:
        while True:
            query, client = self._socket.recvfrom(4_096)
            reply, mode = answer(query, self._web.address, lambda _: 1), self.mode
            if reply is None or mode == "dead":
                continue
            if mode == "refuses":  # SERVFAIL.
                reply = query[:2] + b"\x81\x82" + query[4:]
            elif mode == "other number":
                reply = bytes([reply[0] ^ 1]) + reply[1:]
            elif mode == "rubbish":
                reply = reply[:2] + os.urandom(40)
            elif mode == "elsewhere":
                reply = answer(query, lambda _: NOWHERE, lambda _: 1) or b""
            threading.Timer(1.5 if mode == "slow" else 0.0, self._send, (reply, client)).start()

    def _send(self, reply: bytes, client: object) -> None:
        with suppress(OSError):  # The network may be cut.
            self._socket.sendto(reply, client)  # type: ignore[arg-type]


class Synthetic:
    """A synthetic web and its name server."""

    name, workers_max, faults = "web", 2, ("dns", "hang")

    def __init__(self, folder: Path) -> None:
        self._process = SimwebProcess(WEB, folder / "simweb")
        self._process.start()
        options = replace(WEB, port=self._process.port)
        self._process.stop()
        self._process = SimwebProcess(options, folder / "simweb")  # Whenever it is started again, at this port.
        self._process.start()
        self.names = NameServer(self._process.web)
        self.delay_s = WEB_DELAY_S
        self.words = (*self._process.seeds, "--scope", "any", "--dns", self.names.server)
        self.start, self.stop = self._process.start, self._process.stop
        self._woke_at: list[float] = []
        self.cut_at: list[float] = []

    def hang(self, seconds: float) -> None:
        with stopped(self._process.pid):
            time.sleep(seconds)
        self._woke_at.append(time.time())

    @property
    def pids(self) -> list[int]:
        return [self._process.pid]

    def mark(self) -> int:
        return len(self._process.requests())

    def broken(self, mark: int) -> list[str]:
        """Return the requests since `mark` that came too early."""
        promise = Promise(delay_s_min=WEB_DELAY_S, factor=0.0, delay_s_max=WEB_DELAY_S)
        log = self._process.requests()[mark:]
        old = [one for one in log if late(one.opened_at, one.started_at, self.cut_at)]
        found = [one for one in judge(log, promise, self._process.web) if one.kind != "repeated"]
        found = [
            one
            for one in found
            if not any(
                one.address == then.address and then.contact_at <= one.at < then.started_at + NEXT_S for then in old
            )
        ]
        return [str(one) for one in found if not self._just_woke(one.at)]

    def _just_woke(self, at: float) -> bool:
        """Return whether the server may have accepted at this moment what came while it was stopped."""
        return any(-WAKING_S <= at - woke_at <= WAKING_S for woke_at in self._woke_at)


class Documents:
    """Debian's documentation of Python behind nginx."""

    name, workers_max, faults = "nginx", 1, ()

    def __init__(self, folder: Path) -> None:
        self._nginx = Nginx(DOCUMENTS, folder / "nginx")
        self._nginx.__enter__()
        self.delay_s = NGINX_DELAY_S
        self.words = (f"{self._nginx.origin}/",)
        self.start, self.stop = self._nginx.start, self._nginx.stop
        self.cut_at: list[float] = []

    @property
    def pids(self) -> list[int]:
        return [self._nginx.pid, *descendants(self._nginx.pid)]

    def mark(self) -> int:
        return len(self._nginx.log())

    def broken(self, mark: int) -> list[str]:
        opened_at: dict[int, float] = {}
        log = sorted(self._nginx.log()[mark:], key=lambda one: one.began_at)
        for one in log:
            opened_at.setdefault(one.connection, one.began_at if one.body_bytes else 0.0)
        log = [one for one in log if not late(opened_at[one.connection], one.began_at, self.cut_at)]
        return [
            f"{then.path} {then.began_at - one.ended_at:.3f} s after {one.path}"
            for one, then in pairwise(log)
            if then.began_at - one.ended_at < self.delay_s - TOLERANCE_S
        ]


def late(opened_at: float, at: float, cut_at: list[float]) -> bool:
    """Return whether a request on a connection may have been under way since the network was cut."""
    return any(opened_at <= one <= at <= one + LATE_S for one in cut_at)


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """Keep a process from running."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
