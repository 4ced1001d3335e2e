"""Robots: every origin's robots.txt, kept in the shard's store and requested by prerequisite fetches."""

from collections.abc import Callable

from gossamer.model.links import Prerequisite
from gossamer.model.usage import Statement
from gossamer.model.visits import Failure, Reply
from gossamer.stages.robots.gate import ALLOWED, RobotsGate, RobotsVerdict, robots_url
from gossamer.stages.robots.options import RobotsOptions
from gossamer.stages.robots.record import RecentlyUsed, RobotsRecord, decode, encode
from gossamer.state.epoch import Epochs
from gossamer.state.store import HostsStore
from gossamer.url.url import NameUrl, Url
from gossamer.world.clock import Absences
from gossamer.world.dice import Dice

RECORD_BYTES = 300
"""Approximate memory of a record without text."""
WITHOUT = ("gopher://", "file://")
"""Prefixes of addresses without robots.txt: RFC 9309, section 2.3, names only HTTP and FTP."""
RECORDS = b"robots:"
"""Prefix of the keys of records, after the partition; the origin follows."""


class SiteRobots:
    """The rules of sites. Answers take no read or one; changes are durable with the epoch."""

    def __init__(
        self,
        epochs: Epochs,
        options: RobotsOptions,
        name: NameUrl,
        dice: Dice | None = None,
        kept: HostsStore | None = None,
        *,
        without: tuple[str, ...] = WITHOUT,
        is_elsewhere: Callable[[Url], bool] = lambda _: False,
    ) -> None:
        """`name` returns the `Url` of an address; `dice` is for jitter; `kept` has records of earlier crawls. `without`
        are prefixes of addresses that have no robots.txt; `is_elsewhere` is that of `RobotsGate`.
        """
        self._kept = kept
        self._without = without
        self._epochs = epochs
        self._options = options
        self._name = name
        self._gate = RobotsGate(options, (dice or Dice()).uniform, is_elsewhere)
        self.count = self._gate.count
        """As `RobotsGate.count`."""
        self._records: RecentlyUsed[str, RobotsRecord] = RecentlyUsed(options.cache_hosts_max, options.cache_bytes_max)

    def verdict(self, url: Url, now: float) -> RobotsVerdict:
        """Return the verdict of the current rules; `unknown` if they must be fetched first. 2 µs from memory."""
        if url.text.startswith(self._without):
            return ALLOWED
        return self._gate.verdict(self._record_of(url.partition, url.origin), url, now)

    def turn_at(self, url: Url, now: float) -> float:
        """Return when the rules of a URL's origin may be parsed, as `RobotsGate.turn_at`."""
        if url.text.startswith(self._without):
            return now
        origin = url.origin
        return self._gate.turn_at(self._record_of(url.partition, origin), origin, now)

    def allow_for(self, absences: Absences) -> None:
        """Do not count periods in which no process ran towards giving up a file."""
        self._gate.absences = absences

    def forget(self) -> None:
        """Clear the cache, because partitions have arrived from another shard."""
        self._records = RecentlyUsed(self._options.cache_hosts_max, self._options.cache_bytes_max)

    def prerequisite(self, url: Url) -> Prerequisite:
        """Return the request for the robots.txt of a URL's origin."""
        target = self._name(robots_url(url))
        assert target is not None, f"{url.origin} has no robots.txt"
        return Prerequisite(url, target)

    def answer(self, prerequisite: Prerequisite, result: Reply | Failure, body: bytes, now: float) -> str | None:
        """Handle the result of the request, whose content is `body`; return the target if it is a redirect."""
        origin = prerequisite.origin
        decided = self._gate.after_reply(self._record(origin), result, body, now, prerequisite.hops)
        if isinstance(decided, str):
            return decided
        key = _key(origin.partition, origin.origin)
        data = encode(decided)
        self._epochs.put("meta", key, data)
        if self._kept is not None:
            self._kept.put(key, data)
        self._records.put(origin.origin, decided, RECORD_BYTES + len(decided.text))
        return None

    def crawl_delay_s(self, url: Url) -> float | None:
        """Return the current Crawl-delay: the longer one of http and https, because they are one host."""
        other = _other_scheme(url.origin)
        found = [self._gate.rules(self._record_of(url.partition, one), one) for one in (url.origin, other) if one]
        return max((one.crawl_delay_s for one in found if one and one.crawl_delay_s is not None), default=None)

    def sitemaps(self, url: Url) -> tuple[str, ...]:
        """Return the sitemaps in the robots.txt of a URL's origin, as written."""
        return self._gate.sitemaps(self._record(url), url.origin)

    def statements(self, url: Url) -> tuple[Statement, ...]:
        """Return the current statements about the use of a URL. 2 µs from memory if there are none."""
        origin = url.origin
        rules = self._gate.stating(self._record_of(url.partition, origin), origin)
        return rules.statements(url.text) if rules is not None else ()

    def licenses(self, url: Url) -> tuple[str, ...]:
        """Return the license documents in the robots.txt of a URL's origin, as written."""
        rules = self._gate.stating(self._record(url), url.origin)
        return rules.licenses if rules is not None else ()

    def _record(self, url: Url) -> RobotsRecord | None:
        return self._record_of(url.partition, url.origin)

    def _record_of(self, partition: int, origin: str) -> RobotsRecord | None:
        record = self._records.get(origin)
        if record is None:
            key = _key(partition, origin)
            stored = self._epochs.get("meta", key), self._kept.get(key) if self._kept is not None else None
            found = [one for data in stored if data is not None and (one := decode(data)) is not None]
            record = max(found, key=lambda one: one.last_request_at, default=None)
            if record is not None:
                self._records.put(origin, record, RECORD_BYTES + len(record.text))
        return record


def record_of(epochs: Epochs, url: Url) -> RobotsRecord | None:
    """Return a shard's stored record of the robots.txt of a URL's origin. One read."""
    data = epochs.get("meta", _key(url.partition, url.origin))
    return decode(data) if data is not None else None


def _key(partition: int, origin: str) -> bytes:
    # The partition goes first, as in every key: the record moves with its site.
    return partition.to_bytes(2, "big") + RECORDS + origin.encode()


def _other_scheme(origin: str) -> str:
    """Return the origin of the same host with http instead of https or vice versa; empty if there is a port."""
    scheme, _, authority = origin.partition("://")
    other = {"http": "https", "https": "http"}.get(scheme)
    named_port = authority.rpartition("]")[2].find(":") >= 0
    return f"{other}://{authority}" if other and not named_port else ""
