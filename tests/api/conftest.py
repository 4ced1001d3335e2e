from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from gossamer import Crawler
from tests.further import with_further

Run = Callable[[Coroutine[Any, Any, None]], None]
Make = Callable[..., Crawler]


@pytest.fixture(params=with_further("uvloop", "asyncio"))
def run(request: pytest.FixtureRequest) -> Run:
    """Run a test's coroutine on either loop that a crawl may run on, for so long and no longer."""
    start: Any = asyncio.run if request.param == "asyncio" else pytest.importorskip("uvloop").run

    def bounded(work: Coroutine[Any, Any, None]) -> None:
        async def whole() -> None:
            async with asyncio.timeout(240):
                await work

        start(whole())

    return bounded


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Make crawlers of sites on loopback that commit often."""

    def make(*seeds: str, output: str = "crawl", settings: dict[str, object] | None = None, **options: Any) -> Crawler:
        given = {"allow_private": True, "politeness": "own", **options}
        keys = {
            "crawl.commit_s": 0.05, "state.cache_bytes": 1 << 20, "state.write_buffer_bytes": 1 << 20,
            "watch.stall_s": 60.0, "watch.commit_s_max": 60.0,  # What a busy machine holds up is no alarm.
        }  # fmt: skip
        return Crawler(seeds, output=tmp_path / output, settings={**keys, **(settings or {})}, **given)

    return make
