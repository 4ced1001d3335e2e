"""Copies: detects copies, by the digest of the decoded body, and near-duplicates, by the sketch."""

from collections.abc import Callable, Sequence

import msgspec
from xxhash import xxh3_64_intdigest, xxh3_128_digest

from gossamer.engine.history import UrlMemory
from gossamer.model.links import Link, Visit
from gossamer.model.pages import Original, PageRow, Sketch
from gossamer.model.visits import Content
from gossamer.ports import ContentSeen
from gossamer.stages.seen.content import NearContentSeen
from gossamer.url.url import Url

_DECODED = b"decoded:"
"""Prefix that separates digests of decoded bodies from those of payloads."""
Sketcher = Callable[[bytes, str, str], Sketch]


class NearCopies(msgspec.Struct, frozen=True):
    """The test for near-duplicates, with the sketches that it compares."""

    seen: NearContentSeen
    sketcher: Sketcher


class CopyMarks:
    """Marks a page's row as a copy or a near-duplicate, and decides whether its links are followed again.

    Costs about 6 µs a page for the exact test; the near test runs only if it is configured.
    """

    def __init__(
        self, exact: ContentSeen, near: NearCopies | None, urls: UrlMemory, *, follow: bool, every: bool, process: bool
    ) -> None:
        self._exact = exact
        self._near = near
        self._urls = urls
        self._follow = follow
        self._every = every
        """Whether links of all copies are followed: a walk continues from every page."""
        self.processes_all = process or every
        """Whether copies are processed like other pages, so that `is_skipped_copy` is not needed."""

    def is_skipped_copy(self, url: Url, content: Content, truncated: str) -> bool:
        """Return whether a page is not processed further because another URL had its content before (Mercator)."""
        if self.processes_all or not _is_whole(content, truncated):
            return False
        original = self._exact.find(_digest_of(content), url)
        return original is not None and original.url != url.text

    def judge(self, visit: Visit, content: Content, links: Sequence[Link], row: PageRow) -> bool:
        """Record the original of a copy; return whether the page's links are followed. Partial pages are never copies.

        By default only the links of an exact copy on the same host are skipped, if they are the same, in order, as
        those of the original, and the copy is no nearer to a seed. This only saves work. At another path the same
        relative links can lead to other pages; if skipped, the pages found would depend on which copy came first.
        """
        if not _is_whole(content, row.truncated):
            return True
        digest = _digest_of(content)
        led_to = xxh3_64_intdigest("\n".join([link.url.key for link in links]).encode()) if links else 0
        original = self._exact.find(digest, visit.url)
        if original is None:
            self._exact.remember(digest, visit.url, Original(row.url, row.fetched_at, "", led_to))
            if self._near is not None and is_text(row.media_type):
                self._judge_nearly(visit, content, row, self._near)
            return True
        if original.url == row.url:
            return True
        row.duplicate_of = original.url
        if not self.processes_all:
            return False
        return self._every or not self._leads_nowhere_new(visit, original, led_to)

    def _leads_nowhere_new(self, visit: Visit, original: Original, led_to: int) -> bool:
        first = self._urls.namer.name(original.url)
        if first is None or first.host != visit.url.host:
            return False
        if not self._follow:
            return True
        path = self._urls.url_seen.way(first)
        return led_to == original.links and path is not None and path[0] <= visit.depth

    def _judge_nearly(self, visit: Visit, content: Content, row: PageRow, near: NearCopies) -> None:
        sketch = near.sketcher(content.body, row.charset, row.url)
        row.simhash = sketch.simhash if sketch.shingles else None
        found = near.seen.find(sketch, visit.url)
        if found is None:
            near.seen.remember(sketch, visit.url)
        else:
            address = self._urls.history.address(*found)
            row.near_duplicate_of = address if address != row.url else ""  # It is its own earlier version.


def _is_whole(content: Content, truncated: str) -> bool:
    return bool(content.body) and not (content.truncated or content.error or truncated)


def _digest_of(content: Content) -> bytes:
    return _DECODED + (xxh3_128_digest(content.body) if content.file is None else content.file.digest)


def is_text(media_type: str) -> bool:
    """Return whether content of a media type consists of words."""
    return media_type.startswith("text/") or media_type.endswith("xml")
