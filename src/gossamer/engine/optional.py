"""Optional: parts that a crawl may lack, as the engine uses them, and their substitutes if they are off."""

from collections.abc import Callable, Sequence
from typing import Protocol

from gossamer.engine.examine import Examined
from gossamer.model.links import Announcement, Link, Prerequisite, RevisitPlan, Visit
from gossamer.model.pages import Archived, Findings, Page, Visited
from gossamer.model.visits import Failure, Reply
from gossamer.stages.frontier.host import VisitLease
from gossamer.stages.process.chain import Processed
from gossamer.url.url import Url


class ShardExchange(Protocol):
    """Exchanges links and prerequisite fetches with the other shards of a crawl (`cluster.exchange`). This base has
    none.
    """

    @property
    def is_alone(self) -> bool:
        """Whether there are no other shards."""
        return True

    def has(self, url: Url) -> bool:
        """Return whether this shard has the partition of a URL."""
        return True

    def seeds_here(self, url: Url) -> bool:
        """Return whether this shard accepts a URL as a seed."""
        return True

    def own(self, links: Sequence[Link]) -> list[Link]:
        """Return this shard's links, and send the others to their shards."""
        return list(links)

    def send_linking(self, page: Url, links: Sequence[Link]) -> None:
        """Send counts of links from a page to the shards that need them."""
        return

    def send_root(self, seed: Url, target: Url, kind: int) -> None:
        """Send the others a root that the redirect of a seed added."""
        return

    def run_prerequisite(self, prerequisite: Prerequisite) -> bool:
        """Ask the shard that owns a prerequisite fetch to make it; False if too many are under way."""
        raise AssertionError("there is no other shard")

    def answer_prerequisite(self, prerequisite: Prerequisite, result: Reply | Failure, body: bytes) -> None:
        """Send the result of a prerequisite fetch to the shard that wants it."""
        raise AssertionError("there is no other shard")


class NoOthers(ShardExchange):
    """A crawl of one shard: everything is its own."""


class BrowserRendering:
    """Renders pages in browsers (`features.render`). This base renders none."""

    is_on = False
    """Whether any page is rendered."""

    @property
    def visits(self) -> int:
        """Visits that wait for a browser, or are in one."""
        return 0

    @property
    def is_full(self) -> bool:
        """Whether no more pages are fetched until a browser is free."""
        return False

    def wants(self, reply: Reply, examined: Examined) -> bool:
        """Return whether a page may be rendered."""
        return False

    async def render(self, url: Url, reply: Reply, examined: Examined) -> Examined:
        """Return the page as rendered; as it was before if rendering fails or the page is not chosen."""
        return examined


class Isolation(Protocol):
    """Runs processing modules in separate processes (`features.isolation`); without modules it starts none."""

    def wants(self, media_type: str, link_type: str) -> bool:
        """Return whether any module is for such a page."""

    @property
    def is_full(self) -> bool:
        """Whether the next page must wait before it is decoded."""

    async def enter(self) -> None:
        """Wait until one more page may be decoded. `leave` follows in any case."""

    def leave(self) -> None:
        """Note that a page that entered is done, or needs no process."""

    async def process(self, page: Page, findings: Findings) -> Processed:
        """Add the modules' findings to `findings`; return them with the errors and the modules that ran."""


class Ending(Protocol):
    """How URLs return to the frontier: finished, or due again in a continuous crawl (`features.revisit`)."""

    is_continuous: bool

    def prepare(self, lease: VisitLease, visited: Visited) -> Callable[[Archived, float], None]:
        """Complete the row of a visit that ends; return the function that ends it once the row is archived."""

    def retry(self, lease: VisitLease, again: RevisitPlan, now: float) -> None:
        """Queue the URL of a visit again: for another attempt, or the next hop of a redirect with the same key."""

    def visit_again(self, link: Link, now: float, not_before: float) -> None:
        """Queue a URL again whose visit has ended."""


class Hints:
    """Handles announcements of sitemaps and feeds (`features.revisit.hints`). This base reads them as pages."""

    wants_feeds = False

    def named(self, origin: Url, sitemaps: Sequence[str]) -> tuple[list[Link], list[Link]]:
        """Return the sitemaps in an origin's robots.txt that are fetched, and those that are fetched again because they
        were read before they had authority over this host.
        """
        return [], []

    def admitted(
        self, visit: Visit, announcement: Announcement, links: list[Link], in_scope: Callable[[Url], bool]
    ) -> list[Link]:
        """Return a document's links that it may announce; `announcement.error` says if some are left out."""
        return links

    def feeds(self, links: list[Link]) -> list[Link]:
        """Return a page's links without feeds beyond the limit per host."""
        return links

    def leads_to(self, sitemap: Url, target: Url) -> bool:
        """Return whether the target of a sitemap's redirect is fetched as a sitemap, also outside the scope."""
        return True

    def redirected(self, sitemap: Url, target: Url) -> bool:
        """Give the target of a sitemap's redirect its authority; return whether the target was read before."""
        return False

    def vouched(self, link: Link) -> bool:
        """Give a sitemap that another shard has named authority over that host; return whether it was read before."""
        return False
