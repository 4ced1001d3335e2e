"""Base: where a page's links start from."""

from __future__ import annotations

import re

from gossamer.process.charset import encoded_query
from gossamer.url.join import join

# A path of plain segments and a plain query: joined with a base they stay as they are (no dot segment, no character
# that the standard would escape, no scheme, no host).
_PLAIN = re.compile(r"[A-Za-z0-9_~-][\w.~-]*(?:/[A-Za-z0-9_~-][\w.~-]*)*/?(?:\?[\w.~/=&;,+:@-]*)?", re.ASCII)
_LEAVE = frozenset(
    (
        "javascript",
        "mailto",
        "data",
        "tel",
        "sms",
        "about",
        "blob",
        "callto",
        "skype",
        "whatsapp",
        "cid",
        "mid",
        "view-source",
    )
)
"""Schemes that name nothing to fetch."""
_LEAVE_HINTS = ("javascript:", "mailto:", "tel:", "data:")


class Base:
    """A page's base address (HTML standard, section 2.4.3) and the joins made from it so far."""

    def __init__(self, page_url: str, base_href: str | None = None, charset: str = "utf-8") -> None:
        """Take the page's address and the href of its first `base`; one that leads nowhere is ignored."""
        self.url = page_url
        if base_href is not None:
            joined = join(page_url, base_href)
            if joined is not None and joined[: joined.index(":")] not in ("javascript", "data"):
                self.url = joined
        self._charset = "" if charset.startswith(("utf-", "replacement", "x-user")) else charset
        self._joined: dict[str, str | None] = {}
        self._origin = self._directory = ""
        if self.url.startswith(("http://", "https://")):
            path = self.url.partition("?")[0]
            self._directory = path[: path.rindex("/") + 1]
            self._origin = path[: path.index("/", 8)]

    def join(self, href: str) -> str | None:
        """Return the absolute address without fragment, or None for what cannot be parsed or names nothing to fetch.

        Each spelling is joined once a page; plain relative paths take 0.3 µs, all else 2 µs.
        """
        shown = href.partition("#")[0]
        if shown[-1:] > " " or not shown:
            href = shown  # A space before the fragment belongs to the path, one at the end does not.
        try:
            return self._joined[href]
        except KeyError:
            joined = self._joined[href] = self._join(href)
            return joined

    def _join(self, href: str) -> str | None:
        if self._directory:
            if _PLAIN.fullmatch(href):
                return self._directory + href
            if href[:1] == "/" and _PLAIN.fullmatch(href, 1):
                return self._origin + href
            if href[:3] == "../":
                steps = 1
                while href.startswith("../", 3 * steps):
                    steps += 1
                if len(href) == 3 * steps or _PLAIN.fullmatch(href, 3 * steps):
                    return self._above(steps) + href[3 * steps :]
        if href.startswith(_LEAVE_HINTS):
            return None
        if self._charset and not href.isascii():
            path, mark, query = href.partition("?")
            href = path + mark + encoded_query(query, self._charset)
        joined = join(self.url, href)
        if joined is None or (joined[:4] != "http" and joined.partition(":")[0] in _LEAVE):
            return None
        return joined

    def _above(self, steps: int) -> str:
        """Return the directory so many steps up; the root is its own parent."""
        end = len(self._directory)
        for _ in range(min(steps, self._directory.count("/"))):
            if end == len(self._origin) + 1:
                break
            end = self._directory.rindex("/", 0, end - 1) + 1
        return self._directory[:end]
