"""Entry: where a command begins: `crawl`, `resume` and `import` go to another process before anything is imported."""

import gc
import os
import re
import resource
import sys
from collections.abc import Sequence
from typing import NoReturn

INTERRUPTED = 130
"""`Exit.INTERRUPTED`, without its import."""
CREDENTIALS = (
    r"(?:request|login)\.|.*(?:://[^/\s]*@|(?:authorization|cookie|token|secret|passw|api[-_]?key)[^=\s]*\s*=)"
)
"""A word of the command line that seems to hold a credential: every user of the machine can read it."""
ADDRESS_SPACE_BYTES_MIN = 4 << 30
"""Libraries that are mapped, stacks of threads, and what DuckDB reserves: with 2 GB some commands abort."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command and exit with its status. A mistake is one line on standard error and status 2."""
    words = sys.argv[1:] if arguments is None else arguments
    try:
        open_standard_streams()
        may_be_secret = re.compile(CREDENTIALS, re.IGNORECASE | re.DOTALL).match
        if any(map(may_be_secret, words)):
            from gossamer.world.process import hide_arguments

            hide_arguments(may_be_secret)
        status = status_of(words)
    except KeyboardInterrupt:  # Also while modules are imported.
        status = INTERRUPTED
    # A reader that went away (`| head`) is no failure: without this the interpreter would end with 120.
    for stream, descriptor in ((sys.stdout, 1), (sys.stderr, 2)):
        try:
            stream.flush()
        except (OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
    # Everything is closed. What threads of native libraries do while the interpreter is torn down must not look like a
    # crash: before CPython 3.14, one that takes the lock then aborts (python/cpython#87135).
    os._exit(status)


def open_standard_streams() -> None:
    """Open the null device for closed standard streams (`>&-`): the next file or socket would get their numbers."""
    for descriptor, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(descriptor)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # The lowest that is free, and so this very one.
            assert opened == descriptor, "those below it are open by now"
            os.set_inheritable(descriptor, True)
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8", closefd=False))


def status_of(words: Sequence[str]) -> int:
    """Run a command and return its exit status."""
    if words and words[0] == "help":
        words = [*words[1:], "--help"]
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if 0 <= limit < ADDRESS_SPACE_BYTES_MIN and words and not words[0].startswith("-"):
        from gossamer.cli.output import Exit, complain

        least = ADDRESS_SPACE_BYTES_MIN >> 20
        complain(
            f"the system allows {limit >> 20:,} MiB of address space, and Gossamer needs {least:,}: raise the limit "
            "(ulimit -v); --memory SIZE bounds the memory of a crawl"
        )
        return Exit.REFUSED
    if words and words[0] in {"crawl", "resume", "import"} and not {"-h", "--help"} & set(words):
        gc.disable()  # Imports leave no garbage, and searching for it takes 0.002 s.
        from gossamer.cli.supervisor import run_supervised

        gc.enable()
        return run_supervised(words)
    from gossamer.cli.main import status_of_command

    return status_of_command(words)
