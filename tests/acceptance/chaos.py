"""Chaos: crawls of real servers by real processes, one after the other, under faults that a seed determines.

    python -m tests.acceptance.chaos [--seconds 3600] [--rounds N] [--seed N] [--keep DIRECTORY]

A round crawls Debian's documentation of Python behind nginx or a synthetic web, the latter every fourth time with two
shards. When its faults are over the crawl goes on undisturbed, and what it brought in must be that of an undisturbed
crawl. Round N has seed `--seed` + N: `--seed N --rounds 1` repeats its faults, though not the moments of all machines.
A round that fails leaves its directory. The wall clock is stepped by the shim: a time namespace has none of its own.
The undisturbed end is at the latest of a round's times: what is to be tried again at an instant of a clock that was set
back, and whose process was killed then, waits for that instant, for longer than `crawl.patience_s`.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

from fastwarc.warc import ArchiveIterator

from tests import commands
from tests.acceptance.failing import Documents, NameServer, Synthetic, stopped
from tests.acceptance.shims import preloaded
from tests.cluster.nodes import command_of, descendants, kill_all
from tests.crash.harvest import Harvest, Row, differences

END_S_MAX = 240.0
ROUNDS_MIN = 2
"""Also where the time is up before, on a busy machine."""
LEFT_S_MAX = 120.0
GROUPS = Path("/sys/fs/cgroup")
MEMORY_BYTES = (40 << 20, 100 << 20)
FULL_BYTES = (3_900_000, 8_000_000)
STEPS_S = (-86_400, -3_600, -30, -2, 2, 30, 3_600, 86_400)
# A fault lasts for seconds: longer waits for another attempt would only make rounds longer.
SETTINGS = (
    "crawl.commit_s=0.25", "politeness.delay_factor=0.0", "politeness.address_delay_s=0.0",
    "politeness.backoff_s_first=0.1", "frontier.attempts_max=1000", "frontier.retry_s_first=0.1",
    "frontier.retry_s_max=0.5", "frontier.host_sleep_s_first=0.2", "frontier.host_sleep_s_max=0.5",
    "frontier.host_sleeps_max=10000", "frontier.unanswered_failures_max=0", "robots.retry_first_s=0.1",
    "robots.unanswered_first_s=0.1", "robots.retry_s_max=0.5", "fetch.connect_s_max=2.0", "fetch.request_s_max=5.0",
    "resolve.ttl_s_min=1.0", "resolve.failure_ttl_s=0.2", "resolve.timeout_s=0.5", "memory.budget_bytes='200MiB'",
)  # fmt: skip
SHARDED = (
    "cluster.tenure_s=3.0", "cluster.round_s=0.25", "cluster.answer_s_max=1.0", "cluster.resend_s=1.0",
    "cluster.address_term_s=2.0", "cluster.address_turn_s=0.3",
)  # fmt: skip


class Found(Harvest):
    """A harvest of a crawl whose wall clock went back, and whose network failed."""

    @cached_property
    def attempts(self) -> dict[str, list[Row]]:
        attempts: dict[str, list[Row]] = {}
        for row in sorted(self.rows, key=lambda row: int(str(row["attempt"]))):
            attempts.setdefault(str(row["url"]), []).append(row)
        return attempts

    def faults(self) -> list[str]:
        """Return contradictions, pages that are there twice, and numbers of records that are."""
        found = [fault for fault in super().faults() if "nobody said so" not in fault]
        found += [
            f"fetched twice: {url}"
            for url, rows in self.attempts.items()
            if sum(row["outcome"] == "fetched" for row in rows) > 1
        ]
        found += [f"archived {count} times: {record}" for record, count in self.records.items() if count > 1]
        numbers: Counter[str] = Counter()
        for file in self.archives:
            with file.open("rb") as stream:
                numbers.update(one.headers["WARC-Record-ID"] for one in ArchiveIterator(stream, parse_http=False))
        return found + [f"{count} records {number}" for number, count in numbers.items() if count > 1]


class Group:
    """A control group that limits memory, of version 1 or 2; where none can be made, RLIMIT_DATA stands in."""

    def __init__(self) -> None:
        root = GROUPS / "memory" if (GROUPS / "memory").is_dir() else GROUPS
        self._limit, self._events = ("memory.limit_in_bytes", "memory.oom_control")
        if root == GROUPS:
            self._limit, self._events = "memory.max", "memory.events"
        self._path = root / f"gossamer-chaos-{os.getpid()}"
        try:
            self._path.mkdir()
            self.limit(1 << 40)
        except OSError as error:
            print(f"no control group for memory here ({error}): RLIMIT_DATA instead", flush=True)
            self._limit = ""

    def limit(self, limit_bytes: int) -> None:
        if self._limit:
            (self._path / self._limit).write_text(str(limit_bytes))

    def enter(self, limit_bytes: int) -> Callable[[], None]:
        """Return what a new process does first to be limited."""
        self.limit(limit_bytes)

        def inside() -> None:
            if self._limit:
                (self._path / "cgroup.procs").write_text(str(os.getpid()))
            else:
                resource.setrlimit(resource.RLIMIT_DATA, (limit_bytes * 4, limit_bytes * 4))

        return inside

    def killed(self) -> str:
        """Return how many processes the system has killed for their memory."""
        lines = (self._path / self._events).read_text().splitlines() if self._limit else []
        return "".join(line.split()[1] for line in lines if line.startswith("oom_kill ")) or "unknown"

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._path.rmdir()


class Round:
    """One crawl, disturbed and then not."""

    def __init__(self, seed: int, folder: Path, site: Synthetic | Documents, group: Group) -> None:
        self.rng, self.seed = random.Random(seed), seed
        self._began = time.monotonic()
        self.site, self.directory, self._group = site, folder / f"round-{seed}", group
        self.workers = site.workers_max if seed % 4 == 0 else 1
        self.directory.mkdir()
        self.done: list[str] = []
        self._step = self.directory.with_suffix(".clock")
        self._step.write_bytes(struct.pack("l", 0))
        self._latest_s = 0
        self._errors = self.directory.with_suffix(".errors")
        self._process: subprocess.Popen[bytes] | None = None
        self._known = {os.getpid(), *descendants(os.getpid())}
        faults = ["child", "child", "supervisor", "pause", "clock", "server", "memory", "full", "slow", *site.faults]
        self._faults = faults + (["shard", "shard"] if self.workers > 1 else ["network"])

    def calm(self) -> Found:
        """Crawl undisturbed."""
        self.start()
        assert self._process is not None
        assert self._process.wait(END_S_MAX) == 0, self._errors.read_text()
        return Found(self.directory)

    def run(self, calm: Found) -> list[str]:
        """Crawl under faults, and return what is wrong with the outcome."""
        mark = self.site.mark()
        self.start()
        try:
            for _ in range(self.rng.randint(4, 10)):
                time.sleep(self.rng.uniform(0.3, 3.0 if self.workers == 1 else 6.0))
                if self._status() == 0:
                    break
                if self._status() is not None:
                    self.start()
                fault = self.rng.choice(self._faults)
                self.done.append(fault)
                getattr(self, f"_{fault}")(self.rng.uniform(0.3, 4.0))
            self._end(gently=True)
            self._set_clock(self._latest_s)
            self.start()
            assert self._process is not None
            try:
                status: int | str = self._process.wait(END_S_MAX)
            except subprocess.TimeoutExpired:
                status = "none: " + commands.run("status", str(self.directory))[1]
            return self._judged(calm, mark, status)
        finally:
            self._end(gently=False)
            for pid in self._left():
                kill_all(pid)

    def start(self, limit_bytes: int = 0, **shim: str) -> None:
        """Crawl, or resume."""
        command = ["resume"] if (self.directory / "crawl.toml").exists() else ["crawl", *self.site.words, "-o"]
        command += [str(self.directory), "--quiet"]
        if command[0] == "crawl":
            delays = [f"politeness.delay_s_{end}={self.site.delay_s}" for end in ("min", "max")]
            sets = [*SETTINGS, *delays, *(SHARDED if self.workers > 1 else ())]
            command += [
                "--contact",
                "me@example.org",
                "--allow-private",
                "--workers",
                str(self.workers),
                *(w for s in sets for w in ("--set", s)),
            ]
        environment = preloaded(SHIM_CLOCK=str(self._step), SHIM_DIR=str(self.directory), **shim)
        with self._errors.open("ab") as errors:
            errors.write(f"== {time.time():.1f} {command[0]} {limit_bytes or ''} {shim or ''}\n".encode())
            errors.flush()
            self._process = subprocess.Popen(
                [sys.executable, "-m", "gossamer", *command], env=environment, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=errors,
                preexec_fn=self._group.enter(limit_bytes) if limit_bytes else None,  # noqa: PLW1509 - two lines
            )  # fmt: skip

    def _status(self) -> int | None:
        return self._process.poll() if self._process else None

    def _end(self, *, gently: bool) -> None:
        """End the command: by SIGTERM, or by SIGKILL."""
        process = self._process
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGTERM if gently else signal.SIGKILL)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            self.done.append("did not end at SIGTERM")
            process.kill()
            process.wait()

    def _named(self, *names: str) -> list[int]:
        """Return the processes of the crawl that have one of these names; those that have any, without names."""
        known = {*self._known, *self.site.pids, *([self._process.pid] if self._process else [])}
        mine = [pid for pid in descendants(os.getpid()) if pid not in known and command_of(pid)]
        return [pid for pid in mine if not names or any(name in command_of(pid) for name in names)]

    def _kill(self, pids: Sequence[int]) -> None:
        if pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.rng.choice(pids), signal.SIGKILL)

    def _child(self, _: float) -> None:
        assert self._process is not None
        with contextlib.suppress(OSError):
            listed = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
            self._kill([int(pid) for pid in listed])

    def _shard(self, _: float) -> None:
        self._kill(self._named("gossamer.api.member"))

    def _supervisor(self, _: float) -> None:
        self._end(gently=False)
        self.start()

    def _pause(self, seconds: float) -> None:
        victims = self._named() if self.workers == 1 else self._named("gossamer.api.member", "gossamer.cli.child")
        if victims:
            with stopped(self.rng.choice(victims)):
                time.sleep(seconds)

    def _clock(self, _: float) -> None:
        self._set_clock(self.rng.choice(STEPS_S))

    def _set_clock(self, step_s: int) -> None:
        self._latest_s = max(self._latest_s, step_s)
        with self._step.open("r+b") as file:  # Never shorter: it is mapped.
            file.write(struct.pack("l", step_s))

    def _server(self, seconds: float) -> None:
        self.site.stop()
        time.sleep(seconds)
        self.site.start()

    def _hang(self, seconds: float) -> None:
        assert isinstance(self.site, Synthetic)
        self.site.hang(seconds)

    def _dns(self, seconds: float) -> None:
        assert isinstance(self.site, Synthetic)
        self.site.names.mode = self.rng.choice(NameServer.MODES)
        time.sleep(seconds)
        self.site.names.mode = ""

    def _network(self, seconds: float) -> None:
        loopback("down")
        time.sleep(seconds)
        loopback("up")
        self.site.cut_at.append(time.time())

    def _memory(self, _: float) -> None:
        self._end(gently=False)
        self.start(limit_bytes=self.rng.randint(*MEMORY_BYTES))

    def _full(self, _: float) -> None:
        self._end(gently=False)
        self.start(SHIM_FULL=str(self.rng.randint(*FULL_BYTES)))

    def _slow(self, seconds: float) -> None:
        self._end(gently=False)
        self.start(SHIM_SLOW=str(int(100 * seconds)))

    def _left(self) -> list[int]:
        """Return the processes that are still there some time after the crawl has ended."""
        ends_at = time.monotonic() + LEFT_S_MAX
        while (left := self._named()) and time.monotonic() < ends_at:
            time.sleep(0.2)
        return left

    def _judged(self, calm: Found, mark: int, status: int | str) -> list[str]:
        wrong = [] if status == 0 else [f"exit status {status}"]
        wrong += [f"left over: {pid} {command_of(pid)}" for pid in self._left()]
        found = Found(self.directory)
        wrong += differences(found, calm) + found.faults() + self.site.broken(mark)
        done = commands.run("verify", str(self.directory), "--deep")
        return wrong + ([f"verify: {done}"] if done[0] else [])

    def tell(self, wrong: list[str]) -> None:
        """Print how it went, and keep the directory if something is wrong."""
        print(
            f"{time.strftime('%H:%M:%S')} seed {self.seed}: {self.site.name}, {self.workers} shard(s), "
            f"{' '.join(self.done)}; {time.monotonic() - self._began:.0f} s; {'FAILED' if wrong else 'ok'}"
        )
        for line in wrong[:20]:
            print(f"    {line}")
        if wrong:
            print(f"    {len(wrong)} in all; {self.directory}; repeat: --seed {self.seed} --rounds 1")
        else:
            shutil.rmtree(self.directory)
        sys.stdout.flush()


def loopback(state: str) -> None:
    subprocess.run(["ip", "link", "set", "lo", state], check=True)


def chaos(seconds: float, rounds: int, seed: int, folder: Path) -> bool:
    """Crawl until the time is up, print how it went, and return whether all was well."""
    ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER: what a killed process leaves is found among ours.
    loopback("up")
    began, faults, pages, bad, number = time.monotonic(), Counter[str](), 0, list[int](), 0
    group, sites = Group(), (Synthetic(folder), Documents(folder))
    try:
        calm = {site.name: Round(-1 - 2 * nth, folder, site, group).calm() for nth, site in enumerate(sites)}
        print("undisturbed:", *(f"{name} {len(one.finals)} URLs" for name, one in calm.items()), flush=True)
        while number < rounds and (number < ROUNDS_MIN or time.monotonic() - began < seconds):
            site, number = sites[(seed + number) % 4 == 3], number + 1
            one = Round(seed + number - 1, folder, site, group)
            wrong = one.run(calm[site.name])
            faults.update(one.done)
            pages += len(Found(one.directory).finals)
            one.tell(wrong)
            bad += [one.seed] if wrong else []
    finally:
        killed = group.killed()
        for site in sites:
            site.stop()
        group.close()
    kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(faults.items()))
    print(f"{number} rounds from seed {seed}, {pages} URLs, {sum(faults.values())} faults: {kinds}")
    print(f"killed for memory: {killed}; failed: {bad or 'none'}")
    return not bad


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3_600)
    parser.add_argument("--rounds", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if not given.inside:  # A network of its own can be cut.
        user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
        words = ["unshare", *user, "--net", sys.executable, "-m", "tests.acceptance.chaos", *sys.argv[1:]]
        os.execvp("unshare", [*words, "--seed", str(given.seed), "--inside"])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    folder = given.keep or Path(tempfile.mkdtemp(prefix="chaos-"))
    folder.mkdir(exist_ok=True)
    sys.exit(not chaos(given.seconds, given.rounds, given.seed, folder))


if __name__ == "__main__":
    main()
