"""Permits: builds the checks whether a URL may be fetched: lists, robots.txt, statements about use, and forgotten
pages.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from gossamer.assembly.modules import filters_of
from gossamer.assembly.parts import scoped, traps_of
from gossamer.assembly.revisits import scope_options
from gossamer.config import Config
from gossamer.config.lists import forgotten_in, scope_lists
from gossamer.crawl.counters import CrawlCounters
from gossamer.crawl.pending_scope import CrawlScope
from gossamer.crawl.permit import Permit
from gossamer.crawl.trapping import Trapping
from gossamer.crawl.usage import Usage
from gossamer.ports import Filter
from gossamer.robots.documents import SiteDocuments
from gossamer.robots.robots import SiteRobots
from gossamer.scope.chain import Chain, scope_chain
from gossamer.scope.forgotten import Forgotten
from gossamer.scope.lists import ExcludedHost
from gossamer.scope.options import ScopeOptions
from gossamer.scope.roots import Roots
from gossamer.scope.traps import Trapped
from gossamer.seen.shingles import sketch
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
    """Return the check whether a URL may be fetched now."""
    return Permit(exclusions, robots, trapping.reason, usage, obey=config.robots.obey, forgotten=forgotten)


def usage_of(config: Config, epochs: Epochs, robots: SiteRobots, namer: Namer) -> Usage:
    """Return the handling of statements about the use of pages."""
    purposes = config.operator.purpose
    return Usage(robots, SiteDocuments(epochs, config.robots, namer.name, robots, purposes), purposes)


def forgotten_of(config: Config, directory: Path, clock: Clock) -> Forgotten | None:
    """Return the filter of pages that were forgotten; None if there are none. Raises ConfigError: a list is bad."""
    entries = forgotten_in(config, directory)
    return Forgotten(entries, clock.now) if entries else None


def scope_of(config: Config, epochs: Epochs, counters: CrawlCounters, further: Iterable[Filter | None]) -> CrawlScope:
    """Return the filters of a crawl, including those of `further` that are not None."""
    asked = scoped(config)
    exclusions, traps = ExcludedHost(only=asked.scope.only_hosts), traps_of(config, epochs)
    roots, lists = Roots(asked.scope.scope), scope_lists(asked)
    more = [*filters_of(config), Trapped(traps), *(one for one in further if one is not None)]
    exclusions.set_listed(lists.excluded_hosts)

    def chain_of(options: ScopeOptions) -> Chain:
        read = msgspec.structs.replace(lists, excluded_hosts=exclusions.listed)  # The file may be read again later.
        return scope_chain(options, roots, exclusions, more, read)

    chain = chain_of(scope_options(config))
    trapping = Trapping(traps, epochs, sketch, counters, config.url.split)
    return CrawlScope(chain, chain_of, roots, exclusions, traps, trapping)
