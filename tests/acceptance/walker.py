"""Walker: an independent crawl of one site with the standard library alone: what a right crawl of it must find."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections import deque
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import quote, urldefrag, urljoin, urlsplit, urlunsplit

FOLLOWED = {"a": "href", "area": "href", "frame": "src", "iframe": "src"}
AS_THEY_ARE = "!$&'()*+,/:;=@[]|~%^"  # What the WHATWG rules leave alone in a path, and a query has no more of here.


@dataclass
class Walked:
    """What was found. Addresses of the site are paths; those elsewhere are whole."""

    html: set[str] = field(default_factory=set)
    others: set[str] = field(default_factory=set)
    """Fetched, and no HTML."""
    broken: set[str] = field(default_factory=set)
    anchors: set[tuple[str, str]] = field(default_factory=set)


def walk(origin: str) -> Walked:
    """Fetch everything that can be reached from the front page by links that a crawler follows."""
    walked = Walked()
    waiting = deque(["/"])
    known = {"/"}
    while waiting:
        path = waiting.popleft()
        try:
            with urllib.request.urlopen(origin + path, timeout=120) as reply:  # loopback only
                is_html = reply.headers.get_content_type() == "text/html"
                body = reply.read()
        except urllib.error.HTTPError as error:
            error.close()
            walked.broken.add(path)
            continue
        (walked.html if is_html else walked.others).add(path)
        if not is_html:
            continue
        for tag, target, nofollow in links_of(body.decode("utf-8", "replace"), origin + path):
            place = target.removeprefix(origin) if target.startswith(origin + "/") else target
            if tag == "a":
                walked.anchors.add((path, place))
            if place.startswith("/") and not nofollow and place not in known:
                known.add(place)
                waiting.append(place)
    return walked


def links_of(markup: str, page: str) -> list[tuple[str, str, bool]]:
    """Return (tag, address without fragment, nofollow) of every link to a place."""
    parser = _Links()
    parser.feed(markup)
    parser.close()
    base = urljoin(page, parser.base)
    found = []
    for tag, href, nofollow in parser.links:
        target = normal(urljoin(base, href.strip()))
        if target is not None:
            found.append((tag, target, nofollow))
    return found


def normal(address: str) -> str | None:
    """Return an address as crawlers write it: no fragment, host in lower case, a path; None if it names no place."""
    parts = urlsplit(urldefrag(address).url)
    if parts.scheme not in ("http", "https", "ftp", "file") or not (parts.netloc or parts.scheme == "file"):
        return None
    path, query = quote(parts.path or "/", AS_THEY_ARE), quote(parts.query, AS_THEY_ARE + "?")
    return urlunsplit((parts.scheme, parts.netloc.lower(), path, query, ""))


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[tuple[str, str, bool]] = []
        self.base = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = dict(reversed(attributes))  # The first of equal names counts.
        if tag == "base" and not self.base:
            self.base = named.get("href") or ""
        name = FOLLOWED.get(tag)
        if name is not None and name in named:
            nofollow = "nofollow" in (named.get("rel") or "").lower().split()
            self.links.append((tag, named[name] or "", nofollow))
