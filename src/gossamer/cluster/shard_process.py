"""Shard process: runs one shard in a child process, restarts it when it dies, and carries its messages over a line.

The parent sees the signal that ends its child, which Ray would not report: a page is blamed only for a known signal. If
the parent itself dies, its child dies too, and the next parent starts a new child from the last commit.
"""

from __future__ import annotations

import asyncio
import math
import os
import signal
import socket
import struct
import subprocess
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, Self, cast

import msgspec

from gossamer.cluster.coordination import Look, ShardAnswer
from gossamer.cluster.job import ClusterPlan, ShardJob, encode
from gossamer.state import slots
from gossamer.world.allocators import FRUGAL
from gossamer.world.clock import Clock
from gossamer.world.loop import wait_at_most
from gossamer.world.process import child_environment

WATCH_S = 0.5
REAP_S = 0.01
"""Interval of looks at a process that has closed its line, and so is about to end."""
TROUBLE = 76
"""Exit status of a shard that its machine, one of several, cannot run now: its disk is full or fails, or an earlier
process has its directory. It is started again until it can."""
DAMAGED = 77
"""Exit status of a shard whose state is damaged: the next start restores it from its checkpoint."""
CRASHED = 78
"""Exit status of a shard after an internal error."""
AGAIN_S = 10.0
"""Time until the next start of a shard that its machine cannot run. Of one that dies it doubles with each death."""
AGAIN_S_MAX = 3_600.0
RESTARTS_MAX = 5
"""Restarts in a row without progress; one more and the shard fails."""
CALM_S = 600.0
"""Time after its start within which a shard with an internal error made no progress: pages that it gave up are in its
commits, and another life would give up more."""
UNKILLABLE_S = 10.0
"""Time after which a killed process counts as ended: it hangs in the system, and cannot go on before it dies."""
NOTES_HELD_MAX = 100
FRAMES_HELD_BYTES_MAX = 16 << 20
"""Frames for one other shard that wait to be sent; more are dropped, and their sender repeats them."""
LINE_HELD_BYTES_MAX = 8 << 20
"""Messages for a shard that it has not read yet; with more, frames for it are dropped and it gets no questions."""
LOOK = "look"
"""Name of the verb for a round's question."""

Carry = Callable[[int, bytes], Awaitable[bool]]
"""Sends a frame to another shard; returns whether it arrived; False also if that is unknown."""
State = Literal["starting", "running", "failing", "done", "failed", "refused"]


class ShardStart(msgspec.Struct, frozen=True):
    """How a shard's process is started."""

    command: Sequence[str]
    job: Callable[[int], bytes]
    """Returns the line for its standard input, from the file descriptor of its end of the connection."""
    environment: Mapping[str, str]
    slots: Path
    process_s_max: float
    silent_s_max: float = math.inf
    """Time without an answer after which the process is killed: longer than the lease without which it must end."""


def start_of(plan: ClusterPlan, shard: int, node: str) -> ShardStart:
    """Return how a shard of a crawl is started on a machine."""

    def job(line: int) -> bytes:
        return encode(ShardJob(plan=plan, shard=shard, node=node, line=line, parent=os.getpid()))

    return ShardStart(
        command=[sys.executable, "-P", *plan.command],
        job=job,
        # numpy brings a library for matrices, of which we have none: its threads cost 0.05 s of every start.
        environment={"OPENBLAS_NUM_THREADS": "1"} | FRUGAL | child_environment(),
        slots=Path(plan.directory_on(node)) / f"state/shard-{shard}",
        process_s_max=plan.process_s_max,
        silent_s_max=plan.tenure_s + plan.answer_s_max,
    )


class ShardProcess:
    """Starts a shard's process, restarts it after any unexpected end, and answers on its behalf."""

    def __init__(self, start: ShardStart, carry: Carry, clock: Clock) -> None:
        self._start = start
        self._carry = carry
        self._clock = clock
        self._line: FrameLine | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._asked: dict[int, asyncio.Future[dict[str, object]]] = {}
        self._number = 0
        self._over = asyncio.Event()
        """Whether the shard is not started again: the crawl has ended, or waits for this shard alone."""
        self._is_given_up = False
        self._has_spoken = False
        """Whether the process has sent a message: its start may take long on a busy machine."""
        self._silent_since: float | None = None
        """When the first question was sent that came after its last message."""
        self._out: dict[int, deque[bytes]] = {}
        self._held_bytes: dict[int, int] = {}
        self._carriers: dict[int, asyncio.Task[None]] = {}
        self._last_words: tuple[bool, str] = (False, "")
        self.notes: deque[str] = deque(maxlen=NOTES_HELD_MAX)
        """Notes for the operator; the reader removes them."""
        self.state: State = "starting"
        self.failure = ""
        """Why the shard has failed or fails, or was refused; empty: none of these."""
        self._last_status: dict[str, object] = {}
        self.deaths = 0
        self.bytes_carried = 0
        self.frames_carried = 0

    @property
    def pid(self) -> int:
        """Id of the shard's process; 0 if there is none."""
        return self._process.pid if self._process is not None and self._process.returncode is None else 0

    async def run(self) -> None:
        """Run the shard until it is done, has failed, or was refused. A cancellation ends the process too."""
        committed = 0
        fruitless = 0
        again_s = AGAIN_S
        try:
            while True:
                self._last_words = (False, "")
                self._has_spoken = False
                self._silent_since = None
                try:
                    committed = max(committed, slots.progress(self._start.slots))
                    status, overran, since = await self._one_life()
                    if self._conclude(status):
                        return
                    if -status in slots.CONTENT_DEATHS or overran:
                        slots.accuse(self._start.slots, since)
                    is_short = status == CRASHED and self._clock.now() - since < CALM_S
                    is_fruitless = is_short or slots.progress(self._start.slots) <= committed
                except OSError as error:
                    status = TROUBLE
                    self._last_words = (False, f"its process cannot be started ({error})")
                if status == TROUBLE:
                    if await self._wait(self._last_words[1], AGAIN_S):
                        continue
                    return
                self.deaths += 1
                fruitless = min(fruitless, RESTARTS_MAX) + 1 if is_fruitless else 1
                how = f"its process {self._how(status, overran=overran)}"
                if fruitless <= RESTARTS_MAX:
                    again_s = AGAIN_S
                    last = "commit" if status != DAMAGED else "checkpoint"
                    self.notes.append(f"{how}; it continues from its last {last}")
                    continue
                if not await self._wait(f"{how}, for the {fruitless}th time without progress", again_s):
                    return
                again_s = min(2 * again_s, AGAIN_S_MAX)
        finally:
            for task in self._carriers.values():
                task.cancel()

    async def ask(self, question: Mapping[str, object], limit_s: float) -> dict[str, object] | None:
        """Return the shard's answer; None if it has no process now, or does not answer in time."""
        if self._line is None or self._line.is_full:
            return None
        self._number = (self._number + 1) & 0xFFFFFFFF
        number = self._number
        if self._has_spoken and self._silent_since is None:
            self._silent_since = self._clock.now()
        answer = self._asked[number] = asyncio.get_running_loop().create_future()
        self._line.say(QUESTION, number, dict(question))
        try:
            async with asyncio.timeout(limit_s):
                found: dict[str, object] = await answer
                return found
        except (TimeoutError, ConnectionError):
            return None
        finally:
            self._asked.pop(number, None)

    async def look(self, shard: int, node: str, question: Look, limit_s: float) -> ShardAnswer:
        """Return the shard's answer to a round's question, or an answer by its parent."""
        state = self.state
        answer = None
        self._is_given_up = question.gives_up
        if question.orders.end or question.gives_up:
            self._over.set()
        else:
            self._over.clear()
        if state not in ("done", "failed", "refused"):
            answer = await self.ask({"verb": LOOK, "look": msgspec.to_builtins(question)}, limit_s)
        notes = [self.notes.popleft() for _ in range(len(self.notes))]
        if answer is not None:
            self._last_status = cast("dict[str, object]", answer.pop("status"))
            state = self.state = cast("State", answer.pop("state"))
            self.failure = "" if state == "running" else self.failure
        return msgspec.convert(
            {
                **(answer or {}),
                "shard": shard,
                "state": state,
                "node": node,
                "status": self._last_status,
                "notes": notes,
                "failure": self.failure,
                "deaths": self.deaths,
                "bytes_carried": self.bytes_carried,
                "frames_carried": self.frames_carried,
            },
            ShardAnswer,
        )

    def deliver(self, sender: int, frame: bytes) -> bool:
        """Pass a frame to the shard; False if it has no process now, or reads too slowly: the sender repeats it."""
        if self._line is None or self._line.is_full:
            return False
        self._line.send(FRAME, sender, frame)
        return True

    # ---- inside

    async def _one_life(self) -> tuple[int, bool, float]:
        """Run the process once; return its exit status, whether we killed it for a long stage, and its start."""
        ours, its = socket.socketpair()
        since = self._clock.now()
        with its:
            # The child dies with the thread that starts it, so this thread must live as long as this process.
            try:
                process = self._process = _spawn(self._start, its)
            except OSError:
                ours.close()
                raise
        self._line = line = await FrameLine.over(ours)
        listening = asyncio.create_task(self._listen(line))
        overran = False
        try:
            while process.poll() is None:
                # Its end closes the line, which is sooner than a look and takes no thread.
                await asyncio.wait([listening], timeout=WATCH_S)
                if listening.done():
                    await asyncio.sleep(REAP_S)
                limit_s = self._start.process_s_max
                if not overran and slots.overdue(self._start.slots, self._clock.now(), limit_s, since):
                    overran = True
                    process.kill()
                elif self._is_silent():  # It hangs in the system, such as on a disk that has failed.
                    process.kill()
                    if self._is_silent(UNKILLABLE_S):
                        break
            await wait_at_most(WATCH_S, listening)  # Its last message may still be in the socket.
        finally:
            if process.poll() is None:
                process.kill()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(WATCH_S)
            self._line = None
            listening.cancel()
            line.close()
            for answer in self._asked.values():
                if not answer.done():
                    answer.set_exception(ConnectionError("the shard's process has ended"))
        if process.returncode is None:
            self._last_words = (False, "its process does not end although it was killed: its disk hangs")
            return TROUBLE, False, since
        return process.returncode, overran and process.returncode == -signal.SIGKILL, since

    async def _wait(self, why: str, again_s: float) -> bool:
        """Wait before the next start, and note why, once. False: there is none, and the last commit is all it has."""
        if why != self.failure and not self._over.is_set():
            self.notes.append(f"{why}; it is started again after {again_s:.0f} s, and the other shards go on")
        self.failure = why
        self.state = "failing"
        is_over = await wait_at_most(again_s, self._over.wait())
        if is_over:
            self.state = "failed" if self._is_given_up else "done"
        return not is_over

    def _is_silent(self, more_s: float = 0.0) -> bool:
        """Return whether the process has left questions unanswered for too long."""
        since = self._silent_since
        return since is not None and self._clock.now() - since > self._start.silent_s_max + more_s

    def _how(self, status: int, *, overran: bool) -> str:
        """Return how the process ended, as the rest of a sentence."""
        if overran:
            return "hung in a page and was ended"
        if self._is_silent():
            return f"did not answer for {self._start.silent_s_max:.0f} s and was ended"
        return f"ended: {self._last_words[1]}" if status in (DAMAGED, CRASHED) else slots.death(status)

    def _conclude(self, status: int) -> bool:
        refused, why = self._last_words
        if status == 0:
            self.state = "done"
            self.failure = ""
        elif status in (1, 2) and why:
            self.state = "refused" if refused else "failed"
            self.failure = why
        return self.state in ("done", "refused", "failed")

    async def _listen(self, line: FrameLine) -> None:
        while (message := await line.receive()) is not None:
            kind, number, rest = message
            self._has_spoken = True
            self._silent_since = None
            if kind == FRAME:
                self._take(number, rest)
            elif kind == ANSWER:
                answer = self._asked.get(number)
                if answer is not None and not answer.done():
                    answer.set_result(read(rest))
            elif kind == NOTE:
                self.notes.append(rest.decode())
            elif kind == LAST_WORDS:
                self._last_words = (number == 1, rest.decode())

    def _take(self, to: int, frame: bytes) -> None:
        """Queue a frame for another shard. Each receiver has its own queue, so a slow one does not delay others."""
        held = self._held_bytes.get(to, 0)
        if held + len(frame) > FRAMES_HELD_BYTES_MAX:
            self._tell(DROPPED, to)
            return
        self._held_bytes[to] = held + len(frame)
        self._out.setdefault(to, deque()).append(frame)
        if to not in self._carriers or self._carriers[to].done():
            self._carriers[to] = asyncio.create_task(self._carry_all(to))

    async def _carry_all(self, to: int) -> None:
        waiting = self._out[to]
        while waiting:
            frame = waiting.popleft()
            self._held_bytes[to] -= len(frame)
            arrived = await self._carry(to, frame)
            if arrived:
                self.bytes_carried += len(frame)
                self.frames_carried += 1
            self._tell(CARRIED if arrived else DROPPED, to)

    def _tell(self, kind: int, to: int) -> None:
        if self._line is not None:
            self._line.send(kind, to)


def _spawn(start: ShardStart, end: socket.socket) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(  # noqa: S603 - ourselves
        [*start.command], stdin=subprocess.PIPE, pass_fds=[end.fileno()], process_group=0, env=dict(start.environment)
    )
    assert process.stdin is not None
    with suppress(OSError):  # It died before it could read; its exit status shows this.
        process.stdin.write(start.job(end.fileno()))
        process.stdin.close()
    return process


# ---- the line between a shard's process and its parent, over one pair of sockets

# A message has a length, a kind, a number, and a payload. Frames for other shards pass unchanged; calls and replies are
# msgpack and match by number.

FRAME = 1
"""To the parent: a frame for the shard with that number. To the shard: a frame from that shard."""
CARRIED = 2
DROPPED = 3
"""To the shard: the last frame for the shard with that number has arrived, or may be lost."""
QUESTION = 4
ANSWER = 5
NOTE = 6
"""To the parent: a note for the operator."""
LAST_WORDS = 7
"""To the parent: why the process ends without an instruction; the number is 1 for a mistake of the operator."""
MESSAGE_BYTES_MAX = 64 << 20
_HEAD = struct.Struct("<IBI")
_encode = msgspec.msgpack.Encoder(enc_hook=str).encode
read = msgspec.msgpack.Decoder(dict[str, object]).decode
"""Returns a call or a reply."""

Message = tuple[int, int, bytes]
"""Kind, number, payload."""


class FrameLine:
    """One end of the pair. Any code on the loop may call `send`, but only one task `receive`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def over(cls, end: socket.socket) -> Self:
        """Return the line over a connected socket, which it then owns."""
        reader, writer = await asyncio.open_connection(sock=end, limit=1 << 20)
        return cls(reader, writer)

    def send(self, kind: int, number: int, rest: bytes = b"") -> None:
        """Send a message, which is lost if the other end is gone. It is buffered in memory until that reads it."""
        if self._writer.is_closing():  # Other loops than asyncio's raise an error.
            return
        self._writer.write(_HEAD.pack(len(rest), kind, number))
        if rest:
            self._writer.write(rest)

    @property
    def is_full(self) -> bool:
        """Whether the other end has left too many messages unread."""
        return self._writer.transport.get_write_buffer_size() > LINE_HELD_BYTES_MAX

    def say(self, kind: int, number: int, value: object) -> None:
        """Send a call or a reply."""
        self.send(kind, number, _encode(value))

    async def receive(self) -> Message | None:
        """Return the next message, or None when the other end is gone."""
        try:
            length, kind, number = _HEAD.unpack(await self._reader.readexactly(_HEAD.size))
            assert length <= MESSAGE_BYTES_MAX, "the other end is one of ours"
            return kind, number, await self._reader.readexactly(length)
        except (asyncio.IncompleteReadError, OSError):
            return None

    async def flush(self) -> None:
        """Wait until the other end has read most of what was sent, or is gone."""
        try:
            await self._writer.drain()
        except OSError:
            return

    def close(self) -> None:
        self._writer.close()
