"""Rows: one attempt as `pages` shows it."""

from __future__ import annotations

from base64 import b32encode

from gossamer.model.visits import PageRow, Visit


def attempt_row(visit: Visit, outcome: str, at: float) -> PageRow:
    """Return the row of an attempt with what the visit knows; the rest is filled in by the stages."""
    url = visit.url
    return PageRow(
        url.text, url.key, url.host, url.site, at, outcome, depth=visit.depth, referrer=visit.referrer,
        link_type=visit.link_type, attempt=visit.attempt, hops=visit.hops,
    )  # fmt: skip


def digest_text(algorithm: str, digest: bytes) -> str:
    """Return a digest as WARC writes it."""
    return f"{algorithm}:{b32encode(digest).decode()}"
