"""Feeds: parses sitemaps and their indexes (https://www.sitemaps.org/protocol.html), RSS 0.9x, 1.0 and 2.0, Atom (RFC
4287) and JSON Feed 1.1, with their dates.

Feed elements are matched by name without prefix, except where the prefix matters.
"""

from codecs import BOM_UTF8
from collections.abc import Generator, Iterable, Mapping
from datetime import UTC, datetime
from itertools import islice

import msgspec

from gossamer.model.links import Announced, Announcement
from gossamer.stages.process.xml import StopParsing
from gossamer.url.join import join

YEARS = range(1990, 2200)
"""Other years come from a clock that was never set, or are errors."""
_DAY_S = 86_400.0
PERIODS_S = {
    "always": 0.25 * 3_600, "hourly": 3_600.0, "daily": _DAY_S, "weekly": 7 * _DAY_S, "monthly": 30 * _DAY_S,
    "yearly": 365 * _DAY_S, "never": 10 * 365 * _DAY_S,
}  # fmt: skip
"""Values of `changefreq` of sitemaps and of `sy:updatePeriod` of feeds."""


def instant(text: str) -> float:
    """Return the wall time in a text, in seconds, or 0 if it is not valid.

    W3C Date and Time Formats (a profile of ISO 8601; sitemaps, Atom, Dublin Core), or any form that `process.facts`
    knows, as RFC 822 (RSS). A day alone is its midnight, UTC.
    """
    text = text.strip()[:64].replace(":60", ":59")  # A leap second.
    whole = text + "-01-01"[len(text) - 4 :] if len(text) in (4, 7) else text  # A year, or a month of one.
    try:
        date = datetime.fromisoformat(whole) if text[:4].isdigit() else None
    except ValueError:
        date = None
    if date is None:
        from gossamer.stages.process.facts import moment  # noqa: PLC0415 - its patterns cost a start 2 ms

        date = moment(text)
    if date is None or date.year not in YEARS:
        return 0.0
    return date.replace(microsecond=0, tzinfo=date.tzinfo or UTC).timestamp()


URLS_MAX = 50_000
"""The protocol's own bound, of pages in a sitemap and of sitemaps in an index."""
VERSIONS_MAX = 100_000
"""Addresses of versions in other languages kept of one sitemap, in all its sets."""
LANGUAGE_CHARACTERS_MAX = 35
"""Characters kept of the code of a language."""
SITEMAP_ROOTS = {"urlset": "url", "sitemapindex": "sitemap"}
"""Outermost elements, and what their entries are called. Some sites write an index with the names of a sitemap."""
_WANTED = frozenset(("loc", "lastmod", "changefreq", "priority"))


class SitemapHandler:
    """Takes a sitemap's elements, with names in lower case. The prefix marks those of other vocabularies (images).
    Of these only versions of a page in other languages count: `<xhtml:link rel="alternate" hreflang="…" href="…"/>`.
    """

    def __init__(self, announcement: Announcement, root: str) -> None:
        """`root` is the name of the outermost element, in lower case."""
        prefix, colon, local = root.rpartition(":")
        self._announcement = announcement
        self._prefix = prefix + colon
        self._entry = ""
        self._enter(SITEMAP_ROOTS[local])
        self._said: dict[str, str] = {}
        self._versions: dict[str, None] = {}
        self._versions_left = VERSIONS_MAX
        self._depth = 0

    def _enter(self, entry: str) -> None:
        self._announcement.kind = "sitemap" if entry == "url" else "sitemap_index"
        self._entry = self._prefix + entry

    def start(self, name: str, attributes: Mapping[str, str], depth: int) -> None:
        if depth == 2 and not self._announcement.entries and name[len(self._prefix) :] in SITEMAP_ROOTS.values():
            self._enter(name[len(self._prefix) :])
        if name == self._entry:
            self._said.clear()
            self._keep_versions()
            self._depth = depth + 1
        elif name.rpartition(":")[2] == "link" and "alternate" in attributes.get("rel", "").lower().split():
            address = attributes.get("href", "").strip()
            if address and len(self._versions) < self._versions_left:
                code = "_".join(attributes.get("hreflang", "").split())[:LANGUAGE_CHARACTERS_MAX]
                self._versions[f"{code} {address}"] = None

    def end(self, name: str, text: str, depth: int) -> None:
        if name == self._entry:
            self.take()
        elif depth == self._depth and name.startswith(self._prefix) and name[len(self._prefix) :] in _WANTED:
            self._said.setdefault(name[len(self._prefix) :], text)

    def take(self) -> None:
        """Take the entry that ends here."""
        said = self._said
        entries = self._announcement.entries
        self._keep_versions(said.get("loc", ""))
        if not said.get("loc"):
            return
        if len(entries) >= URLS_MAX:
            raise StopParsing(f"more than {URLS_MAX:,} addresses; the rest is left")
        period_s = PERIODS_S.get(said.get("changefreq", "").lower(), 0.0)
        entries.append(Announced(said["loc"], instant(said.get("lastmod", "")), period_s, weight(said.get("priority"))))

    def _keep_versions(self, address: str = "") -> None:
        """Keep the versions of an entry. Each version has an entry that names all again, so sets are kept once."""
        if not self._versions:
            return
        versions = tuple(self._versions)
        self._versions.clear()
        if versions not in self._announcement.versions:
            self._versions_left -= len(versions)
        self._announcement.versions.setdefault(versions, []).append(address)


def weight(text: str | None) -> float:
    """Return a `priority` as a number from 0 to 1, or -1 if it is invalid."""
    try:
        number = float(text) if text else -1.0
    except ValueError:
        return -1.0
    return number if 0.0 <= number <= 1.0 else -1.0


def listed(lines: Iterable[str]) -> Generator[None, None, list[Announced]]:
    """Return the addresses of a plain-text sitemap, one a line (the protocol's third form). Yields each few ms."""
    found: list[Announced] = []
    for number, line in enumerate(lines, 1):
        if number % LINES_AT_ONCE == 0:
            yield
        text = line.strip("\ufeff \t\r\n\f").partition("\t")[0]
        if text[:7].lower() == "http://" or text[:8].lower() == "https://":
            found.append(Announced(text))
            if len(found) >= URLS_MAX:
                break
    return found


ENTRIES_MAX = 10_000
LINES_AT_ONCE = 5_000
FEED_ROOTS = frozenset(("rss", "rdf", "feed"))
TTL_S_MAX = 30 * 86_400.0
_ENTRIES = frozenset(("item", "entry"))
_DATES = frozenset(("pubdate", "updated", "published", "modified", "issued", "date", "created"))
_IANA = "http://www.iana.org/assignments/relation/"
"""Prefix that a relation's name may have (RFC 4287, section 4.2.7.2)."""
_DAYS = {"monday": 0, "tuesday": 1, "wednesday": 2, "thursday": 3, "friday": 4, "saturday": 5, "sunday": 6}


class FeedHandler:
    """Takes a feed's elements, names in lower case. `related` gets relation and address of its links, as written."""

    def __init__(self, announcement: Announcement, related: list[tuple[str, str]], url: str) -> None:
        """`url` is the feed's address, to which its `xml:base` is relative."""
        announcement.kind = "feed"
        self._announcement = announcement
        self._related = related
        self._url = url
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
            inherited = self._bases[-1][1] if self._bases else self._url
            self._bases.append((depth, join(inherited, attributes["xml:base"]) or inherited))
        local = name.rpartition(":")[2]
        if local in _ENTRIES and not self._entry_depth:
            self._entry_depth = depth
            self._link = ""
            self._guid = attributes.get("rdf:about", "")  # RSS 1.0, section 5.5: its address, unless a `link` says so.
            self._guid_is_link = "rdf:about" in attributes
            self._changed_at = 0.0
        elif local == "link" and "href" in attributes:
            self._read_link(attributes, depth)
        elif local == "guid":
            self._guid_is_link = attributes.get("isPermaLink", "true").lower() != "false"

    def end(self, name: str, text: str, depth: int) -> None:
        local = name.rpartition(":")[2]
        if self._entry_depth:
            if depth == self._entry_depth:
                self.take()
                self._entry_depth = 0
            elif depth == self._entry_depth + 1:
                self._read_entry_element(local, text)
        else:
            self._read_feed_element(name, local, text)
        while self._bases and self._bases[-1][0] >= depth:
            self._bases.pop()

    def _read_link(self, attributes: Mapping[str, str], depth: int) -> None:
        relations = attributes.get("rel", "alternate").lower().replace(_IANA, "").split()
        href = self._resolve(attributes["href"].strip())
        if not self._entry_depth:
            self._related.extend((relation, href) for relation in relations)
        elif depth == self._entry_depth + 1 and "alternate" in relations and not self._link:
            self._link = href  # Deeper are those of `source`, the feed that the entry is from, and of its content.

    def _read_entry_element(self, local: str, text: str) -> None:
        if local == "link" and text and not self._link:
            self._link = text
        elif local == "guid" and text:
            self._guid = text
        elif local == "id" and text.startswith(("http://", "https://")):  # Atom's may be an address, and the only one.
            self._guid = text
            self._guid_is_link = True
        elif local in _DATES and text:
            self._changed_at = max(self._changed_at, instant(text))

    def _read_feed_element(self, name: str, local: str, text: str) -> None:
        announcement = self._announcement
        if local == "ttl" and text.isascii() and text.isdigit():
            announcement.ttl_s = max(announcement.ttl_s, min(60.0 * int(text[:9]), TTL_S_MAX))
        elif local == "hour" and text.isascii() and text.isdigit() and int(text[:3]) <= 24:
            announcement.skip_hours = (*announcement.skip_hours, int(text[:3]) % 24)[:24]
        elif local == "day" and text.lower() in _DAYS:
            announcement.skip_days = (*announcement.skip_days, _DAYS[text.lower()])[:7]
        elif name.endswith(":updateperiod"):
            self._update_s = PERIODS_S.get(text.lower(), 0.0)
        elif name.endswith(":updatefrequency") and text.isascii() and text.isdigit():
            self._updates = float(max(1, int(text[:6])))
        if self._update_s and name.endswith((":updateperiod", ":updatefrequency")):
            announcement.ttl_s = min(self._update_s / self._updates, TTL_S_MAX)

    def take(self) -> None:
        """Take the entry that ends here."""
        address = self._link or (self._guid if self._guid_is_link else "")
        if not address:
            return
        if len(self._announcement.entries) >= ENTRIES_MAX:
            raise StopParsing(f"more than {ENTRIES_MAX:,} entries; the rest is left")
        self._announcement.entries.append(Announced(self._resolve(address), self._changed_at))

    def _resolve(self, address: str) -> str:
        return (join(self._bases[-1][1], address) or address) if self._bases else address


class _Item(msgspec.Struct):
    url: object = None
    id: object = None
    date_modified: object = None
    date_published: object = None


class _Hub(msgspec.Struct):
    type: object = None
    url: object = None


_Other = bool | int | float | str | list[object] | None
"""Invalid values in a list of items or hubs, which are ignored without affecting the others."""


class _JsonFeed(msgspec.Struct):
    version: str
    items: list[_Item | _Other] | None = None
    feed_url: object = None
    hubs: list[_Hub | _Other] | None = None


_decode = msgspec.json.Decoder(_JsonFeed).decode


def read_json_feed(body: bytes, announcement: Announcement, related: list[tuple[str, str]]) -> bool:
    """Parse a JSON Feed; return whether it was one."""
    try:
        feed = _decode(body.removeprefix(BOM_UTF8))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return False
    if not feed.version.startswith(("https://jsonfeed.org/version/", "http://jsonfeed.org/version/")):
        return False
    announcement.kind = "feed"
    for item in islice((item for item in feed.items or () if isinstance(item, _Item)), ENTRIES_MAX):
        address = item.url if isinstance(item.url, str) else item.id
        if isinstance(address, str) and (isinstance(item.url, str) or "://" in address[:16]):
            dates = (item.date_modified, item.date_published)
            changed_at = max((instant(date) for date in dates if isinstance(date, str)), default=0.0)
            announcement.entries.append(Announced(address.strip(), changed_at))
    if isinstance(feed.feed_url, str):
        related.append(("self", feed.feed_url))
    hubs = [hub.url for hub in (feed.hubs or ())[:8] if isinstance(hub, _Hub) and str(hub.type).lower() == "websub"]
    related.extend(("hub", url) for url in hubs if isinstance(url, str))
    return True
