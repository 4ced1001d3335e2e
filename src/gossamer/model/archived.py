"""Archived: answers from a crawl's archive, part by part: versions of a page, items, a host's history, a comparison.

All text is untrusted, and cut to `CHARACTERS_MAX` where it may be long.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from gossamer.model.decodable import decodable

CHARACTERS_MAX = 300
VERSIONS_MAX = 100
"""Versions of a page in one answer: the newest."""
COLUMNS_MAX = 30
ROWS_MAX = 100
"""Items, or pages of a comparison, in one answer."""
OFFSET_MAX = 10_000_000

Compared = Literal["new", "gone", "changed"]


class PageVersion(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt at a page."""

    at: Annotated[str, Meta(description="UTC, as in 2026-01-31T12:00:00.250000Z.")]
    outcome: str
    status: int | None
    content: Annotated[str, Meta(description="first, same or changed, beside the version before; empty: no content.")]
    digest: Annotated[str, Meta(description="Of the body; empty: no content.")]
    body_bytes: int
    title: str
    replay: Annotated[str, Meta(description="Path of this version on the replay port; empty: none is archived.")]


@decodable
class PageVersions(msgspec.Struct, frozen=True, kw_only=True):
    """The attempts at a page, the newest first."""

    url: str
    versions: tuple[PageVersion, ...]
    total: Annotated[int, Meta(description="Attempts, shown or not.")]
    replay_port: Annotated[int, Meta(description="Port of this host that serves archived pages; 0: none.")] = 0
    replay_url: Annotated[str, Meta(description="The same at public_host, with path; empty: not shown there.")] = ""
    public_host: Annotated[str, Meta(description="Host, and port if any, of console.public_url.")] = ""


class ItemKind(msgspec.Struct, frozen=True):
    """A table of items."""

    name: str
    items: int


class ItemRow(msgspec.Struct, frozen=True, kw_only=True):
    """One item as one visit found it."""

    url: str
    at: Annotated[str, Meta(description="UTC, as in 2026-01-31T12:00:00Z.")]
    values: Annotated[tuple[str | None, ...], Meta(description="In the order of the columns; null: none.")]


@decodable
class ItemList(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the items of one kind, the newest first."""

    kinds: tuple[ItemKind, ...]
    kind: Annotated[str, Meta(description="Empty: the crawl has no items.")]
    columns: tuple[str, ...]
    items: tuple[ItemRow, ...]
    offset: int
    total: int


class HostPeriod(msgspec.Struct, frozen=True, kw_only=True):
    """The requests to a host in one period."""

    at: Annotated[float, Meta(description="Unix time of its begin.")]
    answered: Annotated[int, Meta(description="Pages, unchanged pages and redirects.")]
    failed: Annotated[int, Meta(description="All other outcomes.")]


@decodable
class HostHistory(msgspec.Struct, frozen=True, kw_only=True):
    """How requests to a host ended, over time."""

    host: str
    step_s: Annotated[float, Meta(description="Length of a period.")]
    periods: Annotated[tuple[HostPeriod, ...], Meta(description="Those with requests, in order.")]
    outcomes: Annotated[dict[str, int], Meta(description="Of all periods, the most frequent first.")]


class ComparedPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page in two crawls, by its last visit in each."""

    url: str
    title: str
    before: Annotated[str, Meta(description="Outcome in the first crawl; empty: not visited.")]
    after: Annotated[str, Meta(description="Outcome in the second crawl; empty: not visited.")]
    status: Annotated[int | None, Meta(description="Of the second crawl; null: no answer.")]


@decodable
class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Differences between two crawls, by the last visit of each to a URL."""

    first: Annotated[str, Meta(description="Name of the first crawl.")]
    second: Annotated[str, Meta(description="Name of the second crawl.")]
    counts: Annotated[
        dict[str, int], Meta(description="Pages by new, gone, changed (another digest of the body) and same.")
    ]
    outcomes: Annotated[
        dict[str, tuple[int, int]], Meta(description="URLs by outcome, in the first crawl and in the second.")
    ]
    change: Annotated[str, Meta(description="Which pages are listed.")]
    pages: Annotated[tuple[ComparedPage, ...], Meta(description="By URL, from `offset` on.")]
    offset: int
