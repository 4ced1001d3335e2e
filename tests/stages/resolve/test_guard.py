from __future__ import annotations

import asyncio

import pytest

from gossamer.model.visits import Failure, Located
from gossamer.stages.resolve.guard import GuardedResolver, canonical, why_refused


@pytest.mark.parametrize(
    ("ip", "reason"),
    [
        ("0.0.0.0", "unspecified"),
        ("0.1.2.3", "unspecified"),
        ("10.0.0.1", "private"),
        ("100.64.0.1", "shared"),
        ("100.127.255.255", "shared"),
        ("127.0.0.1", "loopback"),
        ("127.255.0.3", "loopback"),
        ("169.254.169.254", "metadata"),
        ("169.254.0.1", "link-local"),
        ("168.63.129.16", "metadata"),
        ("100.100.100.200", "metadata"),
        ("172.16.0.1", "private"),
        ("172.31.255.255", "private"),
        ("192.0.0.192", "metadata"),
        ("192.0.0.8", "reserved"),
        ("192.0.2.1", "documentation"),
        ("192.168.1.1", "private"),
        ("198.18.0.1", "benchmarks"),
        ("224.0.0.1", "multicast"),
        ("240.0.0.1", "reserved"),
        ("255.255.255.255", "multicast"),
        ("::", "unspecified"),
        ("::1", "loopback"),
        ("::ffff:10.0.0.1", "private"),
        ("::ffff:7f00:1", "loopback"),
        ("::10.0.0.1", "reserved"),
        ("64:ff9b::a9fe:a9fe", "metadata"),
        ("64:ff9b::7f00:1", "loopback"),
        ("64:ff9b:1::1", "private"),
        ("2002:7f00:1::", "loopback"),
        ("2002:a00:1::1", "private"),
        ("2001::1", "reserved"),
        ("2001:db8::1", "documentation"),
        ("fd00:ec2::254", "metadata"),
        ("fc00::1", "private"),
        ("fe80::1", "link-local"),
        ("fe80::1%eth0", "link-local"),
        ("2606:4700::1%1", "link-local"),
        ("fec0::1", "private"),
        ("ff02::1", "multicast"),
        ("4000::1", "reserved"),
        ("100::1", "reserved"),
        ("example.org", "no address"),
        ("127.1", "no address"),
        ("", "no address"),
    ],
)
def test_refuses(ip: str, reason: str) -> None:
    assert reason in (why_refused(ip) or "")


@pytest.mark.parametrize(
    "ip",
    ["9.9.9.9", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1", "11.0.0.1", "126.255.255.255",
     "169.253.0.1", "223.255.255.255", "2606:4700::1111", "2a00:1450::1", "::ffff:9.9.9.9", "64:ff9b::909:909",
     "2002:909:909::1"],
)  # fmt: skip
def test_lets_public_addresses_pass(ip: str) -> None:
    assert why_refused(ip) is None


@pytest.mark.parametrize("ip", ["10.0.0.1", "127.0.0.1", "169.254.169.254", "::1", "fe80::1", "fc00::1", "240.0.0.1"])
def test_allow_private_lets_private_pass(ip: str) -> None:
    assert why_refused(ip, allow_private=True) is None


@pytest.mark.parametrize(
    "ip", ["0.0.0.0", "::", "224.0.0.1", "ff02::1", "255.255.255.255", "::ffff:0.0.0.0", "nothing"]
)
def test_allow_private_stops_at_what_is_no_host(ip: str) -> None:
    assert why_refused(ip, allow_private=True) is not None


def test_one_spelling() -> None:
    assert canonical("2606:4700:0:0::1") == "2606:4700::1"
    assert canonical("::ffff:9.9.9.9") == "9.9.9.9"
    with pytest.raises(ValueError, match=r"127\.1"):
        canonical("127.1")


class Known:
    """A resolver of the operator's, which has its answers at hand."""

    def __init__(self, **hosts: tuple[str, ...]) -> None:
        self._hosts = hosts

    def cached(self, host: str) -> Located | None:
        return Located(self._hosts[host], 60.0) if host in self._hosts else None

    async def resolve(self, host: str) -> Located | Failure:
        return self.cached(host) or Failure("dns_error", "no such name")

    async def close(self) -> None:
        pass


def test_what_an_operators_resolver_says_passes_the_guard_also_when_it_knows_it_at_once() -> None:
    resolver = GuardedResolver(Known(public=("9.9.9.9", "127.0.0.1"), private=("10.0.0.1",)), allow_private=False)
    assert resolver.cached("public") == Located(("9.9.9.9",), 60.0)
    assert resolver.cached("private") is None
    assert resolver.cached("unknown") is None
    refused, missing = (asyncio.run(resolver.resolve(host)) for host in ("private", "unknown"))
    assert isinstance(refused, Failure)
    assert isinstance(missing, Failure)
    assert (refused.outcome, missing.outcome) == ("excluded", "dns_error")
