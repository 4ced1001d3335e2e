"""History: the row of each attempt, and the stored record of each URL."""

import asyncio
from collections.abc import Callable, Sequence
from itertools import islice
from math import inf
from typing import TYPE_CHECKING, cast

import msgspec

from gossamer.model.links import Link, Visit
from gossamer.model.pages import PageRow
from gossamer.model.standing import LastVisit
from gossamer.ports import UrlSeen
from gossamer.state.epoch import Epochs
from gossamer.url.name import Namer
from gossamer.url.url import Url

if TYPE_CHECKING:
    from gossamer.stages.seen.diskmerge import DiskMergeUrlSeen


class PageRecord(msgspec.Struct, array_like=True, frozen=True):
    """The last attempt at a URL. `UNVISITED` stands for none."""

    url: str
    outcome: str
    final: bool
    """False if another attempt follows."""
    status: int | None
    at: float
    attempt: int
    depth: int
    referrer: str
    error: str = ""
    redirect_to: str = ""
    warc_file: str = ""
    warc_offset: int | None = None
    outlinks: list[str] = msgspec.field(default_factory=list)
    """Links that only `depth` rejects: kept if depth is limited, to pass a shorter path on without a request."""


UNVISITED = PageRecord("", "", final=False, status=None, at=-inf, attempt=0, depth=0, referrer="")
"""The record of a URL that was never visited: it has no outcome."""
SCANNED_A_SLICE = 1_000
"""Records that are read before other work may run."""
_STOPPED = b"\0hops:"
"""Prefix, in the family `content`, of redirects that were not followed because there were too many in a row."""
read_page_record = msgspec.msgpack.Decoder(PageRecord).decode
"""Returns a record from its stored form."""


class PageHistory:
    """The page records. Costs a put per page and a get per request."""

    def __init__(self, epochs: Epochs) -> None:
        self._epochs = epochs

    def put(self, url: Url, record: PageRecord) -> None:
        self._epochs.put("page", page_key(url.partition, url.fingerprint), msgspec.msgpack.encode(record))

    def get(self, url: Url) -> PageRecord:
        """Return the record of a URL; `UNVISITED` if there is none."""
        return self._find(url.partition, url.fingerprint)

    def _find(self, partition: int, fingerprint: int) -> PageRecord:
        value = self._epochs.get("page", page_key(partition, fingerprint))
        return UNVISITED if value is None else read_page_record(value)

    def last_visit(self, url: Url | None) -> LastVisit | None:
        """Return the last attempt at a URL for a prioritizer; None if there was none."""
        record = UNVISITED if url is None else self.get(url)
        if record is UNVISITED:
            return None
        return LastVisit(record.outcome, record.at, record.status, record.attempt, record.error)

    def stop(self, link: Link) -> None:
        """Store a redirect that is not followed because there were too many in a row. One put."""
        value = msgspec.msgpack.encode((link.depth, link.hops, link.referrer))
        self._epochs.put("content", link.url.store_key(_STOPPED), value)

    def last_stop(self, url: Url) -> Link | None:
        """Return the last redirect to a URL that was not followed; None if there is none."""
        value = self._epochs.get("content", url.store_key(_STOPPED))
        if value is None:
            return None
        depth, hops, referrer = msgspec.msgpack.decode(value, type=tuple[int, int, str])
        return Link(url, "redirect", depth, hops, referrer)

    async def queue_again(
        self, keys: tuple[bytes, bytes], meant: Callable[[PageRecord], bool], namer: Namer, add: Callable[[Link], None]
    ) -> None:
        """Queue the ended URLs again for which `meant` is true. About 3 µs for each record in the range of keys."""
        begin, end = keys
        while True:
            records = list(islice(self._epochs.scan("page", begin, end), SCANNED_A_SLICE))
            for record in [read_page_record(value) for _, value in records]:
                if record.final and meant(record) and (url := namer.name(record.url)) is not None:
                    self.put(url, msgspec.structs.replace(record, final=False))
                    add(Link(url, "anchor", record.depth, 0, record.referrer))
            if len(records) < SCANNED_A_SLICE:
                return
            begin = records[-1][0] + b"\0"
            await asyncio.sleep(0)

    def address(self, partition: int, fingerprint: int) -> str:
        """Return the address of a URL by its fingerprint; empty if it was never visited."""
        return self._find(partition, fingerprint).url


def write_page_record(record: PageRecord, warc_file: str, warc_offset: int) -> bytes:
    """Return the stored form of a record whose WARC record was moved."""
    return msgspec.msgpack.encode(msgspec.structs.replace(record, warc_file=warc_file, warc_offset=warc_offset))


def page_record(row: PageRow, *, final: bool, outlinks: Sequence[str] = ()) -> PageRecord:
    """Return the record of an attempt."""
    return PageRecord(
        row.url, row.outcome, final, row.status, row.fetched_at, row.attempt, row.depth, row.referrer, row.error,
        row.redirect_to, row.warc_file, row.warc_offset, list(outlinks),
    )  # fmt: skip


class NothingHeld:
    """The held links of an eliminator that always answers at once."""

    links_held = 0

    def holds(self, url: Url) -> bool:
        return False

    def release(self, most: int, name: object, *, idle: bool) -> list[Link]:
        return []


def holding(url_seen: UrlSeen) -> "DiskMergeUrlSeen | NothingHeld":
    """Return the eliminator if it may answer later, by a method: other crawls need not import its class."""
    return cast("DiskMergeUrlSeen", url_seen) if hasattr(url_seen, "offer_or_hold") else NothingHeld()


class UrlMemory(msgspec.Struct, frozen=True):
    """Access to what a crawl knows of URLs: their keys, whether they were seen, and their last attempts."""

    namer: Namer
    url_seen: UrlSeen
    history: PageHistory


def page_key(partition: int, fingerprint: int) -> bytes:
    """Return the key of a URL's record in the family `page`."""
    return partition.to_bytes(2) + fingerprint.to_bytes(8)


def attempt_row(visit: Visit, outcome: str, at: float) -> PageRow:
    """Return a row with the fields that are known from the visit; the stages fill in the others."""
    url = visit.url
    return PageRow(
        url.text, url.key, url.host, url.site, at, outcome, depth=visit.depth, referrer=visit.referrer,
        link_type=visit.link_type, attempt=visit.attempt, hops=visit.hops,
    )  # fmt: skip
