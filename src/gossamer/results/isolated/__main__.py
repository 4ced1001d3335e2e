"""Entry point of a separate process.

`python -m gossamer.results.isolated crawl.toml` examines one suspect page, `… crawl.toml modules` answers for the
modules that run isolated, page after page, `… crawl.toml captures` for imports. `… search` answers queries, `… read`
questions to archives: all as processes of a `WorkerPool`. `… contents 5` says on that descriptor what pages say.
"""

import os
import sys
import tempfile
from pathlib import Path

from gossamer.world.allocators import use_system_arenas
from gossamer.world.process import die_with_parent
from gossamer.world.sandbox import confine_worker


def main() -> None:
    """Do what the arguments name; the exit status is 0 when that went well."""
    use_system_arenas()
    die_with_parent(os.getppid())  # A page that hangs must not outlive the crawl that would have ended it.
    if sys.argv[1:] == ["search"]:
        confine_worker(None)  # It takes the lock of the index, a file beside it.
        from gossamer.results.isolated.searches import answer_queries  # noqa: PLC0415 - each kind pays for its own imports

        answer_queries()
    elif sys.argv[1:] == ["read"]:
        confine_worker(tempfile.gettempdir())
        from gossamer.results.isolated.reading import answer_reads  # noqa: PLC0415

        answer_reads()
    elif sys.argv[1:2] == ["contents"]:
        confine_worker(None)
        from gossamer.results.isolated.contents import answer_contents  # noqa: PLC0415

        answer_contents(int(sys.argv[2]))
    else:
        from gossamer.results.isolated import pages  # noqa: PLC0415

        kinds = {"modules": pages.answer_for_modules, "captures": pages.answer_stretches}
        kinds.get("".join(sys.argv[2:]), pages.look_at_suspect)(Path(sys.argv[1]))


if __name__ == "__main__":
    main()
