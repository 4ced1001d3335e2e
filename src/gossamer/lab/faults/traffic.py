"""Traffic: what must hold of the frames that shards send to each other, lost ones too."""

from __future__ import annotations

from collections.abc import Iterator

from gossamer.cluster.exchange import Exchange
from gossamer.cluster.frames import decode_frame
from gossamer.cluster.prerequisites import WAIT_S

ASKED_S_MAX = 60.0
"""Between two requests for a fetch that a shard waits for: `cluster.resend_s`, the next look, and a first commit."""
SLACK_S = 20.0
"""By which a shard looks late at what it waits for."""


class Traffic:
    """Notes the frames as they are sent."""

    def __init__(self) -> None:
        self._batches: dict[tuple[int, int, int, int], bytes] = {}
        self._asked: dict[tuple[int, int, int], float] = {}
        """Shard, its start, and the number of a prerequisite fetch, and when another shard was first asked for it."""
        self._heard: dict[tuple[int, int], float] = {}
        """Shard and its start, and when it last asked another one for a fetch, or had none to ask for."""

    def sent(self, to: int, data: bytes, now: float) -> Iterator[str]:
        """Note a frame; yield what is wrong with it."""
        frame = decode_frame(data)
        for number, batch in enumerate(frame.batches, frame.first):
            key = frame.sender, to, frame.incarnation, number
            if self._batches.setdefault(key, batch) != batch:
                yield f"shard {frame.sender} sent to shard {to} two batches of one number, {key}"
        for ask in frame.prerequisites:
            self._heard[frame.sender, frame.opening] = now
            since_s = now - self._asked.setdefault((frame.sender, frame.opening, ask.number), now)
            if since_s > WAIT_S + SLACK_S:
                yield f"shard {frame.sender} has waited for {ask.url} for {since_s:.0f} s"

    def waits(self, exchange: Exchange, now: float, *, is_suspended: bool) -> Iterator[str]:
        """Look at a shard; yield what it waits for in vain, if it is not suspended."""
        key = exchange.shard, exchange.opening
        if is_suspended or not exchange.prerequisites.waits:
            self._heard[key] = now
        elif (since_s := now - self._heard.setdefault(key, now)) > ASKED_S_MAX:
            yield f"shard {key[0]} waits for another one's fetch, which it asked for {since_s:.0f} s ago"
