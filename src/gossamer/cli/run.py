"""Run: drives one crawl in this process, with its progress and the signals that end it."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

from gossamer.cli.consoles import console_of
from gossamer.cli.door import Running
from gossamer.cli.progress import Progress, follow

if TYPE_CHECKING:
    from gossamer.config import Config

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stops:
    """Turns signals into requests to stop: the first waits for what is in flight, the second does not."""

    def __init__(self, crawler: Running, progress: Progress) -> None:
        self._crawler = crawler
        self._progress = progress
        self.asked = 0

    def ask(self) -> None:
        """Take one signal."""
        self.asked += 1
        if self.asked == 1:
            self._progress.note("Stopping: finishing what is in flight. Once more to stop at once.")
            self._crawler.stop()
        else:
            self._progress.note("Stopping at once.")
            self._crawler.stop(now=True)


async def served(crawler: Running, config: Config, progress: Progress) -> str:
    """Run a crawl to its end, with its console where that is asked for."""
    if config.console.port is None:
        return await drive(crawler, progress)
    async with console_of(crawler, config) as address:
        progress.note(f"The console: {address}")
        return await drive(crawler, progress)


async def drive(crawler: Running, progress: Progress) -> str:
    """Run a crawl to its end and return how it ended. What it raises is raised."""
    loop = asyncio.get_running_loop()
    stops = Stops(crawler, progress)
    for number in SIGNALS:
        loop.add_signal_handler(number, stops.ask)
    # The supervisor starts us with these blocked, so that none is lost while we begin.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    crawler.on_note(progress.note)
    try:
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(follow(progress, crawler.status, lambda: crawler.config.progress.interval_s))
            ended = await crawler.run()
            watching.cancel()
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None  # The group is ours; what it holds is the crawl's own.
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)
    return ended
