"""Discovery: what listens to sitemaps, feeds and hubs, as the configuration names it."""

from __future__ import annotations

from gossamer.assembly.parts import scoped
from gossamer.assembly.revisits import is_continuous
from gossamer.config import Config
from gossamer.crawl.permit import Permit
from gossamer.model.links import FEED_FILE
from gossamer.revisit.hints import SitemapHints
from gossamer.revisit.schedule import Schedule
from gossamer.revisit.websub import Subscriptions
from gossamer.scope.options import ScopeOptions
from gossamer.state.epoch import Epochs
from gossamer.url.name import Namer
from gossamer.url.url import Url
from gossamer.world.dice import unguessable


def hints_of(config: Config, epochs: Epochs, namer: Namer, revisits: Schedule | None) -> SitemapHints | None:
    """Return what knows of sitemaps and feeds; None for a crawl that discovers nothing."""
    if config.crawl.mode == "offline":
        return None
    wanted = config.discovery.sitemaps
    clicks_count = config.scope.depth_max is not None or config.frontier.strategy == "walk"
    sitemaps = wanted == "always" or (wanted == "auto" and not clicks_count)
    return SitemapHints(epochs, config.discovery, namer.name, revisits, sitemaps=sitemaps, feeds=wants_feeds(config))


def hubs_of(config: Config, epochs: Epochs, namer: Namer, permit: Permit) -> Subscriptions | None:
    """Return the subscriptions to hubs; None if hubs cannot call back, or a notification would change nothing."""
    if not may_be_called_back(config):
        return None
    base = config.websub.callback_url or config.console.public_url

    def may_ask(hub: Url) -> bool:
        return not permit.excludes(hub)

    return Subscriptions(epochs, config.websub, base, namer.name, may_ask, unguessable)


def may_be_called_back(config: Config) -> bool:
    """Return whether hubs can report changes, and the crawl uses them."""
    base = config.websub.callback_url or config.console.public_url
    return bool(is_continuous(config) and config.websub.enabled and base and config.console.port is not None)


def wants_feeds(config: Config) -> bool:
    """Say whether feeds that pages name are fetched."""
    return config.discovery.feeds == "always" or (config.discovery.feeds == "auto" and is_continuous(config))


def scope_options(config: Config) -> ScopeOptions:
    """Return the scope's options, with the types of link that lead to sitemaps and feeds."""
    scope = scoped(config).scope
    if wants_feeds(config):
        return scope.model_copy(update={"follow": (*scope.follow, FEED_FILE)})
    return scope
