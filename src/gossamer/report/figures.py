"""Figures: what a report says, as values."""

from __future__ import annotations

import msgspec


class Count(msgspec.Struct, frozen=True):
    """How often something occurs."""

    name: str
    count: int
    share: float
    """Of all attempts, 0 to 1."""


class Host(msgspec.Struct, frozen=True):
    """One host's part in the crawl."""

    host: str
    attempts: int
    fetched: int
    wire_bytes: int
    mean_fetch_s: float


class Trouble(msgspec.Struct, frozen=True):
    """Attempts that ended in one kind of error, with an example."""

    outcome: str
    count: int
    url: str
    error: str


class FetchTimes(msgspec.Struct, frozen=True):
    """How long fetches took, in seconds; percentiles are estimates (t-digest), the rest is exact."""

    mean: float = 0.0
    p50: float = 0.0
    p90: float = 0.0
    p99: float = 0.0
    max: float = 0.0


class Report(msgspec.Struct, frozen=True):
    """A crawl in figures. Lists are in falling order and end where they would grow with the crawl."""

    attempts: int = 0
    """Rows of `pages`."""
    fetched: int = 0
    """Attempts with the outcome `fetched`."""
    repeated: int = 0
    """Attempts that were not a URL's first."""
    hosts: int = 0
    sites: int = 0
    links: int = 0
    """Rows of `links`."""
    duplicates: int = 0
    """Pages whose content was seen before."""
    truncated: int = 0
    wire_bytes: int = 0
    """Received, heads included."""
    body_bytes: int = 0
    """Decoded content."""
    warc_bytes: int = 0
    """Response and revisit records, compressed."""
    begun_at: float | None = None
    """Wall time in seconds of the first attempt."""
    ended_at: float | None = None
    duration_s: float = 0.0
    """From the first attempt to the end of the last, pauses included."""
    pages_per_s: float = 0.0
    fetch_s: FetchTimes = FetchTimes()
    outcomes: tuple[Count, ...] = ()
    statuses: tuple[Count, ...] = ()
    media_types: tuple[Count, ...] = ()
    """Of pages fetched; share of all attempts."""
    depths: tuple[Count, ...] = ()
    """By depth, from 0."""
    link_types: tuple[Count, ...] = ()
    """Share of all links."""
    hosts_per_tld: tuple[Count, ...] = ()
    """Share of all hosts."""
    top_hosts: tuple[Host, ...] = ()
    """By pages fetched."""
    slowest_hosts: tuple[Host, ...] = ()
    """By mean fetch time, of hosts with at least three fetches."""
    troubles: tuple[Trouble, ...] = ()


def as_json(report: Report) -> str:
    """Return the report as JSON, indented, fields named as here."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode()
