"""Records: the stored forms of hosts and queued URLs. This module owns the formats; host records have a version."""

from collections.abc import Callable
from math import ceil

import msgspec

from gossamer.model.errors import ConfigError
from gossamer.model.links import NOT_SEED, Link, Visit
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
    """Number of its next request, from 1."""
    seed: int = NOT_SEED
    error: str = ""
    """Why the last attempt failed."""
    revisit: bool = False


class QueuedUrl(Visit, frozen=True, gc=False):
    """A queued URL with its place on disk, which stays until the URL is finished."""

    error: str = ""
    level: int = 0
    number: int = 0
    due_key: bytes = b""
    """Its key among the host's due URLs; empty if it is in a level's queue."""


class QueueRun(msgspec.Struct, array_like=True, gc=False):
    """Consecutive URLs of one host that differ only in their address: mostly the links of one page."""

    depth: int
    hops: int
    link_type: str
    referrer: str
    """Shortened, like the URLs."""
    seed: int
    urls: list[str]


class QueueBlock(msgspec.Struct, array_like=True, gc=False):
    """URLs with consecutive numbers, in the order of their leases."""

    first: int
    """Number of the first URL; also in the block's key."""
    count: int = 0
    runs: list[QueueRun] = msgspec.field(default_factory=list)

    def add(self, url: str, link: Link, referrer: str) -> int:
        """Append a link; return the approximate bytes of memory that this takes. Both addresses are shortened."""
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
        """Return all entries, with full addresses. About 0.4 µs each."""
        found: list[QueueEntry] = []
        for run in self.runs:
            referrer = lengthen(run.referrer, host)
            depth = run.depth
            hops = run.hops
            link_type = run.link_type
            seed = run.seed
            found += [QueueEntry(lengthen(url, host), depth, hops, link_type, referrer, 1, seed) for url in run.urls]
        return found

    def items(self, host: str, level: int, begin: int, end: int, named: Callable[[str], Url]) -> list[QueuedUrl]:
        """Return the items in [`begin`, `end`), indexes within the block. About 1 µs each, mostly for `named`."""
        found: list[QueuedUrl] = []
        at = 0
        for run in self.runs:
            if at >= end:
                break
            urls = run.urls
            if at + len(urls) > begin:
                referrer = lengthen(run.referrer, host)
                depth = run.depth
                hops = run.hops
                link_type = run.link_type
                seed = run.seed
                number = self.first + max(at, begin)
                for text in urls[max(begin - at, 0) : end - at]:
                    url = named(lengthen(text, host))
                    found.append(QueuedUrl(url, depth, hops, link_type, referrer, 1, seed, False, "", level, number))
                    number += 1
            at += len(urls)
        return found


URL_BYTES = 60
"""Memory of a URL in a run beside its characters."""
RUN_BYTES = 400
"""Memory of a run with its first URL."""


def shorten(text: str, host: str) -> str:
    """Return an address without `host`, the host of its queue; an address of another host unchanged."""
    if text.startswith(f"https://{host}/"):
        return text[8 + len(host) :]
    return ":" + text[7 + len(host) :] if text.startswith(f"http://{host}/") else text


def lengthen(text: str, host: str) -> str:
    """Return the address that `shorten` shortened."""
    if text[:1] == "/":
        return f"https://{host}{text}"
    return f"http://{host}{text[1:]}" if text[:1] == ":" else text


class LevelQueue(msgspec.Struct, array_like=True, gc=False):
    """A host's queue at one level. URLs are numbered; blocks of them are stored under the number of their first URL.

    Finished URLs leave at the head. URLs that finish before an older one are kept as ranges until the head reaches
    them; the number of ranges is bounded by the concurrent requests to one host.
    """

    head: int = 0
    """Number of the oldest URL that is not finished."""
    block: int = 0
    """Number of the first URL of the block that holds the head."""
    tail: int = 0
    """Number of the next new URL."""
    done: tuple[tuple[int, int], ...] = ()

    @property
    def pending(self) -> int:
        """URLs that are not finished."""
        left = self.tail - self.head
        return left - sum(end - begin for begin, end in self.done) if self.done else left

    def finish(self, number: int) -> None:
        """Mark the URL with a number as finished."""
        if number == self.head:
            self.head += 1
            while self.done and self.done[0][0] == self.head:
                self.head = self.done[0][1]
                self.done = self.done[1:]
            return
        begin = number
        end = number + 1
        before = [one for one in self.done if one[1] < begin]
        after = [one for one in self.done if one[0] > end]
        for one in self.done[len(before) : len(self.done) - len(after)]:  # The adjacent ranges, at most two.
            begin = min(begin, one[0])
            end = max(end, one[1])
        self.done = (*before, (begin, end), *after)

    def is_finished(self, number: int) -> bool:
        """Return whether a URL is finished."""
        return number < self.head or any(begin <= number < end for begin, end in self.done)


class Origin(msgspec.Struct, array_like=True, gc=False):
    """State of one origin of a host that fails, or that has an explicit port (`frontier.origins`)."""

    slot: int
    """From 1. URLs that are set aside are in the queues `lane(slot, level)`."""
    answered: bool = False
    failures: int = 0
    """Consecutive failures."""
    sleeps: int = 0
    """Consecutive waits without an answer between them."""
    first_failed_at: float = 0.0
    """Wall time of the first of the consecutive failures."""
    wait_until: float = 0.0
    """Wall time before which it gets no request; after that one URL at a time until it answers. 0: no limit."""
    closed: str = ""
    """Why it is closed until `wait_until`; empty: it is not."""
    error: str = ""
    """Its last failure, for people."""
    reason: str = ""
    """Why it waits, for people."""
    crawl_delay_s: float | None = None


def lane(slot: int, level: int) -> int:
    """Return the number of the queue of a level for URLs of an origin that are set aside; slot 0: of all origins."""
    return slot << 3 | level


def slot_of(number: int) -> int:
    """Return the slot of a queue; 0: the queue for all origins."""
    return number >> 3


def level_of(number: int) -> int:
    """Return the level of a queue."""
    return number & 7


class HostRecord(msgspec.Struct, array_like=True, gc=False):
    """The stored state of a host."""

    version: int
    name: str
    levels: dict[int, LevelQueue] = msgspec.field(default_factory=dict)
    """Queues by `lane`, which for slot 0 is the level."""
    due: int = 0
    """Number of URLs with a due time: retries and revisits."""
    delay_until: float = 0.0
    """Wall time before which no request may be sent."""
    fetches_s: list[float] = msgspec.field(default_factory=list)
    """The last fetch times."""
    crawl_delay_s: float | None = None
    backoffs: int = 0
    """Consecutive replies of 429 or 503."""
    closed: str = ""
    """Why it gets no more requests; empty: it is open."""
    index_family: str = ""
    index_key: bytes = b""
    """Its entry in the index of hosts with work."""
    requests: int = 0
    reason: str = ""
    """Why it waits, for display."""
    revisits: int = 0
    """The part of `due` that is revisits."""
    due_from: int = 0
    """Microseconds: no due URL is earlier, so a scan starts here and skips deleted entries."""
    plain: int = 0
    """Number of URLs of the origin `http` without a port that are not finished and not set aside."""
    other: int = 0
    """The same for origins with a port."""
    answered: int = 0
    """Which of the two origins without a port ever answered, as bits of `origins.ANSWERED`."""
    origins: dict[str, Origin] | None = None
    """Origins that fail, and those with a port; None: empty."""

    def origin(self, key: str) -> Origin | None:
        """Return the state of an origin (`origins.key_of`); None: it never failed, and has no port."""
        return self.origins[key] if self.origins and key in self.origins else None

    @property
    def failures(self) -> int:
        """Largest number of consecutive failures of an origin without a port."""
        origins = self.origins or {}
        return max((one.failures for key, one in origins.items() if ":" not in key), default=0)

    @property
    def urls_queued(self) -> int:
        """URLs that are not finished, including those in flight."""
        return self.due + sum(queue.pending for queue in self.levels.values())


encode_record = encode_block = encode_entry = msgspec.msgpack.Encoder().encode
_decode_record = msgspec.msgpack.Decoder(HostRecord).decode
decode_block = msgspec.msgpack.Decoder(QueueBlock).decode
decode_entry = msgspec.msgpack.Decoder(QueueEntry).decode
"""To the stored form of a record, a block or a due URL and back: about 1 µs a record, 0.05 µs per URL of a block."""


def decode_record(data: bytes) -> HostRecord:
    """Return a record from its stored form. Raises ConfigError: the record has an unknown version."""
    # The version is the first element, a small number; the rest may have any shape. An array of up to 15 elements has a
    # header of one byte.
    at = 1 if data and data[0] & 0xF0 == 0x90 else 3
    version = data[at] if at < len(data) else 0
    if version != RECORD_VERSION:
        raise ConfigError(
            f"this crawl's hosts are kept in format {version}, and this version of Gossamer reads format "
            f"{RECORD_VERSION}; continue it with the version that began it, or start a new crawl in another directory"
        )
    return _decode_record(data)


def host_prefix(partition: int, host: str) -> bytes:
    """Return the prefix of all keys of a host. No host name contains a zero byte."""
    return partition.to_bytes(2) + host.encode() + b"\0"


def block_key(prefix: bytes, level: int, number: int) -> bytes:
    """Return the key of the block whose first URL has this number."""
    return prefix + bytes((level,)) + number.to_bytes(8)


def micros(at: float) -> int:
    """Return wall time in whole microseconds, rounded up so that converting back never gives an earlier time."""
    whole = ceil(at * 1e6)
    return whole if whole / 1e6 >= at else whole + 1


def due_key(prefix: bytes, at: float, fingerprint: int) -> bytes:
    """Return the key of a due URL, which sorts by time, then by fingerprint."""
    return prefix + micros(at).to_bytes(8) + fingerprint.to_bytes(8)


def due_from(prefix: bytes, instant: int) -> bytes:
    """Return the lowest key of URLs that are due at `instant`, in microseconds, or later."""
    return prefix + instant.to_bytes(8)


def due_time(key: bytes) -> float:
    """Return the time in a due key."""
    return int.from_bytes(key[-16:-8]) / 1e6


def range_end(prefix: bytes) -> bytes:
    """Return the end key (not included) of all keys with a host's prefix."""
    return prefix[:-1] + b"\1"


class QueueCounts(msgspec.Struct):
    """Counts of a crawl. At each commit `discovered = pending + sum of terminal`; `pending`: queued or in flight."""

    discovered: int = 0
    pending: int = 0
    terminal: dict[str, int] = msgspec.field(default_factory=dict)
    hosts: int = 0
    """Hosts with a record."""
    working: int = 0
    """Hosts with URLs that are not finished."""
    deferred: int = 0
    """The part of `working` that has used up its budget."""
    most: int = 0
    """Maximum of `working` since it was reset."""
    answers: int = 0
    """Requests that a server answered."""
    levels: list[int] = msgspec.field(default_factory=list)
    """URLs in queues, by level."""
    cut_at: float = 0.0
    """Wall time of the commit with these counts."""
    absences: list[tuple[float, float]] = msgspec.field(default_factory=list)
    """The last periods between the end of a process and the start of the next (`world.clock.Absences`)."""

    def end(self, outcome: str, urls: int = 1) -> None:
        """Count the outcome of URLs that were pending."""
        self.pending -= urls
        self.terminal[outcome] = self.terminal.get(outcome, 0) + urls
