"""Ports: the doors between rooms. Rooms import these and never each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from gossamer.model.links import Link
from gossamer.model.visits import Archived, Content, Failure, Findings, Original, Page, Reply, Request, Visited
from gossamer.url.url import Url


class Filter(Protocol):
    """Judges one link. `name` is what `why` shows when it rejects."""

    name: str

    def rejects(self, link: Link) -> bool:
        """Say whether the link is none of ours. Pure and quick: it runs for every link of every page."""
        ...


class Prioritizer(Protocol):
    """Says how urgent a link is."""

    def level(self, link: Link) -> int:
        """Return a level from 0, the most urgent, to 7."""
        ...


class UrlSeen(Protocol):
    """The duplicate URL eliminator (Mercator, section 3.2)."""

    def offer(self, urls: Sequence[Url], depths: Sequence[int], hops: Sequence[int]) -> Sequence[int]:
        """Return for each URL 0 (seen before), 1 (new, now remembered) or 2 (seen, by a longer way than this).

        Of equal keys in one call the first is new. What is remembered is durable with the epoch.
        """
        ...

    def way(self, url: Url) -> tuple[int, int] | None:
        """Return the least (depth, hops) by which a URL was reached, or None when it was never offered."""
        ...


class ContentSeen(Protocol):
    """The content-seen test: exact, by digest."""

    def first(self, digest: bytes, scope: str, original: Original) -> Original | None:
        """Remember `original` as the holder of `digest` within `scope`, or return who held it before."""
        ...


class Resolver(Protocol):
    """Finds the address of a host, and refuses addresses that we must not touch."""

    async def resolve(self, host: str) -> Located | Failure:
        """Return addresses to try, best first, or why there are none. Answers from memory where it can."""
        ...


class Located(Protocol):
    """Where a host is."""

    @property
    def addresses(self) -> tuple[str, ...]:
        """Checked addresses, IPv6 without brackets; never empty."""
        ...

    @property
    def expires_at(self) -> float:
        """Wall time from which it must be asked again."""
        ...


class ProtocolModule(Protocol):
    """Speaks one scheme. The only rooms that reach the web are these, and only with a `Request` that passed."""

    async def fetch(self, request: Request) -> Reply | Failure:
        """Send one request and return what came. Follows nothing; raises nothing of the web's doing."""
        ...

    async def close(self) -> None:
        """Let go of all connections."""
        ...


class Decoder(Protocol):
    """Removes a reply's content coding, within limits."""

    def decode(self, reply: Reply) -> Content:
        """Return the content; broken or endless codings give what could be had."""
        ...


class ProcessingModule(Protocol):
    """Looks at one page. Pure: no waiting, no disk, no network."""

    name: str

    def wants(self, media_type: str) -> bool:
        """Say whether pages of this type are for it."""
        ...

    def process(self, page: Page, findings: Findings) -> None:
        """Add to the findings what it sees."""
        ...


class Archive(Protocol):
    """Keeps what was fetched for others to read. Durable with the epoch."""

    def add(self, visited: Visited) -> Archived:
        """Take one finished attempt; fill the row's place in the archive; return where the response went."""
        ...

    def cut(self) -> None:
        """Write what is buffered to the journals: the epoch closes now."""
        ...
