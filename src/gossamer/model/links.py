"""Links: what pages name, before and after we know where it leads."""

from __future__ import annotations

import msgspec

from gossamer.url.url import Url

LINK_TYPES = (
    "seed", "anchor", "area", "frame", "iframe", "next", "prev", "alternate", "canonical",
    "redirect", "meta_refresh", "sitemap", "feed", "embed", "sitemap_file", "feed_file", "hub", "self",
    "cite",
)  # fmt: skip

EMBED = "embed"
"""Part of a page rather than somewhere to go."""
SITEMAP, FEED = "sitemap", "feed"
"""To a page that a sitemap or a feed names."""
SITEMAP_FILE, FEED_FILE = "sitemap_file", "feed_file"
"""To a sitemap or a feed: what comes is read as one, whatever it says that it is."""
ANNOUNCING = frozenset((SITEMAP_FILE, FEED_FILE))
HUB, SELF = "hub", "self"
"""Where a document's changes are told, and its name there (WebSub, section 4). Never followed."""
NOT_SEED, SEED_ARGUMENT, SEED_FILE = 0, 1, 2


class Found(msgspec.Struct, frozen=True, gc=False):
    """One link as a page states it, already absolute."""

    url: str
    """Joined with the page's base by the WHATWG rules, fragment dropped."""
    link_type: str
    """One of `LINK_TYPES`."""
    anchor_text: str = ""
    nofollow: bool = False
    """The link itself says so (`rel`); a page's directive stands in `Findings.nofollow`."""


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
