"""Hints: links and changes of pages, from sitemaps and feeds.

A sitemap has authority over its host, and over each host whose robots.txt names it, or names an index that leads to it
(sitemaps.org, "Sitemaps & Cross Submits"). A sitemap that no robots.txt names has authority over pages below its
directory. A feed may name any page: it is a page with links.

The record of each sitemap and feed has its hosts, its claims, and whether visits confirmed them.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal

import msgspec

from gossamer.engine.optional import Hints
from gossamer.features.revisit.options import DiscoveryOptions
from gossamer.features.revisit.schedule import Schedule
from gossamer.model.links import FEED, FEED_FILE, SITEMAP, SITEMAP_FILE, Announced, Announcement, Link, Notice, Visit
from gossamer.model.pages import Visited
from gossamer.model.visits import Request, max_age_s
from gossamer.model.words import counted
from gossamer.ports import VisitMiddleware
from gossamer.state.epoch import Epochs
from gossamer.url.join import join
from gossamer.url.url import NameUrl, Url

ENTRIES_WEIGHED = 20
"""Newest entries from which the rate is estimated; a feed may have entries of years."""
HOURS_PUT_OFF_MAX = 24 * 8


def interval_s(announcement: Announcement, now: float, low_s: float, high_s: float, max_age_s: float = 0.0) -> float:
    """Return the seconds until a feed is fetched again.

    Its entries are a Poisson process with the rate of the newest ones, including the time since then. Fetching at half
    the mean gap between entries finds each a quarter of that gap late, on average. The feed's hints (`ttl`,
    `sy:updatePeriod`, max-age) count up to `high_s`; the hours and days that it excludes are skipped. A feed without
    dates is fetched every `high_s`.
    """
    dates = sorted((entry.changed_at for entry in announcement.entries if 0.0 < entry.changed_at <= now), reverse=True)
    pause_s = mean_gap_s(dates[:ENTRIES_WEIGHED], now) / 2.0 if dates else high_s
    pause_s = min(max(pause_s, low_s, announcement.ttl_s, max_age_s), high_s)
    skips = announcement.skip_hours or announcement.skip_days
    return _awake(announcement, now + pause_s) - now if skips else pause_s


def mean_gap_s(dates: Sequence[float], now: float) -> float:
    """Return the mean time between entries, given their times, newest first: the time since the oldest entry, divided
    by the number of entries after it plus the next one.
    """
    return max(now - dates[-1], 0.0) / len(dates)


def _awake(announcement: Announcement, at: float) -> float:
    """Return the first time from `at` on at which the feed may change."""
    date = datetime.fromtimestamp(at, UTC)
    for _ in range(HOURS_PUT_OFF_MAX):
        if date.hour not in announcement.skip_hours and date.weekday() not in announcement.skip_days:
            return max(at, date.timestamp())
        date = date.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    return at  # The feed excludes all hours or days.


VOUCHERS_MAX = 1_000
"""Other hosts over which one sitemap may have authority."""
EVERY_HOST = "every host"
"""A voucher, which is no name of a host: the operator named the sitemap, or an index that leads to it, as a seed."""
STRANGERS_MAX = 20
"""Sitemaps on other sites that the hosts of one registrable domain may have fetched. A host names its own in any number
up to `sitemaps_per_host_max`.
"""
CLAIMS_MAX = 64
"""Claims of a source that wait to be checked."""


class ChangeClaim(msgspec.Struct, array_like=True, frozen=True):
    """A page that a source reported as changed."""

    url: str
    payload: bytes
    """Digest of the page's payload before."""
    at: float


class HintSource(msgspec.Struct, array_like=True):
    """One sitemap or feed."""

    vouchers: list[str] = msgspec.field(default_factory=list)
    """Other hosts whose robots.txt names the sitemap, or an index that leads to it."""
    read_at: float = 0.0
    newest: float = 0.0
    """The latest change that it reported."""
    true_claims: float = 0.0
    false_claims: float = 0.0
    claims: list[ChangeClaim] = msgspec.field(default_factory=list)

    @property
    def is_believed(self) -> bool:
        """Whether its dates are trusted: until five were checked, and after that while a fifth of them were true."""
        checked = self.true_claims + self.false_claims
        return checked < CHECKED_MIN or self.true_claims >= BELIEVED_SHARE * checked


CHECKED_MIN = 5
BELIEVED_SHARE = 0.2
_decode = msgspec.msgpack.Decoder(HintSource).decode


class HintSources:
    """The records, in the store's family `hints`; durable with the epoch."""

    def __init__(self, epochs: Epochs) -> None:
        self._epochs = epochs

    def get(self, url: Url) -> HintSource:
        """Return the record of a sitemap or feed; an empty one where nothing is known."""
        value = self._epochs.get("hints", url.store_key(b"\1"))
        return _decode(value) if value is not None else HintSource()

    def put(self, url: Url, source: HintSource) -> None:
        """Store the record of a sitemap or feed."""
        self._epochs.put("hints", url.store_key(b"\1"), msgspec.msgpack.encode(source))

    def begin(self, url: Url, kind: bytes, most: int) -> bool:
        """Count a document of a kind for its host, only once; False if the host has `most` others already."""
        return self._begin(url, url.partition.to_bytes(2) + b"\0" + kind + url.host.encode(), most)

    def begin_elsewhere(self, url: Url, by: Url) -> bool:
        """Count a sitemap on another site for the site that names it, as `begin`. True for one on the same site."""
        key = by.partition.to_bytes(2) + b"\0x" + by.site.encode()
        return url.site == by.site or self._begin(url, key, STRANGERS_MAX)

    def _begin(self, url: Url, key: bytes, most: int) -> bool:
        if self._epochs.get("hints", url.store_key(b"\1")) is not None:
            return True
        value = self._epochs.get("hints", key)
        counted = int.from_bytes(value) if value is not None else 0
        if counted >= most:
            return False
        self._epochs.put("hints", key, (counted + 1).to_bytes(4))
        self.put(url, HintSource())
        return True


ANNOUNCED = (SITEMAP, SITEMAP_FILE, FEED)
"""Types of the links that a sitemap, an index or a feed lists."""
NESTED_MAX = 3
"""Nested indexes that are followed: the protocol has none, but some sites have two."""
ALWAYS_NOW_SHARE = 0.9
ALWAYS_NOW_MIN = 20
ALWAYS_NOW_S = 900.0
"""A source is not trusted if this share of its entries, and at least this number, has changed within these seconds."""
FUTURE_S_MAX = 86_400.0
"""A date further in the future is an error, not a difference of clocks."""


class SitemapHints(VisitMiddleware, Hints):
    """Applies sitemaps and feeds: hints about pages, and links that their authors may announce.

    Reading a document costs about 1 µs per link in addition to the link itself, and a record in the store.
    """

    name = "hints"

    def __init__(
        self,
        epochs: Epochs,
        options: DiscoveryOptions,
        name: NameUrl,
        revisits: Schedule | None,
        *,
        sitemaps: bool,
        feeds: bool,
    ) -> None:
        """`revisits` gets the changes; None: pages are not revisited. `sitemaps`: read those in robots.txt; `feeds`:
        fetch those that pages link to.
        """
        self._sources = HintSources(epochs)
        self._options = options
        self._name = name
        self._revisits = revisits
        self._sitemaps = sitemaps
        self.wants_feeds = feeds
        self._sitemap_bytes_max = options.sitemap_bytes_max

    def request(self, url: Url, visit: Visit | None, request: Request, now: float) -> Request:
        if visit is None or visit.link_type != SITEMAP_FILE:
            return request
        return msgspec.structs.replace(request, body_bytes_max=self._sitemap_bytes_max, media_types=(), fresh=False)

    def named(self, origin: Url, sitemaps: Sequence[str]) -> tuple[list[Link], list[Link]]:
        """Process the sitemaps in an origin's robots.txt; return the sitemaps to fetch, and those to fetch again
        because they were read before they had authority over this host.
        """
        if not self._sitemaps:
            return [], []
        if not sitemaps and self._options.sitemap_guess:
            sitemaps = (f"{origin.origin}/sitemap.xml",)
        links = []
        again = []
        referrer = f"{origin.origin}/robots.txt"
        for written in sitemaps[: self._options.sitemaps_per_host_max]:
            # The standard requires absolute addresses; paths of the origin are common, hosts without a scheme, and
            # names of files. Other text is ignored.
            text = written.strip("<>")
            host, slash, _ = text.partition("/")
            is_address = "://" in text[:12] or text.startswith("/")
            if not is_address and slash and ("." in host or host.lower() == origin.origin.partition("//")[2]):
                text = f"//{text}"
                is_address = True
            is_file = text.lower().endswith((".xml", ".xml.gz", ".txt")) and ":" not in text
            address = join(referrer, text) if is_address or is_file else None
            url = self._name(address) if address is not None else None
            if url is None or not self._sources.begin_elsewhere(url, origin):
                continue
            link = Link(url, SITEMAP_FILE, 0, 0, referrer)
            if url.host != origin.host and self._vouch(url, (origin.host,)):
                again.append(link)
            links.append(link)
        return links, again

    def admitted(
        self, visit: Visit, announcement: Announcement, links: list[Link], in_scope: Callable[[Url], bool]
    ) -> list[Link]:
        """Return a document's links that it may announce; `announcement.error` says if some of its links are left
        out. Only the scope limits a seed, a sitemap that it leads to, and other versions of pages.
        """
        page = visit.url
        depth = visit.depth
        if announcement.kind == "feed" and visit.link_type != SITEMAP_FILE:
            return links
        if visit.seed:
            self._vouch(page, (EVERY_HOST,))
        vouchers = self._sources.get(page).vouchers
        is_named = visit.link_type == SITEMAP_FILE or EVERY_HOST in vouchers
        hosts = {page.host, *(vouchers if is_named else ())}
        below = "" if is_named else page.text.partition("?")[0].rpartition("/")[0] + "/"
        found = []
        left = 0
        elsewhere = 0
        for link in links:
            if link.link_type == "alternate":  # Another version of a page: followed like an entry.
                found.append(msgspec.structs.replace(link, link_type=SITEMAP))
                continue
            has_host = link.url.host in hosts or (
                EVERY_HOST in hosts and (link.link_type != SITEMAP_FILE or in_scope(link.url))
            )
            if not (has_host and link.url.text.startswith(below)):
                elsewhere += link.link_type in ANNOUNCED
            elif link.link_type == SITEMAP_FILE and not self._leads_on(link.url, hosts, depth):
                left += 1
            else:
                found.append(link)
        count, what = (left, "sitemap") if left else (elsewhere, "link")
        if count and not announcement.error:
            if left and depth < NESTED_MAX:
                why = f"discovery.sitemaps_per_host_max is {self._options.sitemaps_per_host_max:,}"
            elif left:
                why = f"indexes are followed {NESTED_MAX} deep"
            elif EVERY_HOST in hosts:
                why = "they are outside the scope"
            elif is_named:
                why = "the robots.txt of their hosts does not name it"
            else:
                why = "they are not below its directory"
            announcement.error = f"{counted(count, what)} of it {'is' if count == 1 else 'are'} left: {why}"
        return found

    def leads_to(self, sitemap: Url, target: Url) -> bool:
        """Return whether the target of a sitemap's redirect is fetched as a sitemap, also outside the scope."""
        return self._sources.begin_elsewhere(target, sitemap)

    def redirected(self, sitemap: Url, target: Url) -> bool:
        """Give the target of a sitemap's redirect the authority of the sitemap, whose host has chosen the target; say
        whether the target was read before.
        """
        return self._vouch(target, {sitemap.host, *self._sources.get(sitemap).vouchers} - {target.host})

    def vouched(self, link: Link) -> bool:
        """Give a sitemap that another shard named authority over the host that names it; return whether it was read."""
        referrer = self._name(link.referrer)
        return referrer is not None and referrer.host != link.url.host and self._vouch(link.url, (referrer.host,))

    def feeds(self, links: list[Link]) -> list[Link]:
        """Return a page's links without feeds beyond the limit per host."""
        most = self._options.feeds_per_host_max
        return [link for link in links if link.link_type != FEED_FILE or self._sources.begin(link.url, b"f", most)]

    def concluded(self, visited: Visited, now: float) -> None:
        announcement = visited.findings.announcement if visited.findings is not None else None
        if announcement is not None and visited.reply is not None:
            self.apply(visited.url, announcement, visited.reply.headers, now)

    def apply(self, page: Url, announcement: Announcement, headers: Sequence[tuple[str, str]], now: float) -> None:
        """Apply a sitemap or feed: changed pages are due, and a feed is fetched again after `interval_s`."""
        source = self._sources.get(page)
        if self._revisits is not None:
            if announcement.kind == "feed":
                limits = self._options
                pause_s = interval_s(announcement, now, limits.feed_s_min, limits.feed_s_max, max_age_s(headers) or 0.0)
                self._revisits.note(Notice(page, "feed", interval_s=pause_s), now)
            if source.read_at and announcement.kind != "sitemap_index":
                self._check(source, self._revisits)
                self._pass_on(source, announcement, self._revisits, now)
        dated = [entry.changed_at for entry in announcement.entries if entry.changed_at <= now + FUTURE_S_MAX]
        source.newest = max([source.newest, *dated])
        source.read_at = now
        self._sources.put(page, source)

    def _pass_on(self, source: HintSource, announcement: Announcement, revisits: Schedule, now: float) -> None:
        """Pass on the changes since the last reading, the oldest first."""
        entries = sorted(_news(announcement.entries, source.newest, now), key=lambda entry: entry.changed_at)
        believed = source.is_believed and not always_now(announcement.entries, now)
        kind: Literal["feed", "sitemap"] = "feed" if announcement.kind == "feed" else "sitemap"
        for entry in entries[: self._options.notices_max]:
            url = self._name(entry.url)
            if url is None:
                continue
            held = revisits.last_visit(url)
            if held is not None and len(source.claims) < CLAIMS_MAX:
                source.claims.append(ChangeClaim(url.text, held.payload, now))
            if believed:
                importance = 2.0 * entry.weight if entry.weight >= 0.0 else None
                at = min(entry.changed_at, now)
                revisits.note(
                    Notice(url, kind, changed_at=at, interval_hint_s=entry.period_s or None, importance=importance), now
                )

    def _check(self, source: HintSource, revisits: Schedule) -> None:
        """Check the changes that it reported against later visits."""
        waiting = []
        for claim in source.claims:
            url = self._name(claim.url)
            held = revisits.last_visit(url) if url is not None else None
            if held is None:
                continue
            if held.visited_at <= claim.at:
                waiting.append(claim)
            elif held.payload == claim.payload:
                source.false_claims += 1.0
            else:
                source.true_claims += 1.0
        source.claims = waiting
        if source.true_claims + source.false_claims > 2 * CLAIMS_MAX:  # So that a source can regain trust.
            source.true_claims = source.true_claims / 2
            source.false_claims = source.false_claims / 2

    def _leads_on(self, sitemap: Url, hosts: set[str], depth: int) -> bool:
        """Return whether a sitemap in an index is fetched, and give it the authority of the index."""
        if depth >= NESTED_MAX or not self._sources.begin(sitemap, b"s", self._options.sitemaps_per_host_max):
            return False
        self._vouch(sitemap, hosts - {sitemap.host})
        return True

    def _vouch(self, sitemap: Url, hosts: Iterable[str]) -> bool:
        """Extend a sitemap's authority to more hosts; return whether it was read before."""
        source = self._sources.get(sitemap)
        new = [host for host in hosts if host not in source.vouchers][: VOUCHERS_MAX - len(source.vouchers)]
        if not new:
            return False
        source.vouchers.extend(new)
        self._sources.put(sitemap, source)
        return source.read_at > 0.0


def always_now(entries: Sequence[Announced], now: float) -> bool:
    """Return whether nearly all entries have a change just now: then the dates are those of the generator's run."""
    dated = [entry.changed_at for entry in entries if entry.changed_at]
    recent = sum(changed_at > now - ALWAYS_NOW_S for changed_at in dated)
    return len(dated) >= ALWAYS_NOW_MIN and recent >= ALWAYS_NOW_SHARE * len(dated)


def _news(entries: Iterable[Announced], since: float, now: float) -> list[Announced]:
    return [entry for entry in entries if since < entry.changed_at <= now + FUTURE_S_MAX]
