"""Explain: everything known about one URL, and the rule that decided."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from gossamer.engine.history import UNVISITED, PageRecord, UrlMemory, holding
from gossamer.model.links import Link
from gossamer.model.standing import BudgetFacts, HostFacts, OriginFacts
from gossamer.model.words import counted, instant
from gossamer.ports import UrlSeen, WaylessUrlSeen
from gossamer.stages.robots.gate import robots_url
from gossamer.stages.robots.record import AnswerKind, RobotsRecord
from gossamer.stages.scope.chain import Chain
from gossamer.stages.scope.forgotten import NAME as FORGOTTEN
from gossamer.stages.scope.forgotten import Forgotten
from gossamer.url.url import Url

EXCLUDED = "excluded_host"
"""Name of the filter for excluded hosts."""
_NOT_READ = "it is requested for its rules, before a page of its host, and no such request has ended so far"


class Lookups(NamedTuple):
    """Lookups of a URL in other components."""

    host: Callable[[Url], HostFacts]
    is_leased: Callable[[Url], bool]
    """Whether it is being fetched now."""
    robots: Callable[[Url], RobotsRecord | None] = lambda _: None
    """The robots.txt of its origin."""
    further: Sequence[Callable[[Url], dict[str, object]]] = ()
    """Return more of the answer; empty if there is nothing to say."""


class Explainer:
    """Explains the state of a URL. Works on a running shard and on the store of a stopped one."""

    def __init__(self, urls: UrlMemory, chain: Chain, lookups: Lookups) -> None:
        self._namer = urls.namer
        self._chain = chain
        self._url_seen = urls.url_seen
        self._was_offered = offer_test(urls.url_seen)
        self._holding = holding(urls.url_seen)
        self._history = urls.history
        self._lookups = lookups

    def why(self, text: str) -> dict[str, object]:
        """Return a URL's state with its reason; times as ISO 8601 in UTC."""
        url = self._namer.name_typed(text)
        if url is None:
            return {"url": text, "state": "unknown", "reason": "it is not an address that can be visited"}
        answer: dict[str, object] = {"url": url.text, "key": url.key, "host": url.host, "site": url.site}
        if url.key != url.text:
            answer["key_rules"] = [f"{rule}: {made}" for rule, made in self._namer.changes(url.text)]
        record = self._history.get(url)
        path = self._url_seen.way(url)
        facts = self._lookups.host(url)
        if record is not UNVISITED:
            answer |= _last_attempt(record)
        if path is not None:
            answer |= {"depth": path[0], "hops": path[1]}
        answer |= {"state": "", "reason": "", "rule": None}
        answer |= self._find_forgotten(url) or self._state(url, record, facts, path)
        for look_up in self._lookups.further:
            more = look_up(url)
            if answer["state"] == "waiting":  # Another attempt comes before anything else is due.
                more.pop("next_due", None)
            answer |= more
        answer["host_state"] = _host_state(facts)
        return answer

    def _state(self, url: Url, record: PageRecord, facts: HostFacts, path: tuple[int, int] | None) -> dict[str, object]:
        if record is UNVISITED and not self._was_offered(url):
            return self._never_queued(url)
        if record.final:
            return {"state": record.outcome, "reason": record.error or _reasons(record), "rule": record.outcome}
        if self._lookups.is_leased(url):
            return {"state": "in_flight", "reason": "it is being fetched now"}
        if facts.closed:
            return {"state": "host_closed", "reason": facts.closed, "rule": "host_closed"}
        if self._chain.explain(Link(url, "anchor", 0)) == EXCLUDED:
            return {"state": "queued", "reason": "its host is excluded by now: it ends in its turn", "rule": EXCLUDED}
        # How it was found is not known here. Filters that reject a seed reject the URL in any case.
        rule, reason = self._chain.rejects_again(Link(url, "seed", *(path or (0, 0))))
        if rule:
            return {"state": "queued", "reason": f"{reason}; it ends in its turn", "rule": rule}
        if facts.deferred:
            return {"state": "deferred", "reason": _why_deferred(facts.budget), "rule": "budget"}
        if facts.due_at is not None:
            return {
                "state": "waiting",
                "reason": f"attempt {facts.attempt} is due after: {facts.error or 'a redirect'}",
                "next_due": instant(max(facts.due_at, facts.delay_until)),
            }
        if not facts.queued:
            return {"state": "found", "reason": "pages link to it; the walk has not reached it yet"}
        next_at = facts.delay_until
        if facts.origin is not None and facts.origin.state != "closed":
            next_at = max(next_at, facts.origin.next_at)
        queued: dict[str, object] = {"state": "queued", "reason": _why_queued(facts)}
        if next_at:
            queued["next_due"] = instant(next_at)
        return queued

    def _find_forgotten(self, url: Url) -> dict[str, object]:
        """Return when and why a page was forgotten, while that is in force; else an empty dictionary."""
        link = Link(url, "anchor", 0)
        reason = next((one.detail(link) for one in self._chain.filters if isinstance(one, Forgotten)), "")
        return {"state": FORGOTTEN, "reason": reason, "rule": FORGOTTEN} if reason else {}

    def _never_queued(self, url: Url) -> dict[str, object]:
        if self._holding.holds(url):
            return {"state": "held", "reason": "pages link to it; it is awaiting the duplicate check"}
        is_robots = url.text == robots_url(url)
        robots = self._lookups.robots(url) if is_robots else None
        if robots is not None:
            return _read_for_rules(robots)
        link = Link(url, "anchor", 0)
        rule = self._chain.explain(link)
        if rule:
            detail = self._chain.detail(link)
            reason = f"the filter `{rule}` rejects it" + (f": {detail}" if detail else "")
            return {"state": "rejected", "reason": reason, "rule": rule}
        stopped = self._history.last_stop(url)
        if stopped is None:
            reason = "no seed, redirect or link that is followed has named it so far, within the depth allowed; "
            reason += "links with nofollow, and entries of a sitemap for other hosts, are not followed"
            return {"state": "unknown", "reason": _NOT_READ if is_robots else reason}
        answer: dict[str, object] = {"depth": stopped.depth, "hops": stopped.hops, "referrer": stopped.referrer}
        rule = self._chain.explain(stopped)
        if not rule:
            reason = f"{stopped.referrer} redirected to it when fewer redirects were followed; seed it to visit it"
            return answer | {"state": "unknown", "reason": reason}
        reason = f"the filter `{rule}` rejects it: {self._chain.detail(stopped)}"
        return answer | {"state": "rejected", "reason": reason, "rule": rule}


def _read_for_rules(robots: RobotsRecord) -> dict[str, object]:
    """Return when a robots.txt was read, with what result, and how long that is in force."""
    answer: dict[str, object] = {"state": "prerequisite"}
    parts = ["it is fetched for its rules, not as a page"]
    if robots.kind != AnswerKind.UNREACHABLE:
        has_rules = robots.kind == AnswerKind.RULES
        said = "its rules were read" if has_rules else "its host gives none, so all is permitted"
        parts.append(f"{said}, in force until {instant(robots.expires_at)} or until it is read again")
        answer["fetched_at"] = instant(robots.fetched_at)
    if robots.failures:
        since = " since" if "fetched_at" in answer else ""
        parts.append(f"{counted(robots.failures, 'failure')}{since}: {robots.error}")
        answer["next_due"] = instant(robots.retry_at)
    return answer | {"reason": "; ".join(parts)}


def offer_test(url_seen: UrlSeen) -> Callable[[Url], bool]:
    """Return a function that says whether a URL was offered to an eliminator, also for one without paths."""
    if isinstance(url_seen, WaylessUrlSeen):  # Checked only once, since a Protocol is compared name by name.
        return url_seen.knows
    return lambda url: url_seen.way(url) is not None


def _last_attempt(record: PageRecord) -> dict[str, object]:
    answer: dict[str, object] = {
        "outcome": record.outcome,
        "status": record.status,
        "fetched_at": instant(record.at),
        "attempt": record.attempt,
        "referrer": record.referrer,
        "error": record.error,
    }
    if record.redirect_to:
        answer["redirect_to"] = record.redirect_to
    if record.warc_offset is not None:
        answer |= {"warc_file": record.warc_file, "warc_offset": record.warc_offset}
    return answer


def _reasons(record: PageRecord) -> str:
    if record.redirect_to:
        return f"it redirects to {record.redirect_to}"
    return f"HTTP {record.status}" if record.status is not None else record.outcome


def _why_deferred(budget: BudgetFacts | None) -> str:
    used_up = []
    if budget is not None:
        parts = (("host", budget.host), ("site", budget.site))
        used_up = [f"its {whose} has used up its {what['used_up']}" for whose, what in parts if "used_up" in what]
    return f"{' and '.join(used_up) or 'its budget is used up'}; it waits for the next budget round"


def _why_queued(facts: HostFacts) -> str:
    if facts.origin is not None:
        return _why_origin_waits(facts.origin)
    if facts.parked:
        return f"its host waits for {facts.parked}"
    if facts.site_gate:
        return facts.site_gate
    return f"its host waits: {facts.reason}" if facts.reason else "it waits in its host's queue"


def _why_origin_waits(origin: OriginFacts) -> str:
    if origin.state == "closed":
        return f"{origin.origin} was given up: {origin.reason}; the URL ends in its turn"
    since = f", since {instant(origin.first_failed_at)}" if origin.first_failed_at else ""
    failed = f"does not answer ({counted(origin.failures, 'failure')} in a row{since})"
    return f"{origin.origin} {failed if origin.failures else 'waits'}: {origin.reason}"


def _host_state(facts: HostFacts) -> dict[str, object]:
    answer: dict[str, object] = {}
    if facts.budget is not None:
        answer = {"deferred": facts.deferred, "budget": msgspec.structs.asdict(facts.budget)}
    return answer | {
        "queued": facts.queued,
        "requests": facts.requests,
        "delay_until": instant(facts.delay_until) if facts.delay_until else None,
        "reason": facts.reason,
        "crawl_delay_s": facts.crawl_delay_s,
        "failures_in_a_row": facts.failures,
        "closed": facts.closed,
        "origin": _origin(facts.origin) if facts.origin is not None else None,
    }


def _origin(facts: OriginFacts) -> dict[str, object]:
    return msgspec.structs.asdict(facts) | {
        "first_failed_at": instant(facts.first_failed_at) if facts.first_failed_at else None,
        "next_at": instant(facts.next_at) if facts.next_at else None,
    }
