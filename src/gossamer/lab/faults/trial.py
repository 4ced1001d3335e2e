"""Trial: one crawl of a simulated world with kills, and what it must not have broken.

    python -m gossamer.lab.faults.trial [--first SEED] [--trials N]

A trial is repeated exactly by its seed. A thousand take about five minutes of a core.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec
import pyarrow.parquet as pq

from gossamer.api.crawler import Crawler
from gossamer.assembly import Assembled, assemble
from gossamer.config import Config, configure
from gossamer.crawl.control import Verb
from gossamer.lab.faults.world import Asked, Killed, SimulatedLoop, World
from gossamer.world.dice import Dice

KILLS_MAX = 3
STEPS, REQUESTS, COMMIT_STEPS = 3_000, 40, 6
"""Of a crawl without a kill, about; and of one commit."""
DELAY_S = 1.0
ROUNDING_S = 1e-6
BUSY = 503
SEED = "http://h0.test/"
SETS = (
    "components.protocols={http = 'gossamer.lab.faults.world:SimulatedHttp'}",
    "components.resolver='gossamer.lab.faults.world:SimulatedResolver'",
    f"politeness.delay_s_min={DELAY_S}",
    "politeness.delay_factor=0.0",
    "frontier.attempts_max=4",
    "frontier.retry_s_first=5.0",
    "frontier.host_failures_max=50",
    "robots.retry_first_s=5.0",
    "crawl.patience_s=80_000.0",
    "crawl.commit_s=10.0",
    "crawl.commit_pages=5",
    "memory.huge_pages=false",
)


class Trial(msgspec.Struct):
    """How it went."""

    seed: int
    kills: int = 0
    steps: int = 0
    requests: int = 0
    broken: list[str] = []
    trace: str = ""
    """Digest of every request with its time: equal for equal seeds."""


class _Crawler(Crawler):
    """A crawl in a world: without a socket to be asked through, and without watchdogs of the real machine."""

    world: World

    async def _assembled(self) -> Assembled:
        lock = await self._locked()
        assembled = assemble(self.config, self.directory, self.world, Dice(self.world.seed), lock)
        storage, around = assembled.kept.storage, self.world.around
        for holder, name in ((storage.journals, "sync"), (storage.epochs, "commit"), (storage.epochs, "apply")):
            setattr(holder, name, around(getattr(holder, name)))
        assembled.controls.watchdogs.run = _nothing  # type: ignore[method-assign]
        return assembled

    async def _serve(self, shard: Assembled, verbs: Mapping[str, Verb]) -> None:
        """Serve no socket."""


async def _nothing() -> None:
    """Replace watchdogs, which look at the real machine."""


def trial(seed: int, folder: Path, *, kills: bool = True) -> Trial:
    """Crawl the seed's world to its end, killed up to `KILLS_MAX` times; return what was broken."""
    world, dice, found = World(seed), Dice(seed + 2), Trial(seed)
    world.directory = folder / "life-0"
    options = {"allow_private": True, "scope": "any", "contact": "a@example.org"}
    config = configure(options=options, sets=SETS, seeds=[SEED])
    wanted = dice.below(KILLS_MAX + 1) if kills else 0
    while True:
        if found.kills < wanted:  # Where a life has fewer steps, nothing kills it.
            if dice.below(2):
                world.kill_at = world.steps + 1 + dice.below(STEPS)
            else:
                world.kill_in_commit = len(world.log) + dice.below(REQUESTS), dice.below(2 * COMMIT_STEPS)
        if _lived(world, config):
            break
        found.kills += 1
        world.next_life()
    found.steps, found.requests = world.steps, len(world.log)
    found.trace = hashlib.sha256(repr(world.log).encode()).hexdigest()[:16]
    found.broken = [*_politeness(world), *_outcomes(world)]
    return found


def _lived(world: World, config: Config) -> bool:
    """Crawl until the end, or until killed; say which."""
    resuming = (world.directory / "crawl.toml").exists()
    crawler = _Crawler([SEED], output=world.directory, config=config, resuming=resuming)
    crawler.world = world
    loop = SimulatedLoop(world)
    loop.set_exception_handler(lambda _loop, _context: None)  # What is left of a killed crawl says nothing.
    try:
        end = loop.run_until_complete(crawler.run())
    except Killed:
        return False
    finally:
        world.kill_at, world.kill_in_commit = -1, None
        _unwind(loop)
    assert end == "finished", end
    return True


def _unwind(loop: SimulatedLoop) -> None:
    """Close what a killed crawl holds. Its directory is not read any more."""
    for task in asyncio.all_tasks(loop):
        task.cancel()
    while left := asyncio.all_tasks(loop):
        with suppress(Killed):  # Groups of tasks pass it on.
            loop.run_until_complete(_ended(left))
    loop.close()


async def _ended(tasks: Collection[asyncio.Task[object]]) -> None:
    await asyncio.wait(tasks)


def _politeness(world: World) -> Iterator[str]:
    """Yield the requests that came too soon after another of their host, whichever process sent it."""
    yield from (f"two requests at once to the host of {url}" for url in world.overlaps)
    last: dict[str, Asked] = {}
    for asked in sorted(world.log, key=lambda one: one.began):
        before = last.get(asked.host)
        if before is not None and asked.began < before.ended + DELAY_S - ROUNDING_S:
            waited_s = asked.began - before.ended
            yield f"{asked.host}{asked.path} was requested {waited_s:.3f} s after {before.path}, in life {asked.life}"
        if asked.path.startswith("/private/"):
            yield f"{asked.host}{asked.path} was requested against robots.txt"
        last[asked.host] = asked


def _outcomes(world: World) -> Iterator[str]:
    """Yield the URLs that did not end as they must, or were archived as often as not once."""
    rows = [
        row
        for path in sorted((world.directory / "pages").glob("*.parquet"))
        for row in pq.read_table(path, columns=["url", "outcome", "status", "warc_file", "warc_offset"]).to_pylist()
    ]
    truth = world.site.truth([SEED])
    ends = Counter((row["url"], row["outcome"]) for row in rows if row["status"] != BUSY)
    for url, outcome in truth.items():
        if ends[url, outcome] != 1:
            seen = [f"{row['outcome']} {row['status'] or ''}".strip() for row in rows if row["url"] == url]
            yield f"{url} should have ended once as {outcome}: {', '.join(seen) or 'never'}"
    yield from (f"{row['url']} is no page of this web" for row in rows if row["url"] not in truth)
    places = Counter((row["warc_file"], row["warc_offset"]) for row in rows if row["warc_file"])
    yield from (f"{place} is the record of {count} rows" for place, count in places.items() if count > 1)


def main() -> None:
    """Run trials, and print those that broke something."""
    parser = argparse.ArgumentParser(description="Crawl simulated worlds with kills; print what was broken.")
    parser.add_argument("--first", type=int, default=1, help="seed of the first trial")
    parser.add_argument("--trials", type=int, default=100, help="how many")
    given = parser.parse_args()
    kills = bad = 0
    for seed in range(given.first, given.first + given.trials):
        with tempfile.TemporaryDirectory(prefix="gossamer-faults-") as folder:
            found = trial(seed, Path(folder))
        kills += found.kills
        if found.broken:
            bad += 1
            print(f"seed {seed} ({found.kills} kills):", *found.broken, sep="\n  ", flush=True)
    print(f"{given.trials} trials with {kills} kills; {bad} broke something")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
