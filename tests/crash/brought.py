"""A package of another author: one component of each kind, each with a mark where it was used.

Installed under its name by `tests.crash.test_components`, which finds half of it by entry points.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from xxhash import xxh3_64_digest

from gossamer import processing_module
from gossamer.model.links import Link
from gossamer.model.pages import Archived, Findings, Original, Page, Visited
from gossamer.model.visits import Failure, Located, Reply, Request
from gossamer.stages.fetch.bodies import BodyMemory
from gossamer.stages.fetch.http import HttpModule
from gossamer.stages.fetch.options import FetchOptions
from gossamer.stages.frontier.frontier import Frontier
from gossamer.stages.frontier.strategy import Strategy
from gossamer.stages.resolve.answers import HostsFile
from gossamer.stages.resolve.options import ResolveOptions
from gossamer.state.epoch import Epochs
from gossamer.state.journals import Journals
from gossamer.state.schema import COMPONENTS
from gossamer.url.url import Url
from gossamer.world.clock import Clock
from gossamer.world.dice import Dice

HELD = COMPONENTS + b"held_by_last_first"
FEW = 8
WAY = struct.Struct(">HB")
FAILING = "BROUGHT_FAILS"
"""In the environment: which method of `Addresses` raises."""


def used(name: str) -> None:
    """Leave a mark that a component was asked."""
    Path(os.environ["BROUGHT_USED"], name).touch()


class DeepFirst:
    """A prioritizer."""

    def level(self, link: Link) -> int:
        used("prioritizer")
        return max(0, 7 - link.depth)


class LastFirst(Strategy):
    """A frontier that hands the URL on that was found last, a few at a time."""

    def __init__(self, *, gates: Frontier, epochs: Epochs, name_url: Callable[[str], Url | None], dice: Dice) -> None:
        assert callable(name_url)
        assert dice.below(1) == 0
        self._frontier = gates
        self._epochs = epochs
        stored = epochs.get("meta", HELD)
        self._held = [] if stored is None else msgspec.msgpack.decode(stored, type=list[tuple[Link, int]])

    def hold(self, link: Link, level: int, now: float) -> bool:
        used("frontier")
        self._held.append((link, level))
        return True

    def offer(self, now: float) -> None:
        while self.can_offer():
            self._frontier.queue(*self._held.pop(), now)

    def can_offer(self) -> bool:
        return bool(self._held) and self._frontier.counts.pending < FEW

    def cut(self, now: float) -> None:
        self._epochs.put("meta", HELD, msgspec.msgpack.encode(self._held))


class NineOfTen:
    """A filter that leaves out a tenth of all pages."""

    name = "nine_of_ten"

    def rejects(self, link: Link) -> bool:
        used("filter")
        return not link.seed and link.url.fingerprint % 10 == 0


class OwnUrlSeen:
    """A duplicate URL eliminator with a cache of its own that a cut empties."""

    def __init__(self, *, epochs: Epochs) -> None:
        self._epochs = epochs
        self._held: dict[bytes, tuple[int, int]] = {}

    def offer(self, urls: Sequence[Url], depths: Sequence[int], hops: Sequence[int]) -> Sequence[int]:
        used("url_seen")
        return [self._offered(*one) for one in zip(urls, depths, hops, strict=True)]

    def way(self, url: Url) -> tuple[int, int] | None:
        key = self._key(url)
        stored = None if key in self._held else self._epochs.get("seen", key)
        return self._held.get(key) if stored is None else WAY.unpack(stored)

    def cut(self, now: float) -> None:
        used("url_seen_cut")
        for key, way in self._held.items():
            self._epochs.put("seen", key, WAY.pack(*way))
        self._held.clear()

    def close(self) -> None:
        used("url_seen_close")

    def _offered(self, url: Url, depth: int, hops: int) -> int:
        known = self.way(url)
        least = (depth, hops) if known is None else (min(depth, known[0]), min(hops, known[1]))
        self._held[self._key(url)] = least
        return 1 if known is None else 2 * (least != known)

    def _key(self, url: Url) -> bytes:
        return url.partition.to_bytes(2) + b"own" + url.fingerprint.to_bytes(8)


class OwnContentSeen:
    """A content-seen test within a site."""

    def __init__(self, *, epochs: Epochs) -> None:
        self._epochs = epochs

    def find(self, digest: bytes, url: Url) -> Original | None:
        used("content_seen")
        stored = self._epochs.get("content", self._key(digest, url))
        if stored is None:
            return None
        at, links, record, address = stored.decode().split("\n")
        return Original(address, float(at), record, int(links))

    def remember(self, digest: bytes, url: Url, original: Original) -> None:
        fields = (repr(original.fetched_at), str(original.links), original.record_id, original.url)
        self._epochs.put("content", self._key(digest, url), "\n".join(fields).encode())

    def _key(self, digest: bytes, url: Url) -> bytes:
        return url.partition.to_bytes(2) + b"own" + xxh3_64_digest(url.site.encode()) + digest


class HostsFileResolver:
    """A resolver that knows the hosts file and nothing else."""

    def __init__(self, *, options: ResolveOptions, clock: Clock) -> None:
        self._hosts = HostsFile(options.hosts_file)
        self._clock = clock
        self._known: dict[str, Located] = {}

    def cached(self, host: str) -> Located | None:
        return self._known.get(host)

    async def resolve(self, host: str) -> Located | Failure:
        used("resolver")
        found = self._hosts.addresses(host)
        if not found:
            return Failure("dns_error", "not in the hosts file")
        self._known[host] = Located(tuple(found), self._clock.now() + 3_600)
        return self._known[host]

    async def close(self) -> None:
        used("resolver_close")


class Addresses:
    """An archive: the address of each attempt, in a journal of its own."""

    def __init__(self, *, journals: Journals, directory: Path) -> None:
        assert directory.is_dir()
        self._journals = journals
        opened = journals.open_journals("brought/")
        self._journal = opened[0] if opened else None
        self._held: list[str] = []
        self._number = len(journals.finals("brought/")) + len(opened)
        self._closed = False

    def add(self, visited: Visited) -> Archived:
        used("archive")
        self._may("add")
        self._held.append(f"{visited.row.url} {visited.row.outcome}\n")
        return Archived()

    def cut(self) -> None:
        self._may("cut")
        if not self._held:
            return
        if self._journal is None:
            self._number += 1
            self._journal = self._journals.create(f"brought/addresses-{self._number:03d}.txt")
        self._journal.append("".join(self._held).encode())
        self._held.clear()

    def close(self) -> None:
        used("archive_close")
        self._may("close")
        assert not self._held, "a cut comes before"
        self._closed = True
        if self._journal is not None:
            self._journals.close(self._journal)

    def _may(self, method: str) -> None:
        assert not self._closed, f"{method} after close"
        if os.environ.get(FAILING) == method:
            raise ValueError("on purpose")


class CountingHttp:
    """A protocol module in place of ours for http."""

    def __init__(self, *, options: FetchOptions, agent: str, clock: Clock) -> None:
        self._inner = HttpModule(options, agent, clock, BodyMemory(options))

    async def fetch(self, request: Request) -> Reply | Failure:
        used("protocol")
        return await self._inner.fetch(request)

    async def close(self) -> None:
        used("protocol_close")
        await self._inner.close()


@processing_module("text/html", columns={"letters": "int"})
def letters(page: Page, findings: Findings) -> None:
    """Count letters."""
    used("module")
    findings.columns["letters"] = sum(byte > 64 for byte in page.body)


@processing_module("text/html", columns={"lines": "int"}, isolated=True)
def lines(page: Page, findings: Findings) -> None:
    """Count lines, in a process of its own."""
    findings.columns["lines"] = page.body.count(b"\n")
