"""Places: the browsers that the shards on one machine may have at once."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from gossamer.features.render.options import RenderOptions
from gossamer.features.render.renderer import Renderer

HOLD = """
import asyncio, sys
from pathlib import Path
from gossamer.features.render.options import RenderOptions
from gossamer.features.render.renderer import Renderer

async def hold():
    async with Renderer(RenderOptions(), places=[Path(sys.argv[1])])._place():
        print("held", flush=True)
        await asyncio.sleep(60)

asyncio.run(hold())
"""


def test_shards_have_no_more_browsers_at_once_than_places(tmp_path: Path) -> None:
    places = [tmp_path / "state" / f"browser-{number}.lock" for number in range(2)]
    running = 0
    most = 0

    async def page(renderer: Renderer) -> None:
        nonlocal running, most
        async with renderer._place():
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.01)
            running -= 1

    async def pages() -> None:
        shards = [Renderer(RenderOptions(), places=places) for _ in range(3)]
        async with asyncio.TaskGroup() as group:
            for number in range(9):
                group.create_task(page(shards[number % 3]))

    places[0].parent.mkdir()
    asyncio.run(pages())
    assert (running, most) == (0, 2)


def test_the_place_of_a_shard_that_is_killed_is_free(tmp_path: Path) -> None:
    place = tmp_path / "browser.lock"
    with subprocess.Popen([sys.executable, "-c", HOLD, str(place)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"

        async def take(within_s: float) -> bool:
            try:
                async with asyncio.timeout(within_s), Renderer(RenderOptions(), places=[place])._place():
                    return True
            except TimeoutError:
                return False

        assert not asyncio.run(take(0.3))
        holder.kill()
        holder.wait()
        assert asyncio.run(take(240.0))


def test_a_shard_alone_waits_for_no_place() -> None:
    async def take() -> None:
        async with asyncio.timeout(60.0), Renderer(RenderOptions())._place():
            pass

    asyncio.run(take())
