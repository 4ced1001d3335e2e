"""Strategy: decides which URLs enter a frontier's queues, and when."""

from collections.abc import Sequence

from gossamer.model.links import Link
from gossamer.url.url import Url


class Strategy:
    """A complete sweep, which queues each URL at once; base of `RandomWalk` and of `components.frontier`.

    The frontier calls these methods. Politeness, retries and robots.txt apply to all that is queued with
    `Frontier.queue`, so that no strategy makes a request early. All are called often: they neither wait nor read files.
    """

    watches_links = False
    """Whether `linked` is called."""

    def hold(self, link: Link, level: int, now: float) -> bool:
        """Hold a URL that was not seen before, to queue it later or never. False: the frontier queues it now."""
        return False

    def linked(self, page: Url, links: Sequence[Link]) -> None:
        """Process the links of a page that was just finished."""

    def offer(self, now: float) -> None:
        """Queue URLs that may be fetched now; called before each lease."""

    def can_offer(self) -> bool:
        """Return whether `offer` queues URLs now. If not, the crawl ends when its queues are empty."""
        return False

    def finish(self, url: Url, outcome: str) -> None:
        """Note that a queued URL is finished."""

    @property
    def hosts(self) -> int:
        """Hosts at which the strategy can continue, for reports; 0: only those with queued URLs."""
        return 0

    def cut(self, now: float) -> None:
        """Put all changes of the strategy into the open epoch."""


SWEEP = Strategy()
"""The complete sweep, of which the frontier knows that it does nothing."""
