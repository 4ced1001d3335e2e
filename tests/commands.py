"""Commands in this process: what `python -m gossamer` does, without the start of an interpreter."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout

import pytest

from gossamer.cli import output
from gossamer.cli.main import status_of_command


def run(*arguments: str) -> tuple[int, str, str]:
    """Return a command's exit status, its output and its errors. Not for `crawl` and `resume`: those are processes.
    Progress, which depends on how busy the machine is, is not shown.
    """
    assert arguments[0] not in {"crawl", "resume"}
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err), pytest.MonkeyPatch.context() as patch:
        patch.setattr(output, "PROGRESS_S", 3_600.0)
        status = status_of_command(arguments)
        out.flush()
        err.flush()
    return status, out.buffer.getvalue().decode(), err.buffer.getvalue().decode()
