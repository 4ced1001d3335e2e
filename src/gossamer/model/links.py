"""Links: links as pages state them, links with their path from a seed, and announcements of sitemaps and feeds."""

from typing import Literal

import msgspec

from gossamer.url.url import Url

LINK_TYPES = (
    "seed", "anchor", "area", "frame", "iframe", "next", "prev", "alternate", "canonical",
    "redirect", "meta_refresh", "sitemap", "feed", "embed", "sitemap_file", "feed_file", "hub", "self",
    "cite", "request", "script",
)  # fmt: skip

EMBED = "embed"
"""Part of a page rather than somewhere to go."""
OUTLINK = "outlink"
"""To a page outside the scope: only its status is fetched. In the page the link has another type."""
SITEMAP, FEED = "sitemap", "feed"
"""To a page that a sitemap or a feed names."""
SITEMAP_FILE, FEED_FILE = "sitemap_file", "feed_file"
"""Links to a sitemap or a feed: the reply is read as one, with any media type."""
ANNOUNCING = frozenset((SITEMAP_FILE, FEED_FILE))
HUB, SELF = "hub", "self"
"""The hub that publishes a document's changes, and the document's name there (WebSub, section 4). Never followed."""
REQUEST = "request"
"""To a page that an extractor requests."""
SCRIPT = "script"
"""To where a script of a rendered page would have navigated."""
NOT_SEED, SEED_ARGUMENT, SEED_FILE = 0, 1, 2


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
    """What a sitemap or a feed says of one address."""

    url: str
    """Absolute, without fragment."""
    changed_at: float = 0.0
    """Wall time of the last change according to the document; 0 if it gives none."""
    period_s: float = 0.0
    """Seconds between changes according to the document; 0 if it gives none."""
    weight: float = -1.0
    """Importance among the pages of the site according to the document, from 0 to 1; below 0 if it gives none."""


class Announcement(msgspec.Struct):
    """What one sitemap or feed announces, and how often it asks to be fetched."""

    kind: AnnouncementKind
    entries: list[Announced] = msgspec.field(default_factory=list)
    """In document order; each address once."""
    ttl_s: float = 0.0
    """Interval that it requests (RSS `ttl`, `sy:updatePeriod`); 0 if it names none."""
    skip_hours: tuple[int, ...] = ()
    """Hours of the day, UTC, at which it does not change (RSS `skipHours`)."""
    skip_days: tuple[int, ...] = ()
    """Days of the week, Monday is 0, at which it does not change (RSS `skipDays`)."""
    error: str = ""
    """Why reading stopped before the end; the entries before that count."""
