"""Revisits: what the mode of a crawl changes in its options."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from gossamer.assembly.parts import with_scope_in_force
from gossamer.config import Config
from gossamer.model.links import FEED_FILE
from gossamer.stages.frontier.options import FrontierOptions
from gossamer.stages.frontier.politeness import Politeness
from gossamer.stages.scope.options import ScopeOptions

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
    return replace(scope, follow=(*scope.follow, FEED_FILE)) if wants_feeds(config) else scope
