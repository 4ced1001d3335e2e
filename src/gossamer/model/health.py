"""Health: whether a crawl runs well, what limits it and how long it still takes, in the words that all views show."""

from collections import Counter
from statistics import fmean
from typing import Final, Literal

import msgspec
from msgspec import UNSET

from gossamer.model.outcomes import MAY_PASS
from gossamer.model.status import Status
from gossamer.model.words import counted, duration

Level = Literal["good", "warning", "bad", "over"]
TROUBLES: Final = MAY_PASS | {"http_error", "process_crashed", "internal_error"}
"""Outcomes that indicate a problem: no rule of the crawl or of the site explains them."""
ACRONYMS: Final = frozenset(("dns", "http", "tls"))
ATTEMPTS_MIN = 20
"""Fewer attempts than these say nothing about a crawl."""
TROUBLE_SHARE_MAX = 0.5
NOTHING_FETCHED: Final = "no seed could be fetched"
QUIET_S = 10.0
"""`pages_s` is an average over about this time."""
TREND_POINTS = 6
TREND_MIN = 0.2
"""A smaller change of the rate is chance."""
OVER: Final = frozenset(("finished", "stopped", "failed"))
LIMITS: Final = {
    "politeness": "delays between requests to a host",
    "crawl_delay": "delays between requests to a host",
    "asked_to_wait": "delays that servers asked for",
    "address": "delays between hosts of one address",
    "site": "delays between hosts of one site",
    "fetching": "response times of servers",
    "robots": "robots.txt that is not fetched yet",
    "lookup": "DNS lookups",
    "failing": "hosts that fail",
    "closed": "hosts that are closed",
    "ready": "this machine",
}
"""Limits of the crawl, by the reason for which most hosts wait; the keys are those of `stages/frontier/overview.py`."""


class Health(msgspec.Struct, frozen=True):
    """The condition of a crawl, for people. The sentences may contain text from servers: escape them."""

    level: Level
    says: str
    """One sentence without its full stop."""
    trend: str
    """rising, steady or falling; empty while unknown."""
    limited_by: str
    remaining: str


ABSENT = {"silent": "does not answer", "failing": "fails"}


def health_of(status: Status) -> Health:
    """Return the condition of a crawl. A detailed status (`hosts`, `course`) gives a fuller answer. About 20 µs."""
    level, says = _judge(status)
    if status.state in OVER:
        return Health(level, says, "", "", "")
    limit = _limit(status)
    is_known = status.state == "running" and not limit.startswith(LIMITS["failing"])
    return Health(level, says, _trend(status), limit, _remaining(status) if is_known else "")


def _judge(status: Status) -> tuple[Level, str]:
    if status.state == "failed":
        why = f": {status.ended_says}" if status.ended_says else ""
        return "bad", f"the crawl failed{why}; `gossamer resume` continues it, or names what must be restored"
    if status.state in OVER:
        return _judge_end(status)
    if status.alarms:
        return "bad", status.alarms[0].says
    if status.state == "paused":
        return "warning", f"paused: {status.waiting_for}" if status.waiting_for else "paused"
    if status.state != "running":
        return "good", status.state or "starting"
    if failing := [module["says"] for module in status.modules.values() if module.get("says")]:
        return "warning", str(failing[0])
    if absent := [f"shard {one.shard} {ABSENT[one.state]}" for one in status.shards if one.state in ABSENT]:
        return "warning", f"{', '.join(absent[:3])}: sites there and hosts at addresses that it leases out wait"
    if trouble := _trouble(status):
        return "warning", trouble
    if not status.pages and status.answers > status.attempts:
        return "good", f"no page yet: {status.answers:,} hosts answered for robots.txt, and pages wait for their delays"
    if not status.pages_s and status.attempts and status.elapsed_s > QUIET_S:
        waits = f": waiting for {status.waiting_for}" if status.waiting_for else ""
        return "warning", f"no page in the last {QUIET_S:.0f} s{waits}"
    return "good", "running well"


def _judge_end(status: Status) -> tuple[Level, str]:
    if status.seeds is not None and status.seeds.count and not status.seeds.any_fetched and status.state == "finished":
        return "bad", NOTHING_FETCHED
    says = status.ended_says or status.state
    return "over", says if says.startswith(status.state) else f"{status.state}: {says}"


def _trouble(status: Status) -> str:
    found = {name: n for name, n in status.outcomes.items() if name in TROUBLES and n}
    count = sum(found.values())
    tried = max(status.attempts, count + status.answers if not status.pages else 0)
    if status.attempts < ATTEMPTS_MIN or count <= TROUBLE_SHARE_MAX * tried:
        return ""
    most = max(found, key=lambda name: found[name]).split("_")
    words = " ".join(word.upper() if word in ACRONYMS else word for word in most)
    return f"{100 * count // status.attempts}% of attempts failed, most often: {words}"  # 100% only where all did.


def _trend(status: Status) -> str:
    """Compare the last half minute with the one before."""
    course = [] if status.course is UNSET else [pages_s for _, pages_s, _ in status.course]
    if len(course) < 2 * TREND_POINTS:
        return ""
    now = fmean(course[-TREND_POINTS:])
    before = fmean(course[-2 * TREND_POINTS : -TREND_POINTS])
    change = (now - before) / max(now, before, 1e-9)
    if abs(change) < TREND_MIN:
        return "steady"
    return "rising" if change > 0 else "falling"


def _limit(status: Status) -> str:
    if status.state == "paused":
        return status.waiting_for
    if 0 < status.concurrency <= status.in_flight:
        return f"crawl.concurrency: all {status.concurrency:,} requests are in use"
    limits = {} if status.hosts is UNSET else status.hosts.get("limits", {})
    by_words: Counter[str] = Counter()
    for name, hosts in limits.items():
        by_words[LIMITS.get(name, name)] += hosts
    if not by_words:
        return status.waiting_for
    [(most, hosts)] = by_words.most_common(1)
    return f"{most} ({hosts:,} of {by_words.total():,} active hosts)"


def _remaining(status: Status) -> str:
    if status.eta_s is not None:
        return f"about {duration(status.eta_s)} to the limit"
    if status.mode == "continuous" or not status.queued or not status.pages_s:
        return ""
    return f"about {duration(status.queued / status.pages_s)} for {counted(status.queued, 'queued URL')} at this rate"
