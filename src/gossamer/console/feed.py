"""Feed: what all who look on are sent, made once a second for all of them, and only while there is somebody.

Each asks for the message of the present second: the first to ask has it made. There is no task and no queue; whoever is
slow misses seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import msgspec

from gossamer.console.desk import Desk
from gossamer.console.figures import ConsoleCounts
from gossamer.world.clock import WallClock

TICK_S = 1.0
ATTEMPTS_A_TICK_MAX = 10
"""Of either kind; how many more there were is told."""
DETAIL_COST_MAX = 0.01
"""Hosts in memory are looked at so seldom that it takes no more than this share of the time."""
BEGINNING = ("about", "course", "recent")
DETAIL_S_MAX = 30.0
UNTOLD = frozenset(("course", "rejected", "traps"))
"""Of a status: what the page has in another form, or does not show."""

MAKING_S_MAX = 5.0
"""Who waits longer for another to have the message is told that the crawl does not answer."""

encode = msgspec.json.Encoder().encode


OVER = frozenset(("finished", "stopped", "failed"))
OVER_S = 3.0
"""Between two looks at a crawl that does not run: somebody may resume it."""


class Feed:
    """Makes messages as server-sent events."""

    def __init__(self, desk: Desk, own: Callable[[], ConsoleCounts]) -> None:
        """Take a crawl, and what returns the console's own counts."""
        self._desk = desk
        self._own = own
        self._clock = WallClock()
        self._making = asyncio.Lock()
        self._tick = -1
        self._message = b""
        self.status = b""
        """The last message that told how the crawl stands, for those who come while there is nothing new."""
        self._seen = 0
        """The number of the last attempt that was told of."""
        self._detail: dict[str, object] = {}
        self._detail_at = 0.0
        self._is_over = False
        self._again_at = 0.0
        """Of a crawl that does not run: when it is looked at again."""

    async def beginning(self) -> bytes:
        """Return what somebody who comes gets first: what the crawl is, its course so far and its last attempts.
        Nothing while there is nobody to say.
        """
        answers = [await self._asked(verb) for verb in BEGINNING]
        if not all(answers):
            return b""
        return b"".join(event(name, answer) for name, answer in zip(BEGINNING, answers, strict=True))

    async def message(self) -> bytes:
        """Return the message of this second, the same for everybody."""
        tick = self._now()
        try:
            async with asyncio.timeout(MAKING_S_MAX):
                await self._making.acquire()
        except TimeoutError:
            return SILENT  # Whoever makes it waits for a crawl that does not answer.
        try:
            if self._tick != tick:
                self._message = await self._made(after_silence=tick - self._tick > 1)
                self._tick = tick
        finally:
            self._making.release()
        return self._message

    async def _made(self, *, after_silence: bool = False) -> bytes:
        if asyncio.get_running_loop().time() < self._again_at:
            return event("still", {})
        status = await self._status()
        if status is None:
            return SILENT
        if after_silence:  # Nobody was here: what went by meanwhile is news to nobody.
            self._see(await self._asked("recent", most=1))
            recent = None
        else:
            recent = await self._asked("recent", after=self._seen, most=ATTEMPTS_A_TICK_MAX)
            self._see(recent)
        self.status = event(
            "status", {"at": self._clock.now(), "status": status, "recent": recent, "console": self._own()}
        )
        return self.status

    def _see(self, recent: Mapping[str, object] | None) -> None:
        last = recent.get("last") if recent is not None else None
        self._seen = last if isinstance(last, int) else 0

    def _now(self) -> int:
        return int(asyncio.get_running_loop().time() / TICK_S)

    async def _status(self) -> Mapping[str, object] | None:
        """Return the status, with detail as often as it may cost, and once of what is over."""
        now = asyncio.get_running_loop().time
        began, wants_detail = now(), now() >= self._detail_at
        status = await self._asked("status", detail=wants_detail)
        if status is None:
            return None
        told = {name: value for name, value in status.items() if name not in UNTOLD}
        is_over = told.get("state") in OVER and not told.get("in_flight")
        if wants_detail:
            self._detail_at = now() + min((now() - began) / DETAIL_COST_MAX, DETAIL_S_MAX)
            self._detail = {name: told[name] for name in ("hosts", "changes") if name in told}
        if is_over != self._is_over:
            self._is_over, self._detail_at = is_over, 0.0
        elif is_over:
            self._detail_at = float("inf")
            self._again_at = now() + OVER_S
        return {**self._detail, **told}

    async def _asked(self, verb: str, **fields: object) -> Mapping[str, object] | None:
        answer = await self._desk.ask({"verb": verb, **fields})
        result = answer.get("result")
        return result if answer.get("ok") and isinstance(result, Mapping) else None


def event(name: str, value: object) -> bytes:
    """Return a server-sent event. JSON has no line breaks of its own, so that no value can end it."""
    return b"event: %s\ndata: %s\n\n" % (name.encode(), encode(value))


SILENT = event("silent", {"says": "the crawl does not answer"})
