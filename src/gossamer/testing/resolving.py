"""Resolving: hosts that are where the test says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec

from gossamer.model.visits import Failure


class FixedLocated(msgspec.Struct, frozen=True):
    """Where a host is, for as long as the answer counts."""

    addresses: tuple[str, ...]
    expires_at: float


class FixedResolver:
    """`ports.Resolver` that asks nobody. A host that was never asked about is not in its memory."""

    def __init__(
        self,
        hosts: Mapping[str, str | tuple[str, ...] | Failure] | None = None,
        *,
        default: str = "127.0.0.1",
        expires_at: float = float("inf"),
    ) -> None:
        """`hosts` have their addresses, best first, or a failure; every other host is at `default`."""
        self.hosts = dict(hosts or {})
        self.counts: Counter[str] = Counter()
        """How often each host was asked about, memory aside."""
        self._default = default
        self._expires_at = expires_at
        self._known: dict[str, FixedLocated] = {}

    def cached(self, host: str) -> FixedLocated | None:
        """Return what `resolve` gave before."""
        return self._known.get(host)

    async def resolve(self, host: str) -> FixedLocated | Failure:
        """Return a host's addresses or its failure."""
        self.counts[host] += 1
        found = self.hosts.get(host, self._default)
        if isinstance(found, Failure):
            return found
        addresses = (found,) if isinstance(found, str) else found
        self._known[host] = FixedLocated(addresses, self._expires_at)
        return self._known[host]

    async def close(self) -> None:
        """Forget everything."""
        self._known.clear()
