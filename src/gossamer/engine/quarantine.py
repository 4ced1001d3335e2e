"""Quarantine: pages that crashed our process are tried once more in a separate process."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import BinaryIO

import msgspec

from gossamer.engine.examine import Examined, Examiner, dead
from gossamer.model.visits import LargeBody, Reply
from gossamer.state.epoch import Epochs, load
from gossamer.state.schema import SUSPECTS
from gossamer.state.slots import Suspect
from gossamer.world.workers import end_process

SUSPECTS_MAX = 100_000
START_S_MAX = 5.0
"""Time that a separate process may take to start on a busy machine, which is not the page's fault."""
_LENGTH_BYTES = 8
_PIECE_BYTES = 1 << 20
_encode = msgspec.msgpack.Encoder().encode
_decode_reply = msgspec.msgpack.Decoder(Reply).decode
_decode_examined = msgspec.msgpack.Decoder(Examined).decode


class Quarantine:
    """Records suspect pages, and examines them in a separate process, whose death does no harm."""

    def __init__(
        self,
        epochs: Epochs,
        accused: Sequence[Suspect],
        command: Sequence[str],
        limit_s: float,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`command` starts a process that reads a reply from its input and writes the result (`examine_alone`), with
        our environment or `environment`.
        """
        self._epochs = epochs
        self._command = list(command)
        self._limit_s = limit_s
        self._environment = environment
        self._suspects = load(epochs, SUSPECTS, dict[int, str])
        for suspect in accused:
            self._suspects[suspect.fingerprint] = suspect.stage
        self.accused = bool(accused)
        """Whether there are new suspects: commit before the next page, or two could crash the process in turns."""
        if accused:
            self._save()

    def suspects(self, fingerprint: int) -> bool:
        """Return whether a page must not be examined in our process."""
        return fingerprint in self._suspects

    def accuse(self, fingerprint: int, stage: str) -> None:
        """Note that a process died of a page, in a stage of its examination."""
        self._suspects[fingerprint] = stage
        self._save()

    async def examine(self, reply: Reply, fingerprint: int) -> Examined:
        """Examine a suspect in a separate process. Only if that process dies or hangs too, the page stays a suspect."""
        output = await self._answer(reply)
        if not output:
            return dead()
        del self._suspects[fingerprint]
        self._save()
        examined = _decode_examined(output)
        if reply.file is not None and not reply.header("content-encoding"):  # Its content is the body.
            examined.content = msgspec.structs.replace(examined.content, file=reply.file)
        return examined

    async def _answer(self, reply: Reply) -> bytes:
        """Return the output of the process; empty if it died or hung."""
        process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,  # Output of a crashing process must not reach the terminal.
            env=self._environment,
        )
        try:
            async with asyncio.timeout(START_S_MAX + self._limit_s):
                assert process.stdout is not None
                output, _ = await asyncio.gather(process.stdout.read(), _ask(process, reply))
                await process.wait()
        except TimeoutError:
            return b""
        finally:
            if process.returncode is None:  # The process hangs, or this task is cancelled.
                await end_process(process)
        return output if process.returncode == 0 else b""

    def _save(self) -> None:
        while len(self._suspects) > SUSPECTS_MAX:
            del self._suspects[next(iter(self._suspects))]
        self._epochs.put("meta", SUSPECTS, _encode(self._suspects))


async def _ask(process: asyncio.subprocess.Process, reply: Reply) -> None:
    assert process.stdin is not None
    head = _encode(msgspec.structs.replace(reply, file=None))
    try:
        process.stdin.write(len(head).to_bytes(_LENGTH_BYTES) + head)
        await process.stdin.drain()
        if reply.file is not None:
            with reply.file.open() as reader:
                while piece := reader.read(_PIECE_BYTES):
                    process.stdin.write(piece)
                    await process.stdin.drain()
        process.stdin.close()
    except ConnectionError:
        pass  # The process died; its exit status shows this.


def examine_alone(source: BinaryIO, examiner: Examiner, large: Callable[[BinaryIO], LargeBody] | None = None) -> bytes:
    """Run in the process that `command` starts: read a reply from `source`, return the encoded result. `large` writes a
    body to disk.

    For content that is too large for memory the result has only the beginning.
    """
    reply = _decode_reply(source.read(int.from_bytes(source.read(_LENGTH_BYTES))))
    if large is not None and (file := large(source)).size:
        reply = msgspec.structs.replace(reply, file=file)
    examined = examiner.examine(reply, 0)
    return _encode(msgspec.structs.replace(examined, content=msgspec.structs.replace(examined.content, file=None)))
