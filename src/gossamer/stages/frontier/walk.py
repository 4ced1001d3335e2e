"""Walk: a strategy of random walks instead of a sweep, for samples of a web that cannot be fetched completely.

At each step, a walker follows a random link of its page, or restarts with a small chance at a random page of a random
seen host (Henzinger, Heydon, Mitzenmacher and Najork, "On near-uniform URL sampling", WWW9, 2000, with Mercator). Links
of visited pages are kept, so no page is fetched twice. `sample` draws from the visited pages.

The frontier's queues hold at most one URL per walker. It applies gates, retries and robots.txt as in any crawl, so a
walk is as polite as a sweep.

In a crawl of several shards, a walker continues in the shard that owns the URL of its next step: it travels there with
the commit that holds the step. A restart draws among the hosts of all shards. Each shard sends the number of its hosts
with each commit that changes it, so a draw may miss the hosts of about the last second.
"""

from collections import deque
from collections.abc import Sequence

from gossamer.model.links import Link, TravellingWalker
from gossamer.stages.frontier.accounts import OtherShards
from gossamer.stages.frontier.frontier import Frontier
from gossamer.stages.frontier.options import WalkOptions
from gossamer.stages.frontier.strategy import Strategy
from gossamer.stages.frontier.walked import WalkedPage, WalkedPages, Walker
from gossamer.state.epoch import Epochs
from gossamer.url.url import NameUrl, Url
from gossamer.world.dice import Dice

STEPS_A_CALL_MAX = 64
"""Steps in one call among pages that are fetched already, which need no request: about 2 ms."""


class RandomWalk(Strategy):
    """Promises, in addition to those of the frontier: a page is fetched once; after a restart, walkers and their pages
    are as in the last commit; a walk ends after `steps_max` steps, of which each walker takes an equal share.
    """

    watches_links = True

    def __init__(
        self, frontier: Frontier, epochs: Epochs, options: WalkOptions, name_url: NameUrl, dice: Dice, *, begins: bool
    ) -> None:
        """`begins`: this is the shard in which all walkers begin."""
        self._frontier = frontier
        self._options = options
        self._name_url = name_url
        self._dice = dice
        self.others: OtherShards | None = None
        """The other shards; None in a crawl of one shard."""
        self._walked = WalkedPages(epochs, dice)
        self._walkers = self._walked.walkers(options.walkers if begins else 0)
        """Those in this shard, by number."""
        self._idle: deque[Walker] = deque()
        """Walkers that may take a step."""
        self._awaited: dict[int, list[Walker]] = {}
        """Walkers that wait for a page that is queued or in flight, by its fingerprint."""
        for walker in self._walkers.values():
            url = name_url(walker.awaits) if walker.awaits else None
            if url is None:
                self._free(walker)
            else:
                self._awaited.setdefault(url.fingerprint, []).append(walker)

    # ---- links in

    def hold(self, link: Link, level: int, now: float) -> bool:
        """Take a seed, or the target of its redirect, as a page to begin at. Walkers choose among other links."""
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
            self._step(self._idle.popleft(), now)

    def can_offer(self) -> bool:
        """Return whether a walker may take a step."""
        counts = self._walked.counts
        return bool(self._idle) and (counts.hosts > 0 or bool(counts.elsewhere))

    def finish(self, url: Url, outcome: str) -> None:
        """Note that the walkers that waited for a page have arrived; they go on once `linked` has the page's links."""
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
            self._free(walker)

    @property
    def hosts(self) -> int:
        """Hosts of this shard at which walkers may restart."""
        return self._walked.counts.hosts

    def cut(self, now: float) -> None:
        """Put pages and walkers into the open epoch."""
        counts = self._walked.counts
        if self.others is not None and counts.hosts != counts.hosts_sent:
            counts.hosts_sent = counts.hosts
            self.others.send_walked_hosts(counts.hosts)
        self._walked.cut(self._walkers.values())

    # ---- from other shards

    def arrive(self, arriving: TravellingWalker, now: float) -> None:
        """Continue the walk of a walker that comes from another shard."""
        if arriving.number in self._walkers:
            return  # A shard that was restored from an older checkpoint has sent it again.
        walker = Walker(steps=arriving.steps, number=arriving.number)
        self._walkers[walker.number] = walker
        if arriving.url:
            self._go(walker, arriving.url, arriving.depth, arriving.referrer, now)
        else:
            self._restart_here(walker, now)

    def note_hosts(self, shard: int, hosts: int) -> None:
        """Note at how many hosts of another shard walkers may restart."""
        self._walked.counts.elsewhere[shard] = hosts

    # ---- inside

    def _free(self, walker: Walker) -> None:
        """Let a walker take its next step, if it has one left."""
        steps, more = divmod(self._options.steps_max, self._options.walkers)
        if walker.number < self._options.walkers and walker.steps < steps + (walker.number < more):
            self._idle.append(walker)

    def _step(self, walker: Walker, now: float) -> None:
        counts = self._walked.counts
        counts.steps += 1
        walker.steps += 1
        here = self._walked.page(*walker.at) if walker.at is not None else None
        if here is None or not here.links or self._dice.uniform(0.0, 1.0) < self._options.restart_share:
            counts.restarts += 1
            self._restart(walker, now)
        else:
            text = here.links[self._dice.below(len(here.links))]
            self._go(walker, text, here.depth + 1, here.url, now)

    def _restart(self, walker: Walker, now: float) -> None:
        """Continue a walk at a random page of a random host of all shards."""
        counts = self._walked.counts
        elsewhere = sum(counts.elsewhere.values())
        place = self._dice.below(elsewhere + counts.hosts) if elsewhere else 0
        for shard, hosts in counts.elsewhere.items():
            if place < hosts:
                self._leave(walker, shard, TravellingWalker(walker.number, walker.steps))
                return
            place -= hosts
        self._restart_here(walker, now)

    def _restart_here(self, walker: Walker, now: float) -> None:
        drawn = self._walked.draw()
        there = self._walked.page(*drawn) if drawn is not None else None
        if there is None:  # Only in a shard that was restored from an older checkpoint.
            self._free(walker)
        else:
            self._go(walker, there.url, there.depth, "", now)

    def _leave(self, walker: Walker, to: int, leaving: TravellingWalker) -> None:
        """Send a walker to another shard, with the open epoch."""
        assert self.others is not None
        del self._walkers[walker.number]
        self._walked.remove(walker)
        self.others.send_walker(to, leaving)

    def _go(self, walker: Walker, text: str, depth: int, referrer: str, now: float) -> None:
        """Lead a walker to a page: of another shard, visited before, awaited, or new."""
        url = self._name_url(text)
        assert url is not None
        if self.others is not None and (owner := self.others.owner_of(url)) != self.others.shard:
            self._leave(walker, owner, TravellingWalker(walker.number, walker.steps, text, depth, referrer))
            return
        page = self._page(url)
        if page is not None and page.outcome:
            page.visits += 1
            self._walked.put(url, page)
            walker.at = (url.partition, url.fingerprint)
            self._free(walker)
            return
        walker.awaits = text
        if url.fingerprint in self._awaited:
            self._awaited[url.fingerprint].append(walker)
            return
        self._awaited[url.fingerprint] = [walker]
        seed = page.seed if page is not None else 0
        if page is None:
            self._walked.put(url, WalkedPage(text, depth))
        self._frontier.queue(Link(url, "seed" if seed else "anchor", depth, 0, referrer, seed), 0, now)

    def _free_stranded(self) -> None:
        """Free the walkers that wait for a page of a host that has closed."""
        for walkers in list(self._awaited.values()):
            url = self._name_url(walkers[0].awaits)
            assert url is not None
            if self._frontier.facts(url).closed and not self._frontier.is_leased(url):
                self.finish(url, "host_closed")

    def _page(self, url: Url) -> WalkedPage | None:
        return self._walked.page(url.partition, url.fingerprint)
