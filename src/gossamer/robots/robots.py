"""Robots: every origin's robots.txt, kept in the shard's store and requested by prerequisite fetches."""

from __future__ import annotations

from collections.abc import Callable

from gossamer.model.usage import Statement
from gossamer.model.visits import Failure, Prerequisite, Reply
from gossamer.robots.gate import ALLOWED, Redirect, RobotsGate, RobotsVerdict, robots_url
from gossamer.robots.options import RobotsOptions
from gossamer.robots.record import RecentlyUsed, RobotsRecord, decode, encode
from gossamer.state.epoch import Epochs
from gossamer.state.hosts_store import HostsStore
from gossamer.url.url import Url
from gossamer.world.clock import Absences
from gossamer.world.dice import Dice

RECORD_BYTES = 300
"""What a record without text costs, about."""

WITHOUT = ("gopher://", "file://")
"""Addresses that no robots.txt rules: RFC 9309, section 2.3, names HTTP and FTP."""


RECORDS = b"robots:"
"""What keys of records begin with, behind the partition; the origin follows."""


class SiteRobots:
    """What sites ask of us. Answers from memory or one read; what it learns is durable with the epoch."""

    def __init__(
        self,
        epochs: Epochs,
        options: RobotsOptions,
        name: Callable[[str], Url | None],
        dice: Dice | None = None,
        kept: HostsStore | None = None,
        *,
        without: tuple[str, ...] = WITHOUT,
    ) -> None:
        """Take the store, the options, what makes a `Url` of an address, where jitter comes from, and what earlier
        crawls learned, where that is kept. `without` is how addresses begin that no robots.txt rules.
        """
        self._kept = kept
        self._without = without
        self._epochs = epochs
        self._options = options
        self._name = name
        self._gate = RobotsGate(options, (dice or Dice()).uniform)
        self.count = self._gate.count
        """Says how often rules were in memory."""
        self._records: RecentlyUsed[str, RobotsRecord] = RecentlyUsed(options.cache_hosts_max, options.cache_bytes_max)

    def verdict(self, url: Url, now: float) -> RobotsVerdict:
        """Return what the rules in force say; `unknown` when they must be fetched first. 2 µs from memory."""
        if url.text.startswith(self._without):
            return ALLOWED
        return self._gate.verdict(self._record_of(url.partition, url.origin), url, now)

    def allow_for(self, absences: Absences) -> None:
        """Give up no file for the time in which no process was there."""
        self._gate.absences = absences

    def forget(self) -> None:
        """Read records again: partitions came whose sites another shard had."""
        self._records = RecentlyUsed(self._options.cache_hosts_max, self._options.cache_bytes_max)

    def prerequisite(self, url: Url) -> Prerequisite:
        """Return the request that makes the rules of a URL's origin known."""
        target = self._name(robots_url(url))
        assert target is not None, f"{url.origin} has no robots.txt"
        return Prerequisite(url, target)

    def answer(self, prerequisite: Prerequisite, result: Reply | Failure, body: bytes, now: float) -> str | None:
        """Take what the request brought (`body`: its content); return where it redirects to, if anywhere."""
        reply, failure = (result, None) if isinstance(result, Reply) else (None, result)
        decided = self._gate.after_reply(
            self._record(prerequisite.origin), reply, failure, body, now, prerequisite.hops
        )
        if isinstance(decided, Redirect):
            return decided.url
        key, data = _key(prerequisite.origin.partition, prerequisite.origin.origin), encode(decided)
        self._epochs.put("meta", key, data)
        if self._kept is not None:
            self._kept.put(key, data)
        self._records.put(prerequisite.origin.origin, decided, RECORD_BYTES + len(decided.text))
        return None

    def crawl_delay_s(self, url: Url) -> float | None:
        """Return the delay that the rules in force ask for: of http and https the longer one, for they are one host."""
        delays_s = (
            self._gate.crawl_delay_s(self._record(url), url.origin),
            self._gate.crawl_delay_s(self._under_other_scheme(url), _other_scheme(url.origin)),
        )
        return max((delay_s for delay_s in delays_s if delay_s is not None), default=None)

    def sitemaps(self, url: Url) -> tuple[str, ...]:
        """Return the sitemaps that the file of a URL's origin names, as written."""
        return self._gate.sitemaps(self._record(url), url.origin)

    def statements(self, url: Url) -> tuple[Statement, ...]:
        """Return what the rules in force state about the use of a URL. 2 µs from memory where they state nothing."""
        origin = url.origin
        rules = self._gate.rules(self._record_of(url.partition, origin), origin)
        return rules.statements(url.text) if rules is not None else ()

    def licenses(self, url: Url) -> tuple[str, ...]:
        """Return the license documents that the file of a URL's origin names, as written."""
        rules = self._gate.rules(self._record(url), url.origin)
        return rules.licenses if rules is not None else ()

    def _under_other_scheme(self, url: Url) -> RobotsRecord | None:
        origin = _other_scheme(url.origin)
        return self._record_of(url.partition, origin) if origin else None

    def _record(self, url: Url) -> RobotsRecord | None:
        return self._record_of(url.partition, url.origin)

    def _record_of(self, partition: int, origin: str) -> RobotsRecord | None:
        record = self._records.get(origin)
        if record is None:
            key = _key(partition, origin)
            data = self._epochs.get("meta", key)
            record = decode(data) if data is not None else None
            if self._kept is not None and (data := self._kept.get(key)) is not None:
                record = _newer(record, decode(data))
            if record is not None:
                self._records.put(origin, record, RECORD_BYTES + len(record.text))
        return record


def _newer(one: RobotsRecord | None, other: RobotsRecord | None) -> RobotsRecord | None:
    """Return the record of the later request of two records of an origin."""
    if one is None or other is None:
        return one or other
    return max(one, other, key=lambda record: record.made_at)


def _key(partition: int, origin: str) -> bytes:
    # The partition goes first, as in every key: the record moves with its site.
    return partition.to_bytes(2, "big") + RECORDS + origin.encode()


def _other_scheme(origin: str) -> str:
    """Return the origin of the same host with http for https or the other way; empty if a port is named."""
    scheme, _, authority = origin.partition("://")
    other = {"http": "https", "https": "http"}.get(scheme)
    named_port = authority.rpartition("]")[2].find(":") >= 0
    return f"{other}://{authority}" if other and not named_port else ""
