"""Logs: the frames that hold record batches in the journals of a kind.

A frame is the magic bytes, the payload's length (32 bits) and xxh3 checksum (64 bits, seeded with the length),
little-endian, then the payload: one Arrow IPC stream that carries its schema, readable on its own.
"""

import struct
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import xxhash

from gossamer.model.errors import DamagedError

_HEAD = struct.Struct("<4sIQ")
_MAGIC = b"gsf1"
_OPTIONS = pa.ipc.IpcWriteOptions(compression="zstd", use_threads=False)
_READING = pa.ipc.IpcReadOptions(use_threads=False)
"""Buffers of a frame are small. For 45 columns Arrow's threads take 4 ms of processor time, as they contend for glibc's
two arenas (`FRUGAL`); one thread takes 1 ms. Reading is the same."""


class BrokenFrameError(DamagedError):
    """A log is damaged: its bytes are not those that were written. Names the file, the offset, and the repair."""

    def __init__(self, path: Path, what: str) -> None:
        self.what = what
        super().__init__(
            f"{path} was damaged ({what}): put a sound copy in its place, or a checkpoint in that of the crawl"
        )


def frame(batch: pa.RecordBatch) -> bytes:
    """Return the batch as one frame. Costs about 10 µs a buffer, of which a column has up to three."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=_OPTIONS) as writer:
        writer.write_batch(batch)
    payload: bytes = sink.getvalue().to_pybytes()
    return _HEAD.pack(_MAGIC, len(payload), _checksum(payload)) + payload


def batches(path: Path, length: int | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a log, one frame in memory at a time; those of its first `length` bytes when that is given.
    Raises BrokenFrameError: a frame does not match its checksum or ends early.
    """
    for payload in _payloads(path, length):
        with pa.ipc.open_stream(payload, options=_READING) as reader:
            yield from reader


def batch_at(path: Path, offset: int) -> tuple[pa.RecordBatch, int]:
    """Return the batch of the frame at an offset of a log, and the offset of the frame's end. Raises BrokenFrameError:
    as `batches`; also if there is no frame.
    """
    payload = next(_payloads(path, None, offset), None)
    if payload is None:
        raise BrokenFrameError(path, f"no frame begins at {offset}")
    with pa.ipc.open_stream(payload, options=_READING) as reader:
        return reader.read_next_batch(), offset + _HEAD.size + len(payload)


def schemas(path: Path, length: int | None = None) -> Iterator[pa.Schema]:
    """Yield the schema of each frame of a log, without unpacking its rows. Raises BrokenFrameError: as `batches`."""
    for payload in _payloads(path, length):
        with pa.ipc.open_stream(payload, options=_READING) as reader:
            yield reader.schema


def _payloads(path: Path, length: int | None, offset: int = 0) -> Iterator[bytes]:
    with path.open("rb") as file:
        file.seek(offset)
        while (length is None or offset < length) and (head := file.read(_HEAD.size)):
            if len(head) < _HEAD.size:
                raise BrokenFrameError(path, f"the frame at {offset} ends within its head")
            magic, size, checksum = _HEAD.unpack(head)
            if magic != _MAGIC:
                raise BrokenFrameError(path, f"no frame begins at {offset}")
            payload = file.read(size)
            if len(payload) != size or _checksum(payload) != checksum:
                raise BrokenFrameError(path, f"the frame at {offset} is damaged")
            offset += _HEAD.size + size
            yield payload


def _checksum(payload: bytes) -> int:
    return xxhash.xxh3_64_intdigest(payload, seed=len(payload))
