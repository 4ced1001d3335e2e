"""Revisits: pages that change at their own rates, visited for simulated weeks, and how fresh each policy keeps copies.

The frontier and the schedule are the real ones; the best schedule that knows the rates is computed beside them. Changes
are Poisson, rates and importances log-normal over pages. The clock is simulated, all decisions are real.
"""

import heapq
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from math import inf
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import asdict, replace

from gossamer.assembly.parts import policy_of
from gossamer.features.revisit.options import DAY_S, RevisitOptions
from gossamer.features.revisit.policies import POLICIES, Optimal, age_s, freshness
from gossamer.features.revisit.schedule import Schedule
from gossamer.lab.simulate.components import StoredShard
from gossamer.lab.simweb.wire import http_date
from gossamer.model.links import Link, Notice
from gossamer.model.pages import Sight
from gossamer.model.standing import Habits
from gossamer.model.visits import Contact
from gossamer.options import Key, Section
from gossamer.ports import RevisitPolicy
from gossamer.stages.frontier.frontier import Frontier
from gossamer.stages.frontier.host import VisitLease
from gossamer.stages.frontier.options import FrontierOptions, PolitenessOptions, politeness
from gossamer.stages.frontier.priority import FrontierRules
from gossamer.url.name import Namer
from gossamer.url.url import Url
from gossamer.world.dice import Dice

Floats = npt.NDArray[np.float64]
FETCH_S = 0.2
COMMIT_VISITS = 500
BEGUN_AT = 1_700_000_000.0


class ChangingOptions(Section, frozen=True):
    """The pages, and how long they are watched."""

    pages: Annotated[int, Key(ge=1, le=100_000)] = 2_000
    hosts: Annotated[int, Key(ge=1, le=65_536)] = 40
    rate_per_day_median: Annotated[float, Key(gt=0)] = 0.25
    """Changes of the median page."""
    rate_sigma: Annotated[float, Key(ge=0, le=5)] = 1.5
    """Spread of the rates' logarithm; 0: all pages change alike."""
    importance_sigma: Annotated[float, Key(ge=0, le=5)] = 1.0
    days: Annotated[float, Key(gt=0, le=3_650)] = 42.0
    burn_in_share: Annotated[float, Key(ge=0, lt=1)] = 0.4
    """Of the days, left out of the result: the schedule knows nothing of the pages at first."""
    dated: bool = False
    """Pages say when they were changed (Last-Modified)."""
    seed: Annotated[int, Key(ge=0)] = 1


class ChangingWeb:
    """Pages with all the instants at which each one changes, drawn once: every policy meets the same."""

    def __init__(self, options: ChangingOptions) -> None:
        draw = np.random.default_rng(options.seed)
        count = options.pages
        whole_s = options.days * DAY_S
        self.options = options
        factors = np.exp(options.rate_sigma * draw.standard_normal(count))
        self.rates: Floats = options.rate_per_day_median * factors / DAY_S
        importances = np.exp(options.importance_sigma * draw.standard_normal(count))
        self.importances: Floats = importances / importances.mean()
        self.changes: list[Floats] = [
            BEGUN_AT + np.sort(draw.uniform(0.0, whole_s, draw.poisson(rate * whole_s))) for rate in self.rates
        ]

    def address(self, page: int) -> str:
        """Return where a page is."""
        return f"http://h{page % self.options.hosts}.sim/p/{page}"

    def version(self, page: int, at: float) -> int:
        """Return how often a page has changed by then, from 1 on."""
        return 1 + int(np.searchsorted(self.changes[page], at, side="right"))


class Watched(msgspec.Struct, frozen=True):
    """Results of a schedule since the end of the burn-in."""

    freshness: float
    """Share of the time in which copies are the pages', weighted by importance."""
    age_days: float
    """Mean age of copies, weighted the same."""
    visits_per_day: float
    visits_median: float
    """Visits of the median page, from the beginning."""


def crawl(web: ChangingWeb, options: RevisitOptions, policy: RevisitPolicy, directory: Path) -> list[list[float]]:
    """Visit all pages for as long as the web lasts; return when each was visited. About 250 µs a visit."""
    with closing(_Shard(web, options, policy, directory)) as shard:
        return shard.run()


def measure(web: ChangingWeb, visits: list[list[float]], begin_days: float) -> Watched:
    """Return how fresh copies were from a day on, exactly, by the instants of changes and visits."""
    begin = BEGUN_AT + begin_days * DAY_S
    end = BEGUN_AT + web.options.days * DAY_S
    fresh = aged = made = 0.0
    for page, instants in enumerate(visits):
        share, age = _fresh_share(web.changes[page], np.asarray(instants), begin, end)
        fresh += web.importances[page] * share
        aged += web.importances[page] * age
        made += sum(1 for at in instants if begin <= at < end)
    whole = float(web.importances.sum())
    days = (end - begin) / DAY_S
    median = float(np.median([len(instants) for instants in visits]))
    return Watched(float(fresh / whole), float(aged / whole / DAY_S), made / days, median)


def best(web: ChangingWeb, visits_per_day: float) -> Watched:
    """Return the best that evenly spaced visits reach with known rates (Cho and Garcia-Molina 2003, section 4.3)."""
    pages = list(zip(web.rates.tolist(), web.importances.tolist(), strict=True))
    policy = Optimal()
    price = _exact_price(pages, policy, visits_per_day / DAY_S)
    fresh = aged = 0.0
    for rate, importance in pages:
        visits = policy.rate(Habits(rate, importance), price)
        fresh += importance * freshness(rate, visits)
        aged += importance * min(age_s(rate, visits), web.options.days * DAY_S)
    whole = float(web.importances.sum())
    return Watched(float(fresh / whole), float(aged / whole / DAY_S), visits_per_day, 0.0)


def _exact_price(pages: list[tuple[float, float]], policy: RevisitPolicy, budget: float) -> float:
    """Return the price at which visits take the budget. Exact: unlike a crawl's census, it does not group pages."""
    low = 1e-12
    high = 1e12
    for _ in range(100):
        middle = (low * high) ** 0.5
        if sum(policy.rate(Habits(rate, importance), middle) for rate, importance in pages) > budget:
            low = middle
        else:
            high = middle
    return high


def _fresh_share(changes: Floats, visits: Floats, begin: float, end: float) -> tuple[float, float]:
    """Return the share of the time in which the copy was fresh, and its mean age in seconds."""
    visits = visits[visits < end]
    edges = np.concatenate([visits, [end]])
    fresh_s = aged_s = 0.0
    # From each visit on the copy is fresh until the first change after it, and ages from then until the next visit.
    firsts = np.searchsorted(changes, visits, side="right")
    for number, visited in enumerate(visits):
        low = max(float(visited), begin)
        high = float(edges[number + 1])
        if high <= begin:
            continue
        changed = float(changes[firsts[number]]) if firsts[number] < len(changes) else inf
        fresh_s += max(0.0, min(changed, high) - low)
        if changed < high:
            older = high - changed
            younger = max(low - changed, 0.0)
            aged_s += (older * older - younger * younger) / 2.0
    return fresh_s / (end - begin), aged_s / (end - begin)


class _Shard(StoredShard):
    """The real frontier and schedule on a store of their own; requests take no processor."""

    def __init__(self, web: ChangingWeb, options: RevisitOptions, policy: RevisitPolicy, directory: Path) -> None:
        super().__init__(directory, BEGUN_AT)
        self._web = web
        dice = Dice(web.options.seed)
        self._namer = Namer()
        rules = politeness(PolitenessOptions(preset="polite"))
        self.frontier = Frontier(
            self._hosts,
            FrontierRules(rules, FrontierOptions(), share_new=options.share_new),
            self._namer.name, dice, BEGUN_AT,
        )  # fmt: skip
        # How important a page is the web says, no pattern.
        self.schedule = Schedule(self._epochs, self.frontier, policy, replace(options, importance={}), dice)
        self._visits: list[list[float]] = [[] for _ in range(web.options.pages)]

    def run(self) -> list[list[float]]:
        """Visit until the web's time is over."""
        web = self._web
        frontier = self.frontier
        now = BEGUN_AT
        for page in range(web.options.pages):
            frontier.add(Link(self._url(page), "seed", 0), 0, now)
        end = BEGUN_AT + web.options.days * DAY_S
        since = 0
        under_way: list[tuple[float, int, VisitLease]] = []
        order = 0
        while now < end:
            lease = frontier.select(now)
            if lease is None:
                wake_at = frontier.wake_at()
                ends_at = under_way[0][0] if under_way else inf
                now = max(now, min(ends_at, wake_at if wake_at is not None else inf, end))
            elif not lease.address:
                number = int(lease.url.host[1:-4])
                frontier.locate(lease, f"10.0.{number >> 8}.{number & 255}", now + 1e9, now)
            elif frontier.begin(lease, now):
                assert isinstance(lease, VisitLease), "there is no robots.txt"
                order += 1
                heapq.heappush(under_way, (now + FETCH_S, order, lease))
            else:
                frontier.return_lease(lease, now)
            while under_way and under_way[0][0] <= now:
                ended_at, _, ended = heapq.heappop(under_way)
                self._end(ended, ended_at)
                since += 1
            if since >= COMMIT_VISITS:
                self.commit(now)
                since = 0
        return self._visits

    def _end(self, lease: VisitLease, now: float) -> None:
        frontier = self.frontier
        web = self._web
        url = lease.url
        page = int(url.text.rpartition("/")[2])
        at = now - FETCH_S
        frontier.ended(lease, Contact(FETCH_S, "answered"), now)
        is_first = not self._visits[page]
        self._visits[page].append(at)
        version = web.version(page, at)
        modified = http_date(web.changes[page][version - 2]) if web.options.dated and version > 1 else ""
        sight = Sight(
            url, "fetched", at, 200, version, last_modified=modified, payload=version.to_bytes(4),
            permitted_per_s=frontier.revisits_per_s(url),
        )  # fmt: skip
        due_at = self.schedule.note_visit(sight)
        assert due_at is not None
        frontier.finish_until(lease, "fetched", due_at, now)
        if is_first:
            self.schedule.note(Notice(url, "sitemap", importance=float(web.importances[page])), now)

    def commit(self, now: float) -> None:
        """Commit what has changed."""
        self.frontier.cut(now)
        self.schedule.cut(now)
        self.close_epoch()

    def _url(self, page: int) -> Url:
        url = self._namer.name(self._web.address(page))
        assert url is not None
        return url


# What each policy reaches.

VISITS_MAX = 2_000_000
"""Of one policy: about ten minutes."""
_HEAD = f"{'policy':<14}{'fresh':>8}{'of best':>9}{'age, days':>11}{'visits/day':>12}{'median page':>13}"


class RevisitsOptions(Section, frozen=True):
    """The changing pages and the schedule: sections `changing` and, as in a crawl, `revisit`."""

    changing: ChangingOptions = ChangingOptions()
    revisit: RevisitOptions = RevisitOptions(interval_s_mean=4 * DAY_S)

    def __post_init__(self) -> None:
        visits = self.changing.pages * self.changing.days * DAY_S / self.revisit.interval_s_mean
        if visits > VISITS_MAX:
            raise ValueError(f"{visits:,.0f} visits are more than {VISITS_MAX:,}: expected fewer pages or days")


class PolicyResult(Watched, frozen=True):
    """Results of one policy after its time to learn."""

    policy: str
    of_best: float
    """Freshness as a share of what evenly spaced visits reach at best within as many visits, by one who knows the rates
    (Cho and Garcia-Molina 2003, section 4.3).
    """

    @property
    def line(self) -> str:
        """The same for people."""
        return (
            f"{self.policy:<14}{self.freshness:>8.1%}{self.of_best:>9.1%}{self.age_days:>11.2f}"
            f"{self.visits_per_day:>12,.0f}{self.visits_median:>13,.0f}"
        )


def compare_policies(options: RevisitsOptions, *, chosen: bool) -> Iterator[PolicyResult]:
    """Watch the same pages by each policy in turn, or by the one that is chosen. About 250 µs a visit. Raises
    ConfigError: there is no such policy.
    """
    name = options.revisit.policy
    policies: Mapping[str, RevisitPolicy] = (
        {name: policy_of(name)} if chosen else {name: policy() for name, policy in POLICIES.items()}
    )
    web = ChangingWeb(options.changing)
    return (_try_policy(options, web, name, policy) for name, policy in policies.items())


def _try_policy(options: RevisitsOptions, web: ChangingWeb, name: str, policy: RevisitPolicy) -> PolicyResult:
    with tempfile.TemporaryDirectory(prefix="gossamer-simulate-") as folder:
        visits = crawl(web, options.revisit, policy, Path(folder) / "shard")
    seen = measure(web, visits, options.changing.burn_in_share * options.changing.days)
    most = best(web, seen.visits_per_day).freshness
    return PolicyResult(**asdict(seen), policy=name, of_best=seen.freshness / most if most else 0.0)


def heading(options: RevisitsOptions) -> str:
    """Return the heading of the lines."""
    changing = options.changing
    revisit = options.revisit
    return (
        f"{changing.pages:,} pages at {changing.hosts:,} hosts, watched for {changing.days:g} days, the first "
        f"{changing.burn_in_share:.0%} left out; a visit each {revisit.interval_s_mean / DAY_S:g} days on average.\n"
        f"The median page changes {changing.rate_per_day_median:g} times a day (spread {changing.rate_sigma:g}).\n\n"
        f"{_HEAD}"
    )
