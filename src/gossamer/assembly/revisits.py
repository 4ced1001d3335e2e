"""Revisits: the schedule of a continuous crawl, joined with what it needs; a batch crawl has none."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import cast

from gossamer.config import Config
from gossamer.crawl.revisiting import Enrolment, Revisiting
from gossamer.frontier.frontier import Frontier
from gossamer.frontier.options import FrontierOptions
from gossamer.frontier.politeness import Politeness
from gossamer.frontier.wrapping import WrappedFrontier
from gossamer.model.errors import ConfigError
from gossamer.plugins import component, fitting
from gossamer.ports import RevisitPolicy
from gossamer.revisit.policies import POLICIES
from gossamer.revisit.schedule import Schedule
from gossamer.seen.shingles import sketch, text_of
from gossamer.state.epoch import Epochs
from gossamer.state.schema import REVISIT_STATE
from gossamer.state.storage import Storage
from gossamer.url.name import Namer
from gossamer.world.clock import Clock
from gossamer.world.dice import Dice

SLEEPS_MAX = 1 << 30


def is_continuous(config: Config) -> bool:
    """Say whether the crawl never ends by itself."""
    return config.crawl.mode == "continuous"


def frontier_options_of(config: Config) -> FrontierOptions:
    """Return the frontier's options: in a continuous crawl no host is closed for failing, it only sleeps longer."""
    options = config.frontier
    if not is_continuous(config):
        return options
    sleep_s_max = max(options.host_sleep_s_max, config.revisit.host_sleep_s_max)
    return options.model_copy(
        update={"host_sleeps_max": SLEEPS_MAX, "host_sleep_s_max": sleep_s_max, "unanswered_failures_max": 0}
    )


def patient(rules: Politeness, config: Config) -> Politeness:
    """Return the politeness rules for a crawl's mode: a continuous crawl waits as long as a server requests, up to the
    longest interval, where a batch crawl would close the host.
    """
    if not is_continuous(config):
        return rules
    longest_s = config.revisit.interval_s_max
    return replace(
        rules,
        crawl_delay_s_max=max(rules.crawl_delay_s_max, longest_s),
        retry_after_s_max=max(rules.retry_after_s_max, longest_s),
        hosts={host: patient(own, config) for host, own in rules.hosts.items()},
    )


def share_new_of(config: Config) -> float | None:
    """Return the share of visits for new pages; None if no page is visited again."""
    return config.revisit.share_new if is_continuous(config) else None


def policy_of(name: str) -> RevisitPolicy:
    """Return the policy of a name (`revisit.policy`).

    Raises:
        ConfigError: there is none of that name.
    """
    if name in POLICIES:
        return POLICIES[name]()
    component(name, "revisit.policy", POLICIES, "policy")
    return cast("RevisitPolicy", fitting(name, "revisit.policy", RevisitPolicy))


def schedule_of(config: Config, epochs: Epochs, frontier: Frontier | WrappedFrontier, dice: Dice) -> Schedule | None:
    """Return the schedule of a continuous crawl.

    Raises:
        ConfigError: the frontier walks, the policy does not exist, or a continuous crawl was to become a batch one.
    """
    if not is_continuous(config):
        if epochs.get("meta", REVISIT_STATE) is not None:
            # Pages that are due would be fetched once more, and never again.
            raise ConfigError(
                "crawl.mode: this crawl is continuous and stays so, for its pages have due times; --mode continuous "
                "goes on, and --max-time or --max-pages ends it"
            )
        return None
    if not isinstance(frontier, Frontier):
        raise ConfigError("crawl.mode: a continuous crawl needs frontier.strategy = sweep and no components.frontier")
    return Schedule(epochs, frontier, policy_of(config.revisit.policy), config.revisit, dice)


def revisiting_of(config: Config, schedule: Schedule, frontier: Frontier) -> Revisiting:
    """Return what connects the ring with the schedule."""
    options = config.revisit
    return Revisiting(
        schedule, frontier, options.change, partial(sketch, lowest=False), text_of, conditional=options.conditional
    )


def enrolment_of(
    config: Config,
    storage: Storage,
    namer: Namer,
    revisiting: Revisiting,
    clock: Clock,
    dice: Dice,
) -> Enrolment:
    """Return what schedules the pages that a batch crawl has left."""
    return Enrolment(storage, namer, revisiting, config.revisit.interval_s_mean, clock, dice)
