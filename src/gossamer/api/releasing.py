"""Releasing: releases false traps, in a crawl that runs or that will be resumed."""

from __future__ import annotations

import asyncio
import difflib
from contextlib import nullcontext
from pathlib import Path

from gossamer.api.given import directory_of
from gossamer.api.shards import held_stopped, require_here
from gossamer.assembly import CrawlRing, assemble
from gossamer.config.gather import reopen
from gossamer.model.errors import ConfigError
from gossamer.scope.traps import Traps
from gossamer.world.clock import Clock

SHOWN_MAX = 5


async def release(ring: CrawlRing, name: str, clock: Clock) -> list[str]:
    """Release the traps of a host, or one trap (`host/template`); return their names. The caller commits."""
    frontier, urls = ring.frontier, ring.urls
    return await ring.scope.trapping.release(
        name,
        urls.namer,
        urls.history,
        ring.pipeline.discovery.discover,
        lambda link: frontier.add(link, 0, clock.now()),
    )


def no_trap(traps: Traps, name: str) -> str:
    """Return a line about a name that no trap has."""
    names = [trap.name for trap in traps.all if not trap.released]
    near = difflib.get_close_matches(name, [*names, *(trap.partition("/")[0] for trap in names)], n=1)
    if near:
        return f"no trap is called {name!r}; did you mean {near[0]!r}?"
    known = f"there are {', '.join(names[:SHOWN_MAX])}" if names else "there is none"
    return f"no trap is called {name!r}; {known}{' …' if len(names) > SHOWN_MAX else ''}"


def release_of(directory: str | Path, name: str) -> dict[str, object]:
    """Release traps of a crawl that does not run; `resume` then continues in them.

    Raises:
        ConfigError: there is no such trap, or another process holds the crawl.
    """
    return asyncio.run(_release_of(directory_of(directory), name))


async def _release_of(directory: Path, name: str) -> dict[str, object]:
    config = reopen(directory / "crawl.toml")
    shards = config.cluster.workers
    refusal = ""
    with held_stopped(directory) if shards > 1 else nullcontext():
        for number in range(shards):
            if shards > 1:
                require_here(directory, number, shards)
            shard = assemble(config, directory, shard=number, shards=shards)
            try:
                released = await release(shard.ring, name, shard.controls.telemetry.clock)
                if released:
                    await shard.kept.committer.commit()
                    return {"released": released}
                refusal = refusal or no_trap(shard.ring.scope.traps, name)
            finally:
                await shard.close()
    raise ConfigError(refusal)
