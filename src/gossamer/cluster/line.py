"""Line: the protocol between a shard's process and its parent, over one pair of sockets.

A message has a length, a kind, a number, and a payload. Frames for other shards pass unchanged; calls and replies are
msgpack and match by number.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Self

import msgspec

FRAME = 1
"""To the parent: a frame for the shard with that number. To the shard: a frame from that shard."""
CARRIED, DROPPED = 2, 3
"""To the shard: the last frame for the shard with that number has arrived, or may be lost."""
QUESTION, ANSWER = 4, 5
NOTE = 6
"""To the parent: a note for the operator."""
LAST_WORDS = 7
"""To the parent: why the process ends without an instruction; the number is 1 for a mistake of the operator."""
MESSAGE_BYTES_MAX = 64 << 20
_HEAD = struct.Struct("<IBI")
_encode = msgspec.msgpack.Encoder(enc_hook=str).encode
_decode = msgspec.msgpack.Decoder(dict[str, object]).decode

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
        """Send a message. It is buffered in memory until the other end reads it."""
        self._writer.write(_HEAD.pack(len(rest), kind, number))
        if rest:
            self._writer.write(rest)

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


def read(rest: bytes) -> dict[str, object]:
    """Return a call or a reply."""
    return _decode(rest)
