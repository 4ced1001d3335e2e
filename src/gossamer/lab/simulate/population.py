"""Population: draws the hosts of the modelled web, or takes those of a synthetic one. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from statistics import NormalDist

from xxhash import xxh3_64_intdigest

from gossamer.lab.simulate.host import ModelHost
from gossamer.lab.simulate.options import WebOptions
from gossamer.lab.simulate.sizes import sampled_sizes
from gossamer.lab.simweb.hosts import populate
from gossamer.lab.simweb.options import SimwebOptions

SEPARATE_PAGES = {"private": 6, "directory": 3}
"""Pages of those behaviors that a web has without any odd option."""
GIANT_ADDRESS = "10.255.255.254"


def population(options: WebOptions, seed: int, scale: int, shards: int) -> list[ModelHost]:
    """Return one host in `scale`; about 5 µs each."""
    sizes = sampled_sizes(options.hosts, options.pages, options.zipf_exponent, scale)
    addresses = max(1, int(len(sizes) / options.hosts_per_address))
    medians = _medians(options, seed, len(sizes))
    hosts = [
        ModelHost(f"h{index}.example", _address(index % addresses), pages, medians[index], shards)
        for index, pages in enumerate(sizes)
    ]
    for host in chosen(hosts, seed, "dead", options.dead_host_share):
        host.dead = True
    for host in chosen(hosts, seed, "denied", options.denied_host_share):
        host.denied = True
    for host in chosen(hosts, seed, "slow", options.slow_share):
        host.slow = True
    for host in chosen(hosts, seed, "crawl_delay", options.crawl_delay_share):
        host.crawl_delay_s = options.crawl_delay_s
    if options.giant_pages:
        hosts.append(ModelHost("giant.example", GIANT_ADDRESS, options.giant_pages, options.giant_fetch_s, shards))
    return hosts


def synthetic(simweb: SimwebOptions, options: WebOptions, shards: int) -> list[ModelHost]:
    """Return the hosts of a synthetic web, with their sizes, addresses and manners."""
    hosts = []
    for made in populate(simweb):
        pages = made.pages + sum(SEPARATE_PAGES.get(name, 0) for name in made.behaviors)
        host = ModelHost(made.name, made.address, pages, options.fetch_s_median, shards)
        host.slow, host.denied = made.slow, made.robots == "robots_deny_all"
        host.crawl_delay_s = simweb.crawl_delay_s if made.robots == "robots_crawl_delay" else None
        hosts.append(host)
    return hosts


def chosen(hosts: Sequence[ModelHost], seed: int, what: str, share: float, least: int = 0) -> list[ModelHost]:
    """Return a share of the hosts, drawn by the seed."""
    number = max(least, round(share * len(hosts)))
    return [hosts[index] for index in _shuffled(seed, what, len(hosts))[:number]] if number else []


def _medians(options: WebOptions, seed: int, hosts: int) -> list[float]:
    """Deal the quantiles of a log-normal to the hosts: no sample is faster than another by luck."""
    normal, medians = NormalDist(), [0.0] * hosts
    for place, index in enumerate(_shuffled(seed, "fetch", hosts)):
        factor = exp(options.fetch_sigma_host * normal.inv_cdf((place + 0.5) / hosts))
        medians[index] = options.fetch_s_median * factor
    return medians


def _shuffled(seed: int, what: str, hosts: int) -> list[int]:
    return sorted(range(hosts), key=lambda index: xxh3_64_intdigest(f"{seed}/{what}/{index}".encode()))


def _address(number: int) -> str:
    return f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
