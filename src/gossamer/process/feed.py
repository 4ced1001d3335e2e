"""Feed: what RSS 0.9x, 1.0 and 2.0, Atom (RFC 4287) and JSON Feed 1.1 announce.

Elements are told by their names without prefix, but for those whose prefix makes the difference.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from gossamer.model.announced import Announced, Announcement
from gossamer.process.dates import PERIODS_S, instant
from gossamer.process.xml import Stop
from gossamer.url.join import join

ENTRIES_MAX = 10_000
ROOTS = frozenset(("rss", "RDF", "feed"))
TTL_S_MAX = 30 * 86_400.0
_ENTRIES = frozenset(("item", "entry"))
_DATES = frozenset(("pubDate", "updated", "published", "modified", "issued", "date", "created"))
_DAYS = {"monday": 0, "tuesday": 1, "wednesday": 2, "thursday": 3, "friday": 4, "saturday": 5, "sunday": 6}


class FeedHandler:
    """Takes a feed's elements. `related` gets what links it states of itself: relation and address as written."""

    def __init__(self, announcement: Announcement, related: list[tuple[str, str]]) -> None:
        announcement.kind = "feed"
        self._announcement = announcement
        self._related = related
        self._bases: list[tuple[int, str]] = []
        """Depth and value of each `xml:base` that holds here (Atom)."""
        self._entry_depth = 0
        self._link = ""
        self._guid = ""
        self._guid_is_link = False
        self._changed_at = 0.0
        self._update_s = 0.0
        self._updates = 1.0

    def start(self, name: str, attributes: Mapping[str, str], depth: int) -> None:
        if "xml:base" in attributes:
            inherited = self._bases[-1][1] if self._bases else ""
            base = attributes["xml:base"]
            self._bases.append((depth, (join(inherited, base) or base) if inherited else base))
        local = name.rpartition(":")[2]
        if local in _ENTRIES and not self._entry_depth:
            self._entry_depth = depth
            self._link, self._guid, self._guid_is_link, self._changed_at = "", "", False, 0.0
            if "rdf:about" in attributes:  # RSS 1.0, section 5.5: its address, unless a `link` says so.
                self._guid, self._guid_is_link = attributes["rdf:about"], True
        elif local == "link" and "href" in attributes:
            self._linked(attributes)
        elif local == "guid":
            self._guid_is_link = attributes.get("isPermaLink", "true").lower() != "false"

    def end(self, name: str, text: str, depth: int) -> None:
        local = name.rpartition(":")[2]
        if self._entry_depth:
            if depth == self._entry_depth:
                self._take()
                self._entry_depth = 0
            elif depth == self._entry_depth + 1:
                self._said_of_entry(local, text)
        else:
            self._said_of_feed(name, local, text)
        while self._bases and self._bases[-1][0] >= depth:
            self._bases.pop()

    def _linked(self, attributes: Mapping[str, str]) -> None:
        relations = attributes.get("rel", "alternate").lower().split()
        href = self._based(attributes["href"].strip())
        if not self._entry_depth:
            self._related.extend((relation, href) for relation in relations)
        elif "alternate" in relations and not self._link:
            self._link = href

    def _said_of_entry(self, local: str, text: str) -> None:
        if local == "link" and text and not self._link:
            self._link = text
        elif local == "guid" and text:
            self._guid = text
        elif local in _DATES and text:
            self._changed_at = max(self._changed_at, instant(text))

    def _said_of_feed(self, name: str, local: str, text: str) -> None:
        told = self._announcement
        if local == "ttl" and text.isascii() and text.isdigit():
            told.ttl_s = max(told.ttl_s, min(60.0 * int(text[:9]), TTL_S_MAX))
        elif local == "hour" and text.isascii() and text.isdigit() and int(text[:3]) <= 24:
            told.skip_hours = (*told.skip_hours, int(text[:3]) % 24)[:24]
        elif local == "day" and text.lower() in _DAYS:
            told.skip_days = (*told.skip_days, _DAYS[text.lower()])[:7]
        elif name.endswith(":updatePeriod"):
            self._update_s = PERIODS_S.get(text.lower(), 0.0)
            self._asks_to_wait()
        elif name.endswith(":updateFrequency") and text.isascii() and text.isdigit():
            self._updates = float(max(1, int(text[:6])))
            self._asks_to_wait()

    def _asks_to_wait(self) -> None:
        if self._update_s:
            self._announcement.ttl_s = min(self._update_s / self._updates, TTL_S_MAX)

    def _take(self) -> None:
        address = self._link or (self._guid if self._guid_is_link else "")
        if not address:
            return
        if len(self._announcement.entries) >= ENTRIES_MAX:
            raise Stop(f"more than {ENTRIES_MAX:,} entries; the rest is left")
        self._announcement.entries.append(Announced(self._based(address), self._changed_at))

    def _based(self, address: str) -> str:
        return (join(self._bases[-1][1], address) or address) if self._bases else address


class _Item(msgspec.Struct):
    url: object = None
    id: object = None
    date_modified: object = None
    date_published: object = None


class _Hub(msgspec.Struct):
    type: object = None
    url: object = None


class _JsonFeed(msgspec.Struct):
    version: str
    items: list[_Item] = msgspec.field(default_factory=list)
    feed_url: object = None
    hubs: list[_Hub] = msgspec.field(default_factory=list)


_decode = msgspec.json.Decoder(_JsonFeed).decode


def read_json_feed(body: bytes, announcement: Announcement, related: list[tuple[str, str]]) -> bool:
    """Take in a JSON Feed; say whether it was one."""
    try:
        feed = _decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return False
    if not feed.version.startswith(("https://jsonfeed.org/version/", "http://jsonfeed.org/version/")):
        return False
    announcement.kind = "feed"
    for item in feed.items[:ENTRIES_MAX]:
        address = item.url if isinstance(item.url, str) else item.id
        if isinstance(address, str) and (isinstance(item.url, str) or "://" in address[:16]):
            dates = (item.date_modified, item.date_published)
            changed_at = max((instant(date) for date in dates if isinstance(date, str)), default=0.0)
            announcement.entries.append(Announced(address.strip(), changed_at))
    if isinstance(feed.feed_url, str):
        related.append(("self", feed.feed_url))
    hubs = [hub.url for hub in feed.hubs[:8] if str(hub.type).lower() == "websub"]
    related.extend(("hub", url) for url in hubs if isinstance(url, str))
    return True
