"""Trapping: connects trap detection with the store, the sketches of pages and notes for the operator."""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from xxhash import xxh3_64_digest

from gossamer.engine.copies import Sketcher, is_text
from gossamer.engine.counters import CrawlCounters
from gossamer.engine.history import PageHistory
from gossamer.model.links import ALLOWED, Link, Verdict, Visit
from gossamer.model.pages import PageRow
from gossamer.model.visits import Content
from gossamer.ports import VisitMiddleware
from gossamer.stages.scope.farms import ANY
from gossamer.stages.scope.traps import Trap, Traps
from gossamer.state.epoch import Epochs
from gossamer.state.schema import PARTITIONED, partition_range
from gossamer.url.name import Namer
from gossamer.url.site import site_of, site_partition
from gossamer.url.url import Url

_WATCHED = b"\0watch:"
NAMES_MAX = 256
NAMES_BYTES_MAX = 1 << 18
"""Host names that are searched for in a page, and bytes in which they are."""
_NAME = re.compile(rb"[A-Za-z0-9._-]{1,80}").match
Discover = Callable[[Sequence[Link]], object]


class Trapping(VisitMiddleware):
    """Passes fetched pages and found links to trap detection, stores its state with the epoch, and releases traps."""

    name = "traps"
    judges_unresolved = True  # Hosts of a farm, which get no requests, are not looked up.

    def __init__(
        self, traps: Traps, epochs: Epochs, sketcher: Sketcher, counters: CrawlCounters, split: frozenset[str]
    ) -> None:
        """`split` are sites whose hosts have a partition each: a shard judges such farms by the hosts that it has."""
        self.traps = traps
        self._split = split
        self._epochs = epochs
        self._sketcher = sketcher
        self._counters = counters
        for key, dumped in list(epochs.scan("trap", *PARTITIONED)):
            traps.load(int.from_bytes(key[:2]), dumped)

    def forget(self, hosts: Sequence[str]) -> None:
        """Drop everything about hosts that another shard gets from memory."""
        self.traps.forget(hosts, {site_of(host) for host in hosts})

    def admit(self, hosts: Sequence[str], first: int, end: int) -> None:
        """Admit the traps of partitions from another shard, and of their hosts."""
        self.forget(hosts)
        for key, dumped in self._epochs.scan("trap", *partition_range(first, end)):
            self.traps.load(int.from_bytes(key[:2]), dumped)

    def judge(self, url: Url, now: float) -> Verdict:
        return _verdict(self.traps.trap_of(url))

    def judge_visit(self, visit: Visit, now: float) -> Verdict:
        return _verdict(self.traps.trap_on_path(visit))

    def note_page(self, url: Url, content: Content, row: PageRow, requested: Url | None = None) -> None:
        """Record a fetched page; only texts are evidence of a trap. Redirects from `requested` led to the page."""
        if not is_text(row.media_type):
            return
        copy = bool(row.duplicate_of) and _host_of(row.duplicate_of) == _host_of(row.url)
        body = content.body
        sketch = None if copy else lambda: self._sketcher(body, row.charset, url.text)
        trap = self.traps.note_page(
            url,
            sketch,
            datetime.fromtimestamp(row.fetched_at, UTC).year,
            lambda: self._sketcher(body, row.charset, hosts_named(url, body)),
            requested,
            row.referrer,
        )
        if trap is not None:
            self._counters.note(f"{trap.says()}; `gossamer release DIR '{trap.name}'` lets it go on")

    def note_links(
        self, links: Sequence[Link], admitted: Sequence[Link], answers: Sequence[int], page: Url | None = None
    ) -> None:
        """Process a page's links: all of them, the admitted ones, and the eliminator's answers for these."""
        if len(admitted) < len(links):
            self.traps.hold(links)
        self.traps.note_links(admitted, answers, page.text if page is not None else "")

    def cut(self, now: float) -> None:
        """Put changes into the open epoch."""
        for partition, host, template, dumped in self.traps.take_changed():
            key = (
                _home_partition(partition, host, self._split).to_bytes(2)
                + xxh3_64_digest(host.encode())
                + xxh3_64_digest(template.encode())
            )
            self._epochs.put("trap", key, dumped)
        for partition, host, dumped in self.traps.take_watched():
            self._epochs.put("content", watch_key(partition, host, self._split), dumped)

    async def release_trap(
        self, name: str, namer: Namer, history: PageHistory, discover: Discover, enqueue: Callable[[Link], None]
    ) -> list[str]:
        """Release a host's traps, one trap (`host/template`) or a farm (`*.site`); return their names. Links that they
        kept are discovered again, and URLs that ended in them are queued again.

        Costs about 3 µs for each page in the host's partition, a thousand at a time; for a farm that is split over
        partitions, for each page of the shard.
        """
        host = namer.name(f"http://{name.partition('/')[0].removeprefix('*.')}/")
        if host is None:
            return []
        released = self.traps.release(name, lambda _: host.partition)
        for trap in released:
            held = [(namer.name(text), depth, referrer) for text, depth, referrer in trap.held]
            trap.held.clear()
            discover([Link(url, "anchor", depth, 0, referrer) for url, depth, referrer in held if url is not None])
        starts = tuple(f"{trap.name} is a trap " for trap in released)
        keys = partition_range(host.partition, host.partition + 1)
        if name.startswith(ANY) and host.site in self._split:
            keys = PARTITIONED
        if starts:
            await history.queue_again(
                keys, lambda one: one.outcome == "trapped" and one.error.startswith(starts), namer, enqueue
            )
        return [trap.name for trap in released]


def _verdict(trap: Trap | None) -> Verdict:
    return ALLOWED if trap is None else Verdict(outcome="trapped", reason=trap.says())


def hosts_named(url: Url, body: bytes) -> str:
    """Return an address with the words of a page's host and of the hosts that it links to. Sketches ignore these words,
    so that pages that differ only in host names count as the same. About 1 µs per name.
    """
    found = [url.host]
    at = body.find(b"//", 0, NAMES_BYTES_MAX)
    while at >= 0 and len(found) < NAMES_MAX:
        name = _NAME(body, at + 2)
        if name is not None:
            found.append(name.group().decode())
        at = body.find(b"//", at + 2, NAMES_BYTES_MAX)
    return f"http://{url.site}/{'/'.join(found)}"


def watch_key(partition: int, host: str, split: frozenset[str] = frozenset()) -> bytes:
    """Return the key of the stored state of a watched host or farm."""
    return _home_partition(partition, host, split).to_bytes(2) + _WATCHED + xxh3_64_digest(host.encode())


def _home_partition(partition: int, host: str, split: frozenset[str]) -> int:
    return site_partition(host.removeprefix(ANY), partition, split) if host.startswith(ANY) else partition


def _host_of(address: str) -> str:
    return address[address.find("://") + 3 :].partition("/")[0]
