"""Wrapping: a frontier that chooses otherwise, around the one that keeps the gates."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer.frontier.frontier import Frontier
from gossamer.frontier.host import Lease
from gossamer.frontier.options import BudgetOptions, FrontierOptions
from gossamer.frontier.politeness import Politeness
from gossamer.frontier.scheduler import NextTurn
from gossamer.model.links import Link
from gossamer.model.visits import Awaited, Contact, HostFacts, RevisitPlan
from gossamer.url.url import Url


class WrappedFrontier:
    """A frontier that does what `gates` does, for others to derive from: `WalkFrontier`, and `components.frontier`.

    A derived one chooses what goes into the gates, and when: it overrides `add`, `select`, `wake_at`, `finish` and
    `cut`, and calls these. Politeness, retries, robots.txt and queues stay those of the gates, so that no server is
    reached sooner than they allow. What it holds itself it puts into the open epoch in `cut`; while it holds something
    that `select` can hand on, `wake_at` returns a time, else the crawl ends.
    """

    def __init__(self, gates: Frontier) -> None:
        self.gates = gates
        self.counts, self.control = gates.counts, gates.control

    # ---- links in

    def add(self, link: Link, level: int, now: float) -> None:
        """Queue a link's URL, which was not seen before."""
        self.gates.add(link, level, now)

    def linked(self, page: Url, links: Sequence[Link]) -> None:
        """Take in where a page leads that was just finished; called where `watches_links` is True."""
        self.gates.linked(page, links)

    @property
    def watches_links(self) -> bool:
        """Whether `linked` is called."""
        return self.gates.watches_links

    # ---- visits out

    def select(self, now: float) -> Lease | None:
        """Lease a visit whose gates are open, or None."""
        return self.gates.select(now)

    def wake_at(self) -> float | None:
        """Return when `select` may have something again; None when only the end of a visit can bring it."""
        return self.gates.wake_at()

    def locate(self, lease: Lease, address: str, until: float, now: float) -> None:
        self.gates.locate(lease, address, until, now)

    def begin(self, lease: Lease, now: float) -> bool:
        return self.gates.begin(lease, now)

    def ended(self, lease: Lease, contact: Contact | None, now: float) -> None:
        self.gates.ended(lease, contact, now)

    def give_back(self, lease: Lease, now: float) -> None:
        self.gates.give_back(lease, now)

    def retry(self, lease: Lease, again: RevisitPlan, now: float) -> None:
        self.gates.retry(lease, again, now)

    def finish(self, lease: Lease, outcome: str, now: float) -> None:
        self.gates.finish(lease, outcome, now)

    def drop(self, lease: Lease, now: float) -> None:
        """Take off its queue a URL that was queued twice and is finished."""
        self.gates.drop(lease, now)

    def reconfigure(self, politeness: Politeness, options: FrontierOptions, budget: BudgetOptions, now: float) -> None:
        """Apply other rules from now on."""
        self.gates.reconfigure(politeness, options, budget, now)

    def shrink(self) -> None:
        """Have fewer hosts in memory from now on."""
        self.gates.shrink()

    def cut(self, now: float) -> None:
        """Give the open epoch all that changed."""
        self.gates.cut(now)

    # ---- what is shown

    @property
    def benched(self) -> int:
        """Hosts in memory with work."""
        return self.gates.benched

    @property
    def memory_bytes(self) -> int:
        """Memory of what waits for the next `cut`, about."""
        return self.gates.memory_bytes

    @property
    def hosts_left(self) -> int:
        """Hosts with URLs that are not finished."""
        return self.gates.hosts_left

    @property
    def hosts_most(self) -> int:
        """Most of them at once, in this process."""
        return self.gates.hosts_most

    def count_anew(self) -> None:
        """Forget how many hosts there were at most."""
        self.gates.count_anew()

    @property
    def round(self) -> int:
        """Number of the budget round."""
        return self.gates.round

    def facts(self, url: Url) -> HostFacts:
        """Return what is known of a URL's host, for `why`."""
        return self.gates.facts(url)

    def lent(self, url: Url) -> bool:
        """Say whether a URL is being fetched now."""
        return self.gates.lent(url)

    @property
    def closings(self) -> list[tuple[str, str]]:
        """Hosts that were closed last in this process, and why."""
        return self.gates.closings

    def overview(self, now: float, most: int) -> dict[str, object]:
        """Return hosts that are active, slow or failing, for people."""
        return self.gates.overview(now, most)

    def awaited(self, most: int) -> list[Awaited]:
        """Return some of the hosts that can be requested later, those that can be first, for people."""
        return self.gates.awaited(most)

    def next_turn(self) -> NextTurn | None:
        """Return when the next host may be contacted, and which and why not before."""
        return self.gates.next_turn()
