"""Servers: how a trial's crawl reaches the web of its world: the protocol module and the resolver that it names."""

from __future__ import annotations

import asyncio

from gossamer.lab.faults.world import UNUSED_ADDRESS, Machine
from gossamer.model.visits import Failure, Located

LOOKUPS = ("slow", "dead", "wrong")
LOOKUP_S = 10.0
"""How long a slow or a dead one takes, and how long a wrong one is believed."""


class SimulatedHttp:
    """The protocol module that a trial names in `components.protocols`: it asks the world that is its clock."""

    default_port = 80
    has_robots = True

    def __init__(self, *, options: object, agent: str, clock: Machine) -> None:  # noqa: ARG002 - the port's arguments
        self.fetch = clock.fetch

    async def close(self) -> None:
        """Nothing is held."""


class SimulatedResolver:
    """The resolver that a trial names in `components.resolver`: each host has an address, found after a while."""

    def __init__(self, *, options: object, clock: Machine) -> None:  # noqa: ARG002 - the port's arguments
        self._machine = clock

    def cached(self, host: str) -> Located | None:  # noqa: ARG002 - the port's argument
        """Know nothing without looking it up."""
        return None

    async def resolve(self, host: str) -> Located | Failure:
        """Return a host's own address."""
        self._machine.step()
        fault = self._machine.world.trouble("dns", host)
        how = LOOKUPS[fault.steps % len(LOOKUPS)] if fault is not None else "well"
        await asyncio.sleep(0.05 if how == "well" else LOOKUP_S)
        if how == "dead":
            return Failure("dns_error", "name resolution: timeout", retry=True, host_level=True)
        if how == "wrong":
            return Located((UNUSED_ADDRESS,), self._machine.now() + LOOKUP_S)
        return Located((self._machine.world.address(host),), self._machine.now() + 600.0)

    async def close(self) -> None:
        """Nothing is held."""
