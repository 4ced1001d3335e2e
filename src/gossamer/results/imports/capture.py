"""Captures: what a record of an archive says of a page, its place, and records that are no captures."""

from typing import Literal

import msgspec

from gossamer.model.pages import Original, Rendered
from gossamer.model.visits import LargeBody, Reply, content_type
from gossamer.stages.archive.options import ArchiveOptions
from gossamer.stages.archive.unpack import Packing
from gossamer.stages.fetch.bodies import read_as
from gossamer.world.spill import Spills

LINK_TYPE = "anchor"
"""Of the link that led to a capture, where no record says it."""
HELD_BYTES_MAX = 1 << 20
BODY_BYTES_MAX = 64_000_000


class Source(msgspec.Struct, frozen=True):
    """An archive's file, or a file in a package of such."""

    number: int
    name: str
    """For people: the path or address, and after `!` the file's name in a package."""
    place: str
    """Path or address of the file."""
    size: int
    """Bytes of the file."""
    form: Literal["warc", "arc", "har", ""]
    """By content; empty with a fault."""
    packing: Packing = ""
    """By content, of the archive itself: gzip or zstd."""
    begin: int = 0
    length: int = -1
    """The part of the file that is the archive; -1: all."""
    member: str = ""
    """Its name in a package that deflates it: then its records have no places in the file."""
    fault: str = ""
    """Why it cannot be read, as the rest of a sentence: `captures_of` refuses it with that."""

    @property
    def is_packaged(self) -> bool:
        """Whether the archive is in a package."""
        return bool(self.member) or self.length >= 0


class CapturePlace(msgspec.Struct, frozen=True):
    """Place of a record. Sources give their records in the order of (`offset`, `within`), each once."""

    source: int
    """Number of the source."""
    offset: int
    """First byte in the file, or in the unpacked form, of its member or of itself; of HAR: the number of the entry."""
    within: int = 0
    """First byte of the record in the unpacked member; -1: the first member behind `offset` is searched."""
    length: int = 0
    """Bytes of the file that hold the record and no other; 0 if there are none. Of a search: those looked at."""
    packing: Packing = ""
    linkable: bool = False
    """These bytes are a whole WARC record that a reader can read without the rest of the file."""


class Capture(msgspec.Struct, frozen=True, tag=True):
    """A response, resource or revisit."""

    place: CapturePlace
    kind: Literal["response", "revisit", "resource"]
    url: str
    """An absolute address of http, https, ftp, gemini or another scheme of pages, in the form that links have."""
    fetched_at: float
    """Seconds since 1970."""
    status: int
    """200 of a resource; 0 if a revisit does not say it."""
    headers: tuple[tuple[str, str], ...]
    """As in `Reply`, with Content-Type of a resource."""
    body: bytes = b""
    """Transfer coding removed, content coding kept. Empty where `file` holds it."""
    file: LargeBody | None = None
    reason: str = ""
    http_version: str = "1.1"
    truncated: str = ""
    """Why the body is cut: as in `Reply`, or as the record says."""
    digest: str = ""
    """Of the payload as the record says, with its algorithm: `sha1:BASE32`. Not verified."""
    record_id: str = ""
    """Without angle brackets."""
    copy_of: str = ""
    """Record id and payload digest of the record from which an import copied this one."""
    original: Original | None = None
    """The capture that holds the payload of a revisit; each part is empty or 0 if the record does not say it."""
    ip: str = ""
    method: str = "GET"
    """Of the request, if one is recorded beside the reply."""
    request_head: bytes = b""
    via: str = ""
    """The page that linked here, from a metadata record (Heritrix, Gossamer)."""
    depth: int | None = None
    link_type: str = LINK_TYPE
    """Of the link that led here, from a metadata record. One that is taken for a seed has another."""
    hops: int = 0
    """Redirects in a row that led here, from a metadata record (Gossamer)."""
    attempt: int = 1
    error: str = ""
    """Why a redirect is not followed, from a metadata record (Gossamer)."""
    fetch_s: float = 0.0
    wire_bytes: int = 0
    """Bytes of the transfer, from a metadata record (Heritrix, Gossamer); 0 without one."""
    authenticated: bool = False
    rendered: Rendered | None = None
    """The page as scripts changed it, from a conversion record."""

    @property
    def body_bytes(self) -> int:
        """Length of the body in memory or in `file`."""
        return self.file.size if self.file is not None else len(self.body)

    @property
    def may_be_page(self) -> bool:
        """Whether the reply holds what was requested, as far as the record says."""
        return self.kind != "revisit" and 200 <= self.status < 300

    def reply(self) -> Reply:
        """Return the capture as a reply to a request."""
        media_type, charset = content_type(self.headers)
        if self.kind == "response":
            media_type = read_as(media_type, self.headers, self.body, self.file, self.url)
        return Reply(
            self.url, self.status, self.headers, self.body, self.ip, self.fetched_at, self.fetch_s,
            self.wire_bytes or self.body_bytes, http_version=self.http_version, reason=self.reason,
            request_head=self.request_head, truncated=self.truncated, media_type=media_type, charset=charset,
            file=self.file, authenticated=self.authenticated,
        )  # fmt: skip


class Refused(msgspec.Struct, frozen=True, tag=True):
    """A record that cannot be read."""

    source: int
    file: str
    offset: int
    reason: str
    """Rest of a sentence: `ends early`."""


class Skipped(msgspec.Struct, frozen=True, tag=True):
    """A record that is sound and no page: a request, `warcinfo`, a DNS answer, a screenshot."""

    place: CapturePlace
    kind: str
    """The record's type; of one whose address is of no page with its scheme: `resource urn`, `response dns`."""
    url: str = ""
    text: bytes = b""
    """Of a page that a browser showed, if `Room.counts`."""


class ImportRequest(msgspec.Struct, frozen=True):
    """How archives are imported: which of their captures, and whether bodies are copied."""

    copies: bool = False
    judges_scope: bool = False
    statuses: frozenset[int] = frozenset()
    """Those of captures that are imported; empty: all."""
    since: float = 0.0
    until: float = float("inf")

    def why_unwanted(self, capture: Capture) -> str:
        """Return why a capture is left out; empty if it is not."""
        if self.statuses and capture.status not in self.statuses:
            return "status"
        if not self.since <= capture.fetched_at < self.until:
            return "time"
        return "" if capture.method in ("GET", "") else "method"


class Room(msgspec.Struct, frozen=True):
    """Where bodies go that are large."""

    spills: Spills
    held_bytes_max: int = HELD_BYTES_MAX
    body_bytes_max: int = BODY_BYTES_MAX
    """Of larger ones the beginning is kept, marked as cut (`length`)."""
    store: ArchiveOptions = ArchiveOptions()
    """Options of object stores; its `store` is not used."""
    counts: bool = False
    """Records are only counted: bodies are skipped, and the texts of pages are read."""
    heads: bool = True
    """Heads of HTTP are read, too, while records are counted."""


Item = Capture | Refused | Skipped
