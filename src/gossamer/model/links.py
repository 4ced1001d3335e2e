"""Links: what pages name, before and after we know where it leads."""

from __future__ import annotations

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
