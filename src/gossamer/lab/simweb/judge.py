"""Judge: holds a crawl to its promises, by the server's log alone."""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import inf

import msgspec

from gossamer.lab.simweb.hosts import WebHost
from gossamer.lab.simweb.log import Logged
from gossamer.lab.simweb.truth import Truth
from gossamer.lab.simweb.web import Web

SAMPLES = 5
"""The delay goes by the mean of the last fetch times, at most this many."""
TOLERANCE_S = 0.005
"""Clocks of two processes' loops; not a licence: a delay that is wrong is wrong by more."""
ABORTED_S = 0.05
"""When a client goes away, the server notices late; a busy one on a busy machine by so much."""


class Promise(msgspec.Struct, frozen=True):
    """A crawl's promise: no request to a host sooner after the end of the last one than
    `clamp(factor * mean of the last fetch times, delay_s_min, delay_s_max)`, or Crawl-delay where that is longer. The
    mean is over up to five fetch times, from the first one on.
    """

    delay_s_min: float = 1.0
    factor: float = 10.0
    delay_s_max: float = 60.0
    address_delay_s: float = 0.0
    """From the end of one request to the start of the next at one address, for all hosts."""
    use_crawl_delay: bool = True
    per_host: int = 1
    """Requests at once to one host; 0 promises nothing."""
    per_address: int = 1
    """Requests at once to one address; 0 promises nothing."""
    crawl_delay_s_max: float = 0.0
    """No longer Crawl-delay is heeded; 0: any."""

    def clamp_s(self, mean_s: float) -> float:
        """Return the delay after fetches of this mean time, within its bounds."""
        return min(max(self.factor * mean_s, self.delay_s_min), self.delay_s_max)


class Violation(msgspec.Struct, frozen=True):
    """One broken promise."""

    kind: str
    """gap_host, gap_address, overlap_host, overlap_address, crawl_delay, retry_after, robots_denied, before_robots,
    repeated, unknown_host, wrong_address."""
    host: str
    address: str
    path: str
    at: float
    """When the offending request began."""
    needed_s: float = 0.0
    """The pause that was promised; of `repeated`, how many requests are right: 1."""
    actual_s: float = 0.0
    """The pause that was made; of `repeated`, the number of requests."""


def judge(
    log: Iterable[Logged],
    promise: Promise,
    web: Web,
    *,
    agent: str | None = None,
    tolerance_s: float = TOLERANCE_S,
    restarts: Sequence[float] = (),
) -> list[Violation]:
    """Return every violation in a log, in order of time; none is the aim.

    The fetch times that the server sees are no longer than those that the crawl sees, so what is demanded here is a
    lower bound of what was promised: a violation is never an artefact of measuring, up to `tolerance_s`. `restarts` are
    the instants at which the crawler was started again after a crash: it may have forgotten some of its fetch times
    then, though not its delays, so the minimum is demanded until there are five new ones.
    """
    truth = Truth(web, agent)
    requests = sorted(log, key=lambda one: one.contact_at)
    found: list[Violation] = []
    by_host: defaultdict[str, list[Logged]] = defaultdict(list)
    by_address: defaultdict[str, list[Logged]] = defaultdict(list)
    for one in requests:
        by_address[one.address].append(one)
        if one.host != "-":
            by_host[one.host].append(one)
    for name, mine in by_host.items():
        host = web.host(name)
        if host is None:
            found += [_violation("unknown_host", one) for one in mine]
            continue
        found += [_violation("wrong_address", one) for one in mine if one.address != host.address]
        found += _overlaps("overlap_host", mine, promise.per_host, tolerance_s)
        found += _gaps_of_host(mine, promise, truth, host, tolerance_s, restarts)
        found += _robots(mine, truth, host, web, by_host)
        found += _repeats(mine, web, host)
    for mine in by_address.values():
        found += _overlaps("overlap_address", mine, promise.per_address, tolerance_s)
        found += _gaps_of_address(mine, promise, tolerance_s)
    return sorted(found, key=lambda violation: violation.at)


def repeats(log: Iterable[Logged], web: Web) -> dict[str, int]:
    """Return how often each page was requested that should be requested once, where it was more often than once.

    A crash may cost up to one epoch's pages a second request; how many are right is for the caller to say.
    """
    counts = Counter((one.host, one.path) for one in log if one.host != "-")
    found: dict[str, int] = {}
    for (name, path), count in counts.items():
        host = web.host(name)
        if count > 1 and host is not None and web.once(host, path):
            found[web.front(host) + path.removeprefix("/")] = count
    return found


def politeness_gaps(
    requests: Sequence[Logged], promise: Promise, crawl_delay_s: float, restarts: Sequence[float], *, most: bool = False
) -> list[tuple[float, bool]]:
    """Return, for each request of one host, the pause promised after it, and whether Crawl-delay made it so long.

    Whether failures count among the fetch times is the crawler's affair: the least pause is returned that follows,
    or with `most` the longest.
    """
    whole: deque[float] = deque(maxlen=SAMPLES)
    every: deque[float] = deque(maxlen=SAMPLES)
    pending = deque(sorted(restarts))
    gaps: list[tuple[float, bool]] = []
    knows_robots = False
    samples_min = 1
    for one in requests:
        while pending and pending[0] <= one.contact_at:
            pending.popleft()
            whole.clear()
            every.clear()
            samples_min = SAMPLES  # What it still knows from before may make the mean less.
        fetch_s = one.ended_at - one.started_at
        every.append(fetch_s if one.whole or most else max(0.0, fetch_s - ABORTED_S))
        if one.whole:
            whole.append(fetch_s)
        gap_s = promise.delay_s_min
        if most:
            gap_s = promise.clamp_s(max(_mean(whole), _mean(every)))
        elif len(whole) >= samples_min:
            gap_s = promise.clamp_s(min(_mean(whole), _mean(every)))
        knows_robots = knows_robots or (one.path == "/robots.txt" and 200 <= one.status < 300 and one.whole)
        asked_s = crawl_delay_s if promise.use_crawl_delay and knows_robots else 0.0
        asked_s = min(asked_s, promise.crawl_delay_s_max or asked_s)
        gaps.append((max(gap_s, asked_s), asked_s > gap_s))
    return gaps


def _mean(fetches_s: Sequence[float]) -> float:
    return sum(fetches_s) / len(fetches_s) if fetches_s else 0.0


def _gaps_of_host(
    mine: list[Logged], promise: Promise, truth: Truth, host: WebHost, tolerance_s: float, restarts: Sequence[float]
) -> list[Violation]:
    if promise.per_host != 1:
        return _early_among_others(mine, tolerance_s)
    found: list[Violation] = []
    ended_at = retry_at = 0.0
    gaps = politeness_gaps(mine, promise, truth.crawl_delay_s(host), restarts)
    for (one, then), (gap_s, asked) in zip(pairwise(mine), gaps, strict=False):
        ended_at = max(ended_at, _end_for_client(one))
        retry_at = max(retry_at, one.retry_at)
        actual_s = then.contact_at - ended_at
        if -tolerance_s <= actual_s < gap_s - tolerance_s:
            found.append(_violation("crawl_delay" if asked else "gap_host", then, gap_s, actual_s))
        if then.contact_at < retry_at - tolerance_s:
            found.append(_violation("retry_after", then, retry_at - ended_at, actual_s))
    return found


def _early_among_others(mine: list[Logged], tolerance_s: float) -> list[Violation]:
    """Of a host with several requests at once: those that came too early after a Retry-After that was known."""
    found: dict[Logged, Violation] = {}
    by_connection: defaultdict[int, list[Logged]] = defaultdict(list)
    for one in mine:
        by_connection[one.connection].append(one)
    for asking in (one for one in mine if one.retry_at):
        known_at = _time_of_reading(asking, by_connection.values())
        for one in mine:
            if known_at <= one.contact_at < asking.retry_at - tolerance_s:
                actual_s = one.contact_at - asking.ended_at
                found[one] = _violation("retry_after", one, asking.retry_at - asking.ended_at, actual_s)
    return list(found.values())


def _time_of_reading(answer: Logged, connections: Iterable[Sequence[Logged]]) -> float:
    """Return when the client certainly had read an answer, however busy its machine is: on some connection it has since
    read one that was sent no earlier, asked again, read that answer too, and asks once more. In the turn in which it
    reads an answer, a request may go out that was permitted before.
    """
    proofs = [
        third.contact_at
        for requests in connections
        for first, third in zip(requests, requests[2:], strict=False)
        if first.ended_at >= answer.ended_at
    ]
    return min(proofs, default=inf)


def _gaps_of_address(mine: list[Logged], promise: Promise, tolerance_s: float) -> list[Violation]:
    found: list[Violation] = []
    ended_at = 0.0
    for one, then in pairwise(mine):
        ended_at = max(ended_at, _end_for_client(one))
        actual_s = then.contact_at - ended_at
        if promise.per_address == 1 and -tolerance_s <= actual_s < promise.address_delay_s - tolerance_s:
            found.append(_violation("gap_address", then, promise.address_delay_s, actual_s))
    return found


def _overlaps(kind: str, mine: list[Logged], most: int, tolerance_s: float) -> list[Violation]:
    found: list[Violation] = []
    running: list[float] = []
    for one in mine:
        running = [end for end in running if end > one.contact_at + tolerance_s]
        if most and len(running) >= most:
            found.append(_violation(kind, one, 0.0, one.contact_at - min(running)))
        running.append(_end_for_client(one))
    return found


def _end_for_client(one: Logged) -> float:
    """Return when the client may have thought that the request ended."""
    return one.ended_at if one.whole else max(one.started_at, one.ended_at - ABORTED_S)


def _robots(
    mine: list[Logged], truth: Truth, host: WebHost, web: Web, by_host: dict[str, list[Logged]]
) -> list[Violation]:
    known_at = _robots_known_at(mine, host, web, by_host)
    found: list[Violation] = []
    for one in mine:
        if web.stands(one.path):
            continue
        if one.started_at < known_at:
            found.append(_violation("before_robots", one, 0.0, one.started_at - known_at))
        if not truth.may_fetch(host, one.path):
            found.append(_violation("robots_denied", one))
    return found


def _robots_known_at(mine: list[Logged], host: WebHost, web: Web, by_host: dict[str, list[Logged]]) -> float:
    """Return when the crawler had an answer to robots.txt that is one: where it was redirected, from there."""

    def first_answer_at(logged: Iterable[Logged], path: str) -> float:
        ends = (one.ended_at for one in logged if one.path == path and one.status not in (0, 429) and one.status < 500)
        return min(ends, default=float("inf"))

    known_at = first_answer_at(mine, "/robots.txt")
    moved = web.robots(host).moved_to
    return known_at if moved is None else max(known_at, first_answer_at(by_host.get(moved[0], ()), moved[1]))


def _repeats(mine: list[Logged], web: Web, host: WebHost) -> list[Violation]:
    last = {web.front(host) + one.path.removeprefix("/"): one for one in mine}
    return [_violation("repeated", last[url], 1, count) for url, count in repeats(mine, web).items()]


def _violation(kind: str, one: Logged, needed_s: float = 0.0, actual_s: float = 0.0) -> Violation:
    return Violation(kind, one.host, one.address, one.path, one.contact_at, needed_s, actual_s)
