"""What runs in a separate process.

`python -m gossamer.isolated crawl.toml` reads a reply on its standard input and writes what it came to: one suspect
page. `… crawl.toml modules` answers for the modules that run isolated, page after page. `… search` answers queries,
`… read` questions to archives.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from gossamer.world.process import die_with_parent, limit_memory

if TYPE_CHECKING:
    from gossamer.config import Config
    from gossamer.model.visits import Page
    from gossamer.process.chain import Processed
    from gossamer.world.spill import Spill, Spills

MEMORY_BYTES_MAX = 4 << 30
PIECE_BYTES = 1 << 20


def main() -> None:
    """Do what the arguments name; the exit status is 0 when that went well."""
    die_with_parent(os.getppid())  # A page that hangs must not outlive the crawl that would have ended it.
    if sys.argv[1:] == ["search"]:
        from gossamer.isolated.searching import answer_queries  # noqa: PLC0415 - each kind pays for its own imports

        answer_queries(sys.stdin.buffer, sys.stdout.buffer)
    elif sys.argv[1:] == ["read"]:
        from gossamer.isolated.reading import answer_reads  # noqa: PLC0415

        answer_reads(sys.stdin.buffer, sys.stdout.buffer)
    else:
        _look_at_pages()


def _look_at_pages() -> None:
    from gossamer.assembly.modules import chosen_modules  # noqa: PLC0415
    from gossamer.assembly.parts import examiner  # noqa: PLC0415
    from gossamer.config.gather import reopen  # noqa: PLC0415
    from gossamer.crawl.quarantine import examine_alone  # noqa: PLC0415
    from gossamer.world.clock import WallClock  # noqa: PLC0415
    from gossamer.world.spill import Spills  # noqa: PLC0415

    config = reopen(Path(sys.argv[1]))
    spills = Spills(Path(sys.argv[1]).parent / "state/spill", config.archive.digests)
    if sys.argv[2:] == ["modules"]:
        _answer_for_modules(config, spills)
        return
    limit_memory(MEMORY_BYTES_MAX)
    alone = examiner(config, chosen_modules(config).inside, WallClock(), None, spills)
    sys.stdout.buffer.write(examine_alone(sys.stdin.buffer, alone, lambda source: _spilled(spills, source)))


def _answer_for_modules(config: Config, spills: Spills) -> None:
    from gossamer.assembly.modules import chosen_modules  # noqa: PLC0415
    from gossamer.crawl.isolation import answer_questions  # noqa: PLC0415
    from gossamer.world.alarm import ProcessorLimit  # noqa: PLC0415

    modules = chosen_modules(config).isolated
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
    """Write `size` bytes, or all there are, to disk."""
    spill = spills.make()
    while size > 0 and (piece := source.read(min(size, PIECE_BYTES))):
        spill.write(piece)
        size -= len(piece)
    return spill


if __name__ == "__main__":
    main()
