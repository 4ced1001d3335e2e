"""Isolated: what may die is done in processes of its own.

`python -m gossamer.isolated crawl.toml` reads a reply on its standard input and writes what it came to: one suspect
page. `python -m gossamer.isolated crawl.toml modules` answers for the modules that run apart, page after page.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import BinaryIO

from gossamer.assembly import chosen_modules, examiner
from gossamer.config import Config
from gossamer.config.gather import reopen
from gossamer.crawl.apart import answer_questions
from gossamer.crawl.quarantine import examine_alone
from gossamer.model.visits import Page
from gossamer.process.chain import Processed
from gossamer.world.alarm import ProcessorLimit
from gossamer.world.clock import WallClock
from gossamer.world.process import die_with_parent, limit_memory
from gossamer.world.spill import Spill, Spills

MEMORY_BYTES_MAX = 4 << 30
PIECE_BYTES = 1 << 20


def main() -> None:
    """Examine one page, or answer for modules; the exit status is 0 when that went well."""
    die_with_parent(os.getppid())  # A page that hangs must not outlive the crawl that would have ended it.
    config = reopen(Path(sys.argv[1]))
    spills = Spills(Path(sys.argv[1]).parent / "state/spill", config.archive.digests)
    if sys.argv[2:] == ["modules"]:
        _answer_for_modules(config, spills)
        return
    limit_memory(MEMORY_BYTES_MAX)
    alone = examiner(config, chosen_modules(config).inside, WallClock(), None, spills)
    sys.stdout.buffer.write(examine_alone(sys.stdin.buffer, alone, lambda source: _spilled(spills, source)))


def _answer_for_modules(config: Config, spills: Spills) -> None:
    modules = chosen_modules(config).apart
    limit_memory(config.process.isolated_bytes_max)
    questions, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # What a module prints must not be taken for an answer.
    held_max = config.fetch.body_memory_bytes_max
    limit = ProcessorLimit(config.process.module_s_max)

    def look(index: int, page: Page) -> Processed:
        limit.begin()
        try:
            return modules.process_one(index, page)
        finally:
            limit.end()

    answer_questions(questions, answers, look, lambda *given: _spilled(spills, *given), held_max)


def _spilled(spills: Spills, source: BinaryIO, size: int = sys.maxsize) -> Spill:
    """Take so many bytes to disk, or all there are."""
    spill = spills.make()
    while size > 0 and (piece := source.read(min(size, PIECE_BYTES))):
        spill.write(piece)
        size -= len(piece)
    return spill


if __name__ == "__main__":
    main()
