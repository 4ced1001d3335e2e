"""Visits: one URL's turn, from the request to the row it leaves in `pages`."""

from __future__ import annotations

from io import BytesIO
from typing import BinaryIO, Literal, Protocol

import msgspec

from gossamer.model.counters import Counters
from gossamer.model.links import NOT_SEED, Announcement, Found
from gossamer.model.modules import ModuleError
from gossamer.model.usage import UNKNOWN, Statement
from gossamer.url.url import Url


class Visit(msgspec.Struct, frozen=True, gc=False):
    """One URL whose turn it is, with the way that led to it."""

    url: Url
    depth: int
    hops: int
    link_type: str
    referrer: str
    attempt: int = 1
    seed: int = NOT_SEED
    revisit: bool = False
    """It was visited before, and a revisit is what brings us."""


class RevisitPlan(msgspec.Struct, frozen=True, gc=False):
    """How a URL is to be visited again."""

    url: Url
    """The same key; another text when a redirect led from one form of it to another."""
    at: float
    """Not before this wall time."""
    attempt: int
    hops: int
    error: str = ""


class Prerequisite(msgspec.Struct, frozen=True, gc=False):
    """A request that no page asked for: a robots.txt or another document about a site, on behalf of an origin that may
    be elsewhere; a word to a hub; a step of a login.
    """

    origin: Url
    """Any URL of the origin that waits for it."""
    url: Url
    hops: int = 0
    """Redirects in a row that led here."""
    form: bytes = b""
    """What is sent to a hub, by POST; empty for a robots.txt."""
    token: str = ""
    """Of the subscription that a word to a hub is about."""
    document: str = ""
    """The address at which the origin names a document about its use; empty for a robots.txt."""
    login: str = ""
    """Name of the login of which it is a request; `form` is what that sends."""
    resource: str = ""
    """The type of a resource that a page needs that is being rendered."""

    def is_robots_of(self, url: Url) -> bool:
        """Say whether it asks for the robots.txt, or a document, of a URL's origin, for that origin itself."""
        return not (self.token or self.login or self.resource) and url.origin == self.origin.origin


class Contact(msgspec.Struct, frozen=True, gc=False):
    """A request that was made, as its host felt it."""

    fetch_s: float
    kind: Literal["answered", "busy", "failed", "left"]
    """`busy`: 429 or 503. `failed`: the host itself did not answer. `left`: we did not wait for the answer."""
    retry_after_s: float | None = None
    error: str = ""
    wire_bytes: int = 0
    """Received, heads included."""


class LargeBody(Protocol):
    """A body that is too large for memory: an unnamed file, which is freed with the last reference to this object."""

    @property
    def size(self) -> int:
        """Bytes."""
        ...

    @property
    def digest(self) -> bytes:
        """By the crawl's digest algorithm, made while it came in."""
        ...

    def open(self) -> BinaryIO:
        """Return a reader of its own, from the first byte. Close it, or drop it."""
        ...


class Request(msgspec.Struct, frozen=True, gc=False):
    """One request that passed every gate: what a protocol module may send, and to which address alone."""

    url: str
    ip: str
    """The checked address to connect to, IPv6 without brackets; the module must connect nowhere else."""
    port: int
    headers: tuple[tuple[str, str], ...] = ()
    """Beyond those the module sends itself (User-Agent, Accept, Accept-Encoding)."""
    body_bytes_max: int = 0
    """Cut the body here and mark it; 0 takes the module's own bound."""
    media_types: tuple[str, ...] = ()
    """Types (`text/html`, `image/*`) whose bodies are wanted; none means all. A module that sees another type before
    the body may skip the body and mark the reply as cut: `unspecified`."""
    method: str = "GET"
    """For modules that speak HTTP, as is `body`."""
    body: bytes = b""
    """`headers` say of which type it is."""
    fresh: bool = False
    """Over a new connection: another attempt must not fail for a kept one that has died, as the last one may have."""


class Located(msgspec.Struct, frozen=True, gc=False):
    """Where a host is."""

    addresses: tuple[str, ...]
    """Best first, IPv6 without brackets; never empty."""
    expires_at: float
    """Wall time at which the host must be looked up again."""


class Reply(msgspec.Struct, frozen=True):
    """What a server sent, byte for byte, transfer coding removed and content coding kept."""

    url: str
    status: int
    headers: tuple[tuple[str, str], ...]
    """In the order received, names as sent, values decoded as latin-1."""
    body: bytes
    """As sent: still compressed where Content-Encoding says so. Empty where `file` holds it."""
    ip: str
    started_at: float
    """Wall time in seconds since 1970, UTC."""
    fetch_s: float
    """From the start of the request to its last byte."""
    wire_bytes: int
    """Received for it over the network: headers, body, framing, and TLS where there is any."""
    http_version: str = "1.1"
    reason: str = ""
    request_head: bytes = b""
    """The request as sent: request line and headers, up to and with the empty line."""
    request_body: bytes = b""
    """What was sent behind them."""
    truncated: str = ""
    """Why the body was cut: `length`, `time`, `disconnect` (the server went), `unspecified` (it was not wanted, or the
    rest cannot be read), or empty (WARC 1.1, section 5.13).
    """
    media_type: str = ""
    """Lower case, without parameters; empty when the server did not say."""
    charset: str = ""
    """From Content-Type only, as written."""
    file: LargeBody | None = None
    """The body, where it is too large for memory."""
    authenticated: bool = False
    """The request carried a credential: what came may be for its owner alone."""
    challenged: bool = False
    """A 401 whose challenge the next request for the same URL answers."""
    page_id: str = ""
    """Of the rendered page that this is, or is a resource of; empty where nothing was rendered."""
    resource_type: str = ""
    """What it is to that page: `document`, `script`, `xhr` …"""

    @property
    def body_bytes(self) -> int:
        """How long the body is, wherever it is."""
        return self.file.size if self.file is not None else len(self.body)

    def header(self, name: str) -> str | None:
        """Return the first value of a header, by its lower-case name."""
        for key, value in self.headers:
            if key.lower() == name:
                return value
        return None


class Failure(msgspec.Struct, frozen=True):
    """The web's errors are values: why no reply came, or not a whole one."""

    outcome: str
    """One of `outcomes.OUTCOMES`."""
    error: str
    """One line for people."""
    retry: bool = False
    """Worth asking again."""
    host_level: bool = False
    """Says something about the host (no route, no name, refused, timed out), not about this URL alone."""
    ip: str = ""
    started_at: float = 0.0
    fetch_s: float = 0.0
    came: Reply | None = None
    """The part that came before the server broke off, marked as cut. It is archived, but never processed as a page."""
    wire_bytes: int = 0
    """Received over the network, as in `Reply`."""


class Content(msgspec.Struct, frozen=True):
    """A reply's body with its content coding removed, within limits."""

    body: bytes
    """All of it, or its beginning where `file` holds the whole."""
    truncated: str = ""
    """`length` when the decoded form was cut at its bound."""
    error: str = ""
    """Why decoding stopped early, when the coding was broken; `body` is what came before."""
    file: LargeBody | None = None
    """The whole, where it is too large for memory."""

    @property
    def body_bytes(self) -> int:
        """How long the whole is."""
        return self.file.size if self.file is not None else len(self.body)


class Page(msgspec.Struct, frozen=True):
    """What processing modules look at."""

    url: str
    media_type: str
    charset: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    """Decoded content; of one that is too large for memory its beginning."""
    file: LargeBody | None = None
    """The whole, where it is too large for memory."""
    link_type: str = ""
    """Type of the link to it, if known: it may announce a sitemap or a feed."""

    @property
    def body_bytes(self) -> int:
        """How long the whole is."""
        return self.file.size if self.file is not None else len(self.body)

    def open(self) -> BinaryIO:
        """Return a reader of the whole, from its first byte, as often as wanted."""
        return self.file.open() if self.file is not None else BytesIO(self.body)


class Findings(msgspec.Struct):
    """All that processing modules may report of one page. Modules add to it, in order."""

    links: list[Found] = msgspec.field(default_factory=list)
    title: str = ""
    text: str = ""
    text_method: str = ""
    """How `text`, main text or Markdown was found: `main`, `visible` or `plain`; empty if none was looked for."""
    charset: str = ""
    """The encoding that was used (WHATWG name)."""
    nofollow: bool = False
    """meta robots or X-Robots-Tag: links are recorded, not followed."""
    noindex: bool = False
    statements: list[Statement] = msgspec.field(default_factory=list)
    """What its headers and markup state about its use."""
    columns: dict[str, object] = msgspec.field(default_factory=dict)
    """Further columns of `pages`, by name."""
    rows: dict[str, list[dict[str, object]]] = msgspec.field(default_factory=dict)
    """Rows of further tables, by table; each row gets the page's `url`."""
    announcement: Announcement | None = None
    """What it says of other pages, where it is a sitemap or a feed."""
    fields: list[str] = msgspec.field(default_factory=list)
    """Fields of items that were looked for, as `items/NAME.FIELD`, for counts."""
    invalid: list[ModuleError] = msgspec.field(default_factory=list)
    """Those of them that were missing or did not fit, each once."""


RENDERED = "rendered"


class PageCapture(msgspec.Struct, frozen=True):
    """A record about a rendered page, as Browsertrix Crawler writes it."""

    name: str
    """Its address is `urn:NAME:` and the page's URL: `view`, `thumbnail`, `pageinfo`."""
    media_type: str
    payload: bytes


class Rendered(msgspec.Struct, frozen=True):
    """What scripts made of a page."""

    html: bytes
    """UTF-8."""
    page_id: str
    """Of the records that belong to the page (WARC-Page-ID)."""
    records: tuple[PageCapture, ...] = ()
    """Those that `render.page_records` names."""


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
    """What a continuous crawl saw: `appeared`, `changed`, `same`, `vanished`, or `unknown` without an earlier version;
    empty if the visit showed nothing."""
    hops: int = 0
    """Redirects in a row that led here."""
    text_method: str = ""
    """How its text was found (`Findings.text_method`)."""
    usage_search: str = UNKNOWN
    """Whether its owner allows this use: `allowed`, `refused` or `unknown`; so the next three."""
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
    """What a reply with status 402 says of its price."""
    authenticated: bool = False
    """The request carried a credential (`Reply.authenticated`)."""
    rendered: str = ""
    """`rendered`, or why not; empty where the page was not to be rendered. `timeout`: it took too long with all its
    waiting. `hangs`, `crashed`, `memory`: it kept its browser busy, ended it, or took too much memory. `too_large`,
    `too_many_requests`: more than the bounds. `not_loaded`: the browser shows no document of it."""
    links_gained: int | None = None
    """Different links of the rendered page that the page as sent does not have; null where it was not rendered."""
    render_reason: str = ""
    """Of a page that `crawl.render` = `auto` chose: `signal`, `sample` or `gain`; `budget` where it was left out."""


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


class EpochRow(msgspec.Struct, frozen=True, gc=False):
    """One row of `epochs`: one commit. Field order is column order. Sums are those of the shard's whole crawl."""

    epoch: int
    committed_at: float
    """Wall time in seconds at which it was durable; a UTC timestamp in the table."""
    took_s: float
    """From the cut until then."""
    cut_s: float
    """The part that the loop paid for."""
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
    """What came since the commit before; in the table a column each."""


class Original(msgspec.Struct, frozen=True, gc=False):
    """Who had a content first: the archived response."""

    url: str
    fetched_at: float
    record_id: str = ""
    links: int = 0
    """Hash of the keys of the links that may be followed from it, in order; 0 if it was not computed."""


class Archived(msgspec.Struct, frozen=True, gc=False):
    """Where a response went."""

    warc_file: str = ""
    warc_offset: int | None = None
    warc_length: int | None = None
    record_id: str = ""


class Awaited(msgspec.Struct, frozen=True):
    """A host with URLs that can be requested later, for people."""

    host: str
    at: float
    """Wall time of its next request."""
    reason: str
    """Why not before."""
    queued: int


class BudgetFacts(msgspec.Struct, frozen=True):
    """Budget use of a host and its site in a round, for display."""

    round: int
    growth: float
    """How many times the configured budget they have."""
    linking_sites: float
    """Other sites that link to the site, estimated; 0 if they are not counted."""
    host: dict[str, object]
    """What is limited: spent, of how much, and what is used up."""
    site: dict[str, object]


class OriginFacts(msgspec.Struct, frozen=True):
    """What is known of an origin (scheme, host, port) that does not answer, for people."""

    origin: str
    state: Literal["waiting", "closed"]
    """`waiting`: it is requested again at `next_at`. `closed`: it was given up until then, and its URLs end."""
    failures: int
    """In a row."""
    first_failed_at: float
    """Wall time of the first of them; 0: there was none."""
    next_at: float
    """Wall time."""
    reason: str
    queued: int
    """URLs that are set aside for it."""


class HostFacts(msgspec.Struct, frozen=True):
    """What is known of a host, for people."""

    name: str
    queued: int = 0
    rest_until: float = 0.0
    reason: str = ""
    """Why it waits."""
    closed: str = ""
    """Why it gets no more requests."""
    crawl_delay_s: float | None = None
    requests: int = 0
    failures: int = 0
    in_flight: int = 0
    parked: str = ""
    """What it waits for before its next page."""
    due_at: float | None = None
    """When the URL that was asked about is due again, if it waits for a time of its own."""
    attempt: int = 1
    error: str = ""
    site_gate: str = ""
    """Why its registrable domain may not be requested at once, where sites have a gate."""
    deferred: bool = False
    """It has used up its budget and waits for the next round."""
    budget: BudgetFacts | None = None
    origin: OriginFacts | None = None
    """Of the URL that was asked about, where that does not answer."""
