"""Captures: reads and examines captures ahead of an import, in a separate process."""

import fcntl
import sys
from contextlib import suppress
from pathlib import Path

from gossamer.assembly.modules import choose_modules, examiner
from gossamer.engine.examine import NoSlots
from gossamer.features.isolation import WALL_FACTOR
from gossamer.results.imports.ahead import StretchReader
from gossamer.results.imports.capture import Room
from gossamer.results.isolated.pages import MEMORY_BYTES_MAX, open_crawl
from gossamer.world.alarm import OverrunAlarm, ProcessorLimit
from gossamer.world.clock import WallClock
from gossamer.world.pool import PoolSeat
from gossamer.world.process import limit_memory


def answer_stretches(file: Path) -> None:
    """Answer what stretches of archives hold, until no more can be asked."""
    config, spills = open_crawl(file)
    with suppress(OSError, AttributeError):  # Linux: an answer fits into the pipe.
        fcntl.fcntl(sys.stdout, fcntl.F_SETPIPE_SZ, 1 << 20)
    seat = PoolSeat.of_process()
    limit_memory(MEMORY_BYTES_MAX)
    limit_s = config.process.module_s_max
    modules = choose_modules(config, OverrunAlarm.set(limit_s, WALL_FACTOR * limit_s)).inside
    alone = examiner(config, modules, WallClock(), NoSlots(), spills)
    reader = StretchReader(Room(spills, store=config.archive), alone)
    limit = ProcessorLimit(config.crawl.process_s_max)

    def note(number: int) -> None:
        seat.note(number)
        limit.begin()

    while (question := seat.take()) is not None:
        answer = reader.answer(question.head, note)
        limit.end()
        seat.answer(answer)
