"""Pages: a page as processing modules take it, what they find in it, and what its visit leaves: the row in `pages`,
where the reply is archived, the row of the commit, and what the next visit is compared with.
"""

from __future__ import annotations

from base64 import b32encode
from io import BytesIO
from typing import BinaryIO

import msgspec

from gossamer.model.counters import Counters
from gossamer.model.links import Announcement, Found
from gossamer.model.modules import ModuleError
from gossamer.model.usage import UNKNOWN, Statement
from gossamer.model.visits import Content, LargeBody, Reply
from gossamer.url.url import Url

RENDERED = "rendered"
PARTIAL = "partial"
RENDERINGS = (RENDERED, PARTIAL)
"""Results of rendering that leave a document."""
MARKED_TYPES = ("text/markdown", "text/x-markdown", "text/x-rst", "text/rst", "text/prs.fallenstein.rst")
"""Plain text with marks that people read as they are: Markdown (RFC 7763) and reStructuredText."""
PLAIN_TYPES = ("text/plain", *MARKED_TYPES)


class Page(msgspec.Struct, frozen=True):
    """The input of processing modules."""

    url: str
    media_type: str
    charset: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    """Decoded content; only its beginning if it is too large for memory."""
    file: LargeBody | None = None
    """The whole, where it is too large for memory."""
    link_type: str = ""
    """Type of the link that led to the page, if known: it can mark the page as a sitemap or a feed."""
    is_cut: bool = False
    """Whether the end of `body` is missing."""
    fetched_at: float = 0.0
    """In seconds since 1970; 0: not known."""
    is_rendered: bool = False
    """Whether `body` is the document that scripts made, in UTF-8: they are not to run again."""

    @property
    def body_bytes(self) -> int:
        """How long the whole is."""
        return self.file.size if self.file is not None else len(self.body)

    def open(self) -> BinaryIO:
        """Return a new reader of the whole content, from its first byte."""
        return self.file.open() if self.file is not None else BytesIO(self.body)


class Findings(msgspec.Struct):
    """All that processing modules may report of one page. Modules add to it, in order."""

    links: list[Found] = msgspec.field(default_factory=list)
    title: str = ""
    text: str = ""
    text_method: str = ""
    """How `text`, main text or Markdown was found, as `process.text` names it; empty if none was looked for."""
    charset: str = ""
    """The encoding that was used (WHATWG name)."""
    nofollow: bool = False
    """meta robots or X-Robots-Tag: links are recorded, not followed."""
    noindex: bool = False
    statements: list[Statement] = msgspec.field(default_factory=list)
    """Statements of the page's headers and markup on its use."""
    columns: dict[str, object] = msgspec.field(default_factory=dict)
    """Further columns of `pages`, by name."""
    rows: dict[str, list[dict[str, object]]] = msgspec.field(default_factory=dict)
    """Rows of further tables, by table; each row gets the page's `url`."""
    announcement: Announcement | None = None
    """Its entries for other pages, if it is a sitemap or a feed."""
    fields: list[str] = msgspec.field(default_factory=list)
    """Fields of items that were extracted or tried, as `items/NAME.FIELD`, for counts."""
    matched: list[str] = msgspec.field(default_factory=list)
    """The tables of rules that found items."""
    invalid: list[ModuleError] = msgspec.field(default_factory=list)
    """The `fields` that were missing or invalid, each once."""
    emphasis: str = ""
    """Headings and bold text, where the visible text was looked for."""


class PageCapture(msgspec.Struct, frozen=True):
    """A record about a rendered page, as Browsertrix Crawler writes it."""

    name: str
    """Its address is `urn:NAME:` and the page's URL: `view`, `thumbnail`, `pageinfo`."""
    media_type: str
    payload: bytes


class Rendered(msgspec.Struct, frozen=True):
    """A page after its scripts ran."""

    html: bytes
    """UTF-8."""
    page_id: str
    """Id of the records that belong to the page (WARC-Page-ID)."""
    records: tuple[PageCapture, ...] = ()
    """The records that `render.page_records` selects."""


class PageRow(msgspec.Struct):
    """One row of `pages`: one attempt at one URL. Field order is column order."""

    url: str
    key: str
    host: str
    site: str
    fetched_at: float
    """Wall time in seconds; a UTC timestamp in the table."""
    outcome: str
    status: int | None = None
    media_type: str = ""
    charset: str = ""
    wire_bytes: int = 0
    body_bytes: int = 0
    """Bytes of decoded content."""
    truncated: str = ""
    digest: str = ""
    """Of the payload as sent, `sha1:BASE32`."""
    duplicate_of: str = ""
    """The URL that had this content first."""
    title: str = ""
    depth: int = 0
    referrer: str = ""
    link_type: str = ""
    redirect_to: str = ""
    ip: str = ""
    fetch_s: float = 0.0
    attempt: int = 1
    warc_file: str = ""
    warc_offset: int | None = None
    warc_length: int | None = None
    shard: int = 0
    error: str = ""
    warc_type: str = ""
    """`response`, `revisit` or `resource`; empty when nothing is archived."""
    near_duplicate_of: str = ""
    """The URL whose content is nearly the same."""
    simhash: int | None = None
    """64 bits, where near-duplicates are looked for."""
    change: str = ""
    """Change seen by a continuous crawl: `appeared`, `changed`, `same`, `vanished`, or `unknown` without an earlier
    version; empty if the visit showed nothing."""
    hops: int = 0
    """Redirects in a row that led here."""
    text_method: str = ""
    """How its text was found (`Findings.text_method`)."""
    usage_search: str = UNKNOWN
    """Whether the owner allows this use: `allowed`, `refused` or `unknown`; likewise the next three."""
    usage_ai_train: str = UNKNOWN
    usage_ai_input: str = UNKNOWN
    usage_archive: str = UNKNOWN
    usage_reason: str = ""
    """The statement that decided each of them."""
    usage_statements: str = ""
    """All statements as written, one a line, bounded (`model.usage`)."""
    wall: str = ""
    """The bot protection that answered instead of the page; `consent:NAME` for a page that asks for consent."""
    offer: str = ""
    """Price that a reply with status 402 states."""
    authenticated: bool = False
    """As `Reply.authenticated`."""
    rendered: str = ""
    """`rendered`, or why not; empty if the page was not to be rendered. `partial`: rendered, but its document was taken
    before its scripts were done; `error` says why. `timeout`: it took too long, waiting included.
    `hangs`, `crashed`, `memory`: it kept its browser busy, crashed it, or took too much memory. `too_large`,
    `too_many_requests`: it exceeded a bound. `not_loaded`: the browser shows no document of it.
    """
    links_gained: int | None = None
    """Different links of the rendered page that the page as sent does not have; null where it was not rendered."""
    render_reason: str = ""
    """Why `crawl.render` = `auto` chose the page: `signal`, `sample` or `gain`; `budget`: why it was left out."""
    sent_type: str = ""
    """The Content-Type header of the archived reply, as sent; `media_type` is the type as which it was read."""


class Visited(msgspec.Struct):
    """A finished attempt, as the archive takes it."""

    url: Url
    row: PageRow
    reply: Reply | None = None
    links: list[Found] = msgspec.field(default_factory=list)
    link_keys: list[str] = msgspec.field(default_factory=list)
    """The canonical key of each link, in the order of `links`."""
    revisit_of: Original | None = None
    digest: bytes = b""
    """sha1 of the payload as sent."""
    content: Content | None = None
    findings: Findings | None = None
    rendered: Rendered | None = None
    place: Archived | None = None
    """Where the reply lies already: then no record is written."""
    source: tuple[tuple[str, str], ...] = ()
    """Fields of its record that say where it comes from."""


class EpochRow(msgspec.Struct, frozen=True, gc=False):
    """One row of `epochs`: one commit. Field order is column order. Sums are those of the shard's whole crawl."""

    epoch: int
    committed_at: float
    """Wall time in seconds at which the commit was durable; a UTC timestamp in the table."""
    took_s: float
    """Seconds from the cut until the commit was durable."""
    cut_s: float
    """The part of `took_s` that held up the event loop."""
    attempts: int
    pages: int
    wire_bytes: int
    shard: int = 0
    queued: int = 0
    """URLs that were not finished, at that time."""
    hosts_with_work: int = 0
    """Hosts with such URLs."""
    due: int = 0
    """Pages that were due for a revisit."""
    counters: Counters = msgspec.field(default_factory=Counters)
    """Counts since the previous commit; one column each in the table."""


class Original(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The first archived response with a content; stored as it is."""

    url: str
    fetched_at: float
    record_id: str = ""
    links: int = 0
    """Hash of the keys of its links that may be followed, in order; 0 if not computed."""
    digest: bytes = b""
    """Of its payload, and the length of its content, if another digest led here."""
    body_bytes: int = 0
    sent_type: str = ""
    """Its Content-Type, for imported revisits that have no head; empty if not known."""


class Archived(msgspec.Struct, frozen=True, gc=False):
    """Where a response is archived."""

    warc_file: str = ""
    warc_offset: int | None = None
    warc_length: int | None = None
    record_id: str = ""
    warc_type: str = ""
    """Type of the record, if another program wrote it."""


class Sight(msgspec.Struct, frozen=True, gc=False):
    """One visit's view of a page, after its outcome was final."""

    url: Url
    outcome: str
    at: float
    """Wall time of the request."""
    status: int | None = None
    digest: int = 0
    """Digest of the normalised content; 0 if there was none."""
    etag: str = ""
    last_modified: str = ""
    """The header's text."""
    original: Original | None = None
    """The archived response that a later `304` may refer to."""
    payload: bytes = b""
    """Digest of the payload as sent."""
    depth: int = 0
    permitted_per_s: float = 0.0
    """Visits a second that politeness leaves for old pages of this host; 0: unknown."""
    items: tuple[int, int] = (0, 0)
    """Digests of the fields that items of the page can have, and of the items; zeros if it can have none."""
    rendered: bool = False
    """Scripts made the content: equal payloads do not mean equal contents."""


_SHA1_BYTES = 20
_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".ljust(256)
# Each mask keeps the lower half of every group of bits; the groups of one step are half as wide as those before.
_LOW_80 = (1 << 80) - 1
_LOW_40 = sum((1 << 40) - 1 << 128 * lane for lane in range(2))
_LOW_20 = sum((1 << 20) - 1 << 64 * lane for lane in range(4))
_LOW_10 = sum((1 << 10) - 1 << 32 * lane for lane in range(8))
_LOW_5 = sum((1 << 5) - 1 << 16 * lane for lane in range(16))


def digest_text(algorithm: str, digest: bytes) -> str:
    """Return `algorithm:BASE32`. Costs 0.8 µs for SHA-1, a third of what the standard library takes."""
    if len(digest) != _SHA1_BYTES:
        return f"{algorithm}:{b32encode(digest).decode()}"
    # Split each group of bits in halves, five times, until each byte holds one group of five bits.
    bits = int.from_bytes(digest)
    bits = bits & _LOW_80 | bits >> 80 << 128
    bits = bits & _LOW_40 | (bits >> 40 & _LOW_40) << 64
    bits = bits & _LOW_20 | (bits >> 20 & _LOW_20) << 32
    bits = bits & _LOW_10 | (bits >> 10 & _LOW_10) << 16
    bits = bits & _LOW_5 | (bits >> 5 & _LOW_5) << 8
    return f"{algorithm}:{bits.to_bytes(32).translate(_ALPHABET).decode()}"


class Sketch(msgspec.Struct, frozen=True, gc=False):
    """Hashes of a page's words, to compare pages; punctuation, digits and case do not count."""

    digest: int
    """Hash of all words in order, the normalised digest: equal for pages that differ only in numbers and markup."""
    simhash: int
    """64 bits; near-duplicates differ in only a few of them (Charikar 2002; Manku and others 2007)."""
    shingles: int
    """Number of shingles of the page: a simhash of few shingles says little."""
    lowest: tuple[int, ...] = ()
    """The smallest hashes of the distinct shingles, ascending (a bottom-k sketch: Cohen and Kaplan 2007)."""
