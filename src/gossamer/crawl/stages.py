"""Stages: the components that a visit passes in a shard."""

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
from gossamer.model.links import Link
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
    """The components of a shard that a visit passes, in order."""

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
    """Algorithm of payload digests, by hashlib's name."""
    history: PageHistory
    copies: CopyMarks
    trapping: Trapping
    isolated: IsolatedModules | None = None
    """Modules in separate processes; None if there are none."""
    revisiting: Revisiting | None = None
    """Revisits pages; None except in a continuous crawl."""
    hints: SitemapHints | None = None
    """Hints of sitemaps and feeds; None if these are not read."""
    hubs: Subscriptions | None = None
    """Subscriptions; None if hubs cannot call back."""
    usage: Usage | None = None
    """Records statements about the use of pages, and refuses pages that the declared purposes may not use."""
    pending_scope: PendingScope | None = None
    """Links that may still come into scope; None if everything is in scope."""
    walls: Walls | None = None
    """Recognizes replies of bot protection; None if this is turned off."""
    exchange: Exchange | None = None
    """Exchange with other shards; None if there is only one shard."""
    sessions: Sessions | None = None
    """Cookies and logins; None if there are neither."""
    requests: Requests | None = None
    """Listed requests; None if there are none."""
    rendering: PageRendering | None = None
    """Renders pages; None if no page is rendered."""

    def level(self, link: Link) -> int:
        """Return the level of a link. Raises RuntimeError: the prioritizer failed."""
        try:
            level = self.prioritizer.level(link)
            if not isinstance(level, int):
                raise TypeError(f"it returned a {type(level).__name__}, not a level from 0 to 7")
        except Exception as error:
            name = type(self.prioritizer).__name__
            raise RuntimeError(
                f"the prioritizer {name} failed on {link.url.text}: {type(error).__name__}: {error}"
            ) from error
        return level
