"""Records: what the disk keeps of a host and of a queued URL. The formats' owner; each begins with its version."""

from __future__ import annotations

from math import ceil

import msgspec

from gossamer.model.links import NOT_SEED

LEVELS = 8
RECORD_VERSION = 1


class Entry(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A URL in a queue."""

    url: str
    depth: int
    hops: int
    link_type: str
    referrer: str
    attempt: int = 1
    """The number that its next request will have."""
    seed: int = NOT_SEED
    error: str = ""
    """Why the attempt before failed."""


class LevelQueue(msgspec.Struct, array_like=True):
    """A host's queue at one level. URLs are numbered; blocks of them are stored under the number of their first.

    Finished URLs leave from the head. Those that finished before an older one did are kept as ranges until the head
    reaches them; their number is bounded by the requests at once to one host.
    """

    head: int = 0
    """Number of the oldest URL that is not finished."""
    block: int = 0
    """Number of the first URL of the block that holds the head."""
    tail: int = 0
    """Number that the next new URL will get."""
    done: list[tuple[int, int]] = msgspec.field(default_factory=list)

    @property
    def pending(self) -> int:
        """URLs that are not finished."""
        return self.tail - self.head - sum(end - begin for begin, end in self.done)

    def finish(self, number: int) -> None:
        """Take one URL off, wherever it stands."""
        if number == self.head:
            self.head += 1
            while self.done and self.done[0][0] == self.head:
                self.head = self.done.pop(0)[1]
            return
        for index, (begin, end) in enumerate(self.done):
            if number == end:
                if index + 1 < len(self.done) and self.done[index + 1][0] == number + 1:
                    end = self.done.pop(index + 1)[1]
                    self.done[index] = (begin, end)
                else:
                    self.done[index] = (begin, number + 1)
                return
            if number < begin:
                if number + 1 == begin:
                    self.done[index] = (number, end)
                else:
                    self.done.insert(index, (number, number + 1))
                return
        self.done.append((number, number + 1))

    def finished(self, number: int) -> bool:
        """Say whether a URL is finished."""
        return number < self.head or any(begin <= number < end for begin, end in self.done)


class HostRecord(msgspec.Struct, array_like=True):
    """All that is remembered of a host."""

    version: int
    name: str
    levels: dict[int, LevelQueue] = msgspec.field(default_factory=dict)
    due: int = 0
    """URLs that wait for a time of their own: retries."""
    rest_until: float = 0.0
    """Wall time before which it must not be asked."""
    fetches_s: list[float] = msgspec.field(default_factory=list)
    """The last fetch times."""
    crawl_delay_s: float | None = None
    failures: int = 0
    """Failures of the host in a row."""
    sleeps: int = 0
    """Sleeps in a row without an answer between them."""
    backoffs: int = 0
    """Times in a row it said 429 or 503."""
    closed: str = ""
    """Why it is asked no more; empty while it is open."""
    index_family: str = ""
    index_key: bytes = b""
    """Its entry in the index of hosts with work."""
    requests: int = 0
    reason: str = ""
    """Why it rests, for people."""

    @property
    def queued(self) -> int:
        """URLs that are not finished, those under way included."""
        return self.due + sum(queue.pending for queue in self.levels.values())


_encode = msgspec.msgpack.Encoder().encode
_decode_record = msgspec.msgpack.Decoder(HostRecord).decode
_decode_block = msgspec.msgpack.Decoder(list[Entry]).decode
_decode_entry = msgspec.msgpack.Decoder(Entry).decode


def encode_record(record: HostRecord) -> bytes:
    """About 1 µs."""
    return _encode(record)


def decode_record(data: bytes) -> HostRecord:
    """Return the record.

    Raises:
        ValueError: it was written by a version that we do not know.
    """
    record = _decode_record(data)
    if record.version != RECORD_VERSION:
        raise ValueError(f"host record of version {record.version}, {RECORD_VERSION} expected")
    return record


def encode_block(entries: list[Entry]) -> bytes:
    """Return a block as the disk keeps it."""
    return _encode(entries)


def decode_block(data: bytes) -> list[Entry]:
    """Return a block's URLs; about 0.15 µs each."""
    return _decode_block(data)


def encode_entry(entry: Entry) -> bytes:
    """Return a due URL as the disk keeps it."""
    return _encode(entry)


def decode_entry(data: bytes) -> Entry:
    """Return a due URL."""
    return _decode_entry(data)


def host_prefix(partition: int, host: str) -> bytes:
    """Return what every key of a host begins with; no host name holds a zero byte."""
    return partition.to_bytes(2) + host.encode() + b"\0"


def block_key(prefix: bytes, level: int, number: int) -> bytes:
    """Return the key of the block whose first URL has this number."""
    return prefix + bytes((level,)) + number.to_bytes(8)


def micros(at: float) -> int:
    """Return wall time in whole microseconds, rounded up so that nothing is early when it is divided again."""
    whole = ceil(at * 1e6)
    return whole if whole / 1e6 >= at else whole + 1


def due_key(prefix: bytes, at: float, fingerprint: int) -> bytes:
    """Sorts by time, then by URL."""
    return prefix + micros(at).to_bytes(8) + fingerprint.to_bytes(8)


def due_time(key: bytes) -> float:
    """Return the time that a due key sorts by."""
    return int.from_bytes(key[-16:-8]) / 1e6


def range_end(prefix: bytes) -> bytes:
    """Return the first key after all that begin with a host's prefix."""
    return prefix[:-1] + b"\1"
