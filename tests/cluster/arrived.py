"""Passes what has arrived at a shard to its ring, without an event loop."""

from __future__ import annotations

from gossamer.cluster.addresses import Addresses
from gossamer.cluster.exchange import Exchange


def take_arrived(exchange: Exchange) -> int:
    """Pass all arrived batches at once; return their number."""
    assert exchange._ring is not None
    batches = 0
    while exchange._take_next(exchange._ring):
        batches += 1
    return batches


def leased_by(owner: Addresses) -> int:
    """Return how many addresses an owner has leased."""
    return sum(one.holder >= 0 for one in owner.server._leases.values())
