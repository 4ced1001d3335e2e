"""Line: asks a crawl that runs in another process, by the socket in its directory."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from gossamer.world.sockets import reachable

SOCKET = "control.sock"
ANSWER_BYTES_MAX = 64 << 20
ANSWER_S_MAX = 75.0
"""A crawl answers within 60 s, if only that it cannot."""


class NobodyError(Exception):
    """Nobody listens there: no crawl runs."""


async def ask(directory: Path, request: dict[str, object], *, deadline_s: float = ANSWER_S_MAX) -> dict[str, object]:
    """Return the answer of the crawl that runs in `directory`, as it gives it.

    Raises:
        NobodyError: none runs, or it ended before it answered.
    """
    try:
        async with asyncio.timeout(deadline_s):
            with reachable(directory / "state" / SOCKET) as path:
                reader, writer = await asyncio.open_unix_connection(path, limit=ANSWER_BYTES_MAX)
            try:
                writer.write(msgspec.json.encode(request) + b"\n")
                line = await reader.readline()
            finally:
                writer.close()
    except TimeoutError:
        return _none("overdue", f"the crawl in {directory} did not answer within {deadline_s:g} s")
    except PermissionError:
        return _none("refused", f"may not ask the crawl in {directory}; run this as the user who started it")
    except OSError as error:
        raise NobodyError(f"no crawl runs in {directory}") from error
    except ValueError:
        return _none("failed", "the answer is too long; ask for less")
    if not line.endswith(b"\n"):
        raise NobodyError(f"the crawl in {directory} ended before it answered")
    try:
        return msgspec.json.decode(line, type=dict[str, object])
    except msgspec.DecodeError:
        return _none("failed", f"what listens in {directory} is no crawl of this version")


def _none(kind: str, error: str) -> dict[str, object]:
    return {"ok": False, "error": error, "kind": kind}
