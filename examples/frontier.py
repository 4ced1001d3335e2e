"""A frontier for `components.frontier`: the URL that was found last is fetched first.

gossamer crawl https://docs.example.org/ --contact you@example.org --set components.frontier=frontier.py:LastFirst
"""

from collections.abc import Callable

import msgspec

from gossamer.model.links import Link
from gossamer.stages.frontier.frontier import Frontier
from gossamer.stages.frontier.strategy import Strategy
from gossamer.state.epoch import Epochs
from gossamer.state.schema import COMPONENTS
from gossamer.url.url import Url
from gossamer.world.dice import Dice

KEY = COMPONENTS + b"last_first"
PENDING_MAX = 64


class LastFirst(Strategy):
    """Holds all URLs in a stack, which it writes whole with each commit: fast enough for small crawls only."""

    def __init__(self, *, gates: Frontier, epochs: Epochs, name_url: Callable[[str], Url | None], dice: Dice) -> None:
        self._gates = gates
        self._epochs = epochs
        stored = epochs.get("meta", KEY)
        self._held = [] if stored is None else msgspec.msgpack.decode(stored, type=list[tuple[Link, int]])

    def hold(self, link: Link, level: int, now: float) -> bool:
        self._held.append((link, level))
        return True

    def can_offer(self) -> bool:
        return bool(self._held) and self._gates.counts.pending < PENDING_MAX

    def offer(self, now: float) -> None:
        while self.can_offer():
            link, level = self._held.pop()
            self._gates.queue(link, level, now)

    def cut(self, now: float) -> None:
        self._epochs.put("meta", KEY, msgspec.msgpack.encode(self._held))
