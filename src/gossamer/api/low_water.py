"""Low water: reacts when few hosts are left. A crawl of few hosts wastes its machine, since politeness limits the rate
of each host. So it requests more seeds or the next segment, or stops and saves the remainder.
"""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from signal import SIGKILL
from subprocess import DEVNULL, PIPE
from typing import TYPE_CHECKING

import msgspec

from gossamer.config import Config
from gossamer.config.seeds import check_addresses, local_hosts
from gossamer.model.errors import ConfigError
from gossamer.model.links import SEED_FILE
from gossamer.model.verbs import Added, Seed
from gossamer.stages.frontier.options import FrontierOptions
from gossamer.stages.scope.roots import seed_url
from gossamer.world.workers import end_process

if TYPE_CHECKING:
    from gossamer.api.feeding import Feeding
    from gossamer.api.seeding import Seeding
    from gossamer.assembly.values import Shard

MoreSeeds = Callable[[], Iterable[str] | Awaitable[Iterable[str]]]
"""Called when few hosts are left; returns more seeds, if there are any."""

LOOK_S = 0.25
"""Interval of checks of the number of hosts left."""
OUTPUT_BYTES_MAX = 16 << 20
"""Bytes of the command's output that are read."""
SEEDS_A_STEP_MAX = 500
REFUSED_SHOWN_MAX = 20
"""Rejected lines of one answer that the log names; the others are counted."""


class LowWater:
    """Does nothing while at least `frontier.hosts_min` hosts are left. Then it looks into the watched directory first.
    It calls the source of seeds as long as that brings something new. After that, or without a source, a crawl that
    once had that many hosts stops; one that never had them goes on to its end.
    """

    def __init__(self, shard: Shard, seeding: Seeding, feeding: Feeding, more_seeds: MoreSeeds | None) -> None:
        ring = shard.ring
        settings = shard.controls.settings
        telemetry = shard.controls.telemetry
        options = settings.config.frontier
        self._directory = shard.kept.home.directory
        self._settings = settings
        self._loop = ring.loop
        self._frontier = ring.frontier
        self._pipeline = ring.pipeline
        self._clock = telemetry.clock
        self._logs = telemetry.logs
        self._tell = telemetry.counters.note
        self._seeding = seeding
        self._feeding = feeding
        self._offline = settings.config.crawl.mode == "offline"
        self._watches = feeding.watches
        self._watch_s_max = settings.config.seeds.watch_s_max
        self._idle_since: float | None = None
        command = partial(run_command, options, self._directory, self._tell) if options.more_seeds_command else None
        self._source: MoreSeeds | None = more_seeds or command
        asks = self._source is not None or self._watches
        self._hosts_min = max(options.hosts_min, 1) if asks else options.hosts_min
        self._stops = options.hosts_min > 0

    def busy(self) -> bool:
        """Return whether more seeds may come; while they may, the crawl is not over."""
        return self._source is not None or self._watches

    async def run(self) -> None:
        """Check the number of hosts, request more seeds, and at last end the crawl; then wait to be cancelled."""
        while self._hosts_min:
            await asyncio.sleep(LOOK_S)
            if self._seeding.busy() or self._feeding.busy() or self._loop.paused or self._loop.brakes.held:
                continue
            # Held links may be of more hosts: some of them may still await the duplicate check.
            while self._frontier.hosts_left < self._hosts_min and self._pipeline.take_back(idle=True):
                self._loop.stir()
                await asyncio.sleep(0)
            if self._frontier.hosts_left < self._hosts_min and self._pipeline.discovery.links_held > 0:
                continue
            left = self._frontier.hosts_left
            if left:
                self._idle_since = None
            if left >= self._hosts_min or (self._watches and await self._feeding.take_next()):
                continue
            had_enough = self._frontier.hosts_most >= self._hosts_min
            if self._source is not None:
                await self._ask(left)
            elif self._watches:
                self._wait_for_segments(left)
            elif had_enough and self._stops and left:
                self._tell(
                    f"{left} hosts are left, fewer than frontier.hosts_min = {self._hosts_min}; the rest is saved"
                )
                self._loop.end_early("low_water")
                break
        await asyncio.Event().wait()

    async def _ask(self, left: int) -> None:
        assert self._source is not None
        try:
            answer = self._source()
            texts = list(await answer if inspect.isawaitable(answer) else answer)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the operator's code; without seeds the crawl is as it was
            self._logs.critical("more_seeds_failed", error, hosts_left=left)
            self._tell(f"no more seeds: {type(error).__name__}: {error}")
            texts = []
        if not await self._add(texts):
            self._source = None
            self._loop.stir()
            self._tell(f"{left} hosts are left, and there are no more seeds")

    def _wait_for_segments(self, left: int) -> None:
        """Give up on a directory in which nothing has appeared for as long as there was nothing to fetch."""
        now = self._clock.now()
        if left:
            return
        self._idle_since = self._idle_since or now
        if self._watch_s_max is not None and now - self._idle_since >= self._watch_s_max:
            self._watches = False
            self._loop.stir()
            self._tell(f"no segment has appeared for {self._watch_s_max:g} s, and nothing is left")

    async def _add(self, texts: list[str]) -> bool:
        """Take in seeds, and segments if those are allowed; return whether anything in them was new. The crawl goes on
        between steps; URLs that it finds meanwhile do not count.
        """
        local = local_hosts(self._settings.config)
        refused = 0
        is_new = False
        for start in range(0, len(texts), SEEDS_A_STEP_MAX):
            good = []
            for text in texts[start : start + SEEDS_A_STEP_MAX]:
                try:
                    if self._offline and "://" not in text:
                        before = self._counts()
                        await self._feeding.take(Path(text))
                        is_new |= self._counts() > before
                    else:
                        good.append(_require_seed(text, self._settings.config, local))
                except ConfigError as error:
                    refused += 1
                    if refused <= REFUSED_SHOWN_MAX:
                        self._logs.info("seed_refused", url=text[:200], error=str(error))
            before = self._counts()
            self._seeding.add(good, SEED_FILE)
            is_new |= self._counts() > before
            await self._loop.commit_if_large()
            await asyncio.sleep(0)
        if refused:
            self._tell(f"{refused:,} of {len(texts):,} more seeds refused; logs/info.log has the first of them")
        return is_new

    def _counts(self) -> tuple[int, int]:
        return self._frontier.counts.discovered, self._frontier.hosts_left


async def run_command(options: FrontierOptions, directory: Path, tell: Callable[[str], None]) -> list[str]:
    """Return the output of `more_seeds_command`, one URL a line; `#` begins a comment.

    Raises:
        OSError: it cannot be started.
        RuntimeError: it failed.
        TimeoutError: it took too long, and was killed.
    """
    command = options.more_seeds_command
    environment = {**os.environ, "GOSSAMER_DIRECTORY": str(directory)}
    process = await asyncio.create_subprocess_exec(
        *command, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, env=environment, start_new_session=True
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(options.more_seeds_s_max):
            output = bytearray()
            while len(output) < OUTPUT_BYTES_MAX and (part := await process.stdout.read(1 << 16)):
                output += part
            if len(output) >= OUTPUT_BYTES_MAX:
                del output[output.rfind(b"\n") + 1 :]
                tell(f"{command[0]} prints without end: its first {OUTPUT_BYTES_MAX >> 20} MiB are taken")
            elif await process.wait():
                raise RuntimeError(f"{command[0]} ended with status {process.returncode}")
    except TimeoutError:
        raise TimeoutError(f"{command[0]} took more than {options.more_seeds_s_max:g} s") from None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, SIGKILL)  # With all that it has started.
        await end_process(process)
    return await asyncio.to_thread(_lines, output)


async def bring_seeds(
    config: Config, directory: Path, add: Callable[[Seed], Awaitable[object]], tell: Callable[[str], None]
) -> bool:
    """Give what `more_seeds_command` prints to all shards of a crawl by `add`; return whether any of it was new."""
    try:
        texts = await run_command(config.frontier, directory, tell)
    except (OSError, RuntimeError, TimeoutError) as error:
        tell(f"no more seeds: {type(error).__name__}: {error}")
        return False
    local = local_hosts(config)
    good = []
    for text in texts:
        with suppress(ConfigError):
            good.append(_require_seed(text, config, local))
    if len(good) < len(texts):
        tell(f"{len(texts) - len(good):,} of {len(texts):,} more seeds refused")
    new = 0
    for start in range(0, len(good), SEEDS_A_STEP_MAX):
        new += msgspec.convert(await add(Seed(urls=tuple(good[start : start + SEEDS_A_STEP_MAX]))), Added).added
    if not new:
        tell("few hosts are left, and there are no more seeds")
    return new > 0


def _require_seed(text: str, config: Config, local: frozenset[str]) -> str:
    address = seed_url(text, config.scope.schemes)
    check_addresses(config, [address], local)
    return address


def _lines(output: bytearray) -> list[str]:
    lines = (line.split(" #")[0].strip() for line in output.decode("utf-8", "replace").splitlines())
    return [line for line in lines if line and not line.startswith("#")]
