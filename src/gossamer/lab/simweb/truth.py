"""Truth: the expected result of a crawl of a synthetic web, computed from the generator instead of HTTP.

Nothing here uses HTTP or an HTML parser: the generator lists the links of a page. So a crawler and this walk share no
code that could be wrong in both.
"""

import heapq
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from gossamer.lab.simweb import robots
from gossamer.lab.simweb.behaviors import read
from gossamer.lab.simweb.hosts import WebHost
from gossamer.lab.simweb.sheet import FOLLOWED, Made, Mark, ServedAnswer
from gossamer.lab.simweb.web import Web, parts_of

Scope = Literal["prefix", "host", "domain", "any"]
HOPS_MAX = 5
OUTCOME_OF_MANNER: dict[str, str] = read("replies.toml")["outcomes"]
OUTCOME_OF_STATUS = {402: "payment_required", 451: "legally_blocked"}
EMBED = "embed"
DEAD_ALSO = ("robots_unreachable", "host_closed")


class Expected(msgspec.Struct, frozen=True, gc=False):
    """How one address must end."""

    outcome: str
    also: tuple[str, ...] = ()
    """Outcomes that are right as well, where servers misbehave in ways on which clients differ."""
    status: int = 0
    depth: int = 0
    """Least number of clicks from a seed; redirects are no clicks."""
    once: bool = True
    """It must be asked for exactly once; else once or more (denied and dead ones never)."""

    def allows(self, outcome: str) -> bool:
        """Return whether an outcome is right."""
        return outcome == self.outcome or outcome in self.also


class TruthWalk(msgspec.Struct):
    """All that a right crawl ends with. Addresses are canonical keys (here: as WHATWG writes them)."""

    pages: dict[str, Expected] = msgspec.field(default_factory=dict)
    """Every address that must have an outcome."""
    optional: set[str] = msgspec.field(default_factory=set)
    """Addresses that may appear, or not: beyond the limit of hops, or named where crawlers differ."""
    links: set[tuple[str, str]] = msgspec.field(default_factory=set)
    """(from, to) of every link that must be recorded, followed or not; empty unless asked for."""
    links_optional: set[tuple[str, str]] = msgspec.field(default_factory=set)
    """Links that may be recorded, or not."""

    def differences(self, found: Mapping[str, str], web: Web) -> list[str]:
        """Compare with the outcomes of a crawl, by address; return a line for each difference."""
        lines = [
            f"missing: {url} should be {expected.outcome}"
            for url, expected in self.pages.items()
            if url not in found and expected.outcome != "robots_denied"
        ]
        for url, outcome in found.items():
            expected = self.pages.get(url)
            if expected is None:
                if url not in self.optional and not web.is_trap(url):
                    lines.append(f"unexpected: {url} is {outcome}")
            elif not expected.allows(outcome):
                lines.append(f"wrong: {url} is {outcome}, should be {expected.outcome}")
        return sorted(lines)


class Truth:
    """Answers what is right for one web and one robot. Pages of traps are in no answer (`Web.is_trap` tells them)."""

    def __init__(self, web: Web, agent: str | None = None) -> None:
        """`agent` is the product token that robots.txt is read for; the web's own by default."""
        self._web = web
        self._agent = agent or web.options.agent
        self._robots: dict[int, robots.RobotsPlan] = {}

    def walk(
        self,
        seeds: Iterable[str],
        scope: Scope = "any",
        depth_max: int | None = None,
        hops_max: int = HOPS_MAX,
        *,
        links: bool = False,
        embeds: bool = False,
    ) -> TruthWalk:
        """Return how every address must end, at about 35 µs a page, and, if asked, the links (some 200 bytes each).

        `embeds`: what pages need to be shown is fetched as well.
        """
        return _Walk(self, self._web, _Limits(scope, depth_max, hops_max, links, embeds), tuple(seeds)).run()

    def judge(self, url: str) -> tuple[Expected, Made | None]:
        """Return the expected outcome of a request, and the page if it has links."""
        name, path = parts_of(url)
        host = self._web.host(name)
        if host is not None and not url.startswith(self._web.front(host)):
            return Expected("connect_error", DEAD_ALSO, once=False), None  # Another port: it is closed.
        if host is None:
            return Expected("connect_error" if name in self._web.names else "dns_error", DEAD_ALSO, once=False), None
        if (denied := self._robots_denial(host, path)) is not None:
            return denied, None
        made = self._web.describe(host, path)
        answer = made.answers[-1]
        outcome = made.outcome or outcome_of(answer)
        expected = Expected(outcome, made.also, answer.status, once=made.once)
        return expected, made if outcome in ("fetched", "redirected") else None

    def may_fetch(self, host: WebHost, path: str) -> bool:
        """Return whether the host's robots.txt lets the robot fetch a path."""
        return self._robots_denial(host, path) is None

    def crawl_delay_s(self, host: WebHost) -> float:
        """Return the Crawl-delay that the host asks of the robot, or 0."""
        return robots.crawl_delay_s(self._plan(host).groups, self._agent)

    def _robots_denial(self, host: WebHost, path: str) -> Expected | None:
        plan = self._plan(host)
        if robots.STANDING.fullmatch(path):
            return None
        if plan.verdict == "unreachable":
            return Expected("robots_unreachable", ("host_closed",), once=False)
        return None if robots.allows(plan.groups, self._agent, path) else Expected("robots_denied", once=False)

    def _plan(self, host: WebHost) -> robots.RobotsPlan:
        plan = self._robots.get(host.index)
        if plan is None:
            plan = self._robots[host.index] = self._web.robots(host)
        return plan


def outcome_of(answer: ServedAnswer) -> str:
    """Return the outcome that follows from an answer alone."""
    if answer.manner in OUTCOME_OF_MANNER:
        return OUTCOME_OF_MANNER[answer.manner]
    if answer.status >= 400:
        return OUTCOME_OF_STATUS.get(answer.status, "http_error")
    return "redirected" if answer.status >= 300 else "fetched"


class _Limits(msgspec.Struct, frozen=True):
    scope: Scope
    depth_max: int | None
    hops_max: int
    links: bool
    embeds: bool


class _Walk:
    """One walk, nearest first: by (depth, hops). A page met again by fewer clicks or fewer hops is walked again.

    Depth and hops of an address are the least of all its ways, each for itself: what is reached does not depend on the
    order in which ways were found.
    """

    def __init__(self, truth: Truth, web: Web, limits: _Limits, seeds: tuple[str, ...]) -> None:
        self._truth = truth
        self._web = web
        self._limits = limits
        self._walked = TruthWalk()
        self._ways: dict[str, tuple[int, int]] = {}
        self._heap: list[tuple[int, int, str]] = []
        self._queued: dict[str, tuple[int, int]] = {}
        self._prefixes = [url[: url.rindex("/") + 1] for url in seeds]
        self._names: set[str] = set()
        self._read: set[str] = set()
        for url in seeds:
            self._widen(parts_of(url)[0])
            heapq.heappush(self._heap, (0, 0, url))
        self._from_seed = set(seeds)

    def run(self) -> TruthWalk:
        while self._heap:
            depth, hops, url = heapq.heappop(self._heap)
            known = self._ways.get(url)
            least = (depth, hops) if known is None else (min(depth, known[0]), min(hops, known[1]))
            if least != known:
                self._ways[url] = least
                self._visit(*least, url, first=known is None)
        self._walked.optional -= set(self._walked.pages)
        return self._walked

    def _visit(self, depth: int, hops: int, url: str, *, first: bool) -> None:
        expected, made = self._truth.judge(url)
        self._walked.pages[url] = msgspec.structs.replace(expected, depth=depth)
        self._read_robots(parts_of(url)[0])
        if made is None:
            return
        for mark in made.marks:
            if first and self._limits.links:
                optional = made.links_optional or mark.optional
                (self._walked.links_optional if optional else self._walked.links).add((url, mark.url))
            self._follow(mark, depth, hops, url)

    def _read_robots(self, name: str) -> None:
        """Follow the sitemaps that a host's robots.txt names, once; not where clicks are counted."""
        host = self._web.host(name)
        if host is None or name in self._read or self._limits.depth_max is not None:
            return
        self._read.add(name)
        for url in self._web.sitemaps(host):
            heapq.heappush(self._heap, (0, 0, url))

    def _follow(self, mark: Mark, depth: int, hops: int, url: str) -> None:
        target = mark.key or mark.url
        if mark.link_type == EMBED and self._limits.embeds:
            # Part of its page, and no click.
            if depth < self._queued.get(target, (depth + 1, 0))[0] and self._in_scope(target):
                self._queue((depth, 0), target)
            return
        if mark.nofollow or mark.link_type not in FOLLOWED or not target.startswith("http://"):
            if target.startswith("https://") and mark.optional:
                self._walked.optional.add(target)
            return
        if mark.key and self._limits.links:
            # Asked for as written, it redirects to its key.
            self._walked.links_optional.add((mark.url, mark.key))
        redirect = mark.link_type == "redirect"
        way = (depth, hops + 1) if redirect else (depth + 1, 0)
        queued = self._queued.get(target)
        if queued is not None and queued[0] <= way[0] and queued[1] <= way[1] and not redirect:
            return
        if redirect and url in self._from_seed:
            # A seed that is redirected takes the scope along.
            self._from_seed.add(target)
            self._widen(parts_of(target)[0])
            self._prefixes.append(target[: target.rindex("/") + 1])
        if not self._in_scope(target) or self._web.is_trap(target):
            return
        if mark.optional or way[1] > self._limits.hops_max:
            self._walked.optional.add(target)
        elif self._limits.depth_max is None or way[0] <= self._limits.depth_max:
            self._queue(way, target)

    def _queue(self, way: tuple[int, int], url: str) -> None:
        self._queued[url] = way
        heapq.heappush(self._heap, (*way, url))

    def _widen(self, name: str) -> None:
        host = self._web.host(name)
        self._names.add(host.site if host is not None and self._limits.scope == "domain" else name)

    def _in_scope(self, url: str) -> bool:
        match self._limits.scope:
            case "any":
                return True
            case "host":
                return parts_of(url)[0] in self._names
            case "domain":
                host = self._web.host(parts_of(url)[0])
                return host is not None and host.site in self._names
            case "prefix":
                return any(url.startswith(prefix) for prefix in self._prefixes)
