"""Asking: sends a request to a crawl that runs in another process, through the socket in its directory."""

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from gossamer.engine.control import SOCKET, refusal
from gossamer.world.files import socket_name

ANSWER_BYTES_MAX = 64 << 20


class NotRunningError(Exception):
    """No process listens in the directory: the crawl has stopped, or was never started. Its cause is an OSError, unless
    the crawl ended before it answered.
    """


async def ask_crawl(directory: Path, request: Mapping[str, object], answer_s_max: float) -> dict[str, object]:
    """Return the answer of the crawl that runs in `directory`, or a refusal: `overdue` after `answer_s_max`. Raises
    NotRunningError: none runs, or it ended before it answered.
    """
    # In ASCII: words of a command line may be no UTF-8.
    asked = json.dumps(request).encode("ascii") + b"\n"
    line = b""
    try:
        async with asyncio.timeout(answer_s_max):
            try:
                with socket_name(directory / "state" / SOCKET) as path:
                    reader, writer = await asyncio.open_unix_connection(path, limit=ANSWER_BYTES_MAX)
            except PermissionError:
                return refusal("refused", f"may not ask the crawl in {directory}; run this as the user who started it")
            except OSError as error:  # Such as of a `state` that is missing, a file, or a link to itself.
                raise NotRunningError(f"no crawl runs in {directory}") from error
            try:
                writer.write(asked)
                line = await reader.readline()
            finally:
                writer.close()
    except TimeoutError:
        return refusal("overdue", f"the crawl in {directory} did not answer within {answer_s_max:g} s")
    except ValueError:
        return refusal("failed", "the answer is too long; ask for less")
    except OSError:
        pass  # As if it had sent no answer.
    if not line.endswith(b"\n"):
        raise NotRunningError(f"the crawl in {directory} ended before it answered")
    with suppress(msgspec.DecodeError):
        answer = msgspec.json.decode(line, type=dict[str, object])
        if "ok" in answer:
            return answer
    return refusal("failed", f"what listens in {directory} is no crawl of this version")
