"""Control: asks a running crawl, by the socket in its directory."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from gossamer.model.errors import ConfigError
from gossamer.world.sockets import fits

SOCKET = "control.sock"
DEADLINE_S = 30.0
REPLY_BYTES_MAX = 64 << 20


class NotRunningError(Exception):
    """Nobody listens in the directory: the crawl has stopped, or never was."""


class SilentError(ConfigError):
    """A crawl listens, and does not answer."""


def ask(
    directory: Path, verb: str, arguments: Mapping[str, object] | None = None, *, deadline_s: float = DEADLINE_S
) -> object:
    """Send one request to the crawl that runs in `directory` and return its answer.

    Raises:
        NotRunningError: no crawl listens there.
        ConfigError: the crawl refused, or did not answer within `deadline_s`.
    """
    ends_at = time.monotonic() + deadline_s
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line, _short(directory / "state") as path:
        try:
            line.settimeout(deadline_s)
            line.connect(path)
            line.sendall(json.dumps({"verb": verb, **(arguments or {})}).encode() + b"\n")
            reply = _read_line(line, ends_at)
        except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError) as error:
            raise NotRunningError(f"no crawl runs in {directory}") from error
        except (ConnectionResetError, BrokenPipeError) as error:
            raise NotRunningError(f"the crawl in {directory} ended before it answered") from error
        except TimeoutError as error:
            raise SilentError(f"the crawl in {directory} did not answer within {deadline_s:g} s") from error
        except PermissionError as error:
            raise ConfigError(f"may not ask the crawl in {directory}; run this as the user who started it") from error
    return _result(reply, directory)


def _read_line(line: socket.socket, ends_at: float) -> bytes:
    reply = bytearray()
    while not reply.endswith(b"\n"):
        left_s = ends_at - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        line.settimeout(left_s)
        part = line.recv(1 << 16)
        if not part:
            raise ConnectionResetError
        reply += part
        if len(reply) > REPLY_BYTES_MAX:
            raise ConfigError(f"the crawl's answer is longer than {REPLY_BYTES_MAX} bytes; ask for less")
    return bytes(reply)


def _result(reply: bytes, directory: Path) -> object:
    try:
        answer = json.loads(reply)
    except ValueError as error:
        raise ConfigError(f"what listens in {directory} is no crawl of this version") from error
    if not isinstance(answer, dict) or "ok" not in answer:
        raise ConfigError(f"what listens in {directory} is no crawl of this version")
    if not answer["ok"]:
        raise ConfigError(" ".join(str(answer.get("error", "refused")).split()))
    result: object = answer.get("result")
    return result


@contextmanager
def _short(state: Path) -> Iterator[str]:
    """Yield a path to the socket that is short enough for the system, however deep the directory lies."""
    if fits(state / SOCKET):
        yield str(state / SOCKET)
        return
    try:
        fd = os.open(state, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise NotRunningError(f"no crawl runs in {state.parent}") from error
    try:
        if Path("/proc/self/fd").is_dir():
            yield f"/proc/self/fd/{fd}/{SOCKET}"
        else:
            here = Path.cwd()
            os.fchdir(fd)
            try:
                yield SOCKET
            finally:
                os.chdir(here)
    finally:
        os.close(fd)
