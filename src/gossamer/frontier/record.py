"""Records: what the disk keeps of a host and of a queued URL. The formats' owner; each begins with its version."""

from collections.abc import Callable
from math import ceil

import msgspec

from gossamer.model.errors import ConfigError
from gossamer.model.links import NOT_SEED, Link
from gossamer.model.visits import Visit
from gossamer.url.url import Url

LEVELS = 8
RECORD_VERSION = 3


class QueueEntry(msgspec.Struct, array_like=True, frozen=True, gc=False):
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
    revisit: bool = False
    """It was visited before, and its turn has come again."""


class QueuedUrl(Visit, frozen=True, gc=False):
    """A queued URL for a lease, and its place on disk until it is finished."""

    error: str = ""
    level: int = 0
    number: int = 0
    due_key: bytes = b""
    """Set if it is among the host's due URLs, not in a level's queue."""


class QueueRun(msgspec.Struct, array_like=True, gc=False):
    """URLs of one host that were found in the same way one after another: mostly those that one page names."""

    depth: int
    hops: int
    link_type: str
    referrer: str
    """Shortened, as the URLs are."""
    seed: int
    urls: list[str]


class QueueBlock(msgspec.Struct, array_like=True, gc=False):
    """URLs with successive numbers, in the order of their leases."""

    first: int
    """Number of the first of them; its key has it too."""
    count: int = 0
    runs: list[QueueRun] = msgspec.field(default_factory=list)

    def add(self, url: str, link: Link, referrer: str) -> int:
        """Put a link at the end; return about how many bytes of memory that took. Both addresses are shortened."""
        self.count += 1
        runs = self.runs
        if runs:
            run = runs[-1]
            if (
                run.referrer == referrer
                and run.depth == link.depth
                and run.hops == link.hops
                and run.link_type == link.link_type
                and run.seed == link.seed
            ):
                run.urls.append(url)
                return len(url) + URL_BYTES
        runs.append(QueueRun(link.depth, link.hops, link.link_type, referrer, link.seed, [url]))
        return len(url) + len(referrer) + RUN_BYTES

    def entries(self, host: str) -> list[QueueEntry]:
        """Return all of them at their full length. About 0.4 µs each."""
        found: list[QueueEntry] = []
        for run in self.runs:
            referrer = lengthened(run.referrer, host)
            depth, hops, link_type, seed = run.depth, run.hops, run.link_type, run.seed
            found += [QueueEntry(lengthened(url, host), depth, hops, link_type, referrer, 1, seed) for url in run.urls]
        return found

    def items(self, host: str, level: int, begin: int, end: int, named: Callable[[str], Url]) -> list[QueuedUrl]:
        """Return the items from `begin` up to, but without, `end`, as leases need them; places count from 0. About 1 µs
        each, mostly for the name.
        """
        found: list[QueuedUrl] = []
        at = 0
        for run in self.runs:
            if at >= end:
                break
            urls = run.urls
            if at + len(urls) > begin:
                referrer = lengthened(run.referrer, host)
                depth, hops, link_type, seed = run.depth, run.hops, run.link_type, run.seed
                number = self.first + max(at, begin)
                for text in urls[max(begin - at, 0) : end - at]:
                    url = named(lengthened(text, host))
                    found.append(QueuedUrl(url, depth, hops, link_type, referrer, 1, seed, False, "", level, number))
                    number += 1
            at += len(urls)
        return found


URL_BYTES = 60
"""What a URL in a run takes in memory beside its characters."""
RUN_BYTES = 400
"""The same for a run with its first URL."""


def shortened(text: str, host: str) -> str:
    """Return an address without the host of the queue that it is in; others as they are."""
    if text.startswith("https://"):
        end = 8 + len(host)
        if text.startswith(host, 8) and text.startswith("/", end):
            return text[end:]
    elif text.startswith("http://"):
        end = 7 + len(host)
        if text.startswith(host, 7) and text.startswith("/", end):
            return ":" + text[end:]
    return text


def lengthened(text: str, host: str) -> str:
    """Return what `shortened` was given."""
    if text.startswith("/"):
        return f"https://{host}{text}"
    if text.startswith(":"):
        return f"http://{host}{text[1:]}"
    return text


class LevelQueue(msgspec.Struct, array_like=True, gc=False):
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
    done: tuple[tuple[int, int], ...] = ()

    @property
    def pending(self) -> int:
        """URLs that are not finished."""
        left = self.tail - self.head
        return left - sum(end - begin for begin, end in self.done) if self.done else left

    def finish(self, number: int) -> None:
        """Remove one URL, at any place."""
        if number == self.head:
            self.head += 1
            while self.done and self.done[0][0] == self.head:
                self.head = self.done[0][1]
                self.done = self.done[1:]
            return
        begin, end = number, number + 1
        before = [one for one in self.done if one[1] < begin]
        after = [one for one in self.done if one[0] > end]
        for one in self.done[len(before) : len(self.done) - len(after)]:  # Those that it touches: two at the most.
            begin, end = min(begin, one[0]), max(end, one[1])
        self.done = (*before, (begin, end), *after)

    def finished(self, number: int) -> bool:
        """Say whether a URL is finished."""
        return number < self.head or any(begin <= number < end for begin, end in self.done)


class Origin(msgspec.Struct, array_like=True, gc=False):
    """What is remembered of one origin of a host: one that fails, or that names a port (`frontier.origins`)."""

    slot: int
    """Its URLs that are set aside are in the queues `lane(slot, level)`; from 1."""
    answered: bool = False
    failures: int = 0
    """In a row."""
    sleeps: int = 0
    """In a row without an answer between them."""
    first_failed_at: float = 0.0
    """Wall time of the first failure in the row."""
    wait_until: float = 0.0
    """Wall time before which it is not requested; from then on one URL at a time until it answers. 0: no limit."""
    closed: str = ""
    """Why it is given up, until `wait_until`; empty while it is not."""
    error: str = ""
    """How its last failure went, for people."""
    reason: str = ""
    """Why it waits, for people."""
    crawl_delay_s: float | None = None


def lane(slot: int, level: int) -> int:
    """Return the number of the queue of a level for the URLs of an origin that are set aside; slot 0: those of all."""
    return slot << 3 | level


def slot_of(number: int) -> int:
    """Return the slot of a queue; 0: it holds URLs of any origin."""
    return number >> 3


def level_of(number: int) -> int:
    """Return the level of a queue."""
    return number & 7


class HostRecord(msgspec.Struct, array_like=True, gc=False):
    """All that is remembered of a host."""

    version: int
    name: str
    levels: dict[int, LevelQueue] = msgspec.field(default_factory=dict)
    """By `lane`: the level where nothing is set aside."""
    due: int = 0
    """URLs that wait for a time of their own: retries."""
    rest_until: float = 0.0
    """Wall time before which no request may be sent."""
    fetches_s: list[float] = msgspec.field(default_factory=list)
    """The last fetch times."""
    crawl_delay_s: float | None = None
    backoffs: int = 0
    """Consecutive replies of 429 or 503."""
    closed: str = ""
    """Why it gets no more requests; empty while it is open."""
    index_family: str = ""
    index_key: bytes = b""
    """Its entry in the index of hosts with work."""
    requests: int = 0
    reason: str = ""
    """Why it waits, for display."""
    revisits: int = 0
    """Those of the due URLs that were visited before."""
    due_from: int = 0
    """Microseconds: no due URL is earlier; a read starts here and skips the deleted ones."""
    plain: int = 0
    """Of the URLs that are not finished and not set aside, those of the origin `http` without a port."""
    other: int = 0
    """Of the same, those of other origins than `http` and `https` without a port."""
    answered: int = 0
    """Which of these two ever answered, in bits."""
    origins: dict[str, Origin] | None = None
    """Those that fail, and those with a port; None if there are none."""

    @property
    def failures(self) -> int:
        """Failures in a row of the origin without a port that failed most often."""
        return (
            max((one.failures for key, one in self.origins.items() if ":" not in key), default=0) if self.origins else 0
        )

    @property
    def queued(self) -> int:
        """URLs that are not finished, those under way included."""
        return self.due + sum(queue.pending for queue in self.levels.values())


_encode = msgspec.msgpack.Encoder().encode
_decode_record = msgspec.msgpack.Decoder(HostRecord).decode
_decode_block = msgspec.msgpack.Decoder(QueueBlock).decode
_decode_entry = msgspec.msgpack.Decoder(QueueEntry).decode


def encode_record(record: HostRecord) -> bytes:
    """About 1 µs."""
    return _encode(record)


def decode_record(data: bytes) -> HostRecord:
    """Return the record.

    Raises:
        ConfigError: it was written by a version that we do not know.
    """
    # The first element, a small number; the rest may have any shape. Up to 15 elements have a head of one byte.
    at = 1 if data and data[0] & 0xF0 == 0x90 else 3
    version = data[at] if at < len(data) else 0
    if version != RECORD_VERSION:
        raise ConfigError(
            f"this crawl's hosts are kept in format {version}, and this version of Gossamer reads format "
            f"{RECORD_VERSION}; continue it with the version that began it, or start a new crawl in another directory"
        )
    return _decode_record(data)


def encode_block(block: QueueBlock) -> bytes:
    """Return a block as the disk keeps it."""
    return _encode(block)


def decode_block(data: bytes) -> QueueBlock:
    """Return a block; about 0.05 µs for each of its URLs."""
    return _decode_block(data)


def encode_entry(entry: QueueEntry) -> bytes:
    """Return a due URL as the disk keeps it."""
    return _encode(entry)


def decode_entry(data: bytes) -> QueueEntry:
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


def due_from(prefix: bytes, instant: int) -> bytes:
    """Return the first key that a URL due at an instant in microseconds, or later, can have."""
    return prefix + instant.to_bytes(8)


def due_time(key: bytes) -> float:
    """Return the time that a due key sorts by."""
    return int.from_bytes(key[-16:-8]) / 1e6


def range_end(prefix: bytes) -> bytes:
    """Return the first key after all that begin with a host's prefix."""
    return prefix[:-1] + b"\1"


class QueueCounts(msgspec.Struct):
    """`discovered = pending + the sum of terminal` at every commit; `pending` is what is queued or under way."""

    discovered: int = 0
    pending: int = 0
    terminal: dict[str, int] = msgspec.field(default_factory=dict)
    hosts: int = 0
    """Hosts with a record."""
    working: int = 0
    """Hosts with URLs that are not finished."""
    deferred: int = 0
    """Those of them that have used up their budget."""
    most: int = 0
    """Most hosts with work at once, since the last count began."""

    answers: int = 0
    """Requests that a server answered."""
    levels: list[int] = msgspec.field(default_factory=list)
    """URLs in queues, by level."""
    cut_at: float = 0.0
    """Wall time of the commit that these counts are of."""
    absences: list[tuple[float, float]] = msgspec.field(default_factory=list)
    """The last times between the end of a process and the start of the next (`world.clock.Absences`)."""

    def end(self, outcome: str, urls: int = 1) -> None:
        """Note how URLs that were pending ended."""
        self.pending -= urls
        self.terminal[outcome] = self.terminal.get(outcome, 0) + urls
