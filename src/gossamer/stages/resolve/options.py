"""Options of name resolution: servers, lifetimes of answers, refused addresses."""

import ipaddress
from typing import Annotated, Literal

from gossamer.options import Key, Section


def server_address(text: str) -> str:
    """Return a name server as `address:port`, with IPv6 in brackets. Raises ValueError with the expected form."""
    host = text.strip()
    colon = ""
    port = "53"
    if host.startswith("["):
        host, _, rest = host[1:].partition("]")
        colon = rest[:1]
        port = rest[1:] if rest else port
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


def _normalize(servers: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(server_address(server) for server in servers)


class ResolveOptions(Section, frozen=True):
    """How host names are resolved."""

    servers: Annotated[
        tuple[str, ...], Key("Name servers, ADDRESS[:PORT]; none takes the system's.", basic=True, check=_normalize)
    ] = ()
    hosts_file: Annotated[
        str, Key("File of addresses and names, as /etc/hosts; used before name servers.", basic=True, path="read")
    ] = ""
    allow_private: Annotated[bool, Key("Contact private, loopback and link-local addresses too.", basic=True)] = False
    family: Annotated[
        Literal["ipv4_first", "ipv6_first", "ipv4", "ipv6"], Key("Which addresses to try first, or at all.")
    ] = "ipv4_first"
    ttl_s_min: Annotated[float, Key("Shortest lifetime of an answer; overrides a smaller TTL.", ge=0)] = 60.0
    ttl_s_max: Annotated[float, Key("Longest lifetime of an answer; overrides a larger TTL.", ge=1)] = 86400.0
    failure_ttl_s: Annotated[
        float, Key("How long a failure counts; a temporary one, for a second at most.", ge=0, le=3600)
    ] = 60.0
    cache_hosts_max: Annotated[int, Key("Hosts whose answers are kept in memory.", ge=1)] = 100_000
    lookups_max: Annotated[int, Key("Lookups under way at once.", ge=1)] = 100
    timeout_s: Annotated[
        float, Key("Longest wait for one attempt, in seconds; shorter for a server known to be quick.", gt=0)
    ] = 3.0
    tries: Annotated[int, Key("Attempts at each name server.", ge=1, le=10)] = 3
    lookup_s_max: Annotated[float, Key("Time for a whole lookup.", gt=0)] = 15.0

    def __post_init__(self) -> None:
        if self.ttl_s_min > self.ttl_s_max:
            raise ValueError(f"ttl_s_min {self.ttl_s_min:g} is above ttl_s_max {self.ttl_s_max:g}")
