"""Pages: what a process does that looks at pages: at a suspect one, at those of the modules that run isolated, or at
captures ahead of an import.

It takes its configuration from a crawl's file, and imports no more of a crawl than it needs: there may be several such
processes.
"""

import fcntl
import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from gossamer.assembly.modules import choose_modules, examiner_of
from gossamer.config import Config
from gossamer.config.gather import reopen
from gossamer.engine.examine import NoSlots
from gossamer.engine.quarantine import examine_alone
from gossamer.features.isolation import LimitedModules
from gossamer.world.alarm import WALL_FACTOR, OverrunAlarm, ProcessorLimit
from gossamer.world.clock import WallClock
from gossamer.world.pool import PoolSeat
from gossamer.world.process import limit_memory
from gossamer.world.sandbox import confine_worker
from gossamer.world.spill import Spills

MEMORY_BYTES_MAX = 4 << 30


def look_at_suspect(file: Path) -> None:
    """Examine one suspect page."""
    config, spills = _open_crawl(file)
    seat = PoolSeat.of_process()
    limit_memory(MEMORY_BYTES_MAX)
    examine_alone(seat, examiner_of(config, choose_modules(config).inside, WallClock(), NoSlots(), spills))


def answer_for_modules(file: Path) -> None:
    """Answer what the modules that run isolated find in pages, until no more can be asked."""
    config, _ = _open_crawl(file)
    limits = LimitedModules(config.process.module_s_max, PoolSeat.of_process())
    modules = choose_modules(config, limits).isolated
    limit_memory(config.process.isolated_bytes_max)
    limits.answer_questions(modules)


def answer_stretches(file: Path) -> None:
    """Answer what stretches of archives hold, until no more can be asked."""
    from gossamer.results.imports.ahead import StretchReader  # noqa: PLC0415 - for imports alone
    from gossamer.results.imports.capture import Room  # noqa: PLC0415

    config, spills = _open_crawl(file)
    with suppress(OSError, AttributeError):  # Linux: an answer fits into the pipe.
        fcntl.fcntl(sys.stdout, fcntl.F_SETPIPE_SZ, 1 << 20)
    seat = PoolSeat.of_process()
    limit_memory(MEMORY_BYTES_MAX)
    limit_s = config.process.module_s_max
    modules = choose_modules(config, OverrunAlarm.set(limit_s, WALL_FACTOR * limit_s)).inside
    alone = examiner_of(config, modules, WallClock(), NoSlots(), spills)
    reader = StretchReader(Room(spills, store=config.archive), alone)
    limit = ProcessorLimit(config.crawl.process_s_max)

    def note(number: int) -> None:
        seat.note(number)
        limit.begin()

    while (question := seat.take()) is not None:
        answer = reader.answer(question.head, note)
        limit.end()
        seat.answer(answer)


def _open_crawl(file: Path) -> tuple[Config, Spills]:
    """Return a crawl's configuration and its folder for large content, all that a sandbox lets this process change."""
    config = reopen(file)
    folder = file.absolute().parent / "state/spill"
    if config.process.sandbox != "off":
        from gossamer.config.confinement import has_confined_workers  # noqa: PLC0415 - without a sandbox, of no use

        if has_confined_workers(config):
            os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
            confine_worker(str(folder))
    return config, Spills(folder, config.archive.digests)
