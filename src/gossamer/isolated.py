"""Isolated: one suspect page examined in a process of its own, which may die of it.

`python -m gossamer.isolated crawl.toml` reads a reply on its standard input and writes what it came to.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from gossamer.assembly import examiner
from gossamer.config.gather import reopen
from gossamer.crawl.quarantine import examine_alone
from gossamer.world.clock import WallClock
from gossamer.world.process import die_with_parent, limit_memory

MEMORY_BYTES_MAX = 4 << 30


def main() -> None:
    """Examine one page; the exit status is 0 when that went well."""
    die_with_parent(os.getppid())  # A page that hangs must not outlive the crawl that would have ended it.
    limit_memory(MEMORY_BYTES_MAX)
    config = reopen(Path(sys.argv[1]))
    sys.stdout.buffer.write(examine_alone(sys.stdin.buffer.read(), examiner(config, WallClock(), None)))


if __name__ == "__main__":
    main()
