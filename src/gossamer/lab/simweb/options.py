"""Options: the size, the behaviors and the seed of a synthetic web."""

from ipaddress import IPv4Address, IPv4Network
from typing import Annotated, Literal, Self, TypeVar

from gossamer.lab.simweb.behaviors import SHARES
from gossamer.options import Key, Section, convert

Preset = Literal["small", "medium", "large"]
Names = TypeVar("Names", tuple[str, ...], dict[str, float])
LOOPBACK = IPv4Network("127.0.0.0/8")


def _token(agent: str) -> str:
    # RFC 9309, section 2.2.1: letters, underscores, hyphens.
    if not agent or not all(c.isascii() and (c.isalpha() or c in "_-") for c in agent):
        raise ValueError("a product token has only letters, '_' and '-'")
    return agent


def _check_names(names: Names) -> Names:
    if unknown := set(names) - set(SHARES):
        raise ValueError(f"unknown behaviours {sorted(unknown)}; there are {sorted(SHARES)}")
    return names


class SimwebOptions(Section, frozen=True):
    """All that a web depends on: two webs with equal options are equal byte for byte.

    The port is part of it, because absolute links carry it.
    """

    seed: Annotated[int, Key("The same seed gives the same web.")] = 1
    hosts: Annotated[int, Key("Number of hosts.", ge=1, le=100_000)] = 50
    pages: Annotated[int, Key("Ordinary pages over all hosts, about; those of behaviours come on top.", ge=1)] = 5_000
    zipf_exponent: Annotated[float, Key("Pages of the k-th largest host fall with k to this.", ge=0, le=3)] = 0.9
    names_per_address: Annotated[int, Key("Names, at least, that share one address (fewer hosts: all).", ge=1)] = 5
    hosts_per_site: Annotated[int, Key("Hosts under one registrable domain.", ge=1)] = 3
    bare_names: Annotated[bool, Key("Where a site has one host, that is called like the site.")] = False
    links_per_page: Annotated[float, Key("Mean number of links on an ordinary page.", ge=0, le=1_000)] = 40.0
    same_host_share: Annotated[float, Key("Share of those links that stay on the host.", ge=0, le=1)] = 0.8
    children_per_page: Annotated[int, Key("Fan-out of the tree that reaches every page of a host.", ge=2)] = 8
    bytes_median: Annotated[int, Key("Median size of an ordinary page, in bytes.", ge=200, le=1_000_000)] = 12_000
    bytes_sigma: Annotated[float, Key("Spread of sizes (log-normal).", ge=0, le=2)] = 0.7
    bytes_max: Annotated[int, Key("No ordinary page is larger.", ge=200)] = 400_000
    port: Annotated[int, Key("One port for all hosts; 0 lets the server choose.", ge=0, le=65_535)] = 0
    address_base: Annotated[str, Key("Addresses count up from here, within 127.0.0.0/8.")] = "127.16.0.0"
    dns_ttl_s: Annotated[int, Key("How long answers of the DNS answerer hold, in seconds.", ge=0)] = 300
    latency_s: Annotated[float, Key("Every answer waits so long.", ge=0)] = 0.0
    slow_s_median: Annotated[float, Key("Median latency of a slow host (log-normal, per page).", ge=0)] = 0.3
    slow_sigma: Annotated[float, Key("Spread of the latency of slow hosts.", ge=0, le=3)] = 0.5
    crawl_delay_s: Annotated[float, Key("What robots.txt of kind `crawl_delay` asks for.", ge=0)] = 2.0
    retry_after_s: Annotated[int, Key("What Retry-After asks for.", ge=1)] = 2
    drip_s: Annotated[float, Key("Seconds between two bytes of a dripping page.", gt=0)] = 1.0
    oversized_bytes: Annotated[int, Key("Size of the oversized page.", ge=1)] = 24_000_000
    bomb_bytes: Annotated[int, Key("What the compressed bomb decodes to.", ge=1)] = 64_000_000
    changing_share: Annotated[float, Key("Share of the ordinary pages that change.", ge=0, le=1)] = 0.0
    change_s_median: Annotated[
        float, Key("Median over changing pages of the mean time between a page's changes (Poisson).", gt=0)
    ] = 86_400.0
    change_sigma: Annotated[float, Key("Spread of these times (log-normal).", ge=0, le=5)] = 1.5
    agent: Annotated[str, Key("The product token for which some robots.txt hold a group.", check=_token)] = "gossamer"
    behaviours: Annotated[
        tuple[str, ...] | None, Key("Only these behaviours; none given: all but traps.", check=_check_names)
    ] = None
    shares: Annotated[
        dict[str, float], Key("Share of the hosts that show a behaviour, by its name.", check=_check_names)
    ] = {}
    traps: Annotated[bool, Key("Add endless spaces: calendars, session ids, facets and others.")] = False

    @property
    def port_suffix(self) -> str:
        """What follows the name of a host in a URL: `:8080`, or nothing for port 80."""
        return "" if self.port == 80 else f":{self.port}"

    @classmethod
    def preset(cls, name: Preset, **changes: object) -> Self:
        """Return options of one of three sizes: 20 hosts, 200, or 2,000."""
        sizes = {"small": (20, 500), "medium": (200, 20_000), "large": (2_000, 500_000)}
        hosts, pages = sizes[name]
        return convert(cls, {"hosts": hosts, "pages": pages, **changes})

    @classmethod
    def plain(cls, **changes: object) -> Self:
        """Return options of a web without any odd behaviour: every robots.txt allows, every page is there."""
        return convert(cls, {"behaviours": (), **changes})

    @property
    def addresses(self) -> int:
        """Number of addresses that carry the hosts."""
        return max(1, self.hosts // self.names_per_address)

    def __post_init__(self) -> None:
        first = IPv4Address(self.address_base)
        # One address more: the one that refuses connections.
        if first not in LOOPBACK or first + (self.addresses + 2) not in LOOPBACK:
            raise ValueError(f"address_base {self.address_base}: {self.addresses} addresses leave 127.0.0.0/8")
