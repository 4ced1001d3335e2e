"""The module under test, and how to take its answers apart."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from gossamer.model.visits import Failure, Reply
from gossamer.options import convert
from gossamer.stages.fetch.http import HttpModule
from gossamer.stages.fetch.options import FetchOptions
from gossamer.world.clock import WallClock

AGENT = "gossamer/0 (+mailto:test@example.test)"


@asynccontextmanager
async def speaking(**options: object) -> AsyncIterator[HttpModule]:
    module = HttpModule(convert(FetchOptions, options), AGENT, WallClock())
    try:
        async with asyncio.timeout(60):
            yield module
    finally:
        await module.close()


def replied(answer: Reply | Failure) -> Reply:
    assert isinstance(answer, Reply), answer
    return answer


def failed(answer: Reply | Failure) -> Failure:
    assert isinstance(answer, Failure), answer
    assert "\n" not in answer.error
    assert answer.error
    return answer
