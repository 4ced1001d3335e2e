"""Log: what the server saw, a line for each request, and how to read it again."""

import os
from pathlib import Path

import msgspec

HEADER = b"#simweb-log 1\n"
FLUSH_BYTES = 64 * 1024
"""A buffer of this size is written at once; a smaller one within `FLUSH_S`."""
FLUSH_S = 0.1


class Logged(msgspec.Struct, frozen=True, gc=False):
    """One request as the server saw it. Instants are wall time in seconds by a clock that never goes back."""

    started_at: float
    """Its first byte had arrived; on a new connection that never sent one, the connection was accepted."""
    ended_at: float
    """The last byte of the answer began its way to the kernel: no client can have had it before. Of an answer that was
    not sent whole: the connection was gone, or broken off."""
    opened_at: float
    """The connection was accepted."""
    address: str
    """The server's address that was contacted."""
    host: str
    """From the Host header, lower case, without port; `-` when no request came."""
    path: str
    """The target as sent, with its query; `-` when no request came."""
    status: int
    """0 when the client got no whole status line."""
    connection: int
    """A number for each connection."""
    nth: int
    """Its place on the connection, from 1; 0 for a connection without a request."""
    sent_bytes: int
    """Handed to the kernel, head and body."""
    whole: bool
    """The answer was sent as intended; false when the client went away, or the server meant to break off."""
    retry_at: float
    """Not before this instant, as the answer asked by Retry-After; 0 when it asked nothing."""
    method: str
    agent: str

    @property
    def contact_at(self) -> float:
        """When the client touched the server: connecting counts."""
        return self.opened_at if self.nth <= 1 else self.started_at


class RequestLog:
    """Writes the log. Lines are in the order in which requests ended; a kill loses at most `FLUSH_S` of them."""

    def __init__(self, path: Path) -> None:
        """Append to `path`, made with its header if it is not there."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._lines: list[bytes] = [] if os.fstat(self._fd).st_size else [HEADER]
        self._bytes = 0

    def add(self, logged: Logged) -> None:
        """Take one request; about 2 µs."""
        line = (
            f"{logged.started_at:.6f}\t{logged.ended_at:.6f}\t{logged.opened_at:.6f}\t{logged.address}\t"
            f"{_clean(logged.host)}\t{_clean(logged.path)}\t{logged.status}\t{logged.connection}\t{logged.nth}\t"
            f"{logged.sent_bytes}\t{logged.whole:d}\t{logged.retry_at:.6f}\t{_clean(logged.method)}\t{_clean(logged.agent)}\n"
        ).encode()
        self._lines.append(line)
        self._bytes += len(line)
        if self._bytes >= FLUSH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Hand what is buffered to the system."""
        data = memoryview(b"".join(self._lines))
        self._lines.clear()
        self._bytes = 0
        while data:
            data = data[os.write(self._fd, data) :]

    def close(self) -> None:
        """Flush and close."""
        self.flush()
        os.close(self._fd)


def read_log(path: Path) -> list[Logged]:
    """Return all requests in the order in which they ended. A last line cut off by a kill is left out. Raises
    ValueError: the file is no request log.
    """
    data = path.read_bytes()
    if data and not data.startswith(HEADER):
        raise ValueError(f"{path} is no simweb log")
    names = Logged.__struct_fields__
    rows = [dict(zip(names, line.split("\t"), strict=True)) for line in data.decode().split("\n")[1:-1] if line]
    return msgspec.convert(rows, list[Logged], strict=False)


def _clean(text: str) -> str:
    # A client's bytes must not forge lines or columns.
    return text if text.isprintable() else "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
