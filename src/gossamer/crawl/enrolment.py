"""Enrolment: brings pages into the schedule that a batch crawl fetched before, a few at a time, while others go on."""

from __future__ import annotations

import asyncio

from gossamer.crawl.history import read_page_record
from gossamer.crawl.revisiting import Revisiting
from gossamer.model.revisits import Sight
from gossamer.state.schema import ENROLLED, PARTITIONED
from gossamer.state.storage import Storage
from gossamer.url.name import Namer
from gossamer.world.clock import Clock
from gossamer.world.dice import Dice

SLICE = 100
PAUSE_S = 0.05
"""Between slices: some 2,000 pages a second at the most."""
_BEGIN, _END = PARTITIONED


class Enrolment:
    """Goes through the pages once, and goes on where it was after a restart. Memory for one slice."""

    def __init__(
        self,
        storage: Storage,
        namer: Namer,
        revisiting: Revisiting,
        interval_s: float,
        clock: Clock,
        dice: Dice,
    ) -> None:
        """Pages are due within `interval_s`, spread over it by chance."""
        self._store = storage.store
        self._epochs = storage.epochs
        self._namer = namer
        self._revisiting = revisiting
        self._interval_s = interval_s
        self._clock = clock
        self._dice = dice

    async def run(self) -> None:
        """Enrol what is there."""
        while True:
            if not self.enrol_some():
                return
            await asyncio.sleep(PAUSE_S)

    def enrol_some(self) -> bool:
        """Enrol a slice; say whether there may be more. About 10 ms."""
        cursor = self._epochs.get("meta", ENROLLED) or _BEGIN
        if cursor >= _END:
            return False
        last = b""
        for count, (key, value) in enumerate(self._store.scan("page", cursor, _END)):
            last = key
            if count >= SLICE:
                break
            if len(key) == 10 and self._epochs.get("revisit", key) is None:
                self._enrol(value)
        else:
            last = _END
        self._epochs.put("meta", ENROLLED, last)
        return True

    def _enrol(self, value: bytes) -> None:
        record = read_page_record(value)
        url = self._namer.name(record.url)
        if url is None or not record.final:
            return
        now, revisits = self._clock.now(), self._revisiting.revisits
        # Nothing of its content is remembered: the next visit is its first for the schedule.
        at = now + self._dice.uniform(0.0, self._interval_s)
        if revisits.enrol(Sight(url, record.outcome, record.at, record.status, depth=record.depth), at):
            self._revisiting.frontier.enlist(url, record.depth, record.referrer, at, now)
