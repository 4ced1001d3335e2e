"""History: the row that each attempt leaves, and what is remembered of each URL."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import msgspec

from gossamer.model.links import Link
from gossamer.model.visits import PageRow, Visit
from gossamer.ports import UrlSeen
from gossamer.state.epoch import Epochs
from gossamer.url.name import Namer
from gossamer.url.url import Url

if TYPE_CHECKING:
    from gossamer.seen.diskmerge import DiskMergeUrlSeen


class PageRecord(msgspec.Struct, array_like=True, frozen=True):
    """The last attempt at a URL."""

    url: str
    outcome: str
    final: bool
    """False while another attempt is to come."""
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
    """In scope but for depth: kept when depth is limited, so that a shorter path can be passed on without a request."""


_STOPPED = b"\0hops:"
"""Where the family `content` keeps redirects that were not followed because there were too many in a row."""
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(PageRecord).decode


class PageHistory:
    """The page records. Cost: a put per page, a get per request."""

    def __init__(self, epochs: Epochs) -> None:
        self._epochs = epochs

    def put(self, url: Url, record: PageRecord) -> None:
        self._epochs.put("page", page_key(url.partition, url.fingerprint), _encode(record))

    def get(self, url: Url) -> PageRecord | None:
        value = self._epochs.get("page", page_key(url.partition, url.fingerprint))
        return _decode(value) if value is not None else None

    def stop(self, link: Link) -> None:
        """Note that a redirect leads to a URL that it is one too many for. Rare: one put for each such redirect."""
        self._epochs.put("content", _stopped_key(link.url), _encode((link.depth, link.hops, link.referrer)))

    def stopped(self, url: Url) -> Link | None:
        """Return the last redirect that led to a URL and was not followed."""
        value = self._epochs.get("content", _stopped_key(url))
        if value is None:
            return None
        depth, hops, referrer = msgspec.msgpack.decode(value, type=tuple[int, int, str])
        return Link(url, "redirect", depth, hops, referrer)

    def address(self, partition: int, fingerprint: int) -> str:
        """Return the address of a URL that is known by its fingerprint alone; empty when it was never visited."""
        value = self._epochs.get("page", page_key(partition, fingerprint))
        return _decode(value).url if value is not None else ""


def read_page_record(value: bytes) -> PageRecord:
    """Return a record as the store has it."""
    return _decode(value)


def write_page_record(record: PageRecord, warc_file: str, warc_offset: int) -> bytes:
    """Return a record as the store keeps it, once its WARC record was moved."""
    return _encode(msgspec.structs.replace(record, warc_file=warc_file, warc_offset=warc_offset))


def page_record(row: PageRow, *, final: bool, outlinks: Sequence[str] = ()) -> PageRecord:
    """Return what is remembered of an attempt."""
    return PageRecord(
        row.url, row.outcome, final, row.status, row.fetched_at, row.attempt, row.depth, row.referrer, row.error,
        row.redirect_to, row.warc_file, row.warc_offset, list(outlinks),
    )  # fmt: skip


def holding(url_seen: UrlSeen) -> "DiskMergeUrlSeen | None":
    """Return an eliminator that may answer later, None for one that always answers at once. It is known by its method:
    other crawls do not import its class.
    """
    return cast("DiskMergeUrlSeen", url_seen) if hasattr(url_seen, "offer_or_hold") else None


class UrlMemory(msgspec.Struct, frozen=True):
    """What a crawl remembers of URLs: their keys, whether they were seen, and their last attempts."""

    namer: Namer
    url_seen: UrlSeen
    history: PageHistory


def _stopped_key(url: Url) -> bytes:
    return url.partition.to_bytes(2) + _STOPPED + url.fingerprint.to_bytes(8)


def page_key(partition: int, fingerprint: int) -> bytes:
    """Return the key of a URL's record in the family `page`."""
    return partition.to_bytes(2) + fingerprint.to_bytes(8)


def attempt_row(visit: Visit, outcome: str, at: float) -> PageRow:
    """Return the row of an attempt with what the visit knows; the rest is filled in by the stages."""
    url = visit.url
    return PageRow(
        url.text, url.key, url.host, url.site, at, outcome, depth=visit.depth, referrer=visit.referrer,
        link_type=visit.link_type, attempt=visit.attempt, hops=visit.hops,
    )  # fmt: skip
