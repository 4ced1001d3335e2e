"""Revisits: how fresh each policy keeps copies of pages that change, beside the best that could be had."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Self

import msgspec
from pydantic import BaseModel, ConfigDict, model_validator

from gossamer.assembly.revisits import policy_of
from gossamer.lab.simulate.freshness import ChangingOptions, ChangingWeb, best, crawl, watched
from gossamer.ports import RevisitPolicy
from gossamer.revisit.options import DAY_S, RevisitOptions
from gossamer.revisit.policies import POLICIES

VISITS_MAX = 2_000_000
"""Of one policy: about ten minutes."""
_HEAD = f"{'policy':<14}{'fresh':>8}{'of best':>9}{'age, days':>11}{'visits/day':>12}{'median page':>13}"


class RevisitsOptions(BaseModel):
    """What changes, and what is asked of the schedule: sections `changing` and, as a crawl has it, `revisit`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    changing: ChangingOptions = ChangingOptions()
    revisit: RevisitOptions = RevisitOptions(interval_s_mean=4 * DAY_S)

    @model_validator(mode="after")
    def _worth_its_time(self) -> Self:
        visits = self.changing.pages * self.changing.days * DAY_S / self.revisit.interval_s_mean
        if visits > VISITS_MAX:
            raise ValueError(f"{visits:,.0f} visits are more than {VISITS_MAX:,}: expected fewer pages or days")
        return self


class Kept(msgspec.Struct, frozen=True):
    """What one policy reached, once it had had time to learn."""

    policy: str
    freshness: float
    """Share of the time in which copies are the pages', weighted by importance."""
    of_best: float
    """The same as a share of what evenly spaced visits reach at best within as many visits, by one who knows the rates
    (Cho and Garcia-Molina 2003, section 4.3).
    """
    age_days: float
    visits_per_day: float
    visits_median: float
    """Visits of the median page, from the beginning."""

    @property
    def line(self) -> str:
        """The same for people."""
        return (
            f"{self.policy:<14}{self.freshness:>8.1%}{self.of_best:>9.1%}{self.age_days:>11.2f}"
            f"{self.visits_per_day:>12,.0f}{self.visits_median:>13,.0f}"
        )


def kept(options: RevisitsOptions, *, chosen: bool) -> Iterator[Kept]:
    """Watch the same pages by each policy in turn, or by the one that is chosen. About 250 µs a visit.

    Raises:
        ConfigError: there is no such policy.
    """
    name = options.revisit.policy
    policies: Mapping[str, RevisitPolicy] = (
        {name: policy_of(name)} if chosen else {name: policy() for name, policy in POLICIES.items()}
    )
    web = ChangingWeb(options.changing)
    return (_kept(options, web, name, policy) for name, policy in policies.items())


def _kept(options: RevisitsOptions, web: ChangingWeb, name: str, policy: RevisitPolicy) -> Kept:
    with tempfile.TemporaryDirectory(prefix="gossamer-simulate-") as folder:
        visits = crawl(web, options.revisit, policy, Path(folder) / "shard")
    seen = watched(web, visits, options.changing.burn_in_share * options.changing.days)
    most = best(web, seen.visits_per_day).freshness
    of_best = seen.freshness / most if most else 0.0
    return Kept(name, seen.freshness, of_best, seen.age_days, seen.visits_per_day, seen.visits_median)


def heading(options: RevisitsOptions) -> str:
    """Return what stands above the lines."""
    changing, revisit = options.changing, options.revisit
    return (
        f"{changing.pages:,} pages at {changing.hosts:,} hosts, watched for {changing.days:g} days, the first "
        f"{changing.burn_in_share:.0%} left out; a visit each {revisit.interval_s_mean / DAY_S:g} days on average.\n"
        f"The median page changes {changing.rate_per_day_median:g} times a day (spread {changing.rate_sigma:g}).\n\n"
        f"{_HEAD}"
    )
