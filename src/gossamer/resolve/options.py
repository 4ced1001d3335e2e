"""Options of name resolution: servers, lifetimes of answers, refused addresses."""

from __future__ import annotations

import ipaddress
from typing import Literal

from pydantic import Field, field_validator, model_validator

from gossamer.model.options import BASIC, Section


class ResolveOptions(Section):
    """Section `[resolve]` of the configuration."""

    servers: tuple[str, ...] = Field(
        default=(), description="Name servers, ADDRESS[:PORT]; none takes the system's.", json_schema_extra=BASIC
    )
    hosts_file: str = Field(
        default="",
        description="File of addresses and names, as /etc/hosts; used before name servers.",
        json_schema_extra=BASIC,
    )
    allow_private: bool = Field(
        default=False, description="Contact private, loopback and link-local addresses too.", json_schema_extra=BASIC
    )
    family: Literal["ipv4_first", "ipv6_first", "ipv4", "ipv6"] = Field(
        default="ipv4_first", description="Which addresses to try first, or at all."
    )
    ttl_s_min: float = Field(default=60.0, ge=0, description="Shortest lifetime of an answer; overrides a smaller TTL.")
    ttl_s_max: float = Field(
        default=86400.0, ge=1, description="Longest lifetime of an answer; overrides a larger TTL."
    )
    failure_ttl_s: float = Field(default=60.0, ge=0, le=3600, description="How long a failure counts.")
    cache_hosts_max: int = Field(default=100_000, ge=1, description="Hosts whose answers are kept in memory.")
    lookups_max: int = Field(default=100, ge=1, description="Lookups under way at once.")
    timeout_s: float = Field(
        default=3.0, gt=0, description="How long one try waits at most; less for a server known to be quick."
    )
    tries: int = Field(default=3, ge=1, le=10, description="Tries at each name server.")
    lookup_s_max: float = Field(default=15.0, gt=0, description="Time for a whole lookup.")

    @field_validator("servers")
    @classmethod
    def _spell_servers(cls, servers: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(server_address(server) for server in servers)

    @model_validator(mode="after")
    def _order_bounds(self) -> ResolveOptions:
        if self.ttl_s_min > self.ttl_s_max:
            raise ValueError(f"ttl_s_min {self.ttl_s_min:g} is above ttl_s_max {self.ttl_s_max:g}")
        return self


def server_address(text: str) -> str:
    """Spell a name server as `address:port`, IPv6 in brackets. Raises ValueError, saying what is expected."""
    host, colon, port = text.strip(), "", "53"
    if host.startswith("["):
        host, _, rest = host[1:].partition("]")
        colon, port = rest[:1], rest[1:] if rest else port
    elif host.count(":") == 1:
        host, colon, port = host.partition(":")
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        raise ValueError(
            f"{text!r} is no name server; expected an address like 9.9.9.9, 9.9.9.9:53 or [2620:fe::fe]:53"
        ) from None
    if colon not in ("", ":") or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(f"{text!r} has no valid port; expected ADDRESS[:PORT], a port from 1 to 65535")
    return f"[{address}]:{port}" if address.version == 6 else f"{address}:{port}"
