"""Guard: which addresses a crawler must not contact, and why; and a resolver that enforces this."""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

from gossamer.model.visits import Failure, Located
from gossamer.ports import Resolver

_METADATA: Final = frozenset({"169.254.169.254", "fd00:ec2::254", "168.63.129.16", "100.100.100.200", "192.0.0.192"})
"""Metadata services of clouds, which have secrets: AWS, Google and most; AWS over IPv6; Azure; Alibaba; Oracle."""

# IANA IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890 and its updates). Addresses of IPv6 outside 2000::/3
# are not assigned (RFC 4291).
_REASONS: Final[dict[str, tuple[str, ...]]] = {
    "unspecified": ("0.0.0.0/8", "::/128"),
    "loopback": ("127.0.0.0/8", "::1/128"),
    "private": ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "64:ff9b:1::/48", "fc00::/7", "fec0::/10"),
    "shared by a carrier (RFC 6598)": ("100.64.0.0/10",),
    "link-local": ("169.254.0.0/16", "fe80::/10"),
    "multicast": ("224.0.0.0/4", "255.255.255.255/32", "ff00::/8"),
    "reserved for documentation": ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20"),
    "reserved for benchmarks": ("198.18.0.0/15",),
    "reserved": ("192.0.0.0/24", "192.88.99.0/24", "240.0.0.0/4", "2001::/23"),
}
"""Networks by reason; the first that contains an address decides."""
_V4: Final = tuple((IPv4Network(one), reason) for reason, some in _REASONS.items() for one in some if "." in one)
_V6: Final = tuple((IPv6Network(one), reason) for reason, some in _REASONS.items() for one in some if ":" in one)
_GLOBAL_V6: Final = IPv6Network("2000::/3")
_NAT64: Final = IPv6Network("64:ff9b::/96")
_NEVER: Final = ("unspecified", "multicast")


def canonical(ip: str) -> str:
    """Return the canonical form of an address: IPv6 without brackets, IPv4-mapped IPv6 as IPv4.

    Raises ValueError if the text is not an address.
    """
    address = ip_address(ip)
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(address)


def why_refused(ip: str, *, allow_private: bool = False) -> str | None:
    """Return why an address must not be contacted, or None if it may be.

    With `allow_private` only unspecified and multicast addresses are refused. IPv6 addresses that contain an IPv4
    address (mapped, NAT64, 6to4) are judged by that too. Any other text is refused.
    """
    try:
        address = ip_address(ip)
    except ValueError:
        return "no address"
    reason = _reason(address)
    return None if allow_private and reason not in _NEVER else reason


def _reason(address: IPv4Address | IPv6Address) -> str | None:
    if isinstance(address, IPv4Address):
        return _reason_v4(address)
    if address.scope_id is not None:
        return "link-local"
    if str(address) in _METADATA:
        return "a cloud's metadata service"
    if (carried := _inner_ipv4(address)) is not None:
        return _reason_v4(carried)
    otherwise = None if address in _GLOBAL_V6 else "reserved"
    return next((reason for network, reason in _V6 if address in network), otherwise)


def _reason_v4(address: IPv4Address) -> str | None:
    if str(address) in _METADATA:
        return "a cloud's metadata service"
    return next((reason for network, reason in _V4 if address in network), None)


def _inner_ipv4(address: IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address inside: mapped (RFC 4291), NAT64 (RFC 6052), 6to4 (RFC 3056)."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.sixtofour


def filter_addresses(addresses: Sequence[str], expires_at: float, *, allow_private: bool) -> Located | Failure:
    """Return the permitted addresses, in order; a failure with the reason if there are none."""
    passed: list[str] = []
    reason = ""
    for address in addresses:
        why = why_refused(address, allow_private=allow_private)
        if why is None:
            passed.append(canonical(address))
        elif not reason:
            reason = f"address {address} is {why}"
    if passed:
        return Located(tuple(dict.fromkeys(passed)), expires_at)
    # The operator may want addresses that --allow-private permits.
    hint = any(why_refused(address, allow_private=True) is None for address in addresses)
    error = (reason or "no address") + ("; --allow-private lets it pass" if hint else "")
    return Failure("excluded", error, host_level=True, ip=addresses[0] if addresses else "")


class GuardedResolver:
    """`ports.Resolver` around an operator's resolver, which removes addresses that the guard refuses."""

    def __init__(self, inner: Resolver, *, allow_private: bool) -> None:
        self._inner = inner
        self._allow_private = allow_private

    def cached(self, host: str) -> Located | None:
        """Return the permitted addresses that the resolver knows without waiting."""
        known = self._inner.cached(host)
        passed = self._filter(known) if known is not None else None
        return passed if isinstance(passed, Located) else None

    async def resolve(self, host: str) -> Located | Failure:
        """Return the permitted addresses that the resolver finds."""
        found = await self._inner.resolve(host)
        return found if isinstance(found, Failure) else self._filter(found)

    async def close(self) -> None:
        """Close the resolver."""
        await self._inner.close()

    def _filter(self, located: Located) -> Located | Failure:
        return filter_addresses(located.addresses, located.expires_at, allow_private=self._allow_private)
