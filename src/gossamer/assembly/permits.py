"""Permits: what says whether a URL may be fetched: lists, robots.txt, statements about use, and what was forgotten."""

from __future__ import annotations

from pathlib import Path

from gossamer.config import Config
from gossamer.config.lists import forgotten_in
from gossamer.crawl.permit import Permit
from gossamer.crawl.trapping import Trapping
from gossamer.crawl.usage import Usage
from gossamer.robots.documents import SiteDocuments
from gossamer.robots.robots import SiteRobots
from gossamer.scope.forgotten import Forgotten
from gossamer.scope.lists import ExcludedHost
from gossamer.state.epoch import Epochs
from gossamer.url.name import Namer
from gossamer.world.clock import Clock


def permit_of(
    config: Config,
    exclusions: ExcludedHost,
    robots: SiteRobots,
    trapping: Trapping,
    usage: Usage,
    forgotten: Forgotten | None,
) -> Permit:
    """Return what says whether a URL may be fetched now."""
    return Permit(exclusions, robots, trapping.reason, usage, obey=config.robots.obey, forgotten=forgotten)


def usage_of(config: Config, epochs: Epochs, robots: SiteRobots, namer: Namer) -> Usage:
    """Return what judges statements about the use of pages."""
    purposes = config.operator.purpose
    return Usage(robots, SiteDocuments(epochs, config.robots, namer.name, robots, purposes), purposes)


def forgotten_of(config: Config, directory: Path, clock: Clock) -> Forgotten | None:
    """Return the filter of pages that were forgotten; None if there are none. Raises ConfigError: a list is bad."""
    entries = forgotten_in(config, directory)
    return Forgotten(entries, clock.now) if entries else None
