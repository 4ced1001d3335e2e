"""Permit: whether a URL may be requested now: checks exclusions, traps, robots.txt and statements about use at the last
moment. Also handles the results of prerequisite fetches, such as redirects of a robots.txt.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from gossamer.cluster.exchange import Exchange
from gossamer.frontier.scheduler import HostControl
from gossamer.model.links import Prerequisite
from gossamer.model.pages import PageRow
from gossamer.model.usage import REFUSED, UNKNOWN, Statement, UsageAnswer, reasons, resolve, texts
from gossamer.model.visits import Failure, Reply
from gossamer.revisit.websub import Subscriptions
from gossamer.robots.documents import SiteDocuments
from gossamer.robots.robots import SiteRobots
from gossamer.scope.forgotten import Forgotten
from gossamer.scope.lists import ExcludedHost
from gossamer.url.url import Url

if TYPE_CHECKING:
    from gossamer.crawl.logins import FormLogins
    from gossamer.crawl.rendering import PageResources
    from gossamer.crawl.requests import Requests


class FetchVerdict(msgspec.Struct, frozen=True, gc=False):
    """Whether a URL may be requested. If not, `prerequisite` must be run first (without `park`: at another origin, and
    only the URL's own origin waits), or the URL waits until `wait_until`, or ends with `outcome`.
    """

    allowed: bool = False
    prerequisite: Prerequisite | None = None
    wait_until: float = 0.0
    outcome: str = ""
    reason: str = ""
    park: bool = False
    """The host is parked until it is released: for `prerequisite`, or for one that another host waits for too."""


ALLOWED = FetchVerdict(allowed=True)


class Permit:
    """Checks the exclusion list, then traps, then the site's robots.txt, then statements about the use of its pages. 5
    µs if the rules are in memory.
    """

    def __init__(
        self,
        exclusions: ExcludedHost,
        robots: SiteRobots,
        trapped: Callable[[Url], str | None] = lambda _: None,
        usage: Usage | None = None,
        *,
        obey: bool,
        forgotten: Forgotten | None = None,
    ) -> None:
        """`trapped` returns why a URL is in a trap, or None; `usage` judges statements of sites about their use."""
        self._exclusions = exclusions
        self._forgotten = forgotten
        self.trapped = trapped
        self.robots = robots
        self.usage = usage
        self._obey = obey
        self.logins: FormLogins | None = None
        """Logins; None if no page needs a session."""
        self.requests: Requests | None = None
        """Listed requests; None if there are none."""

    def excludes(self, url: Url) -> bool:
        """Say whether a URL's host is excluded, also from prerequisite fetches."""
        return self._exclusions.covers(url.host) or self._forgotten_says(url) != ""

    def ask(self, url: Url, now: float) -> FetchVerdict:
        """Return whether a URL may be fetched now."""
        if self._exclusions.covers(url.host):
            return FetchVerdict(outcome="excluded", reason="its host is on the exclusion list")
        if self._forgotten is not None and (says := self._forgotten_says(url)):
            return FetchVerdict(outcome="excluded", reason=says)
        if self.requests is not None and self.requests.was_sent(url):
            reason = "it was sent before, is not idempotent, and what became of it is not known"
            return FetchVerdict(outcome="not_repeated", reason=reason)
        trap = self.trapped(url)
        if trap is not None:
            return FetchVerdict(outcome="trapped", reason=trap)
        if not self._obey:
            return self._in_session(url, now)
        turn_at = self.robots.turn_at(url, now)
        if turn_at > now:
            return FetchVerdict(wait_until=turn_at, reason="its robots.txt is long, and others are read first")
        said = self.robots.verdict(url, now)
        if said.kind == "allowed":
            if self.usage is not None and self.usage.is_purpose_declared:
                return self._used(url, now)
            return ALLOWED if self.logins is None else self.logins.verdict(url, now)
        if said.kind == "denied":
            return FetchVerdict(outcome="robots_denied", reason="robots.txt disallows it")
        if said.kind == "unknown":
            return FetchVerdict(
                prerequisite=self.robots.prerequisite(url), reason="robots.txt must be read first", park=True
            )
        if said.kind == "wait":
            return FetchVerdict(wait_until=said.until, reason=said.reason)
        return FetchVerdict(outcome="robots_unreachable", reason=said.reason)

    def _used(self, url: Url, now: float) -> FetchVerdict:
        assert self.usage is not None
        missing = self.usage.missing(url, now)
        if isinstance(missing, float):
            return FetchVerdict(wait_until=missing, reason="a license that it names is being requested")
        if missing is not None:
            is_own = missing.url.origin == url.origin
            return FetchVerdict(prerequisite=missing, reason=f"{missing.document} must be read first", park=is_own)
        refusal = self.usage.refused(url, now)
        return FetchVerdict(outcome="usage_denied", reason=refusal) if refusal else self._in_session(url, now)

    def _forgotten_says(self, url: Url) -> str:
        """Return why a forgotten page must not be fetched again; empty for other pages."""
        entry = self._forgotten.entry(url.text, url.key) if self._forgotten is not None else None
        return entry.says() if entry is not None else ""

    def _in_session(self, url: Url, now: float) -> FetchVerdict:
        """Return the verdict on the session of a URL that may be fetched otherwise."""
        return self.logins.verdict(url, now) if self.logins is not None else ALLOWED


def _once_more(prerequisite: Prerequisite) -> Prerequisite:
    """Return the prerequisite fetch that answers a digest challenge. It counts as a hop, so that a series ends."""
    return msgspec.structs.replace(prerequisite, hops=prerequisite.hops + 1)


CHALLENGES_MAX = 3
"""Consecutive digest challenges and redirects after which a challenge is not answered."""
ELSEWHERE_S_MAX = 40.0
"""Longest wait of an origin for a robots.txt from another host; then it is requested again. A crash loses the request
but not the wait, which is in the host record."""


class PrerequisiteResults:
    """Handles results of prerequisite fetches: requests the next hop, or releases the waiting host."""

    def __init__(
        self,
        permit: Permit,
        control: HostControl,
        name: Callable[[str], Url | None],
        failed: Callable[[Prerequisite, str], None],
        exchange: Exchange | None = None,
        hubs: Subscriptions | None = None,
    ) -> None:
        """`name` returns the `Url` of a redirect's target; `failed` is called with the reason if a robots.txt could not
        be fetched.
        """
        self._permit = permit
        self._control = control
        self._name = name
        self._failed = failed
        self._exchange = exchange
        self._hubs = hubs
        self.resources: PageResources | None = None
        """Resources of rendered pages; None if nothing is rendered."""

    def answer(self, prerequisite: Prerequisite, body: bytes, result: Reply | Failure, now: float) -> None:
        """Handle the result of a prerequisite fetch. A redirect becomes another prerequisite fetch; a robots.txt
        releases the host that waits for it.
        """
        if isinstance(result, Failure) and result.again and self._run(prerequisite, now):
            return
        if prerequisite.resource or prerequisite.token or prerequisite.login:
            self._other_answered(prerequisite, body, result, now)
            return
        if self._exchange is not None and not self._exchange.has(prerequisite.origin):
            self._exchange.answer_prerequisite(prerequisite, result, body)
            return
        if prerequisite.document:
            self._document_answered(prerequisite, body, result, now)
            return
        is_challenged = isinstance(result, Reply) and result.challenged and prerequisite.hops < CHALLENGES_MAX
        if is_challenged and self._run(_once_more(prerequisite), now):
            return
        robots = self._permit.robots
        target = robots.answer(prerequisite, result, body, now)
        while target is not None:
            url = self._name(target)
            refused = Failure("robots_unreachable", f"robots.txt redirects to {target}, which cannot be requested")
            may = url is None or not self._permit.excludes(url)
            if (
                url is not None
                and may
                and self._run(Prerequisite(prerequisite.origin, url, prerequisite.hops + 1), now)
            ):
                return
            target = robots.answer(prerequisite, refused, b"", now)
        if isinstance(result, Failure) or result.status >= 400:
            why = result.error if isinstance(result, Failure) else f"HTTP {result.status}"
            self._failed(prerequisite, why)
        self._control.set_crawl_delay(prerequisite.origin, robots.crawl_delay_s(prerequisite.origin), now)
        said = robots.verdict(prerequisite.origin, now)
        if said.kind == "wait":
            self._control.hold(prerequisite.origin, said.until, said.reason, now)
        elif prerequisite.hops:
            self._control.release(prerequisite.origin, now)
        self._control.unpark(prerequisite.origin, now)

    def _other_answered(self, prerequisite: Prerequisite, body: bytes, result: Reply | Failure, now: float) -> None:
        """Handle the result for a page that is rendered, from a hub, or for a login."""
        if prerequisite.token:
            self._hub_answered(prerequisite, result, now)
        elif prerequisite.login:
            self._login_answered(prerequisite, body, result, now)
        elif self.resources is not None:
            self.resources.answered(prerequisite, result, now)

    def refused(self, prerequisite: Prerequisite, now: float) -> Failure | None:
        """Return why a prerequisite fetch must not be made now, or None: only resources of pages can be refused at this
        point.
        """
        return (
            self.resources.refused(prerequisite, now) if prerequisite.resource and self.resources is not None else None
        )

    def _document_answered(self, prerequisite: Prerequisite, body: bytes, result: Reply | Failure, now: float) -> None:
        """Handle a document about the use of a site. Its redirects are followed."""
        usage = self._permit.usage
        assert usage is not None, "nothing asks for documents where usage is not judged"
        target = usage.answer(prerequisite, result, body, now)
        while target is not None:
            url = self._name(target)
            may = url is not None and not self._permit.excludes(url)
            onward = (
                msgspec.structs.replace(prerequisite, url=url, hops=prerequisite.hops + 1)
                if url is not None
                else prerequisite
            )
            if may and self._run(onward, now):
                return
            refused = Failure(
                "robots_unreachable", f"{prerequisite.document} redirects to {target}, which cannot be requested"
            )
            target = usage.answer(prerequisite, refused, b"", now)
        if prerequisite.hops or not prerequisite.document.startswith(prerequisite.origin.origin + "/"):
            self._control.release(prerequisite.origin, now)
        self._control.unpark(prerequisite.origin, now)

    def run_elsewhere(self, prerequisite: Prerequisite, now: float) -> None:
        """Request a document of another origin, through the gates of its host. The origin that refers to it waits; a
        document that cannot be requested counts as empty.
        """
        assert self._permit.usage is not None, "nothing asks for documents where usage is not judged"
        self._permit.usage.requested(prerequisite, now)
        if self._permit.excludes(prerequisite.url) or not self._run(prerequisite, now):
            refused = Failure("robots_unreachable", f"{prerequisite.document} cannot be requested")
            self._document_answered(prerequisite, b"", refused, now)
            return
        self._control.hold(
            prerequisite.origin, now + ELSEWHERE_S_MAX, f"{prerequisite.document} must be read first", now
        )

    def _hub_answered(self, prerequisite: Prerequisite, result: Reply | Failure, now: float) -> None:
        further = self._hubs.answered(prerequisite, result, now) if self._hubs is not None else None
        if further is not None and self._hubs is not None and not self._control.run_prerequisite(further, now):
            self._hubs.answered(further, Failure("host_closed", "the hub cannot be requested now"), now)

    def passed(self, url: Url, now: float) -> None:
        """Note that a visit has ended, so that the next one may use its session."""
        if self._permit.logins is not None:
            for waiting in self._permit.logins.passed(url):
                self._control.unpark(waiting, now)

    def _login_answered(self, prerequisite: Prerequisite, body: bytes, result: Reply | Failure, now: float) -> None:
        logins = self._permit.logins
        assert logins is not None, "only a login makes such requests"
        further = logins.answered(prerequisite, result, body, now)
        while further is not None and not self._control.run_prerequisite(further, now):
            further = logins.answered(further, Failure("host_closed", "its host cannot be requested now"), b"", now)
        for waiting in logins.released(prerequisite):
            self._control.unpark(waiting, now)

    def _run(self, prerequisite: Prerequisite, now: float) -> bool:
        """Request the target of a redirect. Meanwhile the origin waits, but not the other origins of its host."""
        if self._exchange is None or self._exchange.has(prerequisite.url):
            runs = self._control.run_prerequisite(prerequisite, now)
        else:
            runs = self._exchange.run_prerequisite(prerequisite)
        if runs and prerequisite.url.host != prerequisite.origin.host:
            self._control.hold(
                prerequisite.origin,
                now + ELSEWHERE_S_MAX,
                f"its {prerequisite.document or 'robots.txt'} is at {prerequisite.url.text}",
                now,
            )
            self._control.unpark(prerequisite.origin, now)
        return runs


class Usage:
    """What a crawl does about statements on the use of pages, given the purposes that its operator declares. About 5 µs
    for a page without statements.

    A page whose site refuses all of the purposes is not requested. A page that refuses them itself is not kept. Without
    a declared purpose nothing is refused: statements are recorded, and no document except robots.txt is requested.
    """

    def __init__(self, robots: SiteRobots, documents: SiteDocuments, purposes: Sequence[str] = ()) -> None:
        """`purposes` are those of `model.usage` that the operator declares."""
        self._robots = robots
        self._purposes = tuple(purposes)
        self.is_purpose_declared = bool(purposes)
        """Whether a purpose is declared; otherwise no URL waits for a document or is refused."""
        self._documents = documents
        self.answer = documents.answer
        """Handles the result of a request for a document; returns the target of a redirect, if any."""
        self.requested = documents.requested
        """Notes that a document of another origin is being requested."""

    def missing(self, url: Url, now: float) -> Prerequisite | float | None:
        """Return the request for a document that must be read before a URL is requested; or a time to check again, if
        the document is already being requested for another origin; None if no document is missing.
        """
        return self._documents.missing(url, now) if self._purposes else None

    def refused(self, url: Url, now: float) -> str:
        """Return why a URL must not be requested; empty if it may be."""
        if not self._purposes:
            return ""
        stated = self._of_site(url)
        return self._refusal(resolve(stated, now)) if stated else ""

    def judge(self, url: Url, found: Sequence[Statement], row: PageRow, *, is_read: bool = True) -> str:
        """Write the statements about a page's use into its row; return why the page must not be kept, empty if it may
        be. `found` are the statements of the page and its headers. A copy that was not read (`is_read` False) allows
        nothing.
        """
        of_site = self._of_site(url) if self._purposes else self._robots.statements(url)
        if not (of_site or found):
            return ""
        stated = (*of_site, *found)
        answers = resolve(stated, row.fetched_at)
        if not is_read:
            answers = {
                purpose: one if one.value == REFUSED else UsageAnswer(UNKNOWN) for purpose, one in answers.items()
            }
        row.usage_search, row.usage_archive = answers["search"].value, answers["archive"].value
        row.usage_ai_train, row.usage_ai_input = answers["ai-train"].value, answers["ai-input"].value
        row.usage_reason, row.usage_statements = reasons(answers), texts(stated)
        return self._refusal(answers)

    def _of_site(self, url: Url) -> tuple[Statement, ...]:
        return (*self._robots.statements(url), *self._documents.statements(url))

    def _refusal(self, answers: dict[str, UsageAnswer]) -> str:
        declared = {purpose: answers[purpose] for purpose in self._purposes}
        if not declared or any(answer.value != REFUSED for answer in declared.values()):
            return ""
        return reasons(declared)
