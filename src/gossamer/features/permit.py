"""Permit: the checks that every crawl makes at the last moment before a request: the exclusion list, robots.txt, and
statements about the use of pages.
"""

from collections.abc import Callable, Sequence

import msgspec

from gossamer.model.links import ALLOWED, Prerequisite, Verdict
from gossamer.model.usage import REFUSED, UNKNOWN, Statement, UsageAnswer, reasons, resolve, texts
from gossamer.model.visits import Failure, Reply
from gossamer.ports import Conclusion, ExaminedPage, VisitMiddleware
from gossamer.stages.frontier.scheduler import HostControl
from gossamer.stages.robots.documents import SiteDocuments
from gossamer.stages.robots.robots import SiteRobots
from gossamer.stages.scope.forgotten import Forgotten
from gossamer.stages.scope.lists import ExcludedHost
from gossamer.url.url import NameUrl, Url

CHALLENGES_MAX = 3
"""Consecutive digest challenges and redirects after which a challenge is not answered."""


class Exclusions(VisitMiddleware):
    """Denies hosts on the exclusion list, and pages that were forgotten."""

    name = "exclusions"

    def __init__(self, listed: ExcludedHost, forgotten: Forgotten | None = None) -> None:
        self._listed = listed
        self._forgotten = forgotten

    def judge(self, url: Url, now: float) -> Verdict:
        if self._listed.covers(url.host):
            return Verdict(outcome="excluded", reason="its host is on the exclusion list")
        entry = self._forgotten.entry(url.text, url.key) if self._forgotten is not None else None
        return Verdict(outcome="excluded", reason=entry.says()) if entry is not None else ALLOWED

    def excludes(self, url: Url) -> bool:
        """Return whether a URL must not be requested, not even by a prerequisite fetch."""
        return not self.judge(url, 0.0).allowed


def robots_verdict(robots: SiteRobots, url: Url, now: float) -> Verdict:
    """Return the verdict of an origin's robots.txt on a URL; if it is unknown, with the fetch of the file."""
    turn_at = robots.turn_at(url, now)
    if turn_at > now:
        return Verdict(wait_until=turn_at, reason="its robots.txt is long, and others are read first")
    said = robots.verdict(url, now)
    if said.kind == "allowed":
        return ALLOWED
    if said.kind == "denied":
        return Verdict(outcome="robots_denied", reason="robots.txt disallows it")
    if said.kind == "unknown":
        return Verdict(prerequisite=robots.prerequisite(url), reason="robots.txt must be read first", park=True)
    if said.kind == "wait":
        return Verdict(wait_until=said.until, reason=said.reason)
    return Verdict(outcome="robots_unreachable", reason=said.reason)


class RobotsTxt(VisitMiddleware):
    """Denies what an origin's robots.txt disallows, and has it fetched first (RFC 9309)."""

    name = "robots"
    archived_as = "robots"
    reads_body = True

    def __init__(
        self,
        robots: SiteRobots,
        control: HostControl,
        name: NameUrl,
        excludes: Callable[[Url], bool],
        on_failed: Callable[[Prerequisite, str], None],
    ) -> None:
        """`name` returns the `Url` of a redirect's target; `on_failed` gets the reason if a file cannot be fetched."""
        self._robots = robots
        self._control = control
        self._name = name
        self._excludes = excludes
        self._on_failed = on_failed

    def judge(self, url: Url, now: float) -> Verdict:
        return robots_verdict(self._robots, url, now)

    def answered(
        self, prerequisite: Prerequisite, result: Reply | Failure, body: bytes, now: float
    ) -> Prerequisite | None:
        if isinstance(result, Reply) and result.challenged and prerequisite.hops < CHALLENGES_MAX:
            # The next request answers the challenge. It counts as a hop, so that a series ends.
            return msgspec.structs.replace(prerequisite, hops=prerequisite.hops + 1)
        target = self._robots.answer(prerequisite, result, body, now)
        if target is not None:
            url = self._name(target)
            if url is not None and not self._excludes(url):
                return msgspec.structs.replace(prerequisite, url=url, hops=prerequisite.hops + 1)
            result = Failure("robots_unreachable", f"robots.txt redirects to {target}, which cannot be requested")
            self._robots.answer(prerequisite, result, b"", now)
        self._conclude(prerequisite, result, now)
        return None

    def _conclude(self, prerequisite: Prerequisite, result: Reply | Failure, now: float) -> None:
        """Release the origin that waits for its file, or have it wait for another attempt."""
        origin = prerequisite.origin
        if isinstance(result, Failure) or result.status >= 400:
            self._on_failed(prerequisite, result.error if isinstance(result, Failure) else f"HTTP {result.status}")
        self._control.set_crawl_delay(origin, self._robots.crawl_delay_s(origin), now)
        said = self._robots.verdict(origin, now)
        if said.kind == "wait":
            self._control.hold(origin, said.until, said.reason, now)
        elif prerequisite.hops:
            self._control.release(origin, now)
        self._control.unpark(origin, now)

    def moved(self, first: int, end: int) -> None:
        self._robots.forget()


class Usage(VisitMiddleware):
    """Applies statements on the use of pages to the purposes that the crawl's operator declares. About 5 µs
    for a page without statements.

    A page whose site refuses all of the purposes is not requested. A page that refuses them itself is not kept. Without
    a declared purpose nothing is refused: statements are recorded, and no document except robots.txt is requested.
    """

    name = "usage"
    archived_as = "usage"
    reads_body = True

    def __init__(
        self,
        robots: SiteRobots,
        documents: SiteDocuments,
        control: HostControl,
        excludes: Callable[[Url], bool],
        purposes: Sequence[str] = (),
        *,
        obeys: bool = True,
    ) -> None:
        """`purposes` are those of `model.usage` that the operator declares; without `obeys` no request is denied."""
        self._robots = robots
        self._documents = documents
        self._control = control
        self._excludes = excludes
        self._purposes = tuple(purposes)
        self.judges = obeys and bool(purposes)

    # ---- before a request

    def judge(self, url: Url, now: float) -> Verdict:
        missing = self._documents.missing(url, now)
        if isinstance(missing, float):
            return Verdict(wait_until=missing, reason="a license that it names is being requested")
        if missing is not None:
            is_own = missing.url.origin == url.origin
            reason = f"{missing.subject} must be read first"
            return Verdict(prerequisite=missing, reason=reason, park=is_own, owner="" if is_own else self.name)
        stated = self._of_site(url)
        refusal = self._refusal(resolve(stated, now)) if stated else ""
        return Verdict(outcome="usage_denied", reason=refusal) if refusal else ALLOWED

    def wait(self, url: Url, verdict: Verdict, now: float) -> None:
        if verdict.prerequisite is not None:
            self._documents.note_request(verdict.prerequisite, now)

    def answered(
        self, prerequisite: Prerequisite, result: Reply | Failure, body: bytes, now: float
    ) -> Prerequisite | None:
        target = self._documents.answer(prerequisite, result, body, now)
        if target is not None:
            url = self._documents.name(target)
            if url is not None and not self._excludes(url):
                return msgspec.structs.replace(prerequisite, url=url, hops=prerequisite.hops + 1)
            error = f"{prerequisite.subject} redirects to {target}, which cannot be requested"
            self._documents.answer(prerequisite, Failure("robots_unreachable", error), b"", now)
        origin = prerequisite.origin
        if prerequisite.hops or not prerequisite.subject.startswith(origin.origin + "/"):
            self._control.release(origin, now)
        self._control.unpark(origin, now)
        return None

    # ---- after it

    def settle_document(self, page: ExaminedPage, now: float) -> Conclusion | None:
        """Write what a page, its headers and its site state into its row. A copy that was not read allows nothing."""
        url = page.visit.url
        row = page.row
        found = page.findings.statements
        of_site = self._of_site(url) if self._purposes else self._robots.statements(url)
        if not (of_site or found):
            return None
        stated = (*of_site, *found)
        answers = resolve(stated, row.fetched_at)
        if not page.is_read:
            answers = {use: one if one.value == REFUSED else UsageAnswer(UNKNOWN) for use, one in answers.items()}
        row.usage_search = answers["search"].value
        row.usage_archive = answers["archive"].value
        row.usage_ai_train = answers["ai-train"].value
        row.usage_ai_input = answers["ai-input"].value
        row.usage_reason = reasons(answers)
        row.usage_statements = texts(stated)
        refusal = self._refusal(answers)
        return Conclusion("usage_withheld", refusal, keeps_body=False) if refusal else None

    def _of_site(self, url: Url) -> tuple[Statement, ...]:
        return (*self._robots.statements(url), *self._documents.statements(url))

    def _refusal(self, answers: dict[str, UsageAnswer]) -> str:
        declared = {purpose: answers[purpose] for purpose in self._purposes}
        if not declared or any(answer.value != REFUSED for answer in declared.values()):
            return ""
        return reasons(declared)
