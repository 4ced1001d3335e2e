"""A crawler that does what the path of its seed says, keeps its state in files and speaks on the control socket.

/pages/N  N pages, then finished          /limit     ends at a limit
/forever  until stopped                   /deaf      until stopped twice
/dies/SIG as pages/3, dying once of SIG   /keepsdying  dies of SIGKILL always
/hangs    once, in a slot                 /raises    our own mistake
/refuses  a mistake of the operator
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from gossamer.config import Config, effective_toml, reopen
from gossamer.engine.logs import log_crash  # noqa: F401 - part of this API
from gossamer.model.errors import ConfigError

HOSTILE = "note \x1b[2J \u202e end"


class Crawler:
    def __init__(
        self, seeds: Sequence[str] = (), *, output: str = "crawl", config: Config, known: bool = False
    ) -> None:
        self.directory = Path(output)
        self.state = self.directory / "state"
        self.state.mkdir(parents=True, exist_ok=True)
        (self.directory / "crawl.toml").write_text(effective_toml(config))
        self.config = config
        if not known:
            (self.state / "seeds").write_text(json.dumps(list(seeds)))
        self.seeds = json.loads((self.state / "seeds").read_text())
        self.asked: list[str] = []
        self.ended = asyncio.Event()
        self.began = time.monotonic()
        self.starts_again = False
        self.end: dict[str, object] = {}

    @classmethod
    def resume(cls, directory: str, *, config: Config, settle: bool = False) -> Crawler:
        return cls(output=directory, config=config, known=True)

    def on_note(self, callback: Callable[[str], None]) -> None:
        callback(HOSTILE)

    def stop(self, *, now: bool = False) -> None:
        self.asked.append("now" if now else "gently")
        (self.state / "asked").write_text(" ".join(self.asked))
        path = urlsplit(self.seeds[0]).path
        if now or path != "/deaf":
            self.ended.set()

    @property
    def pages(self) -> int:
        file = self.state / "pages"
        return int(file.read_text()) if file.exists() else 0

    def status(self, *, detail: bool = False) -> dict[str, object]:
        return status_dict(self.pages, "running", self.config, time.monotonic() - self.began) | self.end

    async def run(self) -> str:
        fd = os.open(self.state, os.O_RDONLY | os.O_DIRECTORY)
        socket = self.state / "control.sock"
        socket.unlink(missing_ok=True)
        server = await asyncio.start_unix_server(self.serve, f"/proc/self/fd/{fd}/control.sock")
        (self.state / "pid").write_text(str(os.getpid()))
        try:
            ended = await self.work(*urlsplit(self.seeds[0]).path.strip("/").split("/"))
            self.end = {"ended": ended} if ended == "limit" else {}
            return ended
        finally:
            server.close()
            socket.unlink(missing_ok=True)

    def one_page(self) -> None:
        (self.state / "pages").write_text(str(self.pages + 1))
        (self.state / "epoch").write_text(str(self.pages))

    def once(self, name: str) -> bool:
        mark = self.state / name
        first = not mark.exists()
        mark.touch()
        return first

    async def work(self, what: str, how: str = "") -> str:
        if what == "raises":
            raise ZeroDivisionError("no such\nnumber")
        if what == "refuses":
            raise ConfigError("the disk is full; make room")
        if what == "keepsdying":
            os.kill(os.getpid(), signal.SIGKILL)
        if what == "hangs" and self.once("hung"):
            (self.state / "slot").write_text(str(time.time()))
            time.sleep(60)  # noqa: ASYNC251 - that is what hanging is
        (self.state / "slot").unlink(missing_ok=True)
        if what in {"forever", "deaf"}:
            await self.ended.wait()
            return "stopped"
        for _ in range(int(how) if what == "pages" else 3):
            if self.ended.is_set():
                return "stopped"
            self.one_page()
            await asyncio.sleep(0)
            if what == "dies" and self.once("died"):
                os.kill(os.getpid(), getattr(signal, how))
        return "limit" if what == "limit" else "finished"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = json.loads(await reader.readline())
        verb = request.pop("verb")
        if verb in {"status", "pause"}:
            state = {"status": "running", "pause": "paused"}[verb]
            answer: dict[str, object] = {"ok": True, "result": {**self.status(), "state": state}}
        elif verb == "exclude":
            answer = {"ok": False, "error": "no such\nhost"}
        else:
            if verb == "stop":
                self.stop(now=request["now"])
            answer = {"ok": True, "result": {"verb": verb, **request}}
        writer.write(json.dumps(answer).encode() + b"\n")
        await writer.drain()
        writer.close()


def status_dict(pages: int, state: str, config: Config, elapsed_s: float) -> dict[str, object]:
    limits = config.limits
    return {
        "state": state, "pages": pages, "attempts": pages + 2, "discovered": 100, "queued": 90, "in_flight": 1,
        "terminal": pages, "outcomes": {"fetched": pages, "timeout": 2},
        "terminal_outcomes": {"fetched": pages, "timeout": 2}, "wire_bytes": 1_234_567, "body_bytes": 2_000,
        "hosts_known": 12, "hosts_active": 3, "pages_s": 4.25, "bytes_s": 1000.0,
        "elapsed_s": elapsed_s, "max_pages": limits.max_pages, "max_time_s": limits.max_time_s,
        "max_bytes": limits.max_bytes, "eta_s": None, "waiting_for": "", "epoch": pages,
        "rejected": {"scope.host": 7},
    }  # fmt: skip


def finish_scaling(_directory: str) -> bool:
    return False


def status_of(directory: Path) -> dict[str, object]:
    pages = int((directory / "state/pages").read_text())
    return status_dict(pages, "finished", reopen(directory / "crawl.toml"), 1.0)


def why_of(directory: Path, url: str) -> dict[str, object]:
    return {"url": url, "state": "fetched", "visits": [{"outcome": "fetched", "status": 200}], "rule": None}
