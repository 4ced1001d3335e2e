"""The gates that several shards share: which addresses and sites need a lease."""

from __future__ import annotations

from typing import cast

import pytest

from gossamer.stages.frontier.host import AddressPlace
from gossamer.stages.frontier.index import HostIndex
from gossamer.stages.frontier.limits import SharedGates, Sites, make_shared_gates
from gossamer.stages.frontier.options import FrontierOptions, PolitenessOptions, politeness
from gossamer.stages.frontier.priority import FrontierRules
from gossamer.stages.frontier.tokens import SiteLimits
from gossamer.stages.frontier.workbench import Workbench
from tests.stages.frontier.names import T0

ADDRESS = "192.0.2.1"


class Wanted:
    """Leases that note which addresses are wanted, and grant all."""

    def __init__(self) -> None:
        self.addresses: list[str] = []

    def want(self, address: str, now: float) -> float:
        self.addresses.append(address)
        return now

    def may_ask(self, address: str, now: float) -> bool:
        return True

    def began(self, address: str) -> None:
        pass

    def end(self, address: str, delay_until: float) -> None:
        pass

    def leave(self, address: str) -> None:
        pass


@pytest.mark.parametrize(
    ("addresses", "name", "wanted"),
    [(True, ADDRESS, [ADDRESS]), (True, f"a.test {ADDRESS}", []), (False, ADDRESS, [])],
    ids=["shared", "a host's own", "without limits"],
)
def test_an_address_is_leased_where_it_has_limits_and_is_shared(addresses: bool, name: str, wanted: list[str]) -> None:
    leases = Wanted()
    gates = SharedGates(Workbench(1), leases, None, addresses=addresses)
    gates.lease_address(AddressPlace(name, ADDRESS, 7, T0, 1), T0)
    assert leases.addresses == wanted


@pytest.mark.parametrize(
    ("per_address", "address_delay_s", "has_gates"), [(1, 1.0, True), (1, 0.0, True), (0, 1.0, True), (0, 0.0, False)]
)
def test_one_limit_of_addresses_makes_gates(per_address: int, address_delay_s: float, has_gates: bool) -> None:
    limits = politeness(PolitenessOptions(preset="own", per_address=per_address, address_delay_s=address_delay_s))
    rules = FrontierRules(limits, FrontierOptions())
    assert (make_shared_gates(Workbench(per_address), Wanted(), rules, 0.0) is not None) is has_gates


SITE = "example.org"


def sites_with_waiting_hosts(workbench: Workbench) -> Sites:
    """Return sites of which one has a waiting host in partition 7. They do not look for it."""
    return Sites(workbench, cast("HostIndex", None), T0, FrontierOptions(), waiting=[(7, f"a.{SITE}")])


def test_a_site_that_was_there_before_its_gates_uses_them() -> None:
    workbench = Workbench(1, 2)
    sites = sites_with_waiting_hosts(workbench)
    sites.share({SITE}, SharedGates(workbench, Wanted(), SiteLimits(2, has_delay=False), addresses=False))
    site = workbench.find_site(SITE)
    assert site is not None
    assert site.tokens is not None


@pytest.mark.parametrize(("first", "may_have"), [(7, False), (8, True)])
def test_hosts_of_partitions_that_left_wait_no_more(first: int, may_have: bool) -> None:
    sites = sites_with_waiting_hosts(Workbench(1, 2))
    sites.forget(first, first + 1)
    assert sites.may_have is may_have
