"""Ports: the doors between rooms. Rooms import these and never each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeVar, runtime_checkable

from gossamer.model.links import Link
from gossamer.model.revisits import Habits, Held, Notice, Sight
from gossamer.model.sketches import Sketch
from gossamer.model.standing import Standing
from gossamer.model.visits import (
    Again,
    Archived,
    Awaited,
    Contact,
    Content,
    EpochRow,
    Errand,
    Failure,
    Findings,
    Original,
    Page,
    Reply,
    Request,
    Visit,
    Visited,
)
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
    """Which of `linking_sites` and `cash` it reads from a `Standing`: they are reckoned for those who need them."""

    def host_level(self, standing: Standing) -> int:
        """Return a level from 0, the most urgent, to 7. Pure, and quick: it may run for every URL that is queued."""


class PatternMatcher(Protocol):
    """Many regular expressions at once."""

    def matching(self, text: str) -> Sequence[int]:
        """Return the places of the patterns that match somewhere in a text."""


class LinkWatcher(Protocol):
    """Sees where pages link to, whether those URLs are new or not."""

    def linked(self, page: Url, links: Sequence[Link]) -> None:
        """Take in what a page that was just finished links to, as far as that is ours: in one breath with `finish`."""


KNOWN, NEW, SHORTER = 0, 1, 2
"""What a duplicate URL eliminator answers."""


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
    """An eliminator that remembers no ways, so that its `way` is None for every URL."""

    def knows(self, url: Url) -> bool:
        """Say whether a URL was offered, as far as it can tell; False is sure. It remembers nothing by being asked."""


class ContentSeen(Protocol):
    """The content-seen test: exact, by digest."""

    def find(self, digest: bytes, url: Url) -> Original | None:
        """Return who had this content first, within the configured scope."""

    def remember(self, digest: bytes, url: Url, original: Original) -> None:
        """Remember the first holder of a content. Durable with the epoch."""


class NearSeen(Protocol):
    """The test for contents that are nearly the same."""

    def find(self, sketch: Sketch, url: Url) -> tuple[int, int] | None:
        """Return partition and fingerprint of who had nearly this content first, within the configured scope."""

    def remember(self, sketch: Sketch, url: Url) -> None:
        """Remember a content unlike all others. Durable with the epoch."""


class LinkSink(Protocol):
    """Takes URLs that were not seen before."""

    def add(self, link: Link, level: int, now: float) -> None:
        """Queue a link's URL; it is lent until it is finished."""


class Namer(Protocol):
    """Makes names of addresses."""

    def name(self, text: str) -> Url | None:
        """Return the name of an absolute address, or None when nobody could visit it."""

    def names(self, texts: Sequence[str]) -> list[Url | None]:
        """Name several, in order."""

    def port(self, url: Url) -> int:
        """Return the port that a URL names, or its scheme's; 0 where that has none."""

    def changes(self, text: str) -> list[tuple[str, str]]:
        """Return the rules that have a part in an address's key, each with what it made: for people who ask why."""


class Chain(Protocol):
    """All filters, in order."""

    depth_limited: bool
    hops_max: int
    media_types: tuple[str, ...]
    """Patterns of the types that are read; none means all."""
    by_place: frozenset[str]
    """Names of the filters that judge where a link is or how it was found, not the address itself."""

    def reason(self, link: Link) -> str | None:
        """Return the name of the first filter that rejects a link."""

    def explain(self, link: Link) -> str | None:
        """Return what `reason` returns, uncounted."""

    def rejects_again(self, link: Link) -> tuple[str, str] | None:
        """Return name and reason, for people, of a filter that rejects a URL which was queued by other options."""

    def detail(self, link: Link) -> str:
        """Return what the filter that rejects a link says about it, for people; often nothing."""

    def reason_but_depth(self, link: Link) -> str | None:
        """Return the same, as if no depth were too deep."""

    def unwanted(self, reply: Reply) -> str | None:
        """Return the name of the filter that rejects what a server sent."""

    def leads_nowhere(self, reply: Reply, content: bytes, language: str = "") -> str | None:
        """Return the language for whose sake a page's links are not followed."""


class Roots(Protocol):
    """What the scope is measured from."""

    def redirected(self, seed: Url, target: Url, *, from_argument: bool) -> str | None:
        """Widen the scope by where a seed redirects to; return a sentence for people when it was."""


class Said(Protocol):
    """What robots.txt says of a URL."""

    @property
    def kind(self) -> Literal["allowed", "denied", "unknown", "wait", "given_up"]: ...

    @property
    def until(self) -> float:
        """For `wait`: when to ask again."""

    @property
    def reason(self) -> str: ...


class Robots(Protocol):
    """What sites ask of us, remembered per origin."""

    def verdict(self, url: Url, now: float) -> Said:
        """Return what the rules in force say; `unknown` when they must be fetched first."""

    def errand(self, url: Url) -> Errand:
        """Return the request that makes the rules of a URL's origin known."""

    def answer(self, errand: Errand, result: Reply | Failure, body: bytes, now: float) -> str | None:
        """Take what the request brought (`body`: its content); return where it redirects to, if anywhere."""

    def crawl_delay_s(self, url: Url) -> float | None:
        """Return the delay that the rules in force ask for."""

    def sitemaps(self, url: Url) -> Sequence[str]:
        """Return the sitemaps that the file of a URL's origin names, as written."""


class Exclusions(Protocol):
    """Hosts whose owners asked to be left alone."""

    def covers(self, host: str) -> bool: ...


class Lease(Protocol):
    """A visit that is lent: to be given back exactly once."""

    @property
    def url(self) -> Url:
        """What to fetch."""

    @property
    def visit(self) -> Visit | None:
        """The queued URL; None for an errand."""

    @property
    def errand(self) -> Errand | None: ...

    @property
    def address(self) -> str:
        """Where to fetch it; empty when the host must be looked up first."""

    @property
    def failures(self) -> int:
        """How often its origin failed in a row."""

    @property
    def refusal(self) -> str:
        """Why the URL ends without a request, as `host_closed`; empty where it does not."""

    @property
    def is_ended(self) -> bool:
        """The gates were given back."""

    @property
    def is_finished(self) -> bool:
        """The URL was given back."""


L = TypeVar("L", bound=Lease)


class VisitSource(Protocol[L]):
    """The politeness gate: what it lends may be fetched, and nothing else may.

    `select` → (`locate` when `address` is empty) → `begin` → `ended` → `finish` or `retry` for a visit.
    """

    def select(self, now: float) -> L | None:
        """Lend a visit whose gates are open, or None."""

    def wake_at(self) -> float | None:
        """Return when `select` may have something again; None when only the end of a visit can bring it."""

    def awaited(self, most: int) -> list[Awaited]:
        """Return some of the hosts that can be requested later, those that can be first, for people."""

    def locate(self, lease: L, address: str, until: float, now: float) -> None:
        """Give back a lease without address, now that it is known."""

    def begin(self, lease: L, now: float) -> bool:
        """Say that the request goes out now; False when it may not: the host's gate closed since the visit was lent."""

    def ended(self, lease: L, contact: Contact | None, now: float) -> None:
        """Give the gates back; None when no request was made."""

    def finish(self, lease: L, outcome: str, now: float) -> None:
        """Take a visit's URL off its queue for good."""

    def retry(self, lease: L, again: Again, now: float) -> None:
        """Queue a visit's URL anew."""

    def give_back(self, lease: L, now: float) -> None:
        """Take it back as if it had not been lent."""


class RevisitPolicy(Protocol):
    """Divides visits between pages that were visited before (`revisit.policy`)."""

    priced: bool
    """It divides a budget: rates go by change rate and importance alone, and fall as the price rises. Otherwise each
    page has its own rhythm, and the price means nothing."""

    def rate(self, habits: Habits, price: float) -> float:
        """Return visits a second. Pure and quick: it runs for each visit, and for each cell of the census."""


class Revisits(Protocol):
    """Remembers pages, and says when each is worth seeing again. Durable with the epoch."""

    def held(self, url: Url) -> Held | None:
        """Return what the last visit left; None when there was none that was answered."""

    def change(self, sight: Sight) -> str:
        """Return what a visit means for its page: `appeared`, `changed`, `same`, `vanished`, or nothing."""

    def seen(self, sight: Sight) -> float | None:
        """Take in what a visit saw; return the wall time at which the page is due again, None when never."""

    def enrol(self, sight: Sight, at: float) -> bool:
        """Take in a visit of which little is remembered, and let its page be due at `at`; False when it is given up."""

    def told(self, notice: Notice, now: float) -> bool:
        """Take in what somebody said of a page; its due time moves where that follows.

        False when no visit of the page is remembered: what is said of it is lost, and its URL is to be discovered as
        any link is.
        """


class RevisitSource(VisitSource[L], Protocol[L]):
    """A source that lends what was visited before, too: through the same queues and gates."""

    def finish_until(self, lease: L, outcome: str, at: float, now: float) -> None:
        """Take a visit's URL off its queue until it is due again, at `at`."""

    def enlist(self, url: Url, depth: int, referrer: str, at: float, now: float) -> bool:
        """Let a URL that was finished for good be due at `at`; False when its host is closed."""

    def move(self, url: Url, at: float, to: float, now: float) -> bool:
        """Let a URL that is due at `at` be due at `to` instead; False when it does not wait any more."""

    def permitted_per_s(self, url: Url) -> float:
        """Return how many visits a second politeness leaves for old pages of a URL's host."""


class HostControl(Protocol):
    """What may be asked of a host besides its URLs."""

    def run_errand(self, errand: Errand, now: float) -> bool:
        """Have a request made through the gates of its host; False when that host is closed, or cannot take it soon."""

    def park(self, url: Url, now: float) -> None:
        """Lend nothing of a host but errands."""

    def unpark(self, url: Url, now: float) -> None: ...

    def hold(self, url: Url, until: float, reason: str, now: float) -> None:
        """Request nothing of a URL's origin until an instant."""

    def release(self, url: Url, now: float) -> None:
        """Let URLs of an origin be lent again that `hold` holds."""

    def set_crawl_delay(self, url: Url, delay_s: float | None, now: float) -> None: ...


class Resolver(Protocol):
    """Finds the address of a host, and refuses addresses that we must not touch."""

    def cached(self, host: str) -> Located | None:
        """Return what is known without asking anybody."""

    async def resolve(self, host: str) -> Located | Failure:
        """Return addresses to try, best first, or why there are none. Answers from memory where it can."""

    async def close(self) -> None:
        """End what is under way."""


class Located(Protocol):
    """Where a host is."""

    @property
    def addresses(self) -> tuple[str, ...]:
        """Checked addresses, IPv6 without brackets; never empty."""

    @property
    def expires_at(self) -> float:
        """Wall time from which it must be asked again."""


class ProtocolModule(Protocol):
    """Speaks one scheme. The only rooms that reach the web are these, and only with a `Request` that passed. A class
    for an added scheme also has `default_port` (0: none), and `has_robots` where `/robots.txt` is to be requested.
    """

    async def fetch(self, request: Request) -> Reply | Failure:
        """Send one request and return what came. Follows nothing; raises nothing of the web's doing."""

    async def close(self) -> None:
        """Let go of all connections."""


class Decoder(Protocol):
    """Removes a reply's content coding, within limits."""

    def decode(self, reply: Reply) -> Content:
        """Return the content; broken or endless codings give what could be had."""


class ProcessingModule(Protocol):
    """Looks at one page. Pure: no waiting, no disk, no network.

    It may also have `columns` and `tables`, which declare what it adds to the tables (names to kinds of value), and
    `isolated = True`: then it runs in a process of its own.
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
        """Take a robots.txt (`robots`) or a host's addresses (`dns`), on behalf of the URL `via`, if one is known.

        It has no row.
        """


@runtime_checkable
class EpochArchive(Archive, Protocol):
    """An archive that also keeps how commits went; the others need not."""

    def add_epoch(self, row: EpochRow) -> None:
        """Take the row of a commit that is durable. It is durable itself with the next one."""
