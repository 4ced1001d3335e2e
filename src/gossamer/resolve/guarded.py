"""Guarded: the guard around the addresses of a resolver, ours or the operator's."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from gossamer.model.visits import Failure
from gossamer.ports import Located as AnyLocated
from gossamer.ports import Resolver
from gossamer.resolve.guard import canonical, refused


class Located(msgspec.Struct, frozen=True, gc=False):
    """Where a host is: addresses that passed the guard, best first, never none."""

    addresses: tuple[str, ...]
    expires_at: float


def guarded(addresses: Sequence[str], expires_at: float, *, allow_private: bool) -> Located | Failure:
    """Return the addresses that pass the guard, in order; when none does, why."""
    passed: list[str] = []
    reason = ""
    for address in addresses:
        why = refused(address, allow_private=allow_private)
        if why is None:
            passed.append(canonical(address))
        elif not reason:
            reason = f"address {address} is {why}"
    if passed:
        return Located(tuple(dict.fromkeys(passed)), expires_at)
    # What passes with --allow-private, the operator may well have meant.
    hint = any(refused(address, allow_private=True) is None for address in addresses)
    error = (reason or "no address") + ("; --allow-private lets it pass" if hint else "")
    return Failure("excluded", error, host_level=True, ip=addresses[0] if addresses else "")


class GuardedResolver:
    """`ports.Resolver` around an operator's: an address that the guard refuses is not contacted, whoever named it."""

    def __init__(self, inner: Resolver, *, allow_private: bool) -> None:
        self._inner = inner
        self._allow_private = allow_private

    def cached(self, host: str) -> Located | None:
        """Return what the resolver knows without waiting, as far as it passes."""
        known = self._inner.cached(host)
        passed = self._passed(known) if known is not None else None
        return passed if isinstance(passed, Located) else None

    async def resolve(self, host: str) -> Located | Failure:
        """Return what the resolver finds, as far as it passes."""
        found = await self._inner.resolve(host)
        return found if isinstance(found, Failure) else self._passed(found)

    async def close(self) -> None:
        """Close the resolver."""
        await self._inner.close()

    def _passed(self, located: AnyLocated) -> Located | Failure:
        return guarded(located.addresses, located.expires_at, allow_private=self._allow_private)
