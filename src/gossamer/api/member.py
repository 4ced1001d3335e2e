"""Member: one shard of several, in a separate process, under a `ShardProcess`.

`python -m gossamer.api.member` reads its job on standard input. It exits with 0 when the coordinator has ended the
crawl and everything is saved, with 2 after a mistake of the operator, with 1 after another failure that ends the crawl,
with `TROUBLE` when its machine, one of several, cannot run it now, with `DAMAGED` when its next start must restore its
state, with `CRASHED` after an internal error, and with `TENURE_LOST` when its lease of the shard expires: another
process may have the shard by then.
"""

import asyncio
import errno
import faulthandler
import os
import signal
import socket
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import msgspec

from gossamer.api.crawler import Crawler
from gossamer.api.engine import without_limits
from gossamer.api.restoring import CLAIM, vault_of
from gossamer.assembly.building import assemble
from gossamer.assembly.home import Home
from gossamer.assembly.values import Shard
from gossamer.cluster import shard_process as said
from gossamer.cluster.coordination import Look, Tenure
from gossamer.cluster.job import HERE, ShardJob
from gossamer.cluster.partitions import PartitionMap
from gossamer.cluster.shard_process import LOOK, FrameLine
from gossamer.config import Config
from gossamer.config.gather import reopen, reopen_text
from gossamer.config.secret import holds_secrets
from gossamer.engine.control import Verb, run_verb
from gossamer.engine.logs import log_crash
from gossamer.engine.loop import first_of
from gossamer.model.errors import DISK_ERRORS, ComponentFailedError, ConfigError, CrawlFailedError, DamagedError
from gossamer.model.product import __version__
from gossamer.world.clock import WallClock
from gossamer.world.files import unwritable, write_whole
from gossamer.world.loop import calm_collector, loop_factory
from gossamer.world.process import DirectoryLock, die_with_parent

FAILED = 1
REFUSED = 2
TENURE_LOST = 75
TROUBLES = DISK_ERRORS | {errno.EBUSY}
"""Errors for which a machine cannot run a shard now, and another one could."""
TENURE_LOOK_S = 0.1
SEND_S = 0.1
"""Longest interval of checks for frames to send: unconfirmed batches become due again."""
WAIT_S = 0.05
LOCK_S_MAX = 30.0
"""A killed process frees its directory within this, on a busy machine too."""


class ClusterMember(Crawler):
    """The crawler of one shard: it crawls under a lease, and ends when the coordinator orders it."""

    def __init__(self, job: ShardJob, line: FrameLine) -> None:
        self._plan = plan = job.plan
        file = Path(plan.directory) / "crawl.toml"
        # In the crawl's own directory the file has what was set since the crawl was started.
        shared = job.directory.resolve() == Path(plan.directory).resolve() and file.exists()
        self._begin(job.directory, without_limits(reopen(file) if shared else reopen_text(plan.config, str(file))))
        self.on_note(lambda sentence: self._line.send(said.NOTE, 0, sentence.encode()))
        self._job = job
        self._line = line
        self._home = Home(self.directory, job.shard, plan.shards)
        self._clock = WallClock()
        self._tenure = Tenure(plan.tenure_s)
        self._began = False
        """Whether it crawls or is about to: without a lease it must end."""
        self._holder = f"{job.node}/{os.getpid()}-{self._clock.now():.3f}"
        self._is_locked = False
        self._verbs: Mapping[str, Verb] = {}
        self._answers: set[asyncio.Task[None]] = set()
        self._securing: asyncio.Task[bool] | None = None

    async def crawl(self) -> None:
        """Crawl until the whole crawl is over."""
        try:
            async with asyncio.TaskGroup() as group:
                beside = [group.create_task(one()) for one in (self._listen, self._watch_tenure)]
                await self.run()
                for task in beside:
                    task.cancel()
        except BaseExceptionGroup as errors:
            raise first_of(errors) from errors
        await self._line.flush()

    async def _assemble(self) -> Shard:
        lock = await self._lock_state()
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
            self.config, self.directory, lock=lock, shard=self._job.shard, shards=self._plan.shards, opening_min=opening
        )
        assert shard.membership is not None
        shard.ring.loop.may_begin = self._tenure.holds
        return shard

    async def _lock_state(self) -> DirectoryLock:
        """Return the lock of the shard's state. Raises OSError: this machine, one of several, cannot run it now."""
        try:
            # By the end of this wait the lease of a process that hangs in the system, and keeps the lock, has expired.
            return await self._lock_directory(self._home.state, LOCK_S_MAX + self._plan.tenure_s)
        except ConfigError as error:
            cause = error.__cause__
            if isinstance(cause, OSError) and cause.errno in DISK_ERRORS:
                raise cause from None
            if cause is not None or self._job.node == HERE:
                raise
            held = f"{self._home.state} is held by an earlier process of the shard, which does not end"
            raise OSError(errno.EBUSY, held) from error

    def restores_state(self) -> bool:
        """Have the next start restore the shard's state, which is damaged. False: it makes no checkpoints."""
        (self._home.state / CLAIM).unlink(missing_ok=True)
        return bool(self.config.state.checkpoint_uri)

    def _write_config(self, config: Config) -> None:
        """Do nothing: the process that runs the whole crawl writes the file, which has the limits of all shards."""

    def _write_down(self) -> None:
        """Write the files that are read beside the state, if that is not in the crawl's own directory."""
        if self.directory.resolve() == Path(self._plan.directory).resolve():
            return
        # Other shards on this machine do the same.
        with DirectoryLock(self.directory / "state/written.lock") as one_at_a_time:
            if not one_at_a_time.acquire(LOCK_S_MAX):
                raise ConfigError(f"{self.directory}: another shard still holds state/written.lock")
            PartitionMap.decode(self._plan.partitions, "the map of this job").save(self.directory)
            write_whole(self.directory / "crawl.toml", self._plan.config.encode(), private=holds_secrets(self.config))

    async def _serve(self, shard: Shard, verbs: Mapping[str, Verb]) -> None:
        """Send frames to other shards, until cancelled; `_listen` answers questions."""
        self._verbs = verbs
        assert shard.membership is not None
        await shard.membership.send_frames(partial(self._line.send, said.FRAME), self._line.flush, SEND_S)

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
                    self._line.say(said.ANSWER, number, self._on_look(msgspec.convert(question["look"], Look)))
                else:
                    task = asyncio.create_task(self._answer(number, question))
                    self._answers.add(task)
                    task.add_done_callback(self._answers.discard)
            elif membership is not None and kind == said.FRAME:
                membership.exchange.take(rest, self._clock.now())
            elif membership is not None and kind == said.DROPPED:
                membership.exchange.on_peer_lost(number)
        os._exit(FAILED)  # The parent is gone, so this process ends too.

    def _on_look(self, look: Look) -> dict[str, object]:
        now = self._clock.now()
        shard = self._shard
        if look.granted is not None:
            self._tenure.renew(look.granted)
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
                answer["saves"] = not self._vault.is_failing
                answer["secured"] = not report.pages_under_way and self._vault.saved_activity == report.activity
                if look.secure and not answer["secured"] and (self._securing is None or self._securing.done()):
                    self._securing = asyncio.create_task(self._vault.try_save(shard))
        return answer

    async def _answer(self, number: int, question: dict[str, object]) -> None:
        shard = self._shard
        verb = self._verbs.get(str(question.get("verb")))
        if shard is None or verb is None:
            answer: dict[str, object] = {"ok": False, "error": f"shard {self._job.shard} is starting; try again"}
        else:
            answer = await run_verb(verb, question, shard.controls.telemetry.logs)
        self._line.say(said.ANSWER, number, answer)


def main() -> None:
    """Read the job, crawl, exit."""
    for number in (signal.SIGINT, signal.SIGTERM):  # The process that runs the whole crawl handles them.
        signal.signal(number, signal.SIG_IGN)
    job = msgspec.json.decode(sys.stdin.buffer.readline(), type=ShardJob)
    die_with_parent(job.parent)
    faulthandler.enable()
    calm_collector()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        status = runner.run(_crawl(job))
    # Everything is closed. What native libraries do while the interpreter is torn down must not look like a crash.
    os._exit(status)


async def _crawl(job: ShardJob) -> int:
    line = await FrameLine.over(socket.socket(fileno=job.line))
    try:
        version = job.plan.version
        if version != __version__ and job.node != HERE:
            raise ConfigError(
                f"the crawl runs with gossamer {version}, and machine {job.node} has {__version__}; install the "
                "same version on all machines"
            )
        member = ClusterMember(job, line)
        try:
            await member.crawl()
        except DamagedError as error:
            if not member.restores_state():
                raise
            line.send(said.LAST_WORDS, 0, str(error).partition(";")[0].encode())
            await line.flush()
            return said.DAMAGED
    except ConfigError as error:
        line.send(said.LAST_WORDS, 1, str(error).encode())
        await line.flush()
        return REFUSED
    except Exception as error:  # noqa: BLE001 - sent to the parent
        line.send(said.LAST_WORDS, 0, _log_error(error, job.directory).encode())
        await line.flush()
        if isinstance(error, CrawlFailedError):
            return FAILED
        if isinstance(error, OSError) and error.errno in TROUBLES:
            return said.TROUBLE if job.node != HERE else FAILED
        return said.CRASHED
    return 0


def _log_error(error: Exception, directory: Path) -> str:
    """Write an internal error to `logs/critical.log`, and return it, or one of the operator's, in one line."""
    is_component = isinstance(error, ComponentFailedError)
    if isinstance(error, CrawlFailedError) and not is_component:
        return str(error)
    if isinstance(error, OSError) and error.errno in TROUBLES:
        return str(error.strerror) if error.errno == errno.EBUSY else unwritable(error, directory)
    log_crash(error, directory)
    if is_component:
        return str(error)
    return f"internal error: {type(error).__name__}: {error} (logs/critical.log says more)"


if __name__ == "__main__":
    main()
