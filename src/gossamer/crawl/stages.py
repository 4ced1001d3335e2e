"""Stages: what a visit passes in a shard, in the order in which data meets it."""

from __future__ import annotations

from dataclasses import dataclass

from gossamer.cluster.exchange import Exchange
from gossamer.crawl.copies import Copies
from gossamer.crawl.examine import Examiner
from gossamer.crawl.history import History
from gossamer.crawl.isolation import IsolatedModules
from gossamer.crawl.pending_scope import PendingScope
from gossamer.crawl.permit import Permit
from gossamer.crawl.quarantine import Quarantine
from gossamer.crawl.revisiting import Revisiting
from gossamer.crawl.trapping import Trapping
from gossamer.frontier.frontier import Frontier
from gossamer.frontier.wrapping import WrappedFrontier
from gossamer.ports import ContentSeen, PrerequisiteArchive, Prioritizer, ProtocolModule, Resolver, UrlSeen
from gossamer.revisit.hints import SitemapHints
from gossamer.revisit.websub import Subscriptions
from gossamer.scope.chain import Chain
from gossamer.scope.roots import Roots
from gossamer.url.name import Namer


@dataclass(frozen=True, slots=True)
class Stages:
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
    history: History
    copies: Copies
    trapping: Trapping
    isolated: IsolatedModules | None = None
    """Modules in processes of their own."""
    revisiting: Revisiting | None = None
    """Sees pages again; None where a crawl ends."""
    hints: SitemapHints | None = None
    """What sitemaps and feeds say of pages."""
    hubs: Subscriptions | None = None
    """Subscriptions; None where nobody could call back."""
    pending_scope: PendingScope | None = None
    """Links that may come into scope yet; None where nothing is beyond it."""
    exchange: Exchange | None = None
    """With the other shards; None where there is one."""
