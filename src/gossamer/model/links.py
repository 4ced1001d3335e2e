"""Links: what pages name, before and after we know where it leads, and what sitemaps and feeds say of other pages."""

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
"""To a page outside the scope, of which only the status is fetched. Pages name it by another type."""
SITEMAP, FEED = "sitemap", "feed"
"""To a page that a sitemap or a feed names."""
SITEMAP_FILE, FEED_FILE = "sitemap_file", "feed_file"
"""Links to a sitemap or a feed: the reply is read as one, with any media type."""
ANNOUNCING = frozenset((SITEMAP_FILE, FEED_FILE))
HUB, SELF = "hub", "self"
"""The hub that publishes a document's changes, and the document's name there (WebSub, section 4). Never followed."""
REQUEST = "request"
"""To a page that an extractor asks for."""
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
    """How urgent it is, where the module that found it says so: 0 to 7."""


class Link(msgspec.Struct, frozen=True, gc=False):
    """A link with the way that led to it: what filters judge and the frontier takes."""

    url: Url
    link_type: str
    depth: int
    """Clicks from a seed; a redirect is no click."""
    hops: int = 0
    """Redirects in a row that led here."""
    referrer: str = ""
    """The address of the page that names it; empty for a seed."""
    seed: int = NOT_SEED
    """Whether a redirect from here widens the scope: `SEED_ARGUMENT` and `SEED_FILE` do, each in its way."""
    level: int | None = None
    """How urgent it is, in place of what the prioritizer says. Not known to another shard."""


AnnouncementKind = Literal["sitemap", "sitemap_index", "feed"]


class Announced(msgspec.Struct, frozen=True, gc=False):
    """What is said of one address."""

    url: str
    """Absolute, without fragment."""
    changed_at: float = 0.0
    """Wall time of its last change, as they say; 0 if they say nothing."""
    period_s: float = 0.0
    """How often it changes, as they say; 0 if they say nothing."""
    weight: float = -1.0
    """How important it is among its site's pages, from 0 to 1; below 0 if they say nothing."""


class Announcement(msgspec.Struct):
    """What one document announces, and how often it wants to be asked."""

    kind: AnnouncementKind
    entries: list[Announced] = msgspec.field(default_factory=list)
    """In order; each address once."""
    ttl_s: float = 0.0
    """Interval that it requests (RSS `ttl`, `sy:updatePeriod`); 0 if it names none."""
    skip_hours: tuple[int, ...] = ()
    """Hours of the day, UTC, at which it does not change (RSS `skipHours`)."""
    skip_days: tuple[int, ...] = ()
    """Days of the week, Monday is 0, at which it does not change (RSS `skipDays`)."""
    error: str = ""
    """Why it was not read to its end; what came before counts."""
