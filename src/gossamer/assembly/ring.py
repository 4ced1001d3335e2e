"""Ring: the parts of a running crawl, for those who look at it, change it or join it to other shards."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from gossamer.assembly.features import Features
from gossamer.engine.history import UrlMemory
from gossamer.engine.loop import CrawlLoop
from gossamer.engine.pipeline import Pipeline
from gossamer.engine.traps import Trapping
from gossamer.stages.frontier.frontier import Frontier
from gossamer.stages.scope.chain import Chain
from gossamer.stages.scope.lists import ExcludedHost
from gossamer.stages.scope.options import ScopeOptions
from gossamer.stages.scope.roots import Roots
from gossamer.stages.scope.traps import Traps


class CrawlScope(msgspec.Struct, frozen=True):
    """The filters of a crawl, and the state of its scope."""

    chain: Chain
    chain_of: Callable[[ScopeOptions], Chain]
    """Builds the filters for other options."""
    roots: Roots
    exclusions: ExcludedHost
    traps: Traps
    trapping: Trapping


class CrawlRing(msgspec.Struct, frozen=True):
    """The crawl itself: URLs wait in the frontier, and the loop sends them through the pipeline."""

    loop: CrawlLoop
    pipeline: Pipeline
    frontier: Frontier
    scope: CrawlScope
    urls: UrlMemory
    features: Features
