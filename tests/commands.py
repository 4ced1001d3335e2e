"""Commands in this process: what `python -m gossamer` does, without the start of an interpreter."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout

from gossamer.cli.main import status_of_command


def run(*arguments: str) -> tuple[int, str, str]:
    """Return a command's exit status, its output and its errors. Not for `crawl` and `resume`: those are processes."""
    assert arguments[0] not in {"crawl", "resume"}
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err):
        status = status_of_command(arguments)
        out.flush()
        err.flush()
    return status, out.buffer.getvalue().decode(), err.buffer.getvalue().decode()
