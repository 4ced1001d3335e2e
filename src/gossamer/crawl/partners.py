"""Partners: what the ring asks of the parts that not every crawl has: the other shards, hints of pages, and hubs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from gossamer.model.announced import Announcement
from gossamer.model.links import Found, Link
from gossamer.model.visits import Errand, Failure, Reply
from gossamer.url.url import Url


class Router(Protocol):
    """Says which links are this shard's, and sees that the others reach theirs. Absent where there is one shard."""

    def own(self, links: Sequence[Link]) -> list[Link]:
        """Return the links that are ours; the others are sent with this epoch, those sent lately left out."""
        ...

    def has(self, url: Url) -> bool:
        """Say whether a URL is ours."""
        ...

    def widened(self, seed: Url, target: Url, kind: int) -> None:
        """Tell the other shards that a seed of a `kind` redirects to a target that was beyond the scope."""
        ...

    def linked(self, page: Url, links: Sequence[Link]) -> None:
        """Tell the other shards which of their sites a page of ours links to."""
        ...

    def run_errand(self, errand: Errand) -> bool:
        """Have another shard make a request for us, through the gates of its host; the answer comes back by itself.

        False when it cannot be asked.
        """
        ...

    def answer_errand(self, errand: Errand, result: Reply | Failure, body: bytes) -> None:
        """Give what an errand brought back to the shard that asked for it."""
        ...


class Hints(Protocol):
    """What sitemaps and feeds say of pages: hints, and links for which their authors may speak."""

    wants_feeds: bool
    """Feeds that pages name are fetched."""
    sitemap_bytes_max: int
    """Where the body of a sitemap is cut."""

    def named(self, origin: Url, sitemaps: Sequence[str]) -> tuple[list[Link], list[Link]]:
        """Take what the robots.txt of an origin names; return the sitemaps to fetch, and those among them to fetch
        once more though they were read: they may speak for more hosts now.
        """
        ...

    def admitted(self, page: Url, link_type: str, depth: int, told: Announcement, links: list[Link]) -> list[Link]:
        """Return those of a sitemap's or feed's links that it may name. `link_type` and `depth` are of the visit."""
        ...

    def feeds(self, links: list[Link]) -> list[Link]:
        """Return a page's links without the feeds that are more than a host may have."""
        ...

    def heard(self, page: Url, told: Announcement, headers: Sequence[tuple[str, str]], now: float) -> None:
        """Take in what a sitemap or feed that was just read says, once its visit has ended."""
        ...


class Hubs(Protocol):
    """Subscriptions to hubs (WebSub)."""

    def found(self, page: Url, links: Sequence[Found], now: float) -> None:
        """Take in what links of type `hub` and `self` a page states of itself."""
        ...

    def answered(self, errand: Errand, result: Reply | Failure, now: float) -> Errand | None:
        """Take what a word to a hub brought; return the next hop of a redirect, if there is one."""
        ...
