"""Quarantine: pages that crashed our process are tried once more in a separate process."""

from collections.abc import Mapping, Sequence

import msgspec

from gossamer.engine.examine import Examined, Examiner, dead
from gossamer.model.visits import Reply
from gossamer.state.epoch import Epochs, load
from gossamer.state.schema import SUSPECTS
from gossamer.state.slots import Suspect
from gossamer.world.pool import PoolSeat, WorkerPool
from gossamer.world.spill import Spill
from gossamer.world.workers import WorkerError

SUSPECTS_MAX = 100_000
ANSWER_BYTES_MAX = 256 << 20
"""A process with a longer answer counts as dead."""
_decode_suspect = msgspec.msgpack.Decoder(tuple[Reply, int, bytes]).decode
"""Returns a reply without its file, and size and digest of that."""
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
        """`command` starts a process that examines one page (`examine_alone`). `environment` is its own; None: ours."""
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
        file = reply.file
        assert file is None or isinstance(file, Spill)
        size_and_digest = (file.size, file.digest) if file is not None else (0, b"")
        request = msgspec.msgpack.encode((msgspec.structs.replace(reply, file=None), *size_and_digest))
        descriptor = file.fileno() if file is not None else None
        pool = WorkerPool(self._command, self._limit_s, 1, 0, self._environment, answer_bytes_max=ANSWER_BYTES_MAX)
        try:
            examined = await pool.ask(request, b"", _decode_examined, file=descriptor)
        except WorkerError:
            return dead()
        finally:
            await pool.close()
        del self._suspects[fingerprint]
        self._save()
        if reply.file is not None and not reply.header("content-encoding"):  # Its content is the body.
            examined.content = msgspec.structs.replace(examined.content, file=reply.file)
        return examined

    def _save(self) -> None:
        while len(self._suspects) > SUSPECTS_MAX:
            del self._suspects[next(iter(self._suspects))]
        self._epochs.put("meta", SUSPECTS, msgspec.msgpack.encode(self._suspects))


def examine_alone(seat: PoolSeat, examiner: Examiner) -> None:
    """Examine one page, in the process that `command` starts. For content that is too large for memory the answer has
    only the beginning.
    """
    question = seat.take()
    if question is None:
        return
    reply, size, digest = _decode_suspect(question.head)
    if question.file is not None:
        reply = msgspec.structs.replace(reply, file=Spill.from_descriptor(question.file, size, digest))
    examined = examiner.examine(reply, 0)
    examined.content = msgspec.structs.replace(examined.content, file=None)
    seat.answer(msgspec.msgpack.encode(examined))
