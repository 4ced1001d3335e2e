"""Visits: the values of one visit to a URL, from the lease to its row in `pages`."""

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
    """A URL to fetch now, with the path that led to it."""

    url: Url
    depth: int
    hops: int
    link_type: str
    referrer: str
    attempt: int = 1
    seed: int = NOT_SEED
    revisit: bool = False
    """This is a revisit: the URL was visited before."""


class RevisitPlan(msgspec.Struct, frozen=True, gc=False):
    """When and how a URL is visited again."""

    url: Url
    """The same key; its text may differ if a redirect led from one form of the address to another."""
    at: float
    """Not before this wall time."""
    attempt: int
    hops: int
    error: str = ""


class Prerequisite(msgspec.Struct, frozen=True, gc=False):
    """A fetch that no link led to: a robots.txt or another document about a site, for an origin that may be elsewhere;
    a request to a hub; a step of a login; a resource of a rendered page.
    """

    origin: Url
    """Any URL of the origin that waits for it."""
    url: Url
    hops: int = 0
    """Redirects in a row that led here."""
    form: bytes = b""
    """Body of a POST to a hub; empty for a robots.txt."""
    token: str = ""
    """Token of the subscription that a request to a hub is about."""
    document: str = ""
    """The address at which the origin names a document about its use; empty for a robots.txt."""
    login: str = ""
    """Name of the login that this request is a step of; `form` is its body."""
    resource: str = ""
    """Type of the resource, if a page that is being rendered needs it."""

    def is_robots_of(self, url: Url) -> bool:
        """Say whether this is a request, for a URL's origin itself, for its robots.txt or a document about its use."""
        return not (self.token or self.login or self.resource) and url.origin == self.origin.origin


class Contact(msgspec.Struct, frozen=True, gc=False):
    """A finished request, as far as the politeness towards its host depends on it."""

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
        """Its length in bytes."""
        ...

    @property
    def digest(self) -> bytes:
        """Its digest by the crawl's algorithm, computed while the body arrived."""
        ...

    def open(self) -> BinaryIO:
        """Return a new, independent reader from the first byte. Close it, or drop it."""
        ...


class Request(msgspec.Struct, frozen=True, gc=False):
    """One request that passed every gate: what a protocol module may send, and the only address it may connect to."""

    url: str
    ip: str
    """The checked address to connect to, IPv6 without brackets; the module must connect nowhere else."""
    port: int
    headers: tuple[tuple[str, str], ...] = ()
    """Beyond those the module sends itself (User-Agent, Accept, Accept-Encoding)."""
    body_bytes_max: int = 0
    """Cut the body here and mark it; 0 takes the module's own bound."""
    media_types: tuple[str, ...] = ()
    """Types (`text/html`, `image/*`) whose bodies are wanted; empty: all. A module may cut others as `unspecified`."""
    method: str = "GET"
    """Only for modules that speak HTTP, like `body`."""
    body: bytes = b""
    """Body of the request; its type is in `headers`."""
    fresh: bool = False
    """Use a new connection: the last attempt may have failed because a kept connection had died."""
    concurrency: int = 0
    """Requests that may go out at once, if this one may be ended while most are slow; 0: it may not. For HTTP."""


class Located(msgspec.Struct, frozen=True, gc=False):
    """The addresses of a host."""

    addresses: tuple[str, ...]
    """Best first, IPv6 without brackets; never empty."""
    expires_at: float
    """Wall time at which the host must be looked up again."""


class Reply(msgspec.Struct, frozen=True):
    """A server's reply as sent, with its transfer coding removed and its content coding kept."""

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
    """Seconds from the start of the request to the last byte of the reply."""
    wire_bytes: int
    """Bytes received over the network: headers, body, framing, and TLS where it is used."""
    http_version: str = "1.1"
    reason: str = ""
    request_head: bytes = b""
    """The request as sent: request line and headers, up to and with the empty line."""
    request_body: bytes = b""
    """The body that was sent after these."""
    truncated: str = ""
    """Why the body was cut (WARC 1.1, section 5.13): `length`, `time`, `disconnect` (the server went), `unspecified`
    (it was not wanted, or the rest cannot be read), or empty."""
    media_type: str = ""
    """Lower case, without parameters; empty when the server did not say."""
    charset: str = ""
    """From Content-Type only, as written."""
    file: LargeBody | None = None
    """The body, where it is too large for memory."""
    authenticated: bool = False
    """The request carried a credential: the reply may be private to its owner."""
    challenged: bool = False
    """A 401 whose challenge the next request for the same URL answers."""
    page_id: str = ""
    """Id of the rendered page that this reply is, or is a resource of; empty if nothing was rendered."""
    resource_type: str = ""
    """Its role in that page: `document`, `script`, `xhr` …"""

    @property
    def body_bytes(self) -> int:
        """Length of the body in memory or in `file`."""
        return self.file.size if self.file is not None else len(self.body)

    def header(self, name: str) -> str | None:
        """Return the first value of a header, by its lower-case name."""
        for key, value in self.headers:
            if key.lower() == name:
                return value
        return None


class Failure(msgspec.Struct, frozen=True):
    """An error of the web, as a value: why there is no reply, or only a part of one."""

    outcome: str
    """One of `outcomes.OUTCOMES`."""
    error: str
    """One line for people."""
    retry: bool = False
    """A retry may succeed."""
    host_level: bool = False
    """The error concerns the host (no route, no name, refused, timed out), not only this URL."""
    ip: str = ""
    started_at: float = 0.0
    fetch_s: float = 0.0
    came: Reply | None = None
    """The part of the reply before the connection broke, marked as cut. It is archived, but never processed."""
    wire_bytes: int = 0
    """Received over the network, as in `Reply`."""
    by_proxy: bool = False
    """The crawl's own proxy could not be used, which says nothing about the host or the URL."""


class Content(msgspec.Struct, frozen=True):
    """A reply's body with its content coding removed, within limits."""

    body: bytes
    """The whole content, or its beginning if `file` holds the whole."""
    truncated: str = ""
    """`length` when the decoded form was cut at its bound."""
    error: str = ""
    """Why decoding stopped early, if the coding is broken; `body` holds what was decoded before."""
    file: LargeBody | None = None
    """The whole, where it is too large for memory."""

    @property
    def body_bytes(self) -> int:
        """How long the whole is."""
        return self.file.size if self.file is not None else len(self.body)


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
    """How `text`, main text or Markdown was found: `main`, `visible` or `plain`; empty if none was looked for."""
    charset: str = ""
    """The encoding that was used (WHATWG name)."""
    nofollow: bool = False
    """meta robots or X-Robots-Tag: links are recorded, not followed."""
    noindex: bool = False
    statements: list[Statement] = msgspec.field(default_factory=list)
    """What the page's headers and markup state about its use."""
    columns: dict[str, object] = msgspec.field(default_factory=dict)
    """Further columns of `pages`, by name."""
    rows: dict[str, list[dict[str, object]]] = msgspec.field(default_factory=dict)
    """Rows of further tables, by table; each row gets the page's `url`."""
    announcement: Announcement | None = None
    """What the page says about other pages, if it is a sitemap or a feed."""
    fields: list[str] = msgspec.field(default_factory=list)
    """Fields of items that were extracted or tried, as `items/NAME.FIELD`, for counts."""
    invalid: list[ModuleError] = msgspec.field(default_factory=list)
    """The `fields` that were missing or invalid, each once."""


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
    """What a continuous crawl saw: `appeared`, `changed`, `same`, `vanished`, or `unknown` without an earlier version;
    empty if the visit showed nothing."""
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
    """What a reply with status 402 says of its price."""
    authenticated: bool = False
    """As `Reply.authenticated`."""
    rendered: str = ""
    """`rendered`, or why not; empty if the page was not to be rendered. `timeout`: it took too long, waiting included.
    `hangs`, `crashed`, `memory`: it kept its browser busy, crashed it, or took too much memory. `too_large`,
    `too_many_requests`: it exceeded a bound. `not_loaded`: the browser shows no document of it.
    """
    links_gained: int | None = None
    """Different links of the rendered page that the page as sent does not have; null where it was not rendered."""
    render_reason: str = ""
    """Why `crawl.render` = `auto` chose the page: `signal`, `sample` or `gain`; `budget`: why it was left out."""


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


class Original(msgspec.Struct, frozen=True, gc=False):
    """The first archived response with a content."""

    url: str
    fetched_at: float
    record_id: str = ""
    links: int = 0
    """Hash of the keys of its links that may be followed, in order; 0 if not computed."""


class Archived(msgspec.Struct, frozen=True, gc=False):
    """Where a response is archived."""

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
    """Why it is not requested earlier."""
    queued: int


class BudgetFacts(msgspec.Struct, frozen=True):
    """Budget use of a host and its site in a round, for display."""

    round: int
    growth: float
    """Factor by which the round multiplies the configured budgets."""
    linking_sites: float
    """Estimated number of other sites that link to the site; 0 if not counted."""
    host: dict[str, object]
    """Per limited quantity: how much is spent, of how much, and whether it is used up."""
    site: dict[str, object]


class OriginFacts(msgspec.Struct, frozen=True):
    """What is known of an origin (scheme, host, port) that does not answer, for people."""

    origin: str
    state: Literal["waiting", "closed"]
    """`waiting`: it is requested again at `next_at`. `closed`: it is given up until `next_at`, and its URLs end."""
    failures: int
    """In a row."""
    first_failed_at: float
    """Wall time of the first of these failures; 0: none."""
    next_at: float
    """Wall time."""
    reason: str
    queued: int
    """URLs that are set aside until the origin answers."""


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
    """When the URL of the query is due, if it waits for its own time."""
    attempt: int = 1
    error: str = ""
    site_gate: str = ""
    """Why its registrable domain may not be requested at once, where sites have a gate."""
    deferred: bool = False
    """The host has used up its budget and waits for the next round."""
    budget: BudgetFacts | None = None
    origin: OriginFacts | None = None
    """The origin of the URL of the query, if it does not answer."""
