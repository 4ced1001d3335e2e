"""Options: the size, the behaviors and the seed of a synthetic web."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from typing import Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from gossamer.lab.simweb.behaviors.declared import SHARES

Preset = Literal["small", "medium", "large"]
Names = TypeVar("Names", tuple[str, ...] | None, dict[str, float])
LOOPBACK = IPv4Network("127.0.0.0/8")


class SimwebOptions(BaseModel):
    """All that a web depends on: two webs with equal options are equal byte for byte.

    The port is part of it, because absolute links carry it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    seed: int = Field(1, description="The same seed gives the same web.")
    hosts: int = Field(50, ge=1, le=100_000, description="Number of hosts.")
    pages: int = Field(
        5_000, ge=1, description="Ordinary pages over all hosts, about; those of behaviours come on top."
    )
    zipf_exponent: float = Field(0.9, ge=0, le=3, description="Pages of the k-th largest host fall with k to this.")
    names_per_address: int = Field(5, ge=1, description="Names, at least, that share one address (fewer hosts: all).")
    hosts_per_site: int = Field(3, ge=1, description="Hosts under one registrable domain.")
    bare_names: bool = Field(False, description="Where a site has one host, that is called like the site.")
    links_per_page: float = Field(40.0, ge=0, le=1_000, description="Mean number of links on an ordinary page.")
    same_host_share: float = Field(0.8, ge=0, le=1, description="Share of those links that stay on the host.")
    children_per_page: int = Field(8, ge=2, description="Fan-out of the tree that reaches every page of a host.")
    bytes_median: int = Field(12_000, ge=200, le=1_000_000, description="Median size of an ordinary page, in bytes.")
    bytes_sigma: float = Field(0.7, ge=0, le=2, description="Spread of sizes (log-normal).")
    bytes_max: int = Field(400_000, ge=200, description="No ordinary page is larger.")
    port: int = Field(0, ge=0, le=65_535, description="One port for all hosts; 0 lets the server choose.")
    address_base: str = Field("127.16.0.0", description="Addresses count up from here, within 127.0.0.0/8.")
    dns_ttl_s: int = Field(300, ge=0, description="How long answers of the DNS answerer hold, in seconds.")
    latency_s: float = Field(0.0, ge=0, description="Every answer waits so long.")
    slow_s_median: float = Field(0.3, ge=0, description="Median latency of a slow host (log-normal, per page).")
    slow_sigma: float = Field(0.5, ge=0, le=3, description="Spread of the latency of slow hosts.")
    crawl_delay_s: float = Field(2.0, ge=0, description="What robots.txt of kind `crawl_delay` asks for.")
    retry_after_s: int = Field(2, ge=1, description="What Retry-After asks for.")
    drip_s: float = Field(1.0, gt=0, description="Seconds between two bytes of a dripping page.")
    oversized_bytes: int = Field(24_000_000, ge=1, description="Size of the oversized page.")
    bomb_bytes: int = Field(64_000_000, ge=1, description="What the compressed bomb decodes to.")
    changing_share: float = Field(0.0, ge=0, le=1, description="Share of the ordinary pages that change.")
    change_s_median: float = Field(
        86_400.0, gt=0, description="Median over changing pages of the mean time between a page's changes (Poisson)."
    )
    change_sigma: float = Field(1.5, ge=0, le=5, description="Spread of these times (log-normal).")
    agent: str = Field("gossamer", description="The product token for which some robots.txt hold a group.")
    behaviours: tuple[str, ...] | None = Field(None, description="Only these behaviours; none given: all but traps.")
    shares: dict[str, float] = Field({}, description="Share of the hosts that show a behaviour, by its name.")
    traps: bool = Field(False, description="Add endless spaces: calendars, session ids, facets and others.")

    @classmethod
    def preset(cls, name: Preset, **changes: object) -> Self:
        """Return options of one of three sizes: 20 hosts, 200, or 2,000."""
        sizes = {"small": (20, 500), "medium": (200, 20_000), "large": (2_000, 500_000)}
        hosts, pages = sizes[name]
        return cls.model_validate({"hosts": hosts, "pages": pages, **changes})

    @classmethod
    def plain(cls, **changes: object) -> Self:
        """Return options of a web without any odd behaviour: every robots.txt allows, every page is there."""
        return cls.model_validate({"behaviours": (), **changes})

    @property
    def addresses(self) -> int:
        """Number of addresses that carry the hosts."""
        return max(1, self.hosts // self.names_per_address)

    @field_validator("agent")
    @classmethod
    def _agent_is_a_token(cls, agent: str) -> str:
        # RFC 9309, section 2.2.1: letters, underscores, hyphens.
        if not agent or not all(c.isascii() and (c.isalpha() or c in "_-") for c in agent):
            raise ValueError("a product token has only letters, '_' and '-'")
        return agent

    @field_validator("behaviours", "shares")
    @classmethod
    def _behaviours_are_known(cls, names: Names) -> Names:
        unknown = set(names or ()) - set(SHARES)
        if unknown:
            raise ValueError(f"unknown behaviours {sorted(unknown)}; there are {sorted(SHARES)}")
        return names

    @model_validator(mode="after")
    def _addresses_are_loopback(self) -> Self:
        first = IPv4Address(self.address_base)
        # One address more: the one that refuses connections.
        if first not in LOOPBACK or first + (self.addresses + 2) not in LOOPBACK:
            raise ValueError(f"address_base {self.address_base}: {self.addresses} addresses leave 127.0.0.0/8")
        return self
