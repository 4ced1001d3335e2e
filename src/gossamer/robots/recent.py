"""Recent: what was used last, within a bound on its number and on its bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recent(Generic[K, V]):
    """A mapping that lets go of what was not used for longest. One value larger than the bound is kept alone."""

    def __init__(self, entries_max: int, bytes_max: int) -> None:
        self._entries_max = entries_max
        self._bytes_max = bytes_max
        self._held: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self.bytes = 0
        """Of all values held."""
        self.hits = self.misses = 0

    def __len__(self) -> int:
        return len(self._held)

    def get(self, key: K) -> V | None:
        """Return a value, used just now, or None."""
        held = self._held.get(key)
        if held is None:
            self.misses += 1
            return None
        self.hits += 1
        self._held.move_to_end(key)
        return held[0]

    def put(self, key: K, value: V, value_bytes: int) -> None:
        """Hold a value in place of what was held under its key."""
        old = self._held.pop(key, None)
        self.bytes += value_bytes - (old[1] if old is not None else 0)
        self._held[key] = value, value_bytes
        while len(self._held) > 1 and (len(self._held) > self._entries_max or self.bytes > self._bytes_max):
            _, (_, gone) = self._held.popitem(last=False)
            self.bytes -= gone
