"""Watchdogs: each sees its cause, does what it promises, and lets go when the cause is gone."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from subprocess import PIPE, Popen, run
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from gossamer.assembly.protocols import protocol_modules
from gossamer.config import Config
from gossamer.engine.counters import CrawlCounters, Telemetry, Totals
from gossamer.engine.logs import Logs
from gossamer.engine.options import CrawlOptions, WatchOptions
from gossamer.engine.watchdogs import (
    FILES_OF_OUR_OWN,
    REQUESTS_MIN,
    STALL_SHOWN_S,
    Brakes,
    Resources,
    Watchdogs,
    files_of,
    require_files,
)
from gossamer.model.errors import ConfigError, DamagedError
from gossamer.stages.fetch.options import FetchOptions
from gossamer.testing import FakeClock, FakeWeb
from gossamer.world.machine import SUPERVISOR_BYTES, Disk, ThisMachine, processes_below, resident
from tests.engine.ring import Ring

BUDGET_BYTES = 1_000_000_000
OPTIONS = WatchOptions(disk_free_bytes_min=1_000, stall_s=5.0)


class SomeMachine:
    """A machine as a test wants it."""

    def __init__(self) -> None:
        self.disks = {"crawl": Disk(1, 10_000, 100_000), "spill": Disk(2, 10_000, 100_000)}
        self.memory = 100_000_000
        self.files = 10
        self.files_max = 1_000
        self.offset_s = 1e9
        self.given_back = 0

    def disk(self, path: Path) -> Disk:
        if path.name not in self.disks:
            raise FileNotFoundError(path)
        return self.disks[path.name]

    def memory_bytes(self) -> int:
        return self.memory

    def give_memory_back(self) -> None:
        self.given_back += 1

    def open_files(self) -> int:
        return self.files

    def open_files_max(self) -> int:
        return self.files_max

    def wall_offset_s(self) -> float:
        return self.offset_s


class SomeCommits:
    stage = ""
    began_at = 0.0


class Watched(NamedTuple):
    dogs: Watchdogs
    machine: SomeMachine
    brakes: Brakes
    shrunk: list[None]
    commits: SomeCommits
    clock: FakeClock
    notes: list[str]
    counters: CrawlCounters

    def alarms(self) -> list[str]:
        self.clock.advance(1.0)
        self.dogs.check()
        return [alarm.name for alarm in self.dogs.alarms]


def resources_of(directory: Path, *names: str, own_process: bool = False) -> Resources:
    paths = [directory / name for name in names]
    return Resources(directory / "crawl", paths, directory / "stalled", BUDGET_BYTES, own_process)


@pytest.fixture
def machine() -> SomeMachine:
    return SomeMachine()


@pytest.fixture
def watched(tmp_path: Path, machine: SomeMachine) -> Iterator[Watched]:
    clock, commits, shrunk = FakeClock(), SomeCommits(), list[None]()
    brakes = Brakes(100, range(100), lambda: shrunk.append(None))
    logs, counters = Logs(tmp_path / "logs", clock), CrawlCounters(Totals(), CrawlOptions())
    notes: list[str] = []
    counters.listeners.append(notes.append)
    dogs = Watchdogs(
        brakes, commits, machine, resources_of(tmp_path, "crawl", "spill", "absent"), OPTIONS,
        Telemetry(clock, logs, counters),
    )  # type: ignore[arg-type]  # fmt: skip
    yield Watched(dogs, machine, brakes, shrunk, commits, clock, notes, counters)
    logs.close()


def test_all_is_well(watched: Watched) -> None:
    assert watched.alarms() == []
    assert watched.dogs.gauges.open_files == 10
    assert [disk["free_bytes"] for disk in watched.dogs.gauges.disks] == [10_000, 10_000]
    assert watched.notes == []


def test_a_disk_that_is_going_to_be_full_is_named_while_there_is_time(watched: Watched) -> None:
    disks = watched.machine.disks
    disks["crawl"] = Disk(1, 10_000_000, 20_000_000)
    assert watched.alarms() == []
    watched.clock.advance(600.0)
    disks["crawl"] = Disk(1, 9_000_000, 20_000_000)
    assert watched.alarms() == ["disk_soon"], "90 minutes are left"
    assert "crawl is filling: 0.0 GB are left, about 90 minutes" in watched.dogs.alarms[0].says
    assert watched.brakes.held == {}, "it goes on"
    watched.clock.advance(600.0)
    disks["crawl"] = Disk(1, 8_999_000, 20_000_000)
    assert watched.alarms() == [], "WARC files leave as fast as they come"


@pytest.mark.promise("Bounds", "A crawl pauses before its disk is full and continues by itself.")
@pytest.mark.parametrize("place", ["crawl", "spill"])
def test_any_disk_that_is_nearly_full_holds_the_crawl_until_there_is_a_quarter_more(
    watched: Watched, place: str
) -> None:
    machine, brakes = watched.machine, watched.brakes
    machine.disks[place] = Disk(machine.disks[place].device, 999, 100_000)
    assert watched.alarms() == ["disk"]
    assert place in brakes.held["disk"]
    assert "watch.disk_free_bytes_min" in brakes.held["disk"]
    machine.disks[place] = Disk(machine.disks[place].device, 1_100, 100_000)
    assert watched.alarms() == ["disk"], "no to and fro at the bound"
    machine.disks[place] = Disk(machine.disks[place].device, 1_250, 100_000)
    assert watched.alarms() == []
    assert brakes.held == {}
    assert len(watched.notes) == 2
    assert watched.notes[0].startswith("paused for want of room on the disk of ")
    assert watched.notes[1].startswith("over: paused for want of room")


def test_a_dead_proxy_holds_the_crawl_which_tries_it_again(watched: Watched) -> None:
    counters, clock, brakes = watched.counters, watched.clock, watched.brakes
    began = clock.now()
    counters.proxy_failed("Could not resolve proxy: proxy.test", clock.now())
    assert watched.alarms() == ["proxy"]
    assert "proxy.test" in brakes.held["proxy"]
    clock.advance(30.0)
    assert watched.alarms() == ["proxy"]
    assert brakes.held == {}, "it is tried again"
    counters.proxy_failed("the proxy does not speak SOCKS5 on this port", clock.now())
    assert watched.alarms() == ["proxy"]
    assert "the proxy: it does not speak SOCKS5 on this port; " in brakes.held["proxy"]
    counters.proxy_failed("Could not resolve proxy: proxy.test", clock.now())
    assert watched.alarms() == ["proxy"]
    assert brakes.cut_off_since == began
    clock.advance(30.0)
    counters.count_bytes(1, clock.now())
    assert watched.alarms() == []
    assert brakes.cut_off_since is None
    assert [note.partition(":")[0] for note in watched.notes] == ["waiting for the proxy", "over"]


def test_requests_that_all_have_no_answer_are_an_alarm(watched: Watched) -> None:
    counters, clock = watched.counters, watched.clock
    for _ in range(20):
        assert watched.alarms() == []
        counters.count_bytes(0, clock.now())
        clock.advance(1.0)
    assert watched.alarms() == ["answers"]
    assert watched.brakes.held == {}
    counters.count_bytes(1, clock.now())
    assert watched.alarms() == []
    counters.count_bytes(0, clock.now())
    clock.advance(60.0)
    assert watched.alarms() == [], "of one host, perhaps"
    assert [note.partition(":")[0] for note in watched.notes] == ["no answer to the last 20 requests", "over"]


def test_lost_lines_of_the_log_are_an_alarm(watched: Watched, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "logs")
    (tmp_path / "logs").write_bytes(b"")
    watched.dogs._logs.info("dns_error")
    watched.dogs._logs.flush()
    assert watched.alarms() == ["logs"]
    (tmp_path / "logs").unlink()
    watched.dogs._logs.flush()
    assert watched.alarms() == []


def test_a_dead_proxy_of_some_hosts_does_not_hold_the_others(watched: Watched) -> None:
    watched.counters.proxy_failed("Could not resolve proxy: proxy.test", watched.clock.now())
    watched.counters.count_bytes(1, watched.clock.now() + 0.1)
    assert watched.alarms() == ["proxy"]
    assert watched.brakes.held == {}


def test_while_hosts_wait_the_dead_proxy_of_others_does_not_hold_them(watched: Watched) -> None:
    """Between two requests of polite hosts its failure is the last that was heard."""
    counters, clock, brakes = watched.counters, watched.clock, watched.brakes
    counters.count_bytes(1, clock.now())
    clock.advance(1.0)
    counters.proxy_failed("Could not resolve proxy: proxy.test", clock.now(), others_pass=True)
    assert watched.alarms() == ["proxy"]
    assert brakes.held == {}
    counters.proxy_failed("Could not resolve proxy: proxy.test", clock.now())
    watched.alarms()
    assert list(brakes.held) == ["proxy"]


def test_a_crawl_whose_directory_is_gone_ends(watched: Watched) -> None:
    watched.alarms()
    del watched.machine.disks["spill"]
    watched.alarms()
    del watched.machine.disks["crawl"]
    with pytest.raises(DamagedError, match="crawl is gone: it was moved or removed while the crawl ran"):
        watched.alarms()


def test_a_commit_that_takes_long_is_reported_with_its_stage_until_it_is_over(watched: Watched) -> None:
    watched.commits.stage, watched.commits.began_at = "waiting for the disk", watched.clock.now()
    assert watched.alarms() == []
    watched.clock.advance(OPTIONS.commit_s_max)
    assert watched.alarms() == ["commit"]
    assert "waiting for the disk" in watched.dogs.alarms[0].says
    assert watched.dogs.alarms[0].since == watched.commits.began_at
    watched.commits.stage = ""
    assert watched.alarms() == []


@pytest.mark.promise("Bounds", "A lack of memory or open files makes a crawl slower, never wrong.")
def test_open_files_that_grow_too_many_take_requests_away_step_by_step(watched: Watched) -> None:
    watched.machine.files = 950
    assert watched.alarms() == ["open_files"]
    assert watched.brakes.concurrency == 75
    watched.alarms()
    assert watched.brakes.concurrency == 56
    for _ in range(20):
        watched.alarms()
    assert watched.brakes.concurrency == REQUESTS_MIN
    watched.machine.files = 850
    assert watched.alarms() == ["open_files"]
    watched.machine.files = 800
    assert watched.alarms() == []
    assert watched.brakes.concurrency == 100
    assert len(watched.notes) == 2, "once when it begins, once when it is over"


def test_few_allowed_files_limit_requests_from_the_start_and_too_few_refuse(watched: Watched) -> None:
    watched.dogs.limit_requests(FILES_OF_OUR_OWN + 300, 100)
    assert watched.brakes.concurrency == 100
    watched.dogs.limit_requests(FILES_OF_OUR_OWN + 90, 100)
    assert watched.brakes.concurrency == 30
    assert "30 requests at once instead of 100" in watched.notes[0]
    require_files(files_of(1), 100)
    with pytest.raises(ConfigError, match=r"allows 642 open files.* needs 643 or more.*ulimit -n 940"):
        require_files(files_of(1) - 1, 100)


def test_few_allowed_files_limit_kept_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kept connection is an open file of no request."""
    kept: list[int] = []

    def http(options: FetchOptions, *_: object) -> FakeWeb:
        kept.append(options.connections_max)
        return FakeWeb()

    monkeypatch.setattr("gossamer.assembly.protocols.HttpModule", http)
    for allowed in (FILES_OF_OUR_OWN + 90, 100_000):
        monkeypatch.setattr(ThisMachine, "open_files_max", lambda _self, allowed=allowed: allowed)
        protocol_modules(Config(), "agent", FakeClock())
    assert kept == [30, Config().fetch.connections_max]


@pytest.mark.promise("Bounds", "A lack of memory or open files makes a crawl slower, never wrong.")
def test_memory_near_its_budget_means_fewer_requests_and_hosts_and_an_early_commit(watched: Watched) -> None:
    watched.machine.memory = 960_000_000
    assert watched.alarms() == ["memory"]
    assert watched.brakes.concurrency == 50
    assert watched.brakes.commit_now.is_set()
    assert (watched.machine.given_back, len(watched.shrunk)) == (1, 1)
    watched.machine.memory = 910_000_000
    assert watched.alarms() == ["memory"]
    assert watched.brakes.held == {}, "a crawl never stops for memory: it might wait for ever"
    watched.machine.memory = 800_000_000
    assert watched.alarms() == []
    assert watched.brakes.concurrency == 100


@pytest.mark.parametrize(("jump_s", "way"), [(3_600.0, "forward by 3,600 s"), (-86_400.0, "back by 86,400 s")])
def test_a_clock_that_was_set_is_reported(watched: Watched, jump_s: float, way: str) -> None:
    watched.machine.offset_s += jump_s
    assert watched.alarms() == ["clock"]
    assert way in watched.dogs.alarms[0].says
    assert watched.dogs.gauges.clock_shift_s == jump_s
    watched.machine.offset_s += 1.0
    assert watched.alarms() == ["clock"]
    assert watched.dogs.gauges.clock_jumps == 1
    watched.machine.offset_s -= jump_s + 1.0
    assert watched.alarms() == []
    assert watched.dogs.gauges.clock_jumps == 2


def test_a_loop_that_stood_still_is_an_alarm_for_a_while(watched: Watched) -> None:
    watched.dogs.note_lag(0.2, watched.clock.now())
    assert watched.alarms() == []
    watched.dogs.note_lag(7.0, watched.clock.now())
    assert watched.alarms() == ["loop"]
    assert watched.dogs.gauges.stalls == 1
    assert watched.dogs.gauges.loop_lag_s_max == 7.0
    watched.clock.advance(STALL_SHOWN_S)
    assert watched.alarms() == []


def test_other_options_hold_from_the_next_look_on(watched: Watched) -> None:
    watched.dogs.reconfigure(replace(OPTIONS, disk_free_bytes_min=20_000))
    assert watched.alarms() == ["disk"]
    watched.dogs.reconfigure(OPTIONS)
    assert watched.alarms() == []


@pytest.fixture
def large_machine(machine: SomeMachine) -> SomeMachine:
    machine.memory = 3_000_000_000
    return machine


def test_memory_of_a_program_that_crawls_among_other_things_is_not_the_crawls(
    large_machine: SomeMachine, watched: Watched
) -> None:
    assert watched.alarms() == []
    large_machine.memory += 500_000_000
    assert watched.alarms() == []
    large_machine.memory += 400_000_000
    assert watched.alarms() == ["memory"]


def ballast_bytes(size: int) -> int:
    """How much more memory a process is said to hold for so many bytes."""
    machine = ThisMachine()
    before = machine.memory_bytes()
    ballast = bytearray(b"x") * size
    return (machine.memory_bytes() - before) * (len(ballast) == size)


def test_memory_of_a_process_of_our_own_is_all_the_crawls(tmp_path: Path) -> None:
    machine, clock, brakes = SomeMachine(), FakeClock(), Brakes(100, range(100), bool)
    machine.memory = 3_000_000_000  # As after a resume: filters and caches are loaded before anything is watched.
    dogs = Watchdogs(
        brakes, SomeCommits(), machine, resources_of(tmp_path, own_process=True), OPTIONS,
        Telemetry(clock, Logs(tmp_path / "logs", clock), CrawlCounters(Totals(), CrawlOptions())),
    )  # type: ignore[arg-type]  # fmt: skip

    dogs.check()

    assert dogs.gauges.memory_bytes == 3_000_000_000
    assert [alarm.name for alarm in dogs.alarms] == ["memory"]


@pytest.mark.parametrize(("who", "most"), [("memory", 8), ("open_files", 4)])
def test_pages_that_wait_to_be_read_take_no_requests_where_memory_is_short(tmp_path: Path, who: str, most: int) -> None:
    """They hold files, but hardly any memory."""
    with Ring(tmp_path) as ring:
        shard = ring.shard()
        shard.brakes.throttle(who, most)
        ring.pipeline.documents.parked = 40
        lent = shard.brakes.in_flight
        assert isinstance(lent, dict)
        lent.update(dict.fromkeys(range(43)))
        assert shard.requests == (3 if who == "memory" else 39)
        assert (shard.requests < shard.brakes.concurrency) == (who == "memory")


HOLDING = "import sys; held = bytearray(b'x') * (64 << 20); print(flush=True); sys.stdin.read()"
"""A process that holds 64 MiB until its input ends."""
BETWEEN = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {HOLDING!r}])"


def holding(code: str) -> Popen[bytes]:
    process = Popen([sys.executable, "-c", code], stdin=PIPE, stdout=PIPE)
    assert process.stdout is not None
    assert process.stdout.read(1) == b"\n"
    return process


@pytest.mark.parametrize("code", [HOLDING, BETWEEN])
def test_memory_of_processes_below_ours_counts_while_they_live(code: str) -> None:
    machine = ThisMachine()
    with holding(code) as process:
        another = ThisMachine()
        below = processes_below(os.getpid())
        assert process.pid in below
        counted = machine.memory_bytes() - another.memory_bytes()
        assert process.stdin is not None
        process.stdin.close()
    assert 64 << 20 < counted < 160 << 20
    assert process.pid not in processes_below(os.getpid())
    assert resident(process.pid).pss_bytes == 0


SUPERVISED = """
import os, sys
from gossamer.world.machine import ThisMachine
from gossamer.world.process import die_with_parent
print(ThisMachine(supervised=True).memory_bytes())
die_with_parent(os.getppid())
machine = ThisMachine(supervised=True)
print(machine.memory_bytes(), ThisMachine().memory_bytes(), flush=True)
sys.stdin.read(1)
print(machine.memory_bytes(), flush=True)
"""
SUPERVISOR = f"""
import sys
from subprocess import PIPE, Popen, run
before = bytearray(b"x") * (64 << 20)
with Popen([sys.executable, "-c", {SUPERVISED!r}], stdin=PIPE, stdout=PIPE, text=True) as process:
    print(process.stdout.readline(), process.stdout.readline())
    since = bytearray(b"x") * (64 << 20)
    process.stdin.write("x")
    process.stdin.close()
    print(process.stdout.readline())
"""
"""The supervisor is a process of its own: pytest's also gives back, at any time, memory that earlier tests held."""


def test_memory_of_the_supervisor_counts_without_what_it_held_before_for_other_ends() -> None:
    printed = run([sys.executable, "-c", SUPERVISOR], stdout=PIPE, text=True, check=True, timeout=60).stdout
    alone, supervised, of_several, later = map(int, printed.split())
    assert abs(of_several - alone) < 16 << 20
    assert abs(supervised - of_several - SUPERVISOR_BYTES) < 16 << 20
    assert 48 << 20 < later - supervised < 80 << 20


def test_this_machine_knows_its_disk_memory_and_files(tmp_path: Path) -> None:
    machine = ThisMachine()
    assert 0 < machine.disk(tmp_path).free_bytes <= machine.disk(tmp_path).total_bytes
    before = machine.open_files()
    with (tmp_path / "one").open("wb"), (tmp_path / "two").open("wb"):
        assert machine.open_files() == before + 2
    # In a process of its own: what others of this one give back meanwhile would count against the ballast.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as elsewhere:
        assert elsewhere.submit(ballast_bytes, 64 << 20).result(60) > 48 << 20
    assert machine.open_files() < machine.open_files_max()
    assert abs(machine.wall_offset_s() - machine.wall_offset_s()) < 1.0


def test_watching_ends_when_it_is_cancelled(watched: Watched) -> None:
    async def scenario() -> None:
        watching = asyncio.create_task(watched.dogs.run())
        await asyncio.sleep(0.25)
        watching.cancel()
        await asyncio.wait([watching])
        watched.dogs.close()
        assert watching.cancelled()

    asyncio.run(scenario())
