"""Ports: what people outside replace, each with its check in `gossamer.testing.conformance`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from gossamer.model.links import Link
from gossamer.model.pages import Archived, EpochRow, Findings, Original, Page, Visited
from gossamer.model.standing import Habits, Standing
from gossamer.model.visits import Failure, Located, Reply, Request
from gossamer.url.url import Url


class Filter(Protocol):
    """Judges one link. `name` is what `why` shows when it rejects."""

    name: str

    def rejects(self, link: Link) -> bool:
        """Say whether the link is none of ours. Pure and quick: it runs for every link of every page."""


class Prioritizer(Protocol):
    """Says how urgent a link is."""

    def level(self, link: Link) -> int:
        """Return a level from 0, the most urgent, to 7."""


@runtime_checkable
class HostPrioritizer(Prioritizer, Protocol):
    """A prioritizer that also says how urgent a host is, among those that wait for a place on the workbench.

    Where one only has `level`, a host is as urgent as the most urgent of its URLs.
    """

    needs: Sequence[str]
    """Which of `linking_sites` and `cash` it reads from a `Standing`: they are computed only if needed."""

    def host_level(self, standing: Standing) -> int:
        """Return a level from 0, the most urgent, to 7. Pure, and quick: it may run for every URL that is queued."""


KNOWN, NEW, SHORTER, HELD = 0, 1, 2, 3
"""What a duplicate URL eliminator answers; `HELD` is an answer of `DiskMergeUrlSeen.offer_or_hold` only."""


class UrlSeen(Protocol):
    """The duplicate URL eliminator (Mercator, section 3.2)."""

    def offer(self, urls: Sequence[Url], depths: Sequence[int], hops: Sequence[int]) -> Sequence[int]:
        """Return for each URL `KNOWN` (0, seen before), `NEW` (1, now remembered) or `SHORTER` (2, seen before, but by
        more clicks or more hops).

        Of equal keys in one call the first is new. What is remembered is durable with the epoch.
        """

    def way(self, url: Url) -> tuple[int, int] | None:
        """Return the least depth and the least hops by which a URL was reached, or None when it was never offered."""


@runtime_checkable
class WaylessUrlSeen(UrlSeen, Protocol):
    """An eliminator that stores no paths, so that its `way` is None for every URL."""

    def knows(self, url: Url) -> bool:
        """Return whether a URL was offered, as far as is known; False is certain. The call itself stores nothing."""


class ContentSeen(Protocol):
    """The content-seen test: exact, by digest."""

    def find(self, digest: bytes, url: Url) -> Original | None:
        """Return who had this content first, within the configured scope."""

    def remember(self, digest: bytes, url: Url, original: Original) -> None:
        """Remember the first holder of a content. Durable with the epoch."""


class RevisitPolicy(Protocol):
    """Divides visits between pages that were visited before (`revisit.policy`)."""

    priced: bool
    """It divides a budget: rates go by change rate and importance alone, and fall as the price rises. Otherwise each
    page has its own rhythm, and the price means nothing."""

    def rate(self, habits: Habits, price: float) -> float:
        """Return visits a second. Pure and quick: it runs for each visit, and for each cell of the census."""


class Resolver(Protocol):
    """Finds the address of a host, and refuses addresses that we must not touch."""

    def cached(self, host: str) -> Located | None:
        """Return the cached result, without a lookup."""

    async def resolve(self, host: str) -> Located | Failure:
        """Return addresses to try, best first, or why there are none. Answers from memory where it can."""

    async def close(self) -> None:
        """End what is under way."""


class ProtocolModule(Protocol):
    """Fetches URLs of one scheme. Only protocol modules reach the web, and only with a `Request` that passed the gates.
    A class for an added scheme also has `default_port` (0: none), and `has_robots` if `/robots.txt` is to be requested.
    """

    async def fetch(self, request: Request) -> Reply | Failure:
        """Send one request and return what came. Follows nothing; raises nothing of the web's doing."""

    async def close(self) -> None:
        """Close all connections."""


class ProcessingModule(Protocol):
    """Looks at one page. Pure: no waiting, no disk, no network.

    It may also have `columns` and `tables`, which declare what it adds to the tables (names to kinds of value), and
    `isolated = True`: then it runs in a separate process.
    """

    name: str

    def wants(self, media_type: str) -> bool:
        """Say whether pages of this type are for it."""

    def process(self, page: Page, findings: Findings) -> None:
        """Add to the findings what it sees."""


class Archive(Protocol):
    """Keeps what was fetched for others to read. Durable with the epoch."""

    def add(self, visited: Visited) -> Archived:
        """Take one finished attempt; fill the row's place in the archive; return where the response went."""

    def cut(self) -> None:
        """Write what is buffered to the journals: the epoch closes now."""


@runtime_checkable
class PrerequisiteArchive(Archive, Protocol):
    """An archive that also keeps what had to be asked before a page could be; the others need not."""

    def add_prerequisite(self, reply: Reply, via: str, link_type: str) -> None:
        """Take a robots.txt (`robots`), a document about the use of a site (`usage`), a host's addresses (`dns`), or a
        resource of a page that is rendered (`script`, `xhr` …), on behalf of the URL `via`, if one is known.

        It has no row.
        """


@runtime_checkable
class EpochArchive(Archive, Protocol):
    """An archive that also keeps how commits went; the others need not."""

    def add_epoch(self, row: EpochRow) -> None:
        """Take the row of a commit that is durable. It is durable itself with the next one."""
