"""Web: the modelled one: what a page links to, how long a fetch takes, what is left to be found."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

from xxhash import xxh3_64_intdigest

from gossamer.lab.simulate.draws import LogNormal, log_normal_of_mean, whole
from gossamer.lab.simulate.host import ModelHost
from gossamer.lab.simulate.options import WebOptions
from gossamer.lab.simulate.population import chosen
from gossamer.url.url import Url
from gossamer.world.dice import Dice

NAVIGATION = 5
"""First pages of a host, to which half of the known links on it lead."""


class ModelWeb:
    """Hosts of the modelled web, dealt to `shards` by their addresses."""

    def __init__(self, options: WebOptions, hosts: list[ModelHost], seed: int, shards: int) -> None:
        """Take the hosts that `population` drew."""
        self.options = options
        self.shards = shards
        self.hosts = hosts
        self._seed = seed
        self._dice = Dice(seed)
        self.hosts_found = 0
        """Hosts to which some link has led."""
        self._by_name = {host.name: host for host in self.hosts}
        self._up_to = list(accumulate(host.pages for host in hosts))
        self._page_factor = LogNormal(1.0, options.fetch_sigma_page)
        self._slow = LogNormal(options.slow_s_median, options.slow_sigma)
        self._bytes = log_normal_of_mean(options.page_bytes_mean, options.page_bytes_sigma)

    def host(self, name: str) -> ModelHost:
        """Return a host by its name."""
        return self._by_name[name]

    def name_url(self, text: str) -> Url | None:
        """Return the address that `ModelHost.url` made, for the frontier."""
        name, _, number = text[7:].partition("/")
        host = self._by_name[name]
        return Url(text, text, xxh3_64_intdigest(text.encode()), name, name, host.partition) if number else None

    def seeds(self) -> list[ModelHost]:
        """Return the hosts whose front pages are known from the start."""
        wanted = self.options.seed_hosts
        if not wanted:
            return self.hosts
        return chosen(self.hosts, self._seed, "seed", min(1.0, wanted / self.options.hosts), least=1)

    def find(self, host: ModelHost) -> int:
        """Let a link lead to the next page of a host that none led to before, and return its number."""
        self.hosts_found += not host.known
        host.known += 1
        return host.known - 1

    def fetch_s(self, host: ModelHost) -> float:
        """Draw the time of a fetch."""
        slow_s = self._slow.draw(self._dice) if host.slow else 0.0
        return host.fetch_s * self._page_factor.draw(self._dice) + slow_s

    def page_bytes(self) -> float:
        """Draw the decoded size of a page."""
        return self._bytes.draw(self._dice)

    def is_error(self) -> bool:
        """Draw whether a URL ends in an error."""
        return self.lot() < self.options.error_share

    def lot(self) -> float:
        """Draw a number in [0, 1)."""
        return self._dice.uniform(0.0, 1.0)

    def links(self, host: ModelHost, known_links: int) -> list[tuple[ModelHost, int]]:
        """Draw the links of a page that are new, as far as there are new pages, and `known_links` of the others."""
        dice, options, found = self._dice, self.options, []
        for _ in range(whole(options.new_urls_per_page, dice)):
            target = self._target(host)
            if target.known < target.pages:
                found.append((target, self.find(target)))
        for _ in range(known_links):
            target = self._target(host)
            if target.known:
                bound = NAVIGATION if dice.below(2) else target.known
                found.append((target, dice.below(min(bound, target.known))))
        return found

    def _target(self, host: ModelHost) -> ModelHost:
        dice, hosts = self._dice, self.hosts
        if dice.uniform(0.0, 1.0) < self.options.same_host_share:
            return host
        if dice.below(2):  # Half of the links between hosts go to any host, half to the large ones.
            return hosts[dice.below(len(hosts))]
        return hosts[bisect_right(self._up_to, dice.below(self._up_to[-1]))]
