"""What the acceptance checks share: the real command line, and a real server."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import gossamer
from tests.acceptance.noting import Site
from tests.chromium import require_chromium
from tests.cluster.nodes import Nodes

Crawl = Callable[..., subprocess.CompletedProcess[str]]
CRAWL_S_MAX = 300


@pytest.fixture(scope="session")
def command() -> Crawl:
    """Runs `gossamer …` as a process of its own and returns how it ended."""
    environment = {**os.environ, "PYTHONPATH": str(Path(gossamer.__file__).parent.parent), "COLUMNS": "120"}

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "gossamer", *map(str, arguments)],
            env=environment,
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
def site() -> Iterator[Callable[..., Site]]:
    """Makes servers, as `Site` takes their pages, for rendered crawls."""
    require_chromium()
    made: list[Site] = []

    def make(*arguments: Any, **named: Any) -> Site:
        made.append(Site(*arguments, **named))
        return made[-1]

    yield make
    for one in made:
        one.close()
