"""Door: what the frontier asks of whoever lends addresses."""

from __future__ import annotations

from typing import Protocol


class AddressDoor(Protocol):
    """Lends addresses that several shards may use at once. Absent where there is one shard."""

    def want(self, address: str, now: float) -> float | None:
        """Return from when on an address may be asked; None when it must be borrowed first: `opened` will be told."""
        ...

    def may_ask(self, address: str, now: float) -> bool:
        """Say whether a request to an address may begin now."""
        ...

    def began(self, address: str) -> None:
        """Note that a request to an address goes out."""
        ...

    def ended(self, address: str, rest_until: float) -> None:
        """Note that it ended, and until when the address rests."""
        ...

    def leave(self, address: str) -> None:
        """Say that nobody here uses an address any more."""
        ...
