"""Quarantine: pages that our process died of are tried once more, alone in a process of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import BinaryIO

import msgspec

from gossamer.crawl.examine import Examined, Examiner
from gossamer.model.visits import LargeBody, Reply
from gossamer.state.epoch import Epochs
from gossamer.state.schema import SUSPECTS
from gossamer.state.slots import Suspect
from gossamer.world.workers import end_process

SUSPECTS_MAX = 100_000
START_S_MAX = 5.0
"""What a process of one's own takes to begin, on a busy machine: no page's fault."""
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
        """`command` starts a process that reads a reply on its input and writes the result (`examine_alone`), in our
        environment or in `environment`.
        """
        self._epochs = epochs
        self._command = list(command)
        self._limit_s = limit_s
        self._environment = environment
        stored = epochs.get("meta", SUSPECTS)
        self._suspects: dict[int, str] = msgspec.msgpack.decode(stored, type=dict[int, str]) if stored else {}
        for suspect in accused:
            self._suspects[suspect.fingerprint] = suspect.stage
        self.accused = bool(accused)
        """There are new suspects: commit before the next page is examined, or two of them could crash it in turn."""
        if accused:
            self._save()

    def suspects(self, fingerprint: int) -> bool:
        """Say whether a page must not be examined in our process."""
        return fingerprint in self._suspects

    async def examine(self, reply: Reply, fingerprint: int) -> Examined | None:
        """Examine a suspect in a separate process; None when that one dies or hangs too. The page is cleared or
        condemned by the caller's record; the suspicion stays only for one that was condemned.
        """
        output = await self._answer(reply)
        if output is None:
            return None
        del self._suspects[fingerprint]
        self._save()
        examined = _decode_examined(output)
        if reply.file is not None and reply.header("content-encoding") is None:  # Nothing was removed from it.
            examined.content = msgspec.structs.replace(examined.content, file=reply.file)
        return examined

    async def _answer(self, reply: Reply) -> bytes | None:
        process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,  # What it says in dying is not for the terminal.
            env=self._environment,
        )
        try:
            async with asyncio.timeout(START_S_MAX + self._limit_s):
                output, _ = await asyncio.gather(_read(process), _ask(process, reply))
                await process.wait()
        except TimeoutError:
            return None
        finally:
            if process.returncode is None:  # It hangs, or this task is cancelled.
                await end_process(process)
        return output if process.returncode == 0 else None

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
        pass  # It died of it: its status says so.


async def _read(process: asyncio.subprocess.Process) -> bytes:
    assert process.stdout is not None
    return await process.stdout.read()


def examine_alone(source: BinaryIO, examiner: Examiner, large: Callable[[BinaryIO], LargeBody] | None = None) -> bytes:
    """Answer for the process that `command` starts: a reply in, what it came to out. `large` takes a body to disk.

    Of content that is too large for memory the answer holds the beginning alone.
    """
    reply = _decode_reply(source.read(int.from_bytes(source.read(_LENGTH_BYTES))))
    if large is not None and (file := large(source)).size:
        reply = msgspec.structs.replace(reply, file=file)
    examined = examiner.examine(reply, 0)
    return _encode(msgspec.structs.replace(examined, content=msgspec.structs.replace(examined.content, file=None)))
