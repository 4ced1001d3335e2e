"""Trial: one crawl of a simulated world with kills, and what it must not have broken.

    python -m tests.faults.trial [--first SEED] [--trials N]

A trial is repeated exactly by its seed. A thousand take about five minutes of a core.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import Context
from itertools import combinations
from pathlib import Path

from gossamer.api.crawler import Crawler
from gossamer.assembly.building import assemble
from gossamer.assembly.values import Shard
from gossamer.config import Config, configure
from gossamer.engine.control import Verb
from gossamer.model.errors import ConfigError, DamagedError
from gossamer.world.dice import Dice
from tests.faults.checks import SEED, find_broken_promises
from tests.faults.further import all_faults_of, slow_down, small
from tests.faults.lives import (
    OF_THE_WEB,
    OPTIONS,
    TROUBLE_S_MAX,
    Trial,
    check_books,
    in_world,
    is_of,
    sets_of,
    unwind,
    web_faults,
)
from tests.faults.loop import HERE, SimulatedLoop
from tests.faults.schedule import is_continuous, is_covered, shards_of
from tests.faults.several import SimulatedShards
from tests.faults.world import Fault, Killed, Kind, Machine, World

FAULTS_MAX = 3
REQUESTS = 60
STEPS = 60
DISK_STEPS = 40
"""Of a crawl without a fault: requests, about; and steps between two requests, and in a commit."""
JUMP_S_MAX = 7_200.0
KINDS: tuple[Kind, ...] = ("kill", "kill", "full", "write", "fsync")
SWARM_ONE_IN = 2
"""Seeds whose faults are alike: of one kind, soon after one another, early, or with clocks that are set back."""
SOON_MAX = 4
SOON_STEPS = 40
SOON_DISK_STEPS = 16
EARLY_REQUESTS = 4
"""Faults that follow one another: how many, and steps from the start of a process; requests before an early one."""
COMMITS_ONE_IN = 4
COMMIT_S_MAX = 20.0
"""Seeds in which others ask for commits, as the operator's commands do, and how long it takes until the next."""
TROUBLED_ONE_IN = 5
"""Seeds with a fault of one kind of the web."""
REAL_ONE_IN = 100
"""Seeds whose store is RocksDB on disk: a kill or an error may happen to it, no power cut."""
COLLECT_ONE_IN = 20
MEMORY = "/dev/shm"


class _Crawler(Crawler):
    """A crawl in a world: without a socket to be asked through, and without watchdogs of the real machine."""

    machine: Machine
    _commits: asyncio.Task[None] | None = None

    async def _assemble(self) -> Shard:
        lock = await self._lock_directory()
        assembled = assemble(self.config, self.directory, self.machine, Dice(self.machine.world.seed), lock)
        check_books(self.machine, assembled, self.config)
        if not self.machine.world.seed % COMMITS_ONE_IN:
            self._commits = asyncio.create_task(_ask_for_commits(assembled, self.machine.world))
        return assembled

    async def _serve(self, shard: Shard, verbs: Mapping[str, Verb]) -> None:
        """Serve no socket."""


async def _ask_for_commits(assembled: Shard, world: World) -> None:
    """Close an epoch now and then, as settings, checkpoints and stopped programs do. If that fails, the crawl ends."""
    with suppress(OSError):
        while True:
            await asyncio.sleep(world.dice.uniform(0.0, COMMIT_S_MAX))
            if assembled.ring.loop.state == "running":
                await assembled.ring.loop.commit()


def faults_of(seed: int) -> list[Fault]:
    """Return what is to happen in the trial of a seed."""
    dice = Dice(seed + 2)
    is_real = not seed % REAL_ONE_IN
    faults = [_fault(dice, is_real=is_real) for _ in range(dice.below(FAULTS_MAX + 1))]
    if not dice.below(SWARM_ONE_IN):
        faults = _alike(dice, faults or [_fault(dice, is_real=is_real)], is_real=is_real)
    for kind in [one for one in OF_THE_WEB if not dice.below(TROUBLED_ONE_IN)]:
        lasts_s = dice.uniform(1.0, TROUBLE_S_MAX)
        faults.append(Fault(kind, dice.below(REQUESTS), dice.below(DISK_STEPS), jump_s=lasts_s))
    return faults


def _fault(dice: Dice, *, is_real: bool) -> Fault:
    kind = KINDS[dice.below(len(KINDS))]
    in_disk = dice.below(4) > 0
    power = bool(dice.below(2)) and not is_real
    jump_s = 0.0 if dice.below(2) else dice.uniform(-JUMP_S_MAX, JUMP_S_MAX)
    return Fault(kind, dice.below(REQUESTS), dice.below(DISK_STEPS if in_disk else STEPS), in_disk, power, jump_s)


def _alike(dice: Dice, faults: list[Fault], *, is_real: bool) -> list[Fault]:
    """Return faults with more in common than chance gives: what needs two of a kind, or one soon after another."""
    first = faults[0]
    how = dice.below(6)
    if how == 0:
        return [one._replace(kind=first.kind, in_disk=first.in_disk, power=first.power) for one in faults]
    if how == 1:
        early = [one._replace(requests=dice.below(EARLY_REQUESTS), steps=one.steps % SOON_STEPS) for one in faults]
        return [one._replace(power=not is_real) for one in early]
    if how == 2:
        return [one._replace(jump_s=-abs(one.jump_s) or -dice.uniform(0.0, JUMP_S_MAX)) for one in faults]
    if how == 3:  # Set back, and killed again before the first commit.
        back = first._replace(kind="kill", power=False, jump_s=-dice.uniform(1.0, JUMP_S_MAX))
        return [back, *(_soon(dice, back)._replace(kind="kill", jump_s=0.0) for _ in range(1 + dice.below(SOON_MAX)))]
    if how == 4:  # Before the first commit.
        cut = first._replace(kind="kill", requests=1, steps=first.steps % SOON_STEPS, power=not is_real, jump_s=0.0)
        return [cut, *faults[1:]]
    return [first, *(_soon(dice, first) for _ in range(1 + dice.below(SOON_MAX)))]


def _soon(dice: Dice, first: Fault) -> Fault:
    """Return a fault of a process that has just begun."""
    in_disk = dice.below(4) > 0
    steps = dice.below(SOON_DISK_STEPS if in_disk else SOON_STEPS)
    return first._replace(kind=KINDS[dice.below(len(KINDS))], requests=0, steps=steps, in_disk=in_disk)


def trial(seed: int, folder: Path, faults: list[Fault] | None = None) -> Trial:
    """Crawl the seed's world to its end, one fault a life; return what was broken. `faults` replaces the seed's."""
    found = Trial(seed, faults_of(seed) if faults is None else faults)
    world = World(seed)
    machine = Machine(world, folder)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with in_world(is_real=not seed % REAL_ONE_IN):
            Context().run(_lives, machine, found)
        found.broken = find_broken_promises(world)
    except (AssertionError, OSError, ConfigError, DamagedError) as error:  # That it refuses to go on is a finding too.
        found.broken = [f"in life {machine.life}: {error!r}"]
    finally:
        machine.disk.let_go()
    return found.record_totals(world)


def _lives(machine: Machine, found: Trial) -> None:
    HERE.set(machine)
    at_once = [f"politeness.{name}={machine.world.at_once}" for name in ("per_host", "per_address")]
    config = configure(options=OPTIONS, sets=(*sets_of(machine.world.seed), *at_once), seeds=[SEED])
    for fault in web_faults(machine.world, found.faults):
        machine.fault = fault
        if _run_life(machine, config):
            return
        found.happened.append(fault)
        machine.world.elapsed_s += machine.next_life(fault)
    assert _run_life(machine, config), "a life without a fault ends by itself"


def _run_life(machine: Machine, config: Config) -> bool:
    """Crawl until the end, or until a fault ends the process; say which."""
    directory = machine.disk.root
    fault = machine.fault
    crawler = _Crawler(output=directory, config=config, resuming=(directory / "crawl.toml").exists())
    crawler.machine = machine
    loop = SimulatedLoop(machine.world)
    loop.set_exception_handler(lambda _loop, _context: None)  # What is left of a killed crawl says nothing.
    try:
        end = loop.run_until_complete(crawler.run())
    except Killed:
        return False
    except OSError as error:
        if not is_of(fault, error):
            raise
        return False
    finally:
        unwind(loop)
    assert end == "finished", end
    return True


def trial_of_several(seed: int, folder: Path, faults: list[Fault] | None = None) -> Trial:
    """Crawl the seed's world to its end; return what was broken. `faults` replaces the seed's."""
    found = Trial(seed, all_faults_of(seed) if faults is None else faults)
    world = slow_down(World(seed, shards_of(seed), changes=is_continuous(seed)))
    folder.mkdir(parents=True, exist_ok=True)
    shards: SimulatedShards | None = None
    try:
        with in_world(is_real=False, also=small(seed)):
            shards = SimulatedShards(world, folder, found, is_covered=is_covered(seed))
            Context().run(shards.crawl)
        found.broken = find_broken_promises(world)
    except (Exception, Killed) as error:  # noqa: BLE001 - that it does not go on, or not end, is a finding too
        found.broken = [*world.faulty, f"it ended with {error!r}"]
    finally:
        if shards is not None:
            found.balanced = len(shards.coordination.moves.kept.balanced)
            shards.let_go()
    return found.record_totals(world)


Kept = Callable[[int, Path, "list[Fault] | None"], Trial]
"""A kind of trial: of a seed, in a directory, with the seed's faults or others."""


def shortest(seed: int, broken: Trial, kind: Kept = trial) -> Trial:
    """Return the trial of a seed that breaks something with the fewest of its faults."""
    for count in range(len(broken.faults)):
        for faults in combinations(broken.faults, count):
            found = run(seed, list(faults), kind)
            if found.broken:
                return found
    return broken


def run(seed: int, faults: list[Fault] | None = None, kind: Kept = trial) -> Trial:
    """Run a trial in a directory that is removed then; in memory, where the system has room there."""
    with tempfile.TemporaryDirectory(
        prefix="gossamer-faults-", dir=MEMORY if Path(MEMORY).is_dir() else None
    ) as folder:
        return kind(seed, Path(folder), faults)


def main() -> None:
    """Run trials, and print those that broke something."""
    parser = argparse.ArgumentParser(description="Crawl simulated worlds with faults; print what was broken.")
    parser.add_argument("--first", type=int, default=1, help="seed of the first trial")
    parser.add_argument("--trials", type=int, default=100, help="how many")
    parser.add_argument("--several", action="store_true", help="of two or three shards each")
    given = parser.parse_args()
    kind = trial_of_several if given.several else trial
    happened: Counter[str] = Counter()
    bad = 0
    requests = 0
    began = time.process_time()
    for seed in range(given.first, given.first + given.trials):
        found = run(seed, None, kind)
        requests += found.requests
        if not seed % COLLECT_ONE_IN:
            gc.collect()  # Worlds are cycles, and each holds files of megabytes.
        happened.update(_kind_of(one) for one in found.happened)
        if found.broken:
            bad += 1
            found = shortest(seed, found, kind)
            print(f"seed {seed}:", *map(_describe, found.happened), *found.broken, sep="\n  ", flush=True)
    counts = ", ".join(f"{count} {name}" for name, count in happened.most_common())
    rate = given.trials / (time.process_time() - began) * 60
    print(
        f"{given.trials} trials, {rate:.0f} a minute and core; {requests} requests; faults: {counts or 'none'}; "
        f"{bad} broke something"
    )
    sys.exit(1 if bad else 0)


def _kind_of(fault: Fault) -> str:
    return "older checkpoint" if fault.restored else "power" if fault.power else fault.kind


def _describe(fault: Fault) -> str:
    where = "on disk" if fault.in_disk else "anywhere"
    then = " then the power is cut;" if fault.power else ""
    then += " then another machine goes on from the last checkpoint;" if fault.restored else ""
    since = f"it was {fault.when}" if fault.when else f"request {fault.requests}"
    return (
        f"shard {fault.shard}: {fault.kind} at step {fault.steps} {where} after {since};{then} "
        f"clock, or time, {fault.jump_s:+.0f} s"
    )


if __name__ == "__main__":
    main()
