"""Revisits: builds the schedule of a continuous crawl, and the handling of sitemaps, feeds and hubs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from gossamer.assembly.parts import policy_of, with_scope_in_force
from gossamer.config import Config
from gossamer.features.permit import Exclusions, robots_verdict
from gossamer.features.revisit.hints import SitemapHints
from gossamer.features.revisit.schedule import Schedule
from gossamer.features.revisit.websub import Subscriptions
from gossamer.model.errors import ConfigError
from gossamer.model.links import ALLOWED, FEED_FILE, Verdict
from gossamer.stages.frontier.frontier import Frontier
from gossamer.stages.frontier.options import FrontierOptions
from gossamer.stages.frontier.politeness import Politeness
from gossamer.stages.robots.robots import SiteRobots
from gossamer.stages.scope.options import ScopeOptions
from gossamer.state.epoch import Epochs
from gossamer.state.schema import REVISIT_STATE
from gossamer.url.name import Namer
from gossamer.url.url import Url
from gossamer.world.dice import Dice, unguessable

if TYPE_CHECKING:
    from gossamer.features.mentions.mentions import Examine, Mentions

SLEEPS_MAX = 1 << 30


def is_continuous(config: Config) -> bool:
    """Return whether the crawl never ends by itself."""
    return config.crawl.mode == "continuous"


def frontier_options_of(config: Config) -> FrontierOptions:
    """Return the frontier's options: in a continuous crawl failing hosts are not closed, but wait longer."""
    options = config.frontier
    if not is_continuous(config):
        return options
    sleep_s_max = max(options.host_sleep_s_max, config.revisit.host_sleep_s_max)
    return replace(options, host_sleeps_max=SLEEPS_MAX, host_sleep_s_max=sleep_s_max, unanswered_failures_max=0)


def politeness_for_mode(rules: Politeness, config: Config) -> Politeness:
    """Return the politeness rules for a crawl's mode: a continuous crawl waits as long as a server requests, up to the
    longest interval, where a batch crawl would close the host.
    """
    if not is_continuous(config):
        return rules
    longest_s = config.revisit.interval_s_max
    return msgspec.structs.replace(
        rules,
        crawl_delay_s_max=max(rules.crawl_delay_s_max, longest_s),
        retry_after_s_max=max(rules.retry_after_s_max, longest_s),
        hosts={host: politeness_for_mode(own, config) for host, own in rules.hosts.items()},
    )


def schedule_of(
    config: Config, epochs: Epochs, frontier: Frontier, dice: Dice, is_ours: Callable[[Url], bool] = lambda _: True
) -> Schedule | None:
    """Return the schedule of a continuous crawl; `is_ours` is true for URLs of this shard. Raises ConfigError: the
    frontier walks, the policy does not exist, or a continuous crawl is resumed as a batch crawl.
    """
    if not is_continuous(config):
        if epochs.get("meta", REVISIT_STATE) is not None:
            # Due pages would be fetched only once more.
            raise ConfigError(
                "crawl.mode: this crawl is continuous and stays so, for its pages have due times; --mode continuous "
                "goes on, and --max-time or --max-pages ends it"
            )
        return None
    if config.frontier.strategy != "sweep" or config.components.frontier:
        raise ConfigError("crawl.mode: a continuous crawl needs frontier.strategy = sweep and no components.frontier")
    return Schedule(epochs, frontier, policy_of(config.revisit.policy), config.revisit, dice, is_ours)


def hints_of(config: Config, epochs: Epochs, namer: Namer, revisits: Schedule | None) -> SitemapHints | None:
    """Return the hints of sitemaps and feeds; None if links are not followed."""
    if config.crawl.mode == "offline":
        return None
    wanted = config.discovery.sitemaps
    clicks_count = config.scope.depth_max is not None or config.frontier.strategy == "walk"
    sitemaps = wanted == "always" or (wanted == "auto" and not clicks_count)
    return SitemapHints(epochs, config.discovery, namer.name, revisits, sitemaps=sitemaps, feeds=wants_feeds(config))


def hubs_of(
    config: Config, epochs: Epochs, namer: Namer, exclusions: Exclusions, robots: SiteRobots
) -> Subscriptions | None:
    """Return the subscriptions to hubs; None if hubs cannot call back, or a notification would change nothing."""
    if not may_be_called_back(config):
        return None
    base = config.websub.callback_url or config.console.public_url
    judge = _judge_of(config, exclusions, robots)
    return Subscriptions(epochs, config.websub, base, namer.name, judge, unguessable)


def mentions_of(
    config: Config, epochs: Epochs, namer: Namer, exclusions: Exclusions, robots: SiteRobots, examine: Examine
) -> Mentions | None:
    """Return the receiver of link notices; None if they are not accepted."""
    if not config.webmention.enabled:
        return None
    from gossamer.features.mentions.mentions import Mentions  # noqa: PLC0415 - for crawls that accept notices alone

    return Mentions(epochs, config.webmention, namer.name, _judge_of(config, exclusions, robots), examine)


def _judge_of(config: Config, exclusions: Exclusions, robots: SiteRobots) -> Callable[[Url, float], Verdict]:
    """Return what judges addresses that others name: hubs, and sources of notices."""

    def judge(url: Url, now: float) -> Verdict:
        if exclusions.excludes(url):
            return Verdict(outcome="excluded", reason="its host is excluded")
        return robots_verdict(robots, url, now) if config.robots.obey else ALLOWED

    return judge


def may_be_called_back(config: Config) -> bool:
    """Return whether hubs can report changes, and the crawl uses them."""
    base = config.websub.callback_url or config.console.public_url
    return bool(is_continuous(config) and config.websub.enabled and base and config.console.port is not None)


def wants_feeds(config: Config) -> bool:
    """Return whether feeds that pages link to are fetched."""
    return config.discovery.feeds == "always" or (config.discovery.feeds == "auto" and is_continuous(config))


def scope_options(config: Config) -> ScopeOptions:
    """Return the scope's options, with the types of link that lead to sitemaps and feeds."""
    scope = with_scope_in_force(config).scope
    if wants_feeds(config):
        return replace(scope, follow=(*scope.follow, FEED_FILE))
    return scope
