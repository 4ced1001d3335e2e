"""Memory: what the scope has learned, kept with the epoch: roots that redirects added, hosts that were excluded."""

from __future__ import annotations

import msgspec

from gossamer.crawl.pending_scope import PendingScope
from gossamer.scope.lists import ExcludedHost
from gossamer.scope.roots import Roots
from gossamer.state.epoch import Epochs
from gossamer.state.schema import EXCLUDED, REJECTED, ROOTS, under


class ScopeMemory:
    """Loads what earlier runs learned, and gives each epoch what this one did. Costs nothing while nothing changes."""

    def __init__(
        self,
        epochs: Epochs,
        roots: Roots,
        exclusions: ExcludedHost,
        rejected: dict[str, int],
        *,
        alone: bool = True,
    ) -> None:
        self._epochs = epochs
        self._roots = roots
        self._exclusions = exclusions
        self._rejected = rejected
        self.pending_scope = PendingScope(epochs, alone=alone)
        """Links that may come into scope yet."""
        for _, dumped in list(epochs.scan("meta", *under(ROOTS))):
            roots.load(dumped)
        excluded = epochs.get("meta", EXCLUDED)
        if excluded is not None:
            exclusions.load(excluded)
        counts = epochs.get("meta", REJECTED)
        if counts is not None:
            for name, count in msgspec.msgpack.decode(counts, type=dict[str, int]).items():
                rejected[name] = rejected.get(name, 0) + count
        self._revision = exclusions.revision

    def cut(self, now: float) -> None:  # noqa: ARG002 - every component's cut takes the time
        """Give the open epoch what is new."""
        new = self._roots.take_new()
        if new is not None:
            self._epochs.put("meta", ROOTS + self._epochs.number.to_bytes(8), new)
        if self._exclusions.revision != self._revision:
            self._revision = self._exclusions.revision
            self._epochs.put("meta", EXCLUDED, self._exclusions.dump())
        self.pending_scope.cut()
        self._epochs.put("meta", REJECTED, msgspec.msgpack.encode(self._rejected))
