"""Walk: a strategy that does random walks instead of a complete sweep, for samples of a web that cannot be fetched
completely.

At each step, a walker follows a random link of its page, or restarts with a small chance at a random page of a random
seen host (Henzinger, Heydon, Mitzenmacher and Najork, "On near-uniform URL sampling", WWW9, 2000, with Mercator). Links
of visited pages are kept, so no page is fetched twice. `sample` draws from the visited pages.

The frontier's queues hold at most one URL per walker. It applies gates, retries and robots.txt as in any crawl, so a
walk is as polite as a sweep.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from gossamer.model.links import Link
from gossamer.stages.frontier.frontier import Frontier
from gossamer.stages.frontier.options import WalkOptions
from gossamer.stages.frontier.strategy import Strategy
from gossamer.stages.frontier.walked import WalkedPage, WalkedPages, Walker
from gossamer.state.epoch import Epochs
from gossamer.url.url import Url
from gossamer.world.dice import Dice

STEPS_A_CALL_MAX = 64
"""Steps in one call among pages that are fetched already, which need no request: about 2 ms."""


class RandomWalk(Strategy):
    """Promises, in addition to those of the frontier: a page is fetched once; after a restart, walkers and their pages
    are as in the last commit; a walk ends after `steps_max` steps.
    """

    watches_links = True

    def __init__(
        self,
        frontier: Frontier,
        epochs: Epochs,
        options: WalkOptions,
        name_url: Callable[[str], Url | None],
        dice: Dice,
    ) -> None:
        self._frontier = frontier
        self._options = options
        self._name_url = name_url
        self._dice = dice
        self._walked = WalkedPages(epochs, dice)
        self._walkers = self._walked.walkers(options.walkers)
        self._idle: deque[Walker] = deque()
        self._awaited: dict[int, list[Walker]] = {}
        """Walkers that wait for a page that is queued or in flight, by its fingerprint."""
        for walker in self._walkers:
            url = name_url(walker.awaits) if walker.awaits else None
            if url is None:
                self._idle.append(walker)
            else:
                self._awaited.setdefault(url.fingerprint, []).append(walker)

    # ---- links in

    def hold(self, link: Link, level: int, now: float) -> bool:
        """Take a seed, or the target of its redirect, as a page to begin at. Other links are not queued: walkers choose
        among them.
        """
        if link.seed and self._page(link.url) is None:
            self._walked.put(link.url, WalkedPage(link.url.text, link.depth, link.seed))
            self._walked.begin_at(link.url)
        return True

    def linked(self, page: Url, links: Sequence[Link]) -> None:
        """Store the links of a page that was just finished, for walkers to choose from."""
        here = self._page(page)
        if here is None:
            return
        distinct = {
            link.url.fingerprint: link.url.text
            for link in links
            if link.url.fingerprint != page.fingerprint and link.link_type != "embed"
        }
        texts = list(distinct.values())
        for kept in range(min(len(texts), self._options.links_max)):
            other = kept + self._dice.below(len(texts) - kept)
            texts[kept], texts[other] = texts[other], texts[kept]
        here.links = texts[: self._options.links_max]
        self._walked.put(page, here)

    # ---- visits out

    def offer(self, now: float) -> None:
        """Queue the next pages of idle walkers."""
        if self._frontier.counts.pending < len(self._awaited):
            self._free_stranded()
        for _ in range(STEPS_A_CALL_MAX):
            if not self.can_offer():
                break
            walker = self._idle.popleft()
            if not self._step(walker, now):
                self._idle.append(walker)

    def can_offer(self) -> bool:
        """Say whether a walker may take a step."""
        counts = self._walked.counts
        return bool(self._idle) and counts.hosts > 0 and counts.steps < self._options.steps_max

    def finish(self, url: Url, outcome: str) -> None:
        """Note that the walkers that waited for a page have arrived; they continue once `linked` has the page's
        links.
        """
        page = self._page(url)
        if page is None:
            page = WalkedPage(url.text)
        walkers = self._awaited.pop(url.fingerprint, [])
        is_new = not page.outcome
        page.outcome = outcome
        page.links = []
        page.visits += len(walkers)
        self._walked.put(url, page)
        if is_new and outcome == "fetched":
            self._walked.counts.fetched += 1
            if not page.seed:  # A seed can be restarted at from the beginning.
                self._walked.begin_at(url)
        for walker in walkers:
            walker.at = (url.partition, url.fingerprint)
            walker.awaits = ""
            self._idle.append(walker)

    @property
    def hosts(self) -> int:
        """Hosts at which walkers may restart."""
        return self._walked.counts.hosts

    def cut(self, now: float) -> None:
        """Put pages and walkers into the open epoch."""
        self._walked.cut(self._walkers)

    # ---- inside

    def _step(self, walker: Walker, now: float) -> bool:
        """Take a step; say whether the walker now waits for a page."""
        counts = self._walked.counts
        counts.steps += 1
        here = self._walked.page(*walker.at) if walker.at is not None else None
        if here is None or not here.links or self._dice.uniform(0.0, 1.0) < self._options.restart_share:
            counts.restarts += 1
            drawn = self._walked.draw()
            assert drawn is not None
            there = self._walked.page(*drawn)
            assert there is not None
            return self._go(walker, there.url, there.depth, "", now)
        text = here.links[self._dice.below(len(here.links))]
        return self._go(walker, text, here.depth + 1, here.url, now)

    def _go(self, walker: Walker, text: str, depth: int, referrer: str, now: float) -> bool:
        url = self._name_url(text)
        assert url is not None
        page = self._page(url)
        if page is not None and page.outcome:
            page.visits += 1
            self._walked.put(url, page)
            walker.at = (url.partition, url.fingerprint)
            return False
        walker.awaits = text
        if url.fingerprint in self._awaited:
            self._awaited[url.fingerprint].append(walker)
            return True
        self._awaited[url.fingerprint] = [walker]
        seed = page.seed if page is not None else 0
        if page is None:
            self._walked.put(url, WalkedPage(text, depth))
        self._frontier.queue(Link(url, "seed" if seed else "anchor", depth, 0, referrer, seed), 0, now)
        return True

    def _free_stranded(self) -> None:
        """Free the walkers that wait for a page of a host that has closed."""
        for walkers in list(self._awaited.values()):
            url = self._name_url(walkers[0].awaits)
            assert url is not None
            if self._frontier.facts(url).closed and not self._frontier.lent(url):
                self.finish(url, "host_closed")

    def _page(self, url: Url) -> WalkedPage | None:
        return self._walked.page(url.partition, url.fingerprint)
