"""Links: links as pages state them, links and visits with their path from a seed, and hints of sitemaps and feeds."""

from typing import Literal

import msgspec

from gossamer.url.url import Url

LINK_TYPES = (
    "seed", "anchor", "area", "frame", "iframe", "next", "prev", "alternate", "canonical",
    "redirect", "meta_refresh", "sitemap", "feed", "embed", "sitemap_file", "feed_file", "hub", "self",
    "cite", "request", "script", "related",
)  # fmt: skip
EMBED = "embed"
"""Part of a page rather than somewhere to go."""
OUTLINK = "outlink"
"""To a page outside the scope: only its status is fetched. In the page the link has another type."""
SEED = "seed"
"""Given by the operator."""
SITEMAP = "sitemap"
FEED = "feed"
"""To a page that a sitemap or a feed names."""
SITEMAP_FILE = "sitemap_file"
FEED_FILE = "feed_file"
"""Links to a sitemap or a feed: the reply is read as one, with any media type."""
ANNOUNCING = frozenset((SITEMAP_FILE, FEED_FILE))
HUB = "hub"
SELF = "self"
"""The hub that publishes a document's changes, and the document's name there (WebSub, section 4). Never followed."""
REQUEST = "request"
"""To a page that an extractor requests."""
RELATED = "related"
"""By a `link` element or a `Link` header whose relation names a document: contents, search, license and others."""
SCRIPT = "script"
"""To where a script of a rendered page would have navigated."""
LEADING_ON = frozenset(("redirect", "meta_refresh", SCRIPT))
"""Types of link that a browser follows without a click."""
NOT_SEED = 0
SEED_ARGUMENT = 1
SEED_FILE = 2


class Found(msgspec.Struct, frozen=True, gc=False):
    """One link as a page states it, already absolute."""

    url: str
    """Joined with the page's base by the WHATWG rules, fragment dropped."""
    link_type: str
    """One of `LINK_TYPES`."""
    anchor_text: str = ""
    nofollow: bool = False
    """The link itself says so (`rel`); for a page's directive see `Findings.nofollow`."""
    level: int | None = None
    """Priority level, 0 (most urgent) to 7, if the module that found the link sets one."""


class Link(msgspec.Struct, frozen=True, gc=False):
    """A link with the path that led to it: what filters judge and the frontier takes."""

    url: Url
    link_type: str
    depth: int
    """Clicks from a seed; a redirect is no click."""
    hops: int = 0
    """Redirects in a row that led here."""
    referrer: str = ""
    """The address of the page that contains the link; empty for a seed."""
    seed: int = NOT_SEED
    """Whether a redirect from here widens the scope: `SEED_ARGUMENT` and `SEED_FILE` do, each in its way."""
    level: int | None = None
    """Priority level, in place of the prioritizer's. Not sent to other shards."""


AnnouncementKind = Literal["sitemap", "sitemap_index", "feed"]


class Announced(msgspec.Struct, frozen=True, gc=False):
    """A sitemap's or feed's entry for one address."""

    url: str
    """Absolute, without fragment."""
    changed_at: float = 0.0
    """Wall time of the last change according to the document; 0 if it gives none."""
    period_s: float = 0.0
    """Seconds between changes according to the document; 0 if it gives none."""
    weight: float = -1.0
    """Importance among the pages of the site according to the document, from 0 to 1; below 0 if it gives none."""


class Announcement(msgspec.Struct):
    """The entries of one sitemap or feed, and its requested interval between fetches."""

    kind: AnnouncementKind
    entries: list[Announced] = msgspec.field(default_factory=list)
    """In document order; each address once."""
    versions: dict[tuple[str, ...], list[str]] = msgspec.field(default_factory=dict)
    """Sets of versions in other languages, each a code (may be empty), a space and an address, and their entries."""
    ttl_s: float = 0.0
    """Interval that it requests (RSS `ttl`, `sy:updatePeriod`); 0 if it names none."""
    skip_hours: tuple[int, ...] = ()
    """Hours of the day, UTC, at which it does not change (RSS `skipHours`)."""
    skip_days: tuple[int, ...] = ()
    """Days of the week, Monday is 0, at which it does not change (RSS `skipDays`)."""
    error: str = ""
    """Why reading stopped before the end; the entries before that count."""


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
    """A fetch that no link led to, such as that of a robots.txt. A visit middleware wants it, and gets its result."""

    origin: Url
    """Any URL of the origin that waits for it."""
    url: Url
    hops: int = 0
    """Redirects in a row that led here."""
    owner: str = "robots"
    """Name of the middleware that wants it."""
    subject: str = ""
    """Its subject, for its owner: the address of a document, a login, a subscription, the type of a resource."""
    form: bytes = b""
    """Body of a POST; empty for a GET."""
    is_about_origin: bool = True
    """Whether it asks for a document about the origin, which waits for it; another shard's host may have it."""

    def is_about(self, url: Url) -> bool:
        """Return whether it asks a URL's origin for a document about that origin."""
        return self.is_about_origin and url.origin == self.origin.origin


class TravellingWalker(msgspec.Struct, array_like=True, frozen=True):
    """A random walk on its way to the shard of its next page, and how many steps it has taken."""

    number: int
    steps: int
    url: str = ""
    """Its next page; empty for a random page of the receiving shard."""
    depth: int = 0
    referrer: str = ""


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """Whether a URL may be requested. If not, `prerequisite` must be run first (without `park`: at another origin, and
    only the URL's own origin waits), or the URL waits until `wait_until`, or ends with `outcome`.
    """

    allowed: bool = False
    prerequisite: Prerequisite | None = None
    wait_until: float = 0.0
    outcome: str = ""
    reason: str = ""
    park: bool = False
    """The host is parked until it is released: for `prerequisite`, or for one that another host waits for too."""
    owner: str = ""
    """Name of the middleware whose `wait` is called when the URL waits."""


ALLOWED = Verdict(allowed=True)


class Notice(msgspec.Struct, frozen=True, gc=False):
    """A hint about a page from another source: a sitemap, a feed, a hub, the operator."""

    url: Url
    source: Literal["sitemap", "feed", "websub", "webmention", "operator", "repeat"]
    """`repeat` is the crawl itself: its last visit came too early, and what it saw is no version of the page."""
    changed_at: float | None = None
    """Wall time of the page's last change, if the source gives it (`lastmod`, `updated`, the time of a ping)."""
    complete: bool = False
    """The source reports every change, so no report means no change, and the page needs no visit in between."""
    due_now: bool = False
    """Visit the page as soon as politeness permits, even if the visit is worth little."""
    not_before: float = 0.0
    """With `due_now`: wall time at which the visit becomes due, where several hints are to share one visit."""
    interval_hint_s: float | None = None
    """Seconds between changes as the source estimates them (`changefreq`): a prior that visits correct."""
    interval_s: float | None = None
    """Seconds between visits, in place of the policy, for feeds. 0: by policy again."""
    importance: float | None = None
    """Relative to the crawl's other pages, 1 being ordinary (a sitemap's `priority` times two)."""
