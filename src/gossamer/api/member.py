"""Member: one shard of several, in a process of its own, under its keeper.

`python -m gossamer.api.member` reads its job on standard input. It ends with 0 when it was told that the crawl is
over and everything is saved, with 2 and 1 after a mistake of the operator's or of ours, and with `TENURE_LOST` when
nobody renews its right to crawl: another may have the shard by now.
"""

from __future__ import annotations

import asyncio
import faulthandler
import json
import os
import signal
import socket
import sys
import traceback
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from gossamer.api.crawler import Crawler
from gossamer.api.restoring import vault_of
from gossamer.api.shards import map_of
from gossamer.assembly import Assembled, Home, assemble, locked
from gossamer.cluster import line as said
from gossamer.cluster.coordination import Look, Tenure
from gossamer.cluster.job import Job
from gossamer.cluster.line import Line
from gossamer.cluster.shard_process import LOOK
from gossamer.config.gather import reopen_text
from gossamer.config.secret import holds_secrets
from gossamer.crawl.control import Verb, answered
from gossamer.crawl.options import LimitsOptions
from gossamer.crawl.shard import first_of
from gossamer.model.errors import ComponentFailedError, ConfigError, CrawlFailedError
from gossamer.world.clock import WallClock
from gossamer.world.files import NO_ROOM, write_whole
from gossamer.world.loop import calm_collector, loop_factory
from gossamer.world.process import DirectoryLock, die_with_parent

FAILED, REFUSED, TENURE_LOST = 1, 2, 75
TENURE_LOOK_S = 0.1
SEND_S = 0.1
"""Longest time between two looks at what is to be sent: batches that nobody confirmed are due again."""
WAIT_S = 0.05
LOCK_S_MAX = 30.0
"""A process that is being killed lets go of its directory within this, on a busy machine too."""


class Member(Crawler):
    """A crawler that is one of several: it crawls under a tenure, and ends when it is told."""

    def __init__(self, job: Job, line: Line) -> None:
        config = reopen_text(job.config, f"{job.crawl}/crawl.toml")
        # Limits are those of the whole crawl: what we may have of them we are told.
        self._begin(Path(job.directory), config.model_copy(update={"limits": LimitsOptions()}))
        self._is_limited = config.limits.max_pages is not None
        self._job = job
        self._line = line
        self._home = Home(self.directory, job.shard, job.shards)
        self._clock = WallClock()
        self._tenure = Tenure(job.tenure_s)
        self._began = False
        """It crawls, or is about to: without tenure it must end."""
        self._holder = f"{job.node}/{os.getpid()}-{self._clock.now():.3f}"
        self._is_locked = False
        self._verbs: Mapping[str, Verb] = {}
        self._news = asyncio.Event()
        self._answers: set[asyncio.Task[None]] = set()
        self._securing: asyncio.Task[bool] | None = None

    async def crawl(self) -> None:
        """Do what the shard is there for, until the crawl is over."""
        try:
            async with asyncio.TaskGroup() as group:
                beside = [group.create_task(one()) for one in (self._listen, self._watch_tenure)]
                await self.run()
                for task in beside:
                    task.cancel()
        except BaseExceptionGroup as errors:
            raise first_of(errors) from errors
        await self._line.flush()

    async def _assembled(self) -> Assembled:
        lock = await self._locked()
        self._is_locked = True
        while not self._tenure.holds(self._clock.now()):  # noqa: ASYNC110 - time ends it as well as a message
            await asyncio.sleep(WAIT_S)
        self._began = True
        self._write_down()
        opening = 0
        if self.config.state.checkpoint_uri:
            self._vault = vault_of(self.config, self._home, self._job.node)
            opening = await self._vault.open()
        shard = assemble(
            self.config,
            self.directory,
            lock=lock,
            shard=self._job.shard,
            shards=self._job.shards,
            opening_min=opening,
        )
        assert shard.membership is not None
        shard.ring.loop.may_begin = self._tenure.holds
        if self._is_limited:
            shard.ring.loop.quota = 0  # Until the first order says how many.
        shard.controls.telemetry.tally.listeners.append(
            lambda sentence: self._line.send(said.NOTE, 0, sentence.encode())
        )
        shard.membership.exchange.on_outgoing = self._news.set
        return shard

    def _write_config(self) -> None:
        """Nothing: it stands there already."""

    def _write_down(self) -> None:
        """Have beside our state what is read there, where that is not the crawl's own directory."""
        if self.directory.resolve() == Path(self._job.crawl).resolve():
            return
        # Other shards on this machine do the same.
        one_at_a_time = DirectoryLock(self.directory / "state/written.lock")
        try:
            if not one_at_a_time.acquire(LOCK_S_MAX):
                raise ConfigError(f"{self.directory}: another shard does not let go of state/written.lock")
            map_of(self.config, Path(self._job.crawl)).save(self.directory)
            write_whole(self.directory / "crawl.toml", self._job.config.encode(), private=holds_secrets(self.config))
        finally:
            one_at_a_time.release()

    async def _locked(self) -> DirectoryLock:
        deadline = self._clock.now() + LOCK_S_MAX
        while True:
            try:
                return locked(self.directory, 0.0, self._home.state)
            except ConfigError:
                if self._clock.now() >= deadline:
                    raise
            await asyncio.sleep(WAIT_S)

    async def _serve(self, shard: Assembled, verbs: Mapping[str, Verb]) -> None:
        """Send what is to be sent, and make checkpoints, until cancelled; questions are answered by `_listen`."""
        self._verbs = verbs
        async with asyncio.TaskGroup() as group:
            group.create_task(self._send(shard))

    async def _make_views(self, shard: Assembled) -> None:
        """The process that runs the whole crawl makes them, of complete tables. Save what we have before we go."""
        shard.outputs.require_tables()

    async def _send(self, shard: Assembled) -> None:
        assert shard.membership is not None
        exchange = shard.membership.exchange
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(SEND_S):
                    await self._news.wait()
            self._news.clear()
            for to, frame in exchange.outgoing(self._clock.now()):
                self._line.send(said.FRAME, to, frame)
            await self._line.flush()

    async def _watch_tenure(self) -> None:
        while True:
            if self._began and not self._tenure.holds(self._clock.now()):
                os._exit(TENURE_LOST)  # At once, requests included: a successor may be waiting for that.
            await asyncio.sleep(TENURE_LOOK_S)

    async def _listen(self) -> None:
        while (message := await self._line.receive()) is not None:
            kind, number, rest = message
            membership = self._shard.membership if self._shard is not None else None
            if kind == said.QUESTION:
                question = said.read(rest)
                if question.get("verb") == LOOK:
                    self._line.say(said.ANSWER, number, self._looked(msgspec.convert(question["look"], Look)))
                else:
                    task = asyncio.create_task(self._answer(number, question))
                    self._answers.add(task)
                    task.add_done_callback(self._answers.discard)
            elif membership is not None and kind == said.FRAME:
                membership.exchange.take(rest, self._clock.now())
            elif membership is not None and kind == said.DROPPED:
                membership.exchange.lost(number)
        os._exit(FAILED)  # Whoever kept us is gone, and sees that we go too.

    def _looked(self, look: Look) -> dict[str, object]:
        """Obey a round's orders, and say how we stand."""
        now, shard = self._clock.now(), self._shard
        if look.granted is not None:
            self._tenure.renewed(look.granted)
        answer: dict[str, object] = {
            "state": "starting",
            "holder": self._holder if self._is_locked else "",
            "asked_at": now,
            "renews": self._tenure.holds(now),
            "status": self.status(),
        }
        if shard is None or shard.membership is None:
            return answer
        shard.membership.obey(look.orders)
        if look.hurried:
            shard.ring.loop.stop(now=True)
        if shard.ring.loop.state != "starting":
            report = shard.membership.report()
            answer |= {"state": "running", "report": msgspec.to_builtins(report)}
            if self._vault is not None:
                answer["secured"] = not report.pages_under_way and self._vault.saved_activity == report.activity
                if look.secure and not answer["secured"] and (self._securing is None or self._securing.done()):
                    self._securing = asyncio.create_task(self._vault.try_save(shard))
        return answer

    async def _answer(self, number: int, question: dict[str, object]) -> None:
        shard, verb = self._shard, self._verbs.get(str(question.get("verb")))
        if shard is None or verb is None:
            answer: dict[str, object] = {"ok": False, "error": f"shard {self._job.shard} is starting; try again"}
        else:
            answer = await answered(verb, question, shard.controls.telemetry.logs)
        self._line.say(said.ANSWER, number, answer)


def main() -> None:
    """Read the job, crawl, exit."""
    for number in (signal.SIGINT, signal.SIGTERM):  # Those are for whoever runs the whole crawl.
        signal.signal(number, signal.SIG_IGN)
    job = msgspec.json.decode(sys.stdin.buffer.readline(), type=Job)
    die_with_parent(job.parent)
    faulthandler.enable()
    calm_collector()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        status = runner.run(_crawl(job))
    # Everything is closed. What native libraries do while the interpreter is torn down must not look like a crash.
    os._exit(status)


async def _crawl(job: Job) -> int:
    line = await Line.over(socket.socket(fileno=job.line))
    try:
        await Member(job, line).crawl()
    except ConfigError as error:
        line.send(said.LAST_WORDS, 1, str(error).encode())
        await line.flush()
        return REFUSED
    except Exception as error:  # noqa: BLE001 - told to whoever keeps us
        line.send(said.LAST_WORDS, 0, _kept(error, Path(job.directory)).encode())
        await line.flush()
        return FAILED
    return 0


def _kept(error: Exception, directory: Path) -> str:
    """Write an error of ours to `logs/critical.log`, and return it in one line; what others can mend is that line."""
    is_component = isinstance(error, ComponentFailedError)
    if isinstance(error, CrawlFailedError) and not is_component:
        return str(error)
    line = f"{type(error).__name__}: {error}"
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        return f"the disk of {directory} is full ({os.strerror(error.errno or 0).lower()}); nothing is lost: make room"
    entry = {"at": WallClock().now(), "event": "internal_error", "error": line}
    trace = error.trace if isinstance(error, ComponentFailedError) else "".join(traceback.format_exception(error))
    entry["traceback"] = trace
    with suppress(OSError):
        (directory / "logs").mkdir(parents=True, exist_ok=True)
        with (directory / "logs/critical.log").open("a", encoding="utf-8") as log:
            log.write(json.dumps(entry) + "\n")
    if is_component:
        return str(error)
    return f"internal error: {line}; the state is saved, logs/critical.log says more"


if __name__ == "__main__":
    main()
