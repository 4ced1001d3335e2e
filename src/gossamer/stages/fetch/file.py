"""File: the protocol module for directories of this machine (RFC 8089). Off unless the configuration names roots."""

import asyncio
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote_from_bytes, unquote_to_bytes, urlsplit

from gossamer.model.errors import ConfigError
from gossamer.model.visits import Failure, Reply, Request
from gossamer.stages.fetch.bodies import URI_LIST, BodyMemory, media_type_of
from gossamer.stages.fetch.options import FetchOptions
from gossamer.world.clock import Clock
from gossamer.world.spill import Spill

_SAFE: Final = "/!$&'()*+,;=:@~"
# A pipe without a writer must not block.
_PIECE_BYTES: Final = 1 << 20
_OPEN_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY


class FileModule:
    """`ports.ProtocolModule` for file: regular files, and directories as lists of addresses (`text/uri-list`).

    Serves files under `fetch.file_roots`, after `..` and symbolic links are resolved, and refuses all others as
    `excluded`. In a list a symbolic link is replaced by its target, if that may be read, so that each file has one
    address and cyclic links end. Success has the status 200. Reads in a thread.
    """

    def __init__(
        self,
        options: FetchOptions,
        agent: str,  # a disk asks no names
        clock: Clock,
        bodies: BodyMemory | None = None,
    ) -> None:
        """Raises ConfigError for a root that is no directory."""
        self._options = options
        self._clock = clock
        self._bodies = bodies or BodyMemory(options)
        self._roots = tuple(_root(text) for text in options.file_roots)

    async def fetch(self, request: Request) -> Reply | Failure:
        """Read one file or one directory."""
        started_at = self._clock.now()
        try:
            async with asyncio.timeout(self._options.request_s_max):
                result = await asyncio.to_thread(self._read, request, started_at)
        except TimeoutError:
            result = self._failure(request, started_at, "timeout", "the disk does not answer", retry=True)
        return result

    async def close(self) -> None:
        """Do nothing: there are no connections."""

    def _read(self, request: Request, started_at: float) -> Reply | Failure:
        written = _path(request.url)
        if written is None:
            return self._failure(request, started_at, "unsupported", "no path on this machine")
        if not self._roots:
            return self._failure(request, started_at, "excluded", "fetch.file_roots names no directory")
        try:
            path = os.path.realpath(written, strict=True)
        except (OSError, ValueError) as error:
            # Do not reveal whether a file outside the roots exists.
            path = os.path.realpath(written)
            if self._within(path):
                return self._failure(request, started_at, "http_error", _reason(error))
        if not self._within(path):
            return self._failure(request, started_at, "excluded", "outside fetch.file_roots")
        bytes_max = request.body_bytes_max or self._options.body_bytes_max
        file: Spill | None = None
        try:
            if os.path.isdir(path):  # noqa: PTH112  # paths are bytes
                body = self._listing(path, bytes_max)
                media_type = URI_LIST
                cut = len(body) > bytes_max
            else:
                body, file, cut = self._content(path, bytes_max)
                media_type = media_type_of(os.fsdecode(path))
        except OSError as error:
            return self._failure(request, started_at, "http_error", _reason(error))
        return Reply(
            url=request.url,
            status=200,
            headers=(),
            body=body[:bytes_max],
            ip=request.ip,
            started_at=started_at,
            fetch_s=self._clock.now() - started_at,
            wire_bytes=len(body) if file is None else file.size,
            http_version="",
            truncated="length" if cut else "",
            media_type=media_type,
            file=file,
        )

    def _content(self, path: bytes, bytes_max: int) -> tuple[bytes, Spill | None, bool]:
        """Read a regular file up to the bound; return its bytes or a spill with them, and whether there is more."""
        descriptor = os.open(path, _OPEN_FLAGS)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError("neither a file nor a directory")
            held = file.read(min(bytes_max, self._bodies.each_bytes_max) + 1)
            if len(held) <= self._bodies.each_bytes_max or len(held) > bytes_max:
                return held, None, len(held) > bytes_max
            spill = self._bodies.spill(held)
            if spill is None:
                held += file.read(bytes_max + 1 - len(held))
                return held, None, len(held) > bytes_max
            while spill.size < bytes_max and (piece := file.read(min(_PIECE_BYTES, bytes_max - spill.size))):
                spill.write(piece)
            spill.flush()
            return b"", spill, bool(file.read(1))

    def _within(self, path: bytes) -> bool:
        return any(path == root or path.startswith(root.rstrip(b"/") + b"/") for root in self._roots)

    def _listing(self, path: bytes, bytes_max: int) -> bytes:
        """Return the sorted addresses of a directory's entries; of a very large directory those found first."""
        addresses: set[bytes] = set()
        size = 0
        for address in self._addresses(path):
            if address not in addresses:
                addresses.add(address)
                size += len(address)
            if size > bytes_max:
                break
        return b"".join(sorted(addresses))

    def _addresses(self, path: bytes) -> Iterator[bytes]:
        with os.scandir(path) as entries:
            for entry in entries:
                leads_to = os.path.realpath(entry.path) if entry.is_symlink() else entry.path
                if not self._within(leads_to):
                    continue
                try:
                    mode = os.stat(leads_to).st_mode  # noqa: PTH116  # paths are bytes
                except OSError:
                    continue
                if stat.S_ISDIR(mode) or stat.S_ISREG(mode):
                    slash = "/" if stat.S_ISDIR(mode) else ""
                    yield f"file://{quote_from_bytes(leads_to, _SAFE)}{slash}\r\n".encode()

    def _failure(self, request: Request, started_at: float, outcome: str, why: str, *, retry: bool = False) -> Failure:
        fetch_s = self._clock.now() - started_at
        return Failure(outcome, why, retry=retry, ip=request.ip, started_at=started_at, fetch_s=fetch_s)


def _root(text: str) -> bytes:
    path = Path(text)
    if not path.is_absolute() or not path.is_dir():
        raise ConfigError(f"fetch.file_roots: {text} is no directory; name existing ones by their whole path")
    return os.fsencode(path.resolve())


def _path(url: str) -> bytes | None:
    """Return the path of a file URL; None if there is none, or if it is on another machine."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    path = unquote_to_bytes(parts.path)
    if parts.scheme != "file" or parts.netloc.lower() not in ("", "localhost") or parts.query:
        return None
    return path if path.startswith(b"/") and b"\0" not in path else None


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
