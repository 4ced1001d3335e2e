"""Rooms: what a shard is made of, in the order in which data meets it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic

from gossamer.crawl.apart import Apart
from gossamer.crawl.beyond import Beyond
from gossamer.crawl.copies import Copies
from gossamer.crawl.examine import Examiner
from gossamer.crawl.history import History
from gossamer.crawl.partners import Hints, Hubs, Router
from gossamer.crawl.permit import Permit
from gossamer.crawl.quarantine import Quarantine
from gossamer.crawl.revisiting import Revisiting
from gossamer.crawl.trapping import Trapping
from gossamer.model.visits import Reply
from gossamer.ports import (
    Chain,
    ContentSeen,
    HostControl,
    L,
    LinkSink,
    LinkWatcher,
    Namer,
    PrerequisiteArchive,
    Prioritizer,
    ProtocolModule,
    Resolver,
    Roots,
    UrlSeen,
    VisitSource,
)


@dataclass(frozen=True, slots=True)
class Rooms(Generic[L]):
    """The rooms of one shard, each behind its port."""

    namer: Namer
    chain: Chain
    roots: Roots
    url_seen: UrlSeen
    prioritizer: Prioritizer
    sink: LinkSink
    source: VisitSource[L]
    hosts: HostControl
    resolver: Resolver
    permit: Permit
    protocols: ProtocolModule
    content_seen: ContentSeen
    examiner: Examiner
    quarantine: Quarantine
    redirect_target: Callable[[Reply], str | None]
    retry_after_s: Callable[[Reply, float], float | None]
    archive: PrerequisiteArchive
    digest_algorithm: str
    """Of payloads, as hashlib names it."""
    history: History
    copies: Copies
    trapping: Trapping
    apart: Apart | None = None
    """Modules in processes of their own."""
    watcher: LinkWatcher | None = None
    """Sees every link of a finished page that is ours, known or not."""
    revisiting: Revisiting[L] | None = None
    """Sees pages again; None where a crawl ends."""
    hints: Hints | None = None
    """What sitemaps and feeds say of pages."""
    hubs: Hubs | None = None
    """Subscriptions; None where nobody could call back."""
    beyond: Beyond | None = None
    """Links that may come into scope yet; None where nothing is beyond it."""
    router: Router | None = None
    """Says whose a link is; None where all are ours."""
