"""Revisits: what hints and visits say about a page's changes, and what the next request needs of the last visit."""

from __future__ import annotations

from typing import Literal

import msgspec

from gossamer.model.visits import Original
from gossamer.url.url import Url


class Notice(msgspec.Struct, frozen=True, gc=False):
    """A hint about a page from another source: a sitemap, a feed, a hub, the operator."""

    url: Url
    source: Literal["sitemap", "feed", "websub", "operator"]
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


class Sight(msgspec.Struct, frozen=True, gc=False):
    """What one visit saw of a page, after its outcome was final."""

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


class Held(msgspec.Struct, frozen=True, gc=False):
    """What is kept of the last visit, for the conditional headers of the next request and to compare its reply."""

    etag: str
    last_modified: str
    original: Original | None
    payload: bytes
    at: float = 0.0
    """Wall time of that visit."""
