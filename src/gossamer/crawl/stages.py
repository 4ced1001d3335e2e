"""Stages: what a visit passes in a shard, in the order in which data meets it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gossamer.cluster.exchange import Exchange
from gossamer.crawl.copies import CopyMarks
from gossamer.crawl.examine import Examiner
from gossamer.crawl.history import PageHistory
from gossamer.crawl.isolation import IsolatedModules
from gossamer.crawl.pending_scope import PendingScope
from gossamer.crawl.permit import Permit
from gossamer.crawl.quarantine import Quarantine
from gossamer.crawl.revisiting import Revisiting
from gossamer.crawl.trapping import Trapping
from gossamer.crawl.usage import Usage
from gossamer.frontier.frontier import Frontier
from gossamer.frontier.wrapping import WrappedFrontier
from gossamer.ports import ContentSeen, PrerequisiteArchive, Prioritizer, ProtocolModule, Resolver, UrlSeen
from gossamer.process.walls import Walls
from gossamer.revisit.hints import SitemapHints
from gossamer.revisit.websub import Subscriptions
from gossamer.scope.chain import Chain
from gossamer.scope.roots import Roots
from gossamer.url.name import Namer

if TYPE_CHECKING:
    from gossamer.crawl.rendering import PageRendering
    from gossamer.crawl.requests import Requests
    from gossamer.crawl.sessions import Sessions


class Stages(msgspec.Struct, frozen=True):
    """The parts of one shard that a visit passes."""

    namer: Namer
    chain: Chain
    roots: Roots
    url_seen: UrlSeen
    prioritizer: Prioritizer
    frontier: Frontier | WrappedFrontier
    resolver: Resolver
    permit: Permit
    protocols: ProtocolModule
    content_seen: ContentSeen
    examiner: Examiner
    quarantine: Quarantine
    archive: PrerequisiteArchive
    digest_algorithm: str
    """Of payloads, as hashlib names it."""
    history: PageHistory
    copies: CopyMarks
    trapping: Trapping
    isolated: IsolatedModules | None = None
    """Modules in processes of their own."""
    revisiting: Revisiting | None = None
    """Sees pages again; None if a crawl ends."""
    hints: SitemapHints | None = None
    """What sitemaps and feeds say of pages."""
    hubs: Subscriptions | None = None
    """Subscriptions; None if hubs cannot call back."""
    usage: Usage | None = None
    """Records what is stated about the use of pages, and refuses what the declared purposes may not use."""
    pending_scope: PendingScope | None = None
    """Links that may come into scope yet; None if nothing is beyond it."""
    walls: Walls | None = None
    """Recognizes answers that are not pages; None if nothing is looked for."""
    exchange: Exchange | None = None
    """With the other shards; None if there is one."""
    sessions: Sessions | None = None
    """Cookies and logins; None if there are neither."""
    requests: Requests | None = None
    """Listed requests; None if there are none."""
    rendering: PageRendering | None = None
    """None if no page is rendered."""
