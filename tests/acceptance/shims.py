"""The shim, compiled, and the environment of processes that run with it."""

from __future__ import annotations

import functools
import os
import subprocess
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join((str(REPOSITORY / "src"), str(REPOSITORY)))}


def preloaded(**settings: str) -> dict[str, str]:
    """Return the environment of a process whose disk is the shim's; `settings` are those of `shim.c`."""
    return {**ENVIRONMENT, "LD_PRELOAD": str(Path(_compiled().name) / "shim.so"), **settings}


@functools.cache
def _compiled() -> tempfile.TemporaryDirectory[str]:
    directory = tempfile.TemporaryDirectory(prefix="shim-")
    command = ["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", f"{directory.name}/shim.so"]
    subprocess.run([*command, str(Path(__file__).with_name("shim.c")), "-ldl", "-lpthread"], check=True)
    return directory
