"""What the acceptance checks share: the real command line, and a real server."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import gossamer
from gossamer.features.render.options import PROGRAMS
from tests.acceptance.noting import Site
from tests.chromium import require_chromium
from tests.cluster.nodes import Nodes

Crawl = Callable[..., subprocess.CompletedProcess[str]]
CRAWL_S_MAX = 300


@pytest.fixture(scope="session")
def command() -> Crawl:
    """Runs `gossamer …` as a process of its own and returns how it ended."""
    own = {"PYTHONPATH": str(Path(gossamer.__file__).parent.parent), "COLUMNS": "120"}

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "gossamer", *map(str, arguments)],
            env={**os.environ, **own},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=CRAWL_S_MAX,
        )

    return run


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    """A Ray cluster of a head and two machines to crawl on, for the tests of a module."""
    with Nodes() as cluster:
        cluster.add()
        cluster.add()
        yield cluster


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Site]]:
    """Makes servers, as `Site` takes their pages, for rendered crawls. Browsers of the test's crawls, and of no other
    test's, have their folders below TMPDIR.
    """
    require_chromium()
    assert shutil.which(PROGRAMS[0]), f"{PROGRAMS[0]} is missing: `make acceptance` installs it"
    made: list[Site] = []
    # Not `tmp_path`: pytest keeps it from other users, and a browser is one.
    temporary = tempfile.mkdtemp(prefix="browsers-")
    Path(temporary).chmod(0o1777)
    monkeypatch.setenv("TMPDIR", temporary)

    def make(*arguments: Any, **named: Any) -> Site:
        made.append(Site(*arguments, **named))
        return made[-1]

    yield make
    for one in made:
        one.close()
    shutil.rmtree(temporary, ignore_errors=True)
