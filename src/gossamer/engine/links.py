"""Links of a page: which links are followed, and which the page's record keeps."""

from collections.abc import Generator
from typing import NamedTuple

import msgspec

from gossamer.engine.examine import Examined
from gossamer.engine.optional import Hints
from gossamer.model.links import EMBED, NOT_SEED, SITEMAP, Found, Link, Visit
from gossamer.model.modules import whole
from gossamer.model.pages import Findings, PageRow
from gossamer.model.visits import Reply
from gossamer.stages.scope.chain import Chain
from gossamer.url.name import Namer

LINKS_AT_ONCE = 1_000
"""Links that are handled before other work may run: about 15 ms."""


class FoundLinks(NamedTuple):
    """The links of a page."""

    visit: Visit
    """The visit that found them, with the path that was known then."""
    follow: list[Link]
    """Those that may be followed, each once."""
    mentions: list[Found]
    """All of them, for the links table."""
    keys: list[str]


class PageLinks:
    """Selects the links of a page. The filters judge them later, in the ring."""

    def __init__(self, namer: Namer, chain: Chain, hints: Hints) -> None:
        self._namer = namer
        self._chain = chain
        self._hints = hints

    def collect(self, visit: Visit, findings: Findings, known: FoundLinks | None = None) -> FoundLinks:
        """Name a page's links; return `known` if a visit by the same path found them.

        An embed is part of its page, so it is followed even if the page has `nofollow`. Embeds of an embed count as
        hops, so that a chain of them ends; so do refreshes that are the only links of their pages. From pages outside
        the scope only embeds are followed; links to such pages may be outlinks.
        """
        if known is not None and known.visit == visit:
            return known
        return whole(self.collect_in_slices(visit, findings))

    def collect_in_slices(self, visit: Visit, findings: Findings) -> Generator[None, None, FoundLinks]:
        """As `collect`. Yields where other work may run."""
        links: dict[tuple[str, str], Link] = {}
        mentions: list[Found] = []
        keys: list[str] = []
        # Whether the page is in the crawl only as an embed.
        outside = visit.link_type == EMBED and bool(
            self._chain.explain(Link(visit.url, "anchor", visit.depth, 0, visit.referrer))
        )
        embed_hops = visit.hops + 1 if visit.link_type == EMBED else 0
        depth = visit.depth + 1
        referrer = visit.url.text
        nofollow = findings.nofollow or outside
        unfollowed: list[Link] = []
        has_levels = False
        leads_out = self._chain.leads_out
        every = findings.links
        for start in range(0, len(every), LINKS_AT_ONCE):
            if start:
                yield
            some = every[start : start + LINKS_AT_ONCE]
            texts = dict.fromkeys([found.url for found in some])
            urls = {text: url for text, url in zip(texts, self._namer.names(texts), strict=True) if url is not None}
            if len(urls) < len(texts):
                some = [found for found in some if found.url in urls]
            mentions += some
            keys += [urls[found.url].key for found in some]
            for found in some:
                link_type = found.link_type
                key = found.url, link_type
                if key in links:
                    continue
                url = urls[found.url]
                if link_type == EMBED:
                    links[key] = Link(url, EMBED, depth, embed_hops, referrer)
                    continue
                kind = self._chain.effective_type(link_type, url) if leads_out else link_type
                link = Link(url, kind, depth, 0, referrer, NOT_SEED, found.level)
                if not (nofollow or found.nofollow):
                    links[key] = link
                    has_levels = has_levels or found.level is not None
                elif not outside:
                    unfollowed.append(link)
        if unfollowed:
            self._chain.note_nofollow(unfollowed)
        follow = list(links.values())
        is_only_refresh = len(follow) == 1 and follow[0].link_type == "meta_refresh"
        if is_only_refresh and (visit.hops or visit.link_type == "meta_refresh"):
            follow[0] = msgspec.structs.replace(follow[0], hops=visit.hops + 1)
        if has_levels:  # The first of several links to a page counts.
            follow.sort(key=lambda link: link.level is None)
        return FoundLinks(visit, follow, mentions, keys)

    def in_wanted_language(self, reply: Reply, examined: Examined, row: PageRow, links: list[Link]) -> list[Link]:
        """Return a page's links if its language is wanted, else none."""
        detected = examined.findings.columns.get("language")
        language = detected if isinstance(detected, str) else ""
        unwanted = self._chain.leads_nowhere(reply, examined.content.body, language)
        if not unwanted:
            return links
        examined.findings.nofollow = True  # For readers of the tables.
        row.error = row.error or f"the filter `language` rejects {unwanted}: its links are not followed"
        return []

    def admit(self, visit: Visit, findings: Findings, row: PageRow, links: list[Link], seed: int) -> list[Link]:
        """Return the links that the page is allowed to contain: for a sitemap, only those to the hosts that it may
        list. The error in the row says if some are left out. `seed` is the kind of seed that the page is.
        """
        hints = self._hints
        announcement = findings.announcement
        if announcement is not None:
            visit = msgspec.structs.replace(visit, seed=seed)
            # Filters of sitemaps themselves are left to the chain.
            explain = self._chain.explain
            links = hints.admitted(visit, announcement, links, lambda url: explain(Link(url, SITEMAP, 0)) != "scope")
            row.error = row.error or announcement.error
            return links
        return hints.feeds(links) if hints.wants_feeds else links

    def outlinks(self, links: list[Link]) -> list[str]:
        """Return the links that the page's record keeps, to offer them again when a shorter path to it is found."""
        if not self._chain.depth_limited:
            return []
        reason = self._chain.reason_but_depth
        return [link.url.text for link in links if link.link_type != EMBED and not reason(link)]
