"""Hosts: those of the synthetic web: names, addresses, sizes and behaviors."""

from collections.abc import Iterable
from ipaddress import IPv4Address

import msgspec
import xxhash

from gossamer.lab.simweb.behaviors import PAGED, ROBOTS, RULED, SHARES, TRAPS
from gossamer.lab.simweb.options import SimwebOptions


class WebHost(msgspec.Struct, frozen=True):
    """One name of the web and all that is particular to it."""

    index: int
    name: str
    address: str
    site: str
    """The registrable domain: `.test` and `.example` are no public suffixes, so the last two labels."""
    pages: int
    first_page: int
    """Ordinary pages of all hosts before it."""
    robots: str
    """One of `ROBOTS`: how its robots.txt behaves."""
    behaviors: tuple[str, ...]
    """Those that have pages of their own, by name; each is below `/NAME/`."""
    slow: bool = False
    compressed: bool = False
    """Ordinary pages are sent gzipped to clients that take gzip."""
    mirror_of: int = -1
    """The host whose ordinary pages this one repeats byte for byte; -1 for none."""


def populate(options: SimwebOptions) -> tuple[WebHost, ...]:
    """Return the hosts of a web, in order of their index. Host 0 is always well-behaved: crawls start there."""
    sizes = _sizes(options)
    shares = _shares(options)
    robots = _robots(options, shares)
    mirrors = _mirrors(options, _draw_hosts(options, "mirror", shares.get("mirror", 0), range(1, options.hosts)))
    # A mirror's behaviors are its original's: given to mirrors, a rare one might show nowhere.
    originals = [index for index in range(1, options.hosts) if index not in mirrors]
    shown = {
        name: _draw_hosts(options, name, share, originals if name in PAGED else range(1, options.hosts))
        for name, share in shares.items()
        if name not in ROBOTS
    }
    behaviors: list[tuple[str, ...]] = []
    for index in range(options.hosts):
        names = [name for name in PAGED if index in shown.get(name, ())]
        if index == 0 and options.hosts > 1:
            names.append("directory")
        if robots[index] in RULED:
            names.append("private")
        behaviors.append(tuple(names))
    hosts: list[WebHost] = []
    first_page = 0
    for index in range(options.hosts):
        content = mirrors.get(index, index)
        name, site = _name(options, index)
        host = WebHost(
            index=index,
            name=name,
            address=_address(options, index % options.addresses),
            site=site,
            pages=sizes[content],
            first_page=first_page,
            robots=robots[index],
            behaviors=behaviors[content],
            slow=index in shown.get("slow", ()),
            compressed=index in shown.get("compressed", ()),
            mirror_of=mirrors.get(index, -1),
        )
        hosts.append(host)
        first_page += sizes[content]
    return tuple(hosts)


def refusing_address(options: SimwebOptions) -> str:
    """Return the address that refuses connections."""
    return _address(options, options.addresses)


def lot(options: SimwebOptions, *what: object) -> int:
    """Return 64 bits that depend on the seed and on `what` alone."""
    return xxhash.xxh3_64_intdigest("\0".join(map(str, (options.seed, *what))).encode())


def _name(options: SimwebOptions, index: int) -> tuple[str, str]:
    site_index = index // options.hosts_per_site
    site = f"d{site_index:03d}.{'test' if site_index % 2 == 0 else 'example'}"
    return site if options.bare_names and options.hosts_per_site == 1 else f"h{index:04d}.{site}", site


def _address(options: SimwebOptions, group: int) -> str:
    return str(IPv4Address(options.address_base) + (group + 1))


def _sizes(options: SimwebOptions) -> list[int]:
    """Pages per host: rank k gets a share of k to the minus exponent; ranks are dealt by the seed."""
    weights = [(rank + 1) ** -options.zipf_exponent for rank in range(options.hosts)]
    scale = options.pages / sum(weights)
    ranks = _shuffle(options, "rank", range(options.hosts))
    sizes = [0] * options.hosts
    for rank, index in enumerate(ranks):
        sizes[index] = max(1, round(weights[rank] * scale))
    return sizes


def _shuffle(options: SimwebOptions, what: str, indexes: Iterable[int]) -> list[int]:
    return sorted(indexes, key=lambda index: lot(options, what, index))


def _shares(options: SimwebOptions) -> dict[str, float]:
    wanted = set(SHARES) - TRAPS if options.behaviours is None else set(options.behaviours)
    if options.traps:
        wanted |= TRAPS
    return {name: options.shares.get(name, share) for name, share in SHARES.items() if name in wanted}


def _draw_hosts(options: SimwebOptions, name: str, share: float, among: Iterable[int]) -> frozenset[int]:
    """Draw the hosts that show a behaviour: its share of them, one at least if there is a share."""
    if share <= 0:
        return frozenset()
    return frozenset(_shuffle(options, name, among)[: max(1, round(share * options.hosts))])


def _robots(options: SimwebOptions, shares: dict[str, float]) -> list[str]:
    """Deal one kind of robots.txt to each host: every kind once while there are hosts, then by share."""
    kinds = [(name, shares[name]) for name in ROBOTS if shares.get(name, 0) > 0]
    dealt = ["robots_allow"] * options.hosts
    free = _shuffle(options, "robots", range(1, options.hosts))
    hand: list[str] = []
    for name, share in sorted(kinds, key=lambda kind: kind[1]):
        hand += [name] * max(1, round(share * options.hosts))
    for index, name in zip(free, hand, strict=False):
        dealt[index] = name
    return dealt


def _mirrors(options: SimwebOptions, mirrors: frozenset[int]) -> dict[int, int]:
    originals = [index for index in range(1, options.hosts) if index not in mirrors]
    if not originals:
        return {}
    return {index: originals[lot(options, "original", index) % len(originals)] for index in sorted(mirrors)}
