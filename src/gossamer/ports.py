"""Ports: what people outside replace, each with its check in `gossamer.testing.conformance`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec

from gossamer.model.links import ALLOWED, Link, Prerequisite, RevisitPlan, Verdict, Visit
from gossamer.model.pages import Archived, EpochRow, Findings, Original, Page, PageRow, Visited
from gossamer.model.standing import DownloadHistory, Habits, Standing
from gossamer.model.visits import Content, Failure, Located, Reply, Request
from gossamer.url.url import Url

if TYPE_CHECKING:
    import asyncio


class Conclusion(msgspec.Struct, frozen=True):
    """How a visit ends whose reply is not what was requested."""

    outcome: str
    error: str
    again: RevisitPlan | None = None
    """The next attempt; None: the URL is finished."""
    was_acted_on: bool = True
    """False: the server did not act on the request, so that it may be sent again in any case."""
    keeps_body: bool = True
    """False: of a document only headers are kept; its links are followed."""
    columns: Mapping[str, str | int] = {}
    """Further columns of the visit's row."""
    revisit_of: Original | None = None
    """The earlier record with the same payload, and its digest."""
    digest: bytes = b""
    then: Callable[[float], None] | None = None
    """Called with the time once the attempt is recorded."""


class ExaminedPage(msgspec.Struct, frozen=True):
    """A page that was read and is not recorded yet."""

    visit: Visit
    reply: Reply
    content: Content
    findings: Findings
    row: PageRow
    """Columns of a middleware's own are written here."""
    is_read: bool = True
    """False: a copy, which was decoded only."""


class VisitMiddleware:
    """A feature of visits: what it decides about their requests, and what it adds to them. Only methods that a class
    overrides are called, in the order of the list of middleware.

    All methods but `before_begin` neither wait nor do I/O; their time is an argument. Prerequisite fetches that name a
    middleware as their `owner` are its own.
    """

    name = ""
    """How prerequisite fetches and verdicts refer to it."""
    archived_as = ""
    """Kind of the archive's records of its prerequisite fetches; empty: they are not archived as such."""
    reads_body = False
    """Whether `answered` needs the decoded body of a reply of success."""
    judges = True
    """Whether `judge` and `judge_visit`, if a class has them, are called at all."""
    judges_unresolved = False
    """Whether `judge_visit` is also called before the address of a URL's host is looked up."""

    def __init__(self, **parts: object) -> None:
        """Take `epochs`, `name_url` and `unpark`, of which a middleware without state needs none."""

    def judge(self, url: Url, now: float) -> Verdict:
        """Return whether a URL may be requested now. Pure: the first verdict that is not allowed counts."""
        return ALLOWED

    def judge_visit(self, visit: Visit, now: float) -> Verdict:
        """Return what `judge` does, for a visit: the path that led to its URL may matter. Pure."""
        return self.judge(visit.url, now)

    def judge_resource(self, url: Url, now: float) -> Verdict:
        """Return what `judge` does, for a resource of a rendered page, whose visit is not over."""
        return self.judge(url, now)

    def reserve(self, url: Url, now: float) -> None:
        """Note that all have allowed a visit's request. `release` follows in any case."""

    def wait(self, url: Url, verdict: Verdict, now: float) -> None:
        """Note that a URL waits because of a verdict that names this middleware as its owner."""

    def release(self, url: Url) -> Sequence[Url]:
        """Note that a visit is over, with any result; return a URL of each host that need no longer be parked."""
        return ()

    async def before_begin(self, url: Url, commit: Callable[[], Awaitable[None]]) -> None:
        """Prepare a visit's request. It may wait for a commit: the gates are checked after that."""

    def unsent(self, url: Url) -> None:
        """Note that a request was not sent, or that the server did not act on it: the URL stays queued."""

    def request(self, url: Url, visit: Visit | None, request: Request, now: float) -> Request:
        """Return the request as this feature wants it. `visit` is None for documents about an origin."""
        return request

    def route(self, url: Url, request: Request, now: float) -> Request:
        """Return any request, those of prerequisite fetches included, with the proxy that it goes through."""
        return request

    def proxy_failed(self, url: Url, error: str, now: float) -> bool:
        """Note that the proxy of a request could not be used; return whether the next request takes another one."""
        return False

    def received(self, url: Url, reply: Reply, now: float) -> Reply:
        """Return a reply as everything after this sees it, the archive included."""
        return reply

    def settle(self, visit: Visit, reply: Reply, now: float) -> Conclusion | None:
        """Return how a visit ends by the head of its reply; None: it is not this feature's. The first one counts."""
        return None

    def settle_document(self, page: ExaminedPage, now: float) -> Conclusion | None:
        """Return how the visit of a page ends that was read; None: as a page. Called in reverse order, so that what
        judges a request first has the last word.
        """
        return None

    def is_page(self, page: ExaminedPage) -> bool:
        """Return whether a document is the page that was requested. Pure."""
        return True

    def may_repeat(self, url: Url) -> bool:
        """Return whether the request for a URL may be sent again after a failure."""
        return True

    def leads_on(self, url: Url, reply: Reply) -> bool:
        """Return whether the redirect of a URL is followed."""
        return True

    def bounces(self, url: Url, outcome: str, now: float) -> bool:
        """Return whether a chain of redirects that has led back to a URL is answered otherwise now, and count that.
        `outcome` is that of the URL's last visit.
        """
        return False

    def concluded(self, visited: Visited, now: float) -> None:
        """Note that an attempt was recorded."""

    def moved(self, first: int, end: int) -> None:
        """Read again what is in memory about the partitions in [`first`, `end`), which have arrived or left."""

    # ---- its own prerequisite fetches

    def refused(self, prerequisite: Prerequisite, now: float) -> Failure | None:
        """Return why a prerequisite fetch must not be made at its turn; None if it may be."""
        return None

    def fetch(self, prerequisite: Prerequisite, request: Request, now: float) -> Request:
        """Return the request of a prerequisite fetch that is not about an origin."""
        return request

    def bound(self, prerequisite: Prerequisite, limit: asyncio.Timeout) -> None:
        """Keep the time limit of a prerequisite fetch, to end it early."""

    def answered(
        self, prerequisite: Prerequisite, result: Reply | Failure, body: bytes, now: float
    ) -> Prerequisite | None:
        """Handle the result of a prerequisite fetch; return the next one, such as a redirect's target, None at the end.
        If the next one cannot be made, its result is a Failure.
        """
        return None


class Filter(Protocol):
    """Judges one link."""

    name: str
    """One word of letters, digits and _, which `why` shows for a link that it rejects."""

    def rejects(self, link: Link) -> bool:
        """Return whether the crawl leaves the link out. Pure and quick: it runs for every link of every page."""


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


@runtime_checkable
class HistoryPrioritizer(Prioritizer, Protocol):
    """A prioritizer that gets a link together with the download history of its page and host (Mercator, section 3.1).

    `level` is called where there is no history: when an offline segment is built.
    """

    def level_by_history(self, link: Link, history: DownloadHistory) -> int:
        """Return a level from 0, the most urgent, to 7. Costs two lookups of pages a link, about 10 µs."""


class Bias(Protocol):
    """Draws the level that is next, for hosts and for the queues of a host (the biased front queues of Mercator)."""

    def choose(self, levels: Sequence[int]) -> int:
        """Return one of `levels`, never empty, in no order. A level never chosen starves while others have URLs."""


KNOWN = 0
NEW = 1
SHORTER = 2
HELD = 3
"""Answers of a duplicate URL eliminator; `HELD` is an answer of `DiskMergeUrlSeen.offer_or_hold` only."""


class UrlSeen(Protocol):
    """The duplicate URL eliminator (Mercator, section 3.2). If it has `cut(now)`, that is called when an epoch closes;
    `close()` at the end of a run.
    """

    def offer(self, urls: Sequence[Url], depths: Sequence[int], hops: Sequence[int]) -> Sequence[int]:
        """Return for each URL `KNOWN` (0, seen before), `NEW` (1, now remembered) or `SHORTER` (2, seen before, but by
        more clicks or more hops).

        Of equal keys in one call the first is new. Remembered URLs are durable with the epoch.
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
        """Return the original of a content, within the configured scope; None if the content is new."""

    def remember(self, digest: bytes, url: Url, original: Original) -> None:
        """Remember the original of a content. Durable with the epoch."""


class RevisitPolicy(Protocol):
    """Divides visits between pages that were visited before (`revisit.policy`)."""

    priced: bool = False
    """It divides a budget: rates go by change rate and importance alone, and fall as the price rises. Otherwise each
    page has its own rhythm, and the price means nothing."""

    def rate(self, habits: Habits, price: float) -> float:
        """Return visits a second. Pure and quick: it runs for each visit, and for each cell of the census."""


class Resolver(Protocol):
    """Finds the address of a host, and refuses addresses that must not be contacted."""

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
        """Send one request and return its reply. Redirects are not followed, errors of the web are returned."""

    async def close(self) -> None:
        """Close all connections."""


class ProcessingModule(Protocol):
    """Looks at one page. Pure: no waiting, no disk, no network.

    It may also have `columns` and `tables`, which declare what it adds to the tables (names to kinds of value), and
    `isolated = True`: then it runs in a separate process.
    """

    name: str
    """Shown with its errors."""

    def wants(self, media_type: str) -> bool:
        """Return whether pages of this type are for it."""

    def process(self, page: Page, findings: Findings) -> None:
        """Add to the findings what it sees."""


class Archive(Protocol):
    """Keeps what was fetched for others to read. Durable with the epoch."""

    def add(self, visited: Visited) -> Archived | None:
        """Take one finished attempt. Return where its response went, and fill the place in its row; None: it keeps no
        response that other programs look up.
        """

    def cut(self) -> None:
        """Write what is buffered to the journals: the epoch closes now."""

    def close(self) -> None:
        """Finish growing files; takes effect with the commit. A component's `close` is called once, at the orderly end
        of a run, after a last `cut`; no call follows it. After a kill or a failure it is not called.
        """


@runtime_checkable
class PrerequisiteArchive(Archive, Protocol):
    """An archive that also keeps the replies of prerequisite fetches, such as robots.txt."""

    def add_prerequisite(self, reply: Reply, via: str, link_type: str) -> None:
        """Take a robots.txt (`robots`), a document about the use of a site (`usage`), a host's addresses (`dns`), or a
        resource of a page that is rendered (`script`, `xhr` …), on behalf of the URL `via`, if one is known.

        It has no row.
        """


@runtime_checkable
class EpochArchive(Archive, Protocol):
    """An archive that also keeps a row for each commit."""

    def add_epoch(self, row: EpochRow) -> None:
        """Take the row of a commit that is durable. It is durable itself with the next one."""
