"""Discover: passes links through the filters, sends other shards their links, and queues new URLs."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from gossamer.engine.counters import CrawlCounters
from gossamer.engine.history import UNVISITED, NothingHeld, PageRecord, UrlMemory, holding
from gossamer.engine.links import LINKS_AT_ONCE
from gossamer.engine.pending_scope import SCOPE
from gossamer.engine.stages import Stages, levels_by
from gossamer.model.counters import Counters
from gossamer.model.links import LEADING_ON, Link
from gossamer.model.outcomes import WITH_CONTENT
from gossamer.ports import KNOWN, NEW, SHORTER
from gossamer.stages.frontier.priority import PageImportance
from gossamer.url.url import Url
from gossamer.world.clock import Clock

ADMITTED_MAX = 32_768
"""Cached admitted links: about 5 MB."""
PATH_BITS = 16
"""Bits for the hops of a path; its depth is in the bits above."""
HOPS_MASK = (1 << PATH_BITS) - 1
Widen = Callable[[Url, Url, int], object]
"""Adds the target of a seed's redirect to the scope, as far as the kind of the seed allows."""

One = TypeVar("One")


class Discovery:
    """The steps discover, admit, route, dedupe and enqueue of a shard."""

    def __init__(
        self, stages: Stages, widen: Widen, widen_here: Widen, clock: Clock, counters: CrawlCounters, *, follows: bool
    ) -> None:
        """`widen`, `widen_here`: of `Outcomes`. `follows`: False in an offline crawl, where links are only recorded."""
        self._stages = stages
        self._widen = widen
        self._widen_here = widen_here
        self._clock = clock
        self._counters = counters
        self._follows = follows
        self._urls = UrlMemory(stages.namer, stages.url_seen, stages.history)
        self._level_of = levels_by(stages.prioritizer, self._urls, stages.frontier)
        order = stages.prioritizer
        importance = order if isinstance(order, PageImportance) else None
        self.counts_links = importance is not None
        """Whether links to a URL are counted and raise its level; then a URL may be queued more than once."""
        self._raise_levels = importance.note if importance is not None else lambda *_: {}
        self._holding = holding(stages.url_seen) if follows and not self.counts_links else NothingHeld()
        """The eliminator, if it may answer some links later."""
        self._admitted: dict[int, int] = {}
        """By fingerprint of recently admitted links: depth and hops as one number."""
        self._submitted = 0
        self._rejected = 0
        self._elsewhere = 0
        self._remembered = 0
        self._offered = 0

    def count(self, into: Counters) -> None:
        """Set the counts of links up to the table of admitted links; the eliminator counts those that it gets."""
        into.links_submitted = self._submitted
        into.links_rejected = self._rejected
        into.links_elsewhere = self._elsewhere
        into.admitted_hits = self._remembered
        into.urls_misses = self._offered  # An eliminator with a table of popular URLs sets it, too.

    def judge_again(self) -> None:
        """Clear the cache of admitted links, because the filters have changed."""
        self._admitted.clear()

    def follow(self, links: Sequence[Link], page: Url, now: float) -> None:
        """Discover the links of a page that was just finished, and those that its redirect brought into scope."""
        for _ in self.follow_in_slices(links, page, now):
            pass

    def follow_in_slices(self, links: Sequence[Link], page: Url, now: float) -> Iterator[None]:
        """As `follow`. Yields where other work may run, but no commit."""
        if not self._follows:
            return
        yield from self._discover(links, now, [], page)
        if regained := self._stages.pending_scope.take_regained():
            yield from self._discover(regained, now, [])

    def discover(self, links: Sequence[Link]) -> list[int]:
        """Queue links in scope that are new; return the eliminator's answers for those in scope. 3 µs a known link."""
        answers: list[int] = []
        for _ in self._discover(links, self._clock.now(), answers):
            pass
        return answers

    def _discover(
        self, links: Sequence[Link], now: float, answers: list[int], page: Url | None = None
    ) -> Iterator[None]:
        """As `discover`, in slices; adds to `answers`. `page`, if not None, was just finished and has these links."""
        stages = self._stages
        self._bounce(links, now)
        admitted: list[Link] = []
        judged: list[int] = []  # Indexes in `admitted` of links that may be new.
        submitted = len(links)
        for some in (links,) if submitted < LINKS_AT_ONCE else _slices(links):
            if not stages.pending_scope.is_open:
                self._admit(some, page, admitted, judged)
            else:
                in_scope = self._admit_or_keep(some)
                judged += range(len(admitted), len(admitted) + len(in_scope))
                admitted += in_scope
            if len(some) == LINKS_AT_ONCE:
                yield
        ours = admitted
        to_offer = judged
        passed = len(admitted)
        own = passed
        if page is not None and stages.frontier.watches_links:
            stages.exchange.send_linking(page, admitted)
            stages.frontier.linked(page, admitted)
        if not stages.exchange.is_alone:
            links, ours = self._route(links, admitted)
            own = len(ours)
        risen = self._raise_levels(page, ours)
        # Some belong to other shards, and known URLs may become more urgent.
        if not stages.exchange.is_alone or self.counts_links:
            to_offer = list(range(own))
        answers += [KNOWN] * own
        offer = self._offer_of(ours)
        offers = len(to_offer)
        self._submitted += submitted
        self._rejected += submitted - passed
        self._elsewhere += passed - own
        self._remembered += own - offers
        self._offered += offers
        for places in (to_offer,) if offers < LINKS_AT_ONCE else _slices(to_offer):
            offered = [ours[at] for at in places]
            answered = offer(offered)
            self._enqueue(offered, answered, risen, now)
            for at, answer in zip(places, answered, strict=True):
                answers[at] = answer
            if len(places) == LINKS_AT_ONCE:
                yield
        # Only now, since after an error these links must be judged again.
        if len(self._admitted) > ADMITTED_MAX:
            self._admitted.clear()
        for at in judged:
            link = admitted[at]
            self._admitted[link.url.fingerprint] = link.depth << PATH_BITS | link.hops
        stages.trapping.note_links(links, ours, answers, page)

    def _bounce(self, links: Sequence[Link], now: float) -> None:
        """Queue an address again, as browsers do, if a redirect leads back to it after setting cookies."""
        stages = self._stages
        bounces = stages.middlewares.bounces
        if not bounces:
            return
        for link in links:
            if link.link_type in LEADING_ON and stages.exchange.has(link.url):
                record = stages.history.get(link.url)
                if record.final and any(one(link.url, record.outcome, now) for one in bounces):
                    stages.ending.visit_again(link, now, 0.0)
                    if link.seed:
                        stages.pending_scope.open(link.url, link.seed)

    def _offer_now(self, links: Sequence[Link]) -> Sequence[int]:
        return self._stages.url_seen.offer(
            [link.url for link in links], [link.depth for link in links], [link.hops for link in links]
        )

    def _offer_of(self, links: Sequence[Link]) -> Callable[[Sequence[Link]], Sequence[int]]:
        """Return the function that offers a page's links. Seeds and trap detection need the answers at once."""
        if isinstance(self._holding, NothingHeld):
            return self._offer_now
        has_seeds = any([link.seed for link in links])  # noqa: C419 - a list is quicker here
        if has_seeds or self._stages.trapping.traps.counts(links):
            return self._offer_now
        return self._holding.offer_or_hold

    @property
    def links_held(self) -> int:
        """Links that await the duplicate check, so the crawl must not end."""
        return self._holding.links_held

    def take_back(self, *, idle: bool) -> list[Link]:
        """Return held links that have their answers, for `requeue` in this epoch. `idle`: nothing else is to do."""
        return self._holding.release(LINKS_AT_ONCE, self._stages.namer.name, idle=idle)

    def requeue(self, links: Sequence[Link]) -> None:
        """Discover held links again: the filters, which may have changed, judge them like links of a page."""
        stages = self._stages
        if stages.pending_scope.is_open:
            ours = self._admit_or_keep(links)
        else:
            ours = [link for link in links if not stages.chain.reason(link)]
        if len(ours) < len(links):
            stages.trapping.traps.hold(links)
        ours = stages.exchange.own(ours)  # Their partitions may have moved since they were held.
        self._enqueue(ours, self._offer_now(ours), {}, self._clock.now())

    def _enqueue(self, links: Sequence[Link], answers: Sequence[int], risen: dict[int, int], now: float) -> None:
        """Queue the links that are new, and those that became more urgent."""
        stages = self._stages
        for link, answer in zip(links, answers, strict=True):
            rises = risen.pop(link.url.fingerprint, None) if risen else None
            if answer == NEW:
                level = link.level
                stages.frontier.add(link, self._level_of(link) if level is None else level, now)
            elif rises is not None and stages.history.get(link.url) is UNVISITED:
                stages.frontier.add(link, rises, now)  # A second entry: the earlier one is dropped in its turn.
            if link.seed:
                self._open_seed(link, answer)
            if answer == SHORTER and self._follows:
                self._relax(link)

    def _admit(self, links: Sequence[Link], page: Url | None, admitted: list[Link], judged: list[int]) -> None:
        """Add the links that pass the filters to `admitted`, and the indexes of those that may be new to `judged`.

        Navigation repeats on every page. Links that were admitted before, by a path not longer, are not judged again:
        they were offered then, so they are known. Seeds are judged each time, since the limit on hops ends circular
        redirects. So are links to another site than the page's, since `own_site` rejects a link because of its page.
        """
        remembered = self._admitted
        reason = self._stages.chain.reason
        for link in links:
            fingerprint = link.url.fingerprint
            if (
                fingerprint not in remembered
                or (before := remembered[fingerprint]) >> PATH_BITS > link.depth
                or before & HOPS_MASK > link.hops
                or link.seed
                or (page is not None and link.url.site != page.site)
            ):
                if reason(link):
                    continue
                judged.append(len(admitted))
            admitted.append(link)

    def _route(self, links: Sequence[Link], admitted: list[Link]) -> tuple[Sequence[Link], list[Link]]:
        """Send other shards their links; return this shard's links among all, and among those that were admitted."""
        exchange = self._stages.exchange
        ours = exchange.own(admitted)
        if len(ours) < len(admitted) or len(admitted) < len(links):
            links = [link for link in links if exchange.has(link.url)]
        return links, ours

    def take_in(self, links: Sequence[Link], levels: Sequence[int]) -> None:
        """Queue a segment's URLs, with their levels, if they are in scope and new. About 10 µs each."""
        stages = self._stages
        now = self._clock.now()
        ours = [
            (link, level)
            for link, level in zip(links, levels, strict=True)
            if not stages.chain.reason(link) and stages.exchange.has(link.url)  # Each shard reads all segments.
        ]
        self._submitted += len(links)
        self._rejected += len(links) - len(ours)
        self._offered += len(ours)
        for (link, level), answer in zip(ours, self._offer_now([link for link, _ in ours]), strict=True):
            if answer == NEW:
                stages.frontier.add(link, level, now)

    def _admit_or_keep(self, links: Sequence[Link]) -> list[Link]:
        """Return the links in scope, and keep those that may still come into scope."""
        admitted = []
        for link in links:
            reason = self._stages.chain.reason(link)
            if not reason:
                admitted.append(link)
            elif reason == SCOPE:
                self._stages.pending_scope.keep(link)
        return admitted

    def widen_by_remote_seed(self, seed: Url, target: Url, kind: int) -> None:
        """Widen the scope by the redirect of another shard's seed, and discover kept links that are in scope now."""
        self._widen_here(seed, target, kind)
        if regained := self._stages.pending_scope.take_regained():
            self.discover(regained)

    def _open_seed(self, link: Link, answer: int) -> None:
        """Note that a seed will be fetched, or was fetched as an ordinary link. Its redirect widens the scope."""
        stages = self._stages
        pending_scope = self._stages.pending_scope
        if not pending_scope.grows and answer == NEW:
            return
        record = stages.history.get(link.url)
        if record.outcome in WITH_CONTENT:
            self._counters.totals.seeds.any_fetched = True
        if not pending_scope.grows:
            return
        if not record.final:
            pending_scope.open(link.url, link.seed)
            return
        if target := self._target_elsewhere(record, link.url):
            self._widen(link.url, target, link.seed)
            self.discover([Link(target, "redirect", link.depth, link.hops + 1, record.url, link.seed)])
            self.discover(pending_scope.take_regained())

    def _relax(self, link: Link) -> None:
        """Pass a shorter path to a visited page on to the page's links, without a request."""
        stages = self._stages
        record = stages.history.get(link.url)
        if not (record.outlinks or record.redirect_to):
            return  # Its visit will use the shortest path.
        depth, hops = stages.url_seen.way(link.url) or (link.depth, link.hops)
        if record.redirect_to:
            if target := self._target_elsewhere(record, link.url):
                kind = stages.chain.effective_type("redirect", target)
                self.discover([Link(target, kind, depth, hops + 1, record.url, link.seed)])
            return
        named = filter(None, stages.namer.names(record.outlinks))
        kind_of = stages.chain.effective_type
        self.discover([Link(url, kind_of("anchor", url), depth + 1, 0, record.url) for url in named])

    def _target_elsewhere(self, record: PageRecord, url: Url) -> Url | None:
        """Return the target of the redirect that a URL answered with, if it has another key."""
        target = self._stages.namer.name(record.redirect_to) if record.redirect_to else None
        return target if target is not None and target.key != url.key else None


def _slices(links: Sequence[One]) -> Sequence[Sequence[One]]:
    """Split links, or their indexes, into slices."""
    return [links[begin : begin + LINKS_AT_ONCE] for begin in range(0, len(links), LINKS_AT_ONCE)]
