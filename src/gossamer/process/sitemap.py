"""Sitemap: what a sitemap or an index of them names (https://www.sitemaps.org/protocol.html)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gossamer.model.announced import Announced, Announcement
from gossamer.process.dates import PERIODS_S, instant
from gossamer.process.xml import Stop

URLS_MAX = 50_000
"""The protocol's own bound, of pages in a sitemap and of sitemaps in an index."""
ROOTS = {"urlset": ("sitemap", "url"), "sitemapindex": ("sitemap_index", "sitemap")}
_WANTED = frozenset(("loc", "lastmod", "changefreq", "priority"))


class SitemapHandler:
    """Takes a sitemap's elements. Those of other vocabularies (images, videos, news) are told by their prefix."""

    def __init__(self, announcement: Announcement, root: str) -> None:
        """`root` is the name of the outermost element as written."""
        prefix, colon, local = root.rpartition(":")
        kind, entry = ROOTS[local]
        announcement.kind = "sitemap" if kind == "sitemap" else "sitemap_index"
        self._announcement = announcement
        self._prefix = prefix + colon
        self._entry = self._prefix + entry
        self._said: dict[str, str] = {}

    def start(self, name: str, attributes: Mapping[str, str], depth: int) -> None:  # noqa: ARG002 - a handler's shape
        if name == self._entry:
            self._said.clear()

    def end(self, name: str, text: str, depth: int) -> None:  # noqa: ARG002
        if name == self._entry:
            self._take()
        elif name.startswith(self._prefix) and name[len(self._prefix) :] in _WANTED:
            self._said.setdefault(name[len(self._prefix) :], text)

    def _take(self) -> None:
        said, entries = self._said, self._announcement.entries
        if not said.get("loc"):
            return
        if len(entries) >= URLS_MAX:
            raise Stop(f"more than {URLS_MAX:,} addresses; the rest is left")
        written = said.get("changefreq", "").lower()
        entries.append(
            Announced(
                said["loc"], instant(said.get("lastmod", "")), PERIODS_S.get(written, 0.0), weight(said.get("priority"))
            )
        )


def weight(text: str | None) -> float:
    """Return a `priority` as a number from 0 to 1, or -1 where it is none."""
    try:
        number = float(text) if text else -1.0
    except ValueError:
        return -1.0
    return number if 0.0 <= number <= 1.0 else -1.0


def listed(lines: Iterable[bytes]) -> list[Announced]:
    """Return the addresses of a sitemap in plain text: one a line, nothing else (the protocol's third form)."""
    found = []
    for line in lines:
        text = line.decode("utf-8", "replace").strip("\ufeff \t\r\n\f")
        if text[:7].lower() == "http://" or text[:8].lower() == "https://":
            found.append(Announced(text))
            if len(found) >= URLS_MAX:
                break
    return found
