"""Revisits: what is said of a page's changes, by visits and by others, and what follows from it."""

from __future__ import annotations

from typing import Literal

import msgspec

from gossamer.model.visits import Original
from gossamer.url.url import Url


class Notice(msgspec.Struct, frozen=True, gc=False):
    """What another source says of a page: a sitemap, a feed, a hub."""

    url: Url
    source: Literal["sitemap", "feed", "websub", "operator"]
    changed_at: float | None = None
    """Wall time of the page's last change, if the source has it (`lastmod`, `updated`, the instant of a ping)."""
    complete: bool = False
    """The source reports every change, so no report means no change, and the page needs no visit in between."""
    due_now: bool = False
    """Visit the page as soon as politeness permits, at any value of the visit."""
    not_before: float = 0.0
    """With `due_now`: wall time at which the visit becomes due, where several hints are to share one visit."""
    interval_hint_s: float | None = None
    """Seconds between changes, as the source guesses (`changefreq`): a prior, which visits correct."""
    interval_s: float | None = None
    """Fixed interval of visits, which overrides the policy, for feeds. 0: by policy again."""
    importance: float | None = None
    """Relative to the crawl's other pages, 1 being ordinary (a sitemap's `priority` times two)."""


class Sight(msgspec.Struct, frozen=True, gc=False):
    """What one visit saw of a page, once it was final."""

    url: Url
    outcome: str
    at: float
    """Wall time of the request."""
    status: int | None = None
    digest: int = 0
    """Of the normalised content; 0 if nothing was seen of it."""
    etag: str = ""
    last_modified: str = ""
    """As the header has it."""
    original: Original | None = None
    """The archived response that a later `304` may refer to."""
    payload: bytes = b""
    """Digest of the payload as sent."""
    depth: int = 0
    permitted_per_s: float = 0.0
    """Visits a second that politeness leaves for old pages of this host; 0: unknown."""


class Held(msgspec.Struct, frozen=True, gc=False):
    """What the last visit left: what the next request may be conditional on, and what its answer is compared with."""

    etag: str
    last_modified: str
    original: Original | None
    payload: bytes
    at: float = 0.0
    """Wall time of that visit."""
