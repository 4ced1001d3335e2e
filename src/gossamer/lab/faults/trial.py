"""Trial: one crawl of a simulated world with kills, and what it must not have broken.

    python -m gossamer.lab.faults.trial [--first SEED] [--trials N]

A trial is repeated exactly by its seed. A thousand take about five minutes of a core.
"""

from __future__ import annotations

import argparse
import asyncio
import errno
import gc
import gzip
import hashlib
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq

from gossamer.api import crawler as crawling
from gossamer.api.crawler import Crawler
from gossamer.archive import logs
from gossamer.assembly import building, integrity
from gossamer.assembly.building import assemble
from gossamer.assembly.values import Assembled
from gossamer.config import Config, configure
from gossamer.crawl import shard
from gossamer.crawl.control import Verb
from gossamer.lab.faults.world import Fault, Killed, Kind, SeenRequest, SimulatedLoop, World
from gossamer.model.errors import ConfigError, DamagedError
from gossamer.state import journals, redo
from gossamer.state.redo import DamagedStoreError
from gossamer.world import files
from gossamer.world.dice import Dice
from gossamer.world.machine import ThisMachine

FAULTS_MAX = 3
REQUESTS, STEPS, DISK_STEPS = 60, 60, 40
"""Of a crawl without a fault: requests, about; and steps between two requests, and in a commit."""
JUMP_S_MAX = 7_200.0
KINDS: tuple[Kind, ...] = ("kill", "kill", "full", "write", "fsync")
REAL_ONE_IN = 100
"""Seeds whose store is RocksDB on disk: a kill or an error may happen to it, no power cut."""
DELAY_S = 1.0
ROUNDING_S = 1e-6
BUSY = 503
SEED = "http://h0.test/"
IDLE_S = 10.0
"""Between two looks of a loop that has nothing to do: no decision depends on it."""
COLLECT_ONE_IN = 20
MEMORY = "/dev/shm"  # noqa: S108 - each trial makes a directory of its own there
OPTIONS = {"allow_private": True, "scope": "any", "contact": "a@example.org"}
SETS = (
    "components.protocols={http = 'gossamer.lab.faults.world:SimulatedHttp'}",
    "components.resolver='gossamer.lab.faults.world:SimulatedResolver'",
    f"politeness.delay_s_min={DELAY_S}",
    "politeness.delay_factor=0.0",
    "frontier.attempts_max=4",
    "frontier.retry_s_first=5.0",
    "frontier.host_failures_max=50",
    "robots.retry_first_s=5.0",
    "robots.robots_wait_max_s=80_000.0",  # Clocks are set.
    "crawl.patience_s=80_000.0",
    "crawl.commit_s=30.0",
    "crawl.commit_pages=5",
    "memory.huge_pages=false",
)


class Trial(msgspec.Struct):
    """How it went."""

    seed: int
    faults: list[Fault]
    happened: int = 0
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
        assembled.controls.watchdogs.run = _nothing  # type: ignore[method-assign]
        committer, counts = assembled.kept.committer, assembled.ring.frontier.counts
        note = committer.on_epoch
        assert note is not None

        def check(epoch: int) -> None:
            if counts.discovered != counts.pending + sum(counts.terminal.values()):
                self.world.faulty.append(f"commit {epoch}: {counts} does not add up")
            note(epoch)

        committer.on_epoch = check
        return assembled

    async def _serve(self, shard: Assembled, verbs: Mapping[str, Verb]) -> None:
        """Serve no socket."""


async def _nothing() -> None:
    """Replace watchdogs, which look at the real machine."""


def faults_of(seed: int) -> list[Fault]:
    """Return what is to happen in the trial of a seed."""
    dice = Dice(seed + 2)
    return [_fault(dice, is_real=not seed % REAL_ONE_IN) for _ in range(dice.below(FAULTS_MAX + 1))]


def _fault(dice: Dice, *, is_real: bool) -> Fault:
    kind, in_disk = KINDS[dice.below(len(KINDS))], dice.below(4) > 0
    power = bool(dice.below(2)) and not is_real
    jump_s = 0.0 if dice.below(2) else dice.uniform(-JUMP_S_MAX, JUMP_S_MAX)
    return Fault(kind, dice.below(REQUESTS), dice.below(DISK_STEPS if in_disk else STEPS), in_disk, power, jump_s)


def trial(seed: int, folder: Path, faults: list[Fault] | None = None) -> Trial:
    """Crawl the seed's world to its end, one fault a life; return what was broken. `faults` replaces the seed's."""
    faults = faults_of(seed) if faults is None else faults
    folder.mkdir(parents=True, exist_ok=True)
    world, found = World(seed, folder / "life-0"), Trial(seed, faults)
    config = configure(
        options={"allow_private": True, "scope": "any", "contact": "a@example.org"}, sets=SETS, seeds=[SEED]
    )
    try:
        with _in_world(world, is_real=not seed % REAL_ONE_IN):
            for fault in faults:
                world.fault = fault
                if _lived(world, config):
                    break
                found.happened += 1
                world.next_life(fault)
            else:
                assert _lived(world, config), "a life without a fault ends by itself"
        found.broken = [*world.faulty, *_politeness(world), *_outcomes(world)]
    except (AssertionError, OSError, ConfigError, DamagedError) as error:  # That it refuses to go on is a finding too.
        found.broken = [f"in life {world.life}: {error!r}"]
    finally:
        world.disk.let_go()
    found.steps, found.requests = world.steps, len(world.log)
    found.trace = hashlib.sha256(repr(world.log).encode()).hexdigest()[:16]
    return found


@contextmanager
def _in_world(world: World, *, is_real: bool) -> Iterator[None]:
    """Have the crawl use the world's disk, clock and store, and commits of several chunks."""
    places: list[tuple[object, str, object]] = [
        (files, "os", _Current(world)),
        (building, "boot_id", world.boot_id),
        (ThisMachine, "wall_offset_s", lambda _machine: world.wall_offset_s()),
        (journals, "BUFFER_BYTES_MAX", 4096),
        (redo, "PART_OPERATIONS_MAX", 10),
        (redo, "SLICE_OPERATIONS_MAX", 25),
        (logs, "_OPTIONS", None),
        (shard, "IDLE_S_MAX", IDLE_S),
        (crawling, "FOLLOW_S", IDLE_S),
    ]
    if not is_real:
        places.append((integrity, "Store", lambda *given, **_named: world.disk.opened_store(*given)))
    before = [getattr(holder, name) for holder, name, _ in places]
    try:
        for holder, name, value in places:
            setattr(holder, name, value)
        yield
    finally:
        for (holder, name, _), value in zip(places, before, strict=True):
            setattr(holder, name, value)


class _Current:
    """The disk of the life that is lived."""

    def __init__(self, world: World) -> None:
        self._world = world

    def __getattr__(self, name: str) -> object:
        return getattr(self._world.disk, name)


def _lived(world: World, config: Config) -> bool:
    """Crawl until the end, or until a fault ends the process; say which."""
    directory, fault = world.disk.root, world.fault
    crawler = _Crawler([SEED], output=directory, config=config, resuming=(directory / "crawl.toml").exists())
    crawler.world = world
    loop = SimulatedLoop(world)
    loop.set_exception_handler(lambda _loop, _context: None)  # What is left of a killed crawl says nothing.
    try:
        end = loop.run_until_complete(crawler.run())
    except Killed:
        return False
    except OSError as error:
        if fault is None or error.errno not in (errno.ENOSPC, errno.EIO) or isinstance(error, DamagedStoreError):
            raise
        return False
    finally:
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
    while loop.threads:
        with suppress(Killed):
            loop.threads[0].go_on()
    loop.close()


async def _ended(tasks: Collection[asyncio.Task[object]]) -> None:
    await asyncio.wait(tasks)


def _politeness(world: World) -> Iterator[str]:
    """Yield the requests that came too soon after another of their host, whichever process sent it."""
    yield from (f"two requests at once to the host of {url}" for url in world.overlaps)
    last: dict[str, SeenRequest] = {}
    for asked in sorted(world.log, key=lambda one: one.began):
        before = last.get(asked.host)
        if before is not None and asked.began < before.ended + DELAY_S - ROUNDING_S:
            waited_s = asked.began - before.ended
            yield f"{asked.host}{asked.path} was requested {waited_s:.3f} s after {before.path}, in life {asked.life}"
        if asked.path.startswith("/private/"):
            yield f"{asked.host}{asked.path} was requested against robots.txt"
        last[asked.host] = asked


def _outcomes(world: World) -> Iterator[str]:
    """Yield the URLs that did not end as they must, or were archived as often as not once; and records that are not
    what the server sent.
    """
    rows = _rows(world.disk.root / "pages", "url", "outcome", "status", "warc_file", "warc_offset", "warc_length")
    truth = world.site.truth([SEED])
    ends = Counter((row["url"], row["outcome"]) for row in rows if row["status"] != BUSY)
    for url, outcome in truth.items():
        if ends[url, outcome] != 1:
            seen = [f"{row['outcome']} {row['status'] or ''}".strip() for row in rows if row["url"] == url]
            yield f"{url} should have ended once as {outcome}: {', '.join(seen) or 'never'}"
    yield from (f"{row['url']} is no page of this web" for row in rows if row["url"] not in truth)
    places = Counter((row["warc_file"], row["warc_offset"]) for row in rows if row["warc_file"])
    yield from (f"{place} is the record of {count} rows" for place, count in places.items() if count > 1)
    for row in rows:
        if row["outcome"] == "fetched" and row["url"] in truth:
            yield from _record(world, row)
    links = Counter(row["from_url"] for row in _rows(world.disk.root / "links", "from_url"))
    for url, outcome in truth.items():
        wanted = len(world.site.links(url)) if outcome == "fetched" else 0
        if outcome in ("fetched", "robots_denied") and links[url] != wanted:
            yield f"{url} has {wanted} links, and {links[url]} rows of them"


def _record(world: World, row: dict[str, Any]) -> Iterator[str]:
    with (world.disk.root / "warc" / row["warc_file"]).open("rb") as file:
        file.seek(row["warc_offset"])
        packed = file.read(row["warc_length"])
    try:
        record = gzip.decompress(packed)
    except (OSError, EOFError, zlib.error) as error:
        yield f"the record of {row['url']} cannot be read: {error!r}"
        return
    holds = world.site.pages[row["url"]] in record or b"\r\nWARC-Type: revisit\r\n" in record
    if not holds or f"\r\nWARC-Target-URI: {row['url']}\r\n".encode() not in record:
        yield f"the record of {row['url']} is another"


def _rows(folder: Path, *columns: str) -> list[dict[str, Any]]:
    return [
        row
        for path in sorted(folder.glob("*.parquet"))
        for row in pq.read_table(path, columns=list(columns)).to_pylist()
    ]


def shortest(seed: int, broken: Trial) -> Trial:
    """Return the trial of a seed that breaks something with the fewest of its faults."""
    for count in range(len(broken.faults)):
        for faults in combinations(broken.faults, count):
            found = run(seed, list(faults))
            if found.broken:
                return found
    return broken


def run(seed: int, faults: list[Fault] | None = None) -> Trial:
    """Run a trial in a directory that is removed then; in memory, where the system has room there."""
    with tempfile.TemporaryDirectory(
        prefix="gossamer-faults-", dir=MEMORY if Path(MEMORY).is_dir() else None
    ) as folder:
        return trial(seed, Path(folder), faults)


def main() -> None:
    """Run trials, and print those that broke something."""
    parser = argparse.ArgumentParser(description="Crawl simulated worlds with faults; print what was broken.")
    parser.add_argument("--first", type=int, default=1, help="seed of the first trial")
    parser.add_argument("--trials", type=int, default=100, help="how many")
    given = parser.parse_args()
    happened: Counter[str] = Counter()
    bad, began = 0, time.process_time()
    for seed in range(given.first, given.first + given.trials):
        found = run(seed)
        if not seed % COLLECT_ONE_IN:
            gc.collect()  # Worlds are cycles, and each holds files of megabytes.
        happened.update("power" if one.power else one.kind for one in found.faults[: found.happened])
        if found.broken:
            bad += 1
            found = shortest(seed, found)
            print(f"seed {seed}:", *map(_said, found.faults[: found.happened]), *found.broken, sep="\n  ", flush=True)
    counts = ", ".join(f"{count} {kind}" for kind, count in happened.most_common())
    rate = given.trials / (time.process_time() - began) * 60
    print(f"{given.trials} trials, {rate:.0f} a minute and core; faults: {counts or 'none'}; {bad} broke something")
    sys.exit(1 if bad else 0)


def _said(fault: Fault) -> str:
    where = "on disk" if fault.in_disk else "anywhere"
    then = " then the power is cut;" if fault.power else ""
    return (
        f"{fault.kind} at step {fault.steps} {where} after request {fault.requests};{then} clock {fault.jump_s:+.0f} s"
    )


if __name__ == "__main__":
    main()
