"""Ring: the parts of a running crawl, for those who look at it, change it or join it to other shards."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from gossamer.engine.history import UrlMemory
from gossamer.engine.middleware import Middlewares
from gossamer.engine.pipeline import Pipeline
from gossamer.engine.shard import CrawlLoop
from gossamer.engine.traps import Trapping
from gossamer.features.revisit.revisiting import Enrolment, Revisiting
from gossamer.features.revisit.schedule import Schedule
from gossamer.features.revisit.websub import Subscriptions
from gossamer.stages.frontier.frontier import Frontier
from gossamer.stages.scope.chain import Chain
from gossamer.stages.scope.lists import ExcludedHost
from gossamer.stages.scope.options import ScopeOptions
from gossamer.stages.scope.roots import Roots
from gossamer.stages.scope.traps import Traps

if TYPE_CHECKING:
    from gossamer.features.logins.sessions import Sessions
    from gossamer.features.mentions.mentions import Mentions
    from gossamer.features.requests import Requests


class CrawlScope(msgspec.Struct, frozen=True):
    """The filters of a crawl, and the state of its scope."""

    chain: Chain
    chain_of: Callable[[ScopeOptions], Chain]
    """Builds the filters for other options."""
    roots: Roots
    exclusions: ExcludedHost
    traps: Traps
    trapping: Trapping


class Recrawl(msgspec.Struct, frozen=True):
    """The revisits of a continuous crawl."""

    schedule: Schedule
    revisiting: Revisiting
    enrolment: Enrolment
    """Schedules the pages of an earlier batch crawl."""
    hubs: Subscriptions | None
    """WebSub; None if hubs cannot call back."""


class CrawlRing(msgspec.Struct, frozen=True):
    """The crawl itself: URLs wait in the frontier, and the loop sends them through the pipeline."""

    loop: CrawlLoop
    pipeline: Pipeline
    frontier: Frontier
    scope: CrawlScope
    urls: UrlMemory
    recrawl: Recrawl | None
    """None in a batch crawl."""
    middlewares: Middlewares
    requests: Requests | None = None
    """None without a list of requests."""
    sessions: Sessions | None = None
    """None without cookies and logins."""
    mentions: Mentions | None = None
    """None unless notices of links are accepted."""
