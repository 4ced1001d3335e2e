"""Web: the modelled one: its hosts, what a page links to, how long a fetch takes, what is left to be found. Pure."""

from bisect import bisect_right
from collections.abc import Sequence
from ipaddress import IPv4Address
from itertools import accumulate, pairwise
from math import exp, log
from statistics import NormalDist

from xxhash import xxh3_64_intdigest

from gossamer.lab.simulate.options import WebOptions
from gossamer.lab.simweb.hosts import populate
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.url.site import PARTITIONS
from gossamer.url.url import Url, fingerprint
from gossamer.world.dice import Dice

# Chance from tables, quick and the same on every machine.

_STEPS = 1_024


class LogNormal:
    """Draws of a log-normal with a median; 1,024 quantiles, about 0.4 µs each."""

    def __init__(self, median: float, sigma: float) -> None:
        normal = NormalDist()
        self._quantiles = [median * exp(sigma * normal.inv_cdf((step + 0.5) / _STEPS)) for step in range(_STEPS)]

    @property
    def mean(self) -> float:
        """The mean of the table."""
        return sum(self._quantiles) / _STEPS

    def draw(self, dice: Dice) -> float:
        """Return one value."""
        return self._quantiles[dice.below(_STEPS)]


def log_normal_of_mean(mean: float, sigma: float) -> LogNormal:
    """Return the log-normal that has this mean."""
    return LogNormal(mean / LogNormal(1.0, sigma).mean, sigma)


def whole(mean: float, dice: Dice) -> int:
    """Return one of the two whole numbers beside `mean`, so that the mean of many is `mean`."""
    low = int(mean)
    return low + (dice.uniform(0.0, 1.0) < mean - low)


# Pages per host by Zipf's law, whole or of one host in `scale`.

_EXACT_RANKS = 2_000
"""Ranks that are added up one by one; the rest is an integral, off by less than one in ten million."""


def weight_of_ranks(first: float, last: float, exponent: float) -> float:
    """Return the sum of `rank ** -exponent` over the ranks `first` + 1 to `last`, both whole numbers."""
    exact = min(int(last), max(int(first), _EXACT_RANKS))
    total: float = sum(float(rank) ** -exponent for rank in range(int(first) + 1, exact + 1))
    if last > exact:  # The midpoint rule: each rank represents half a rank on either side.
        low = exact + 0.5
        high = last + 0.5
        power = 1.0 - exponent
        total += log(high / low) if abs(power) < 1e-9 else (high**power - low**power) / power
    return total


def largest(hosts: int, pages: int, exponent: float) -> float:
    """Return the pages of the largest host."""
    return pages / weight_of_ranks(0, hosts, exponent)


def sample_sizes(hosts: int, pages: int, exponent: float, scale: int) -> list[int]:
    """Return the sizes of one host in `scale`, largest first.

    Ranks are cut into bands of `scale`; each band is one host with the band's mean size, so the sample has the pages of
    the whole divided by `scale` however the large hosts fall. With `scale` 1 it is the web itself.
    """
    edges = [*range(0, hosts, scale), hosts]
    if len(edges) > 2 and edges[-1] - edges[-2] < scale:
        del edges[-2]  # A band that is no whole one joins its neighbour.
    per_weight = pages / weight_of_ranks(0, hosts, exponent)
    return [
        max(1, round(weight_of_ranks(first, last, exponent) * per_weight / (last - first)))
        for first, last in pairwise(edges)
    ]


# Hosts, drawn or those of a synthetic web.


class ModelHost:
    """One host of the web, and the URLs of it that the crawl has found and not finished."""

    __slots__ = (
        "address", "closed", "crawl_delay_s", "dead", "denied", "fetch_s", "known", "name", "pages", "partition",
        "pending", "shard", "slow",
    )  # fmt: skip

    def __init__(self, name: str, address: str, pages: int, fetch_s: float, shards: int) -> None:
        self.name = name
        self.address = address
        self.pages = pages
        self.fetch_s = fetch_s
        """Median of its fetch times."""
        self.partition = fingerprint(name) % PARTITIONS
        self.shard = fingerprint(address) % shards
        """All hosts of an address are on one shard: the address's gate then holds for all shards, as its lease will."""
        self.dead = False
        self.denied = False
        self.slow = False
        self.crawl_delay_s: float | None = None
        self.known = 0
        """Pages that some link has led to; they are numbered from 0."""
        self.pending = 0
        """Pages that are queued or under way."""
        self.closed = False
        """The frontier has given it up."""

    @property
    def robots_txt(self) -> bytes:
        """Its robots.txt; empty if it has none."""
        if self.denied:
            return b"User-agent: *\nDisallow: /\n"
        return b"" if self.crawl_delay_s is None else b"User-agent: *\nCrawl-delay: %g\n" % self.crawl_delay_s

    def url(self, number: int) -> Url:
        """Return the address of a page, canonical as it is."""
        text = f"http://{self.name}/{number}"
        return Url(text, text, xxh3_64_intdigest(text.encode()), self.name, self.name, self.partition)


SEPARATE_PAGES = {"private": 6, "directory": 3}
"""Pages of those behaviors that a web has without any odd option."""
GIANT_ADDRESS = "10.255.255.254"


def population(options: WebOptions, seed: int, scale: int, shards: int) -> list[ModelHost]:
    """Return one host in `scale`; about 5 µs each."""
    sizes = sample_sizes(options.hosts, options.pages, options.zipf_exponent, scale)
    addresses = max(1, int(len(sizes) / options.hosts_per_address))
    medians = _medians(options, seed, len(sizes))
    hosts = [
        ModelHost(f"h{index}.example", str(IPv4Address("10.0.0.0") + index % addresses), pages, medians[index], shards)
        for index, pages in enumerate(sizes)
    ]
    for host in choose_hosts(hosts, seed, "dead", options.dead_host_share):
        host.dead = True
    for host in choose_hosts(hosts, seed, "denied", options.denied_host_share):
        host.denied = True
    for host in choose_hosts(hosts, seed, "slow", options.slow_share):
        host.slow = True
    for host in choose_hosts(hosts, seed, "crawl_delay", options.crawl_delay_share):
        host.crawl_delay_s = options.crawl_delay_s
    if options.giant_pages:
        hosts.append(ModelHost("giant.example", GIANT_ADDRESS, options.giant_pages, options.giant_fetch_s, shards))
    return hosts


def synthetic(simweb: SimwebOptions, options: WebOptions, shards: int) -> list[ModelHost]:
    """Return the hosts of a synthetic web, with their sizes, addresses and delays."""
    hosts = []
    for made in populate(simweb):
        pages = made.pages + sum(SEPARATE_PAGES.get(name, 0) for name in made.behaviors)
        host = ModelHost(made.name, made.address, pages, options.fetch_s_median, shards)
        host.slow = made.slow
        host.denied = made.robots == "robots_deny_all"
        host.crawl_delay_s = simweb.crawl_delay_s if made.robots == "robots_crawl_delay" else None
        hosts.append(host)
    return hosts


def choose_hosts(hosts: Sequence[ModelHost], seed: int, what: str, share: float, least: int = 0) -> list[ModelHost]:
    """Return a share of the hosts, one drawn by the seed from each of as many bands of equal size.

    Hosts stand by size, so that no sample loses more of its pages than another by luck.
    """
    number = min(len(hosts), max(least, round(share * len(hosts))))
    width = len(hosts) / max(1, number)
    draws = (xxh3_64_intdigest(f"{seed}/{what}/{band}".encode()) / 2**64 for band in range(number))
    return [hosts[min(len(hosts) - 1, int((band + draw) * width))] for band, draw in enumerate(draws)]


def _medians(options: WebOptions, seed: int, hosts: int) -> list[float]:
    """Deal the quantiles of a log-normal to the hosts: no sample is faster than another by luck."""
    normal = NormalDist()
    medians = [0.0] * hosts
    shuffled = sorted(range(hosts), key=lambda index: xxh3_64_intdigest(f"{seed}/fetch/{index}".encode()))
    for place, index in enumerate(shuffled):
        factor = exp(options.fetch_sigma_host * normal.inv_cdf((place + 0.5) / hosts))
        medians[index] = options.fetch_s_median * factor
    return medians


# The web.

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
        return choose_hosts(self.hosts, self._seed, "seed", min(1.0, wanted / self.options.hosts), least=1)

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
        dice = self._dice
        options = self.options
        found = []
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
        dice = self._dice
        hosts = self.hosts
        if dice.uniform(0.0, 1.0) < self.options.same_host_share:
            return host
        if dice.below(2):  # Half of the links between hosts go to any host, half to the large ones.
            return hosts[dice.below(len(hosts))]
        return hosts[bisect_right(self._up_to, dice.below(self._up_to[-1]))]
