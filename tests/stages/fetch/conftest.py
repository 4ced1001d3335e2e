from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tests.further import with_further

Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(params=with_further("uvloop", "asyncio"))
def run(request: pytest.FixtureRequest) -> Run:
    """Run a test's coroutine on either loop that a crawl may run on."""
    if request.param == "asyncio":
        return asyncio.run
    return pytest.importorskip("uvloop").run
