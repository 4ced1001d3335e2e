"""Wrapping: base of frontiers that choose URLs differently, around the one that keeps the gates."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer.frontier.frontier import Frontier
from gossamer.frontier.host import Lease
from gossamer.frontier.options import BudgetOptions, FrontierOptions
from gossamer.frontier.overview import NextTurn
from gossamer.frontier.politeness import Politeness
from gossamer.model.links import Link, RevisitPlan
from gossamer.model.standing import Awaited, HostFacts
from gossamer.model.visits import Contact
from gossamer.url.url import Url


class WrappedFrontier:
    """A base class that passes all calls to `gates`, for `WalkFrontier` and `components.frontier`.

    A derived class chooses which URLs enter the gates, and when: it overrides `add`, `select`, `wake_at`, `finish` and
    `cut`, and calls these methods of the base class. Politeness, retries, robots.txt and queues stay those of the
    gates, so that no request is earlier than they allow. It puts its own state into the open epoch in `cut`. While it
    has URLs for `select`, `wake_at` must return a time, else the crawl ends.
    """

    def __init__(self, gates: Frontier) -> None:
        self.gates = gates
        self.counts, self.control = gates.counts, gates.control

    # ---- links in

    def add(self, link: Link, level: int, now: float) -> None:
        """Queue a URL that was not seen before."""
        self.gates.add(link, level, now)

    def linked(self, page: Url, links: Sequence[Link]) -> None:
        """Process the links of a page that was just finished; called if `watches_links` is True."""
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
        """Return when `select` may return a lease again; None if only the end of a visit can change that."""
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
        """Dequeue a URL that is finished but was queued again."""
        self.gates.drop(lease, now)

    def reconfigure(self, politeness: Politeness, options: FrontierOptions, budget: BudgetOptions, now: float) -> None:
        """Apply new rules."""
        self.gates.reconfigure(politeness, options, budget, now)

    def shrink(self) -> None:
        """Keep fewer hosts in memory."""
        self.gates.shrink()

    def cut(self, now: float) -> None:
        """Put all changes into the open epoch."""
        self.gates.cut(now)

    # ---- what is shown

    @property
    def benched(self) -> int:
        """Hosts in memory with work."""
        return self.gates.benched

    @property
    def memory_bytes(self) -> int:
        """Approximate memory of changes that wait for the next `cut`."""
        return self.gates.memory_bytes

    @property
    def hosts_left(self) -> int:
        """Hosts with URLs that are not finished."""
        return self.gates.hosts_left

    @property
    def hosts_most(self) -> int:
        """Maximum of `hosts_left`, over all runs."""
        return self.gates.hosts_most

    def count_anew(self) -> None:
        """Reset `hosts_most`."""
        self.gates.count_anew()

    @property
    def round(self) -> int:
        """Number of the budget round."""
        return self.gates.round

    def facts(self, url: Url) -> HostFacts:
        """Return the facts of a URL's host, for `why`."""
        return self.gates.facts(url)

    def lent(self, url: Url) -> bool:
        """Say whether a URL is being fetched now."""
        return self.gates.lent(url)

    @property
    def closings(self) -> list[tuple[str, str]]:
        """The last hosts that were closed in this process, and why."""
        return self.gates.closings

    def overview(self, now: float, most: int) -> dict[str, object]:
        """Return hosts that are active, slow or failing, for people."""
        return self.gates.overview(now, most)

    def awaited(self, most: int) -> list[Awaited]:
        """Return up to `most` of the hosts that can be requested later, the earliest first, for people."""
        return self.gates.awaited(most)

    def next_turn(self) -> NextTurn | None:
        """Return when the next host may be requested, which one, and why not earlier."""
        return self.gates.next_turn()
