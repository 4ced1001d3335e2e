"""A drill: machines of a cluster are lost, cut off and come back, and its head is killed, while a crawl goes on.

Run inside `unshare --net --mount`. Each machine has a network and a disk of its own, and a loop that starts its Ray
again, as a service manager does; an object store is replaced by a directory that all see. Prints as JSON what came of
it: by fault, the seconds until the crawl's status shows it and until all sites move again, by the log of the servers.

    python -m tests.cluster.drill FOLDER SHARED SETTINGS WEB DELAY_S SECONDS [FAULT…]
"""

from __future__ import annotations

import json
import os
import random
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from gossamer.lab.simweb.judge import Promise, judge
from gossamer.lab.simweb.log import HEADER, Logged
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from tests import commands
from tests.cluster.crawls import is_divided
from tests.cluster.nodes import COORDINATOR, KEEPER, SHARD, command_of, descendants
from tests.cluster.partition import HEAD, PORT, RAY, STORE, end, ended, namespaces, sh, until, within

MACHINES = 3
FAULTS = ("lost", "cut", "full", "headless", "shard", "keeper", "coordinator")
SYSTEM = {
    "health_check_period_ms": 1_000, "health_check_timeout_ms": 3_000, "health_check_failure_threshold": 5,
    "gcs_rpc_server_reconnect_timeout_s": 10, "raylet_liveness_self_check_interval_ms": 2_000,
}  # fmt: skip
"""What docs/how-to/cluster.md has the head set."""
LIMIT_S = 600.0
"""After which a crawl that does not move is stuck."""
START_S = 450.0
"""After which a machine that starts is stuck: its Ray may have to try again on a busy machine."""
EFFECT_S = {"lost": 30.0, "cut": 5.0, "headless": 30.0}
"""Within which a fault has its effect on sites; others have it at once."""
FAULT_S = 30.0
"""How long a machine is cut off, or its disk full: longer than a lease."""
STILL = 5
"""A site stands still when it waits for this number of delays."""
LASTS_S = 3.0


class Service:
    """A Ray node that is started again whenever it ends."""

    def __init__(self, words: Sequence[str], temporary: Path, inside: int = 0) -> None:
        self._words = words
        self._temporary = temporary
        self.log = temporary / "log"
        self._inside = inside
        self._running: subprocess.Popen[bytes] | None = None

    def on(self) -> None:
        """Start it, as the boot of its machine does."""
        environment = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")}
        environment |= {"RAY_TMPDIR": str(self._temporary), "RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
        environment |= {f"RAY_{name}": str(value) for name, value in SYSTEM.items()}
        # All machines share a table of processes here, where Ray would find the others' and refuse to start a head.
        known = shlex.quote(str(self._temporary / "ray/ray_current_cluster"))
        loop = (
            f"while :; do rm -f {known}; {shlex.join([RAY, 'start', '--block', *STORE, *self._words])}; sleep 1; done"
        )
        command = [*within(self._inside), "sh", "-c", loop]
        with self.log.open("ab") as log:
            self._running = subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    def has_started(self) -> bool:
        """Say whether it has joined, or begun, the cluster."""
        return b"runtime started" in self.log.read_bytes()

    def off(self) -> None:
        """End it with all that it has started."""
        end(self._running)
        self._running = None

    def kill(self) -> None:
        """Kill what it has started; the loop starts it again."""
        assert self._running is not None
        for pid in descendants(self._running.pid):
            if command_of(pid).split(" ")[0] != "sleep":
                kill(pid)

    def processes(self, name: str) -> list[int]:
        """Return its processes whose command line holds a name."""
        running = descendants(self._running.pid) if self._running is not None else []
        return [pid for pid in running if name in command_of(pid)]


class Machine(Service):
    """A machine with a wire to the cluster, another one to the web, and a disk."""

    def __init__(self, folder: Path, number: int) -> None:
        self.spaces = namespaces(14_400, "-n", "-m")
        self.wire = f"cluster{number}"
        self.is_on = False
        self.was_full = False
        self._disk = folder / "disk"
        other = self.spaces.pid
        sh("ip", "addr", "add", "127.0.0.1/16", "dev", "lo", inside=other)
        sh("ip", "link", "set", "lo", "up", inside=other)
        sh("ip", "addr", "del", "127.0.0.1/8", "dev", "lo", inside=other)
        for name, net in (("cluster", "10.9.0"), ("web", "10.8.0")):
            sh("ip", "link", "add", f"{name}{number}", "type", "veth", "peer", "name", f"{name}x{number}")
            sh("ip", "link", "set", f"{name}x{number}", "netns", str(other))
            sh("ip", "link", "set", f"{name}{number}", "master", name, "up")
            sh("ip", "addr", "add", f"{net}.{number + 1}/24", "dev", f"{name}x{number}", inside=other)
            sh("ip", "link", "set", f"{name}x{number}", "up", inside=other)
        sh("sh", "-c", "echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet", inside=other)
        sh("ip", "route", "add", "127.16.0.0/16", "via", "10.8.0.1", "src", f"10.8.0.{number + 1}", inside=other)
        sh("mount", "-t", "tmpfs", "none", str(self._disk), inside=other)
        # Ray has all machines use the path of the head's directory: in one, the sockets of those that start at once
        # have the same names, and their Ray ends.
        sh("mount", "-t", "tmpfs", "none", str(folder / "m0"), inside=other)
        temporary = folder / f"m{number}"
        temporary.mkdir()
        address = ("--address", f"{HEAD}:{PORT}", "--node-ip-address", f"10.9.0.{number + 1}", "--num-cpus", "2")
        super().__init__(address, temporary, other)

    def on(self) -> None:
        self.is_on = True
        sh("ip", "link", "set", self.wire, "up")
        super().on()

    def off(self) -> None:
        """Switch it off, with all that was on its disk."""
        self.is_on = False
        self.was_full = False  # It comes back as another machine.
        sh("ip", "link", "set", self.wire, "down")  # What loses its power says no good-bye.
        super().off()
        sh("umount", "--lazy", str(self._disk), inside=self.spaces.pid)
        sh("mount", "-t", "tmpfs", "none", str(self._disk), inside=self.spaces.pid)

    def fill(self) -> None:
        """Leave no room on its disk."""
        self.was_full = True
        until(self._has_no_room, START_S, "its disk does not fill")

    def _has_no_room(self) -> bool:
        sizes = [*within(self.spaces.pid), "df", "-k", "--output=used", str(self._disk)]
        used = subprocess.run(sizes, capture_output=True, check=True).stdout.split()[-1]
        try:
            self._resize(f"{int(used)}k")
        except subprocess.CalledProcessError:
            return False  # A shard has written meanwhile.
        return True

    def free(self) -> None:
        """Leave room on its disk again."""
        self._resize("50%")

    def _resize(self, size: str) -> None:
        sh("mount", "-o", f"remount,size={size}", str(self._disk), inside=self.spaces.pid)


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def lay_wires() -> None:
    """Lay the wires of the head's machine, which the others join."""
    sh("ip", "link", "set", "lo", "up")
    for name, address, hardware in (("cluster", HEAD, "02:00:00:00:00:01"), ("web", "10.8.0.1", "02:00:00:00:00:02")):
        # Its own would be the lowest of its ports': a machine that joins could change what all others remember.
        sh("ip", "link", "add", name, "address", hardware, "type", "bridge")
        sh("ip", "addr", "add", f"{address}/24", "dev", name)
        sh("ip", "link", "set", name, "up")
    sh("sh", "-c", "echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet")


class Tail:
    """The servers' log, read on from where the last reading ended: an hour's log is long, and read twice a second."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._offset = len(HEADER)
        self._requests: list[Logged] = []

    def requests(self) -> list[Logged]:
        """Return all requests so far."""
        with self._log.open("rb") as file:
            file.seek(self._offset)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        names = Logged.__struct_fields__
        rows = [dict(zip(names, line.split("\t"), strict=True)) for line in whole.decode().splitlines()]
        found = msgspec.convert(rows, list[Logged], strict=False)
        self._requests += [one for one in found if one.nth]  # A connection without a request names no host.
        return self._requests


class Drill:
    """A crawl, the machines that it runs on, and what happens to them."""

    def __init__(self, folder: Path, web: SimwebProcess, delay_s: float) -> None:
        self.folder = folder
        self.directory = folder / "crawl"
        self.web = web
        self._log = Tail(web.log)
        self.delay_s = delay_s
        head = ("--head", "--node-ip-address", HEAD, "--port", str(PORT), "--num-cpus", "0")
        (folder / "m0").mkdir()
        (folder / "disk").mkdir()
        self.head = Service((*head, "--include-dashboard", "false"), folder / "m0")
        self.machines = [Machine(folder, number + 1) for number in range(MACHINES)]
        self.faults: list[dict[str, object]] = []
        self.crawling: subprocess.Popen[bytes] | None = None

    def begin(self, settings: Sequence[str], uri: str) -> subprocess.Popen[bytes]:
        """Start all machines and the crawl; return its command when each machine has a shard."""
        self.head.on()
        until(self.head.has_started, START_S, "the head does not start")
        for machine in self.machines:  # One after the other: Ray gives up a node that does not start within 30 s.
            machine.on()
            until(machine.has_started, START_S, "a machine does not join")
        words = ["crawl", *self.web.seeds, "--scope", "any", "--allow-private", "--quiet", "--workers", str(MACHINES)]
        words += ["--hosts", str(self.web.hosts_file), "-o", str(self.directory), "--cluster", f"{HEAD}:{PORT}"]
        places = (f"state.checkpoint_uri='{uri}'", f"cluster.work_directory='{self.folder}/disk'")
        delays = (f"politeness.delay_s_min={self.delay_s}", f"politeness.delay_s_max={self.delay_s}")
        words += [word for one in (*settings, *places, *delays) for word in ("--set", one)]
        with (self.folder / "errors").open("wb") as errors:
            command = [sys.executable, "-m", "gossamer", *words]
            self.crawling = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        all_hosts = self.web.web.options.hosts
        until(lambda: len(self.hosts()) == all_hosts and self.moves(), LIMIT_S, "it does not crawl")
        until(self.is_spread, LIMIT_S, "shards do not spread")
        return self.crawling

    # ---- what can happen

    def lost(self) -> None:
        """Lose a machine with its disk."""
        min((one for one in self.machines if one.is_on), key=lambda one: len(one.processes(SHARD)) == 0).off()

    def returned(self) -> None:
        """Switch the machines on that are off, and wait until each has a shard."""
        for machine in self.machines:
            if not machine.is_on:
                machine.on()
        until(self.is_spread, LIMIT_S, f"shards do not return: {self.standing()}")

    def full(self) -> Callable[[], None]:
        """Fill a machine's disk, as another program there may; return what frees it."""
        machine = next(one for one in reversed(self.machines) if one.processes(SHARD))
        machine.fill()
        return machine.free

    def cut(self) -> Callable[[], None]:
        """Cut a machine off the cluster, but not off the web; return what joins it again."""
        machine = next(one for one in reversed(self.machines) if one.processes(SHARD))
        sh("ip", "link", "set", machine.wire, "down")
        return lambda: sh("ip", "link", "set", machine.wire, "up")

    def grown(self) -> None:
        """Add a machine, and a shard."""
        number = len(self.machines) + 1
        self.machines.append(Machine(self.folder, number))
        self.machines[-1].on()
        status, _, mistakes = commands.run("scale", str(self.directory), "--workers", str(number))
        assert status == 0, mistakes
        until(lambda: is_divided(self.directory, number), LIMIT_S, "it is not divided among more")
        until(self.is_spread, LIMIT_S, "the new machine has no shard")

    def headless(self) -> None:
        """Kill the head, with the coordinator."""
        self.head.kill()

    def shard(self) -> None:
        """Kill a shard's process."""
        self._kill_one(SHARD)

    def keeper(self) -> None:
        """Kill a shard's parent."""
        self._kill_one(KEEPER)

    def coordinator(self) -> None:
        """Kill the coordinator."""
        for pid in self.head.processes(COORDINATOR):
            kill(pid)

    def _kill_one(self, name: str) -> None:
        pids = [pid for machine in self.machines for pid in machine.processes(name)]
        kill(pids[0])

    # ---- what is seen

    def hosts(self) -> dict[str, float]:
        """Return when each host was last requested."""
        return {one.host: one.started_at for one in self._log.requests()}

    def moves(self) -> bool:
        """Say whether all hosts were requested lately."""
        now = time.time()
        return all(now - at < 4 * self.delay_s for at in self.hosts().values())

    def standing(self) -> dict[str, object]:
        """Return the status of the crawl, as its operator gets it."""
        _, said, mistakes = commands.run("status", str(self.directory), "--json")
        assert said, mistakes
        found: dict[str, object] = json.loads(said)
        return found

    def errors(self) -> str:
        """Return the last of what the crawl told its operator."""
        return (self.folder / "errors").read_text()[-2000:]

    def shards(self) -> list[dict[str, object]]:
        """Return the states of the shards."""
        found = self.standing().get("shards")
        return found if isinstance(found, list) else []

    def is_spread(self) -> bool:
        """Say whether all shards run, each machine that is on has one, and none has two more than another. A machine
        whose disk was full is avoided for some time.
        """
        shards = self.shards()
        if not shards:
            return False
        held = [[one.get("node") for one in shards].count(node) for node in {one.get("node") for one in shards}]
        on = sum(machine.is_on for machine in self.machines)
        sound = sum(machine.is_on and not machine.was_full for machine in self.machines)
        is_even = sound <= len(held) <= on and max(held) - min(held) < 2
        return is_even and all(one["state"] == "running" for one in shards)

    def is_disturbed(self) -> bool:
        """Say whether the status shows that something is wrong."""
        status = self.standing()
        waits = str(status.get("waiting_for"))
        shards = status.get("shards")
        if status.get("state") != "running" or not isinstance(shards, list) or not shards:
            return True  # Between two processes that crawl, nothing runs.
        return "the coordinator" in waits or "Ray" in waits or any(one["state"] != "running" for one in shards)

    def do(self, fault: str) -> None:
        """Let something happen, and wait until all sites move again."""
        begins_at = time.time()
        noticed_s: float | None = None
        happens: Callable[[], Callable[[], None] | None] = getattr(self, fault)
        undo = happens()
        calm_at: float | None = None
        while calm_at is None or time.time() - max(calm_at, begins_at + EFFECT_S.get(fault, 5.0)) < LASTS_S:
            is_disturbed = self.is_disturbed()
            now = time.time()
            if noticed_s is None and is_disturbed:
                noticed_s = round(now - begins_at, 1)
            if undo is not None and now - begins_at >= FAULT_S:
                undo()
                undo = None
            is_calm = undo is None and self.moves() and not is_disturbed
            calm_at = (calm_at or now) if is_calm else None
            assert now - begins_at < LIMIT_S, f"{fault}: it stands still: {self.errors()} {self.shards()}"
            time.sleep(0.5)
        again_s, longest_s = self.standstill_s(begins_at)
        found = {"fault": fault, "noticed_s": noticed_s, "moves_s": again_s, "longest_s": longest_s}
        self.faults.append({**found, "load": round(os.getloadavg()[0], 1)})
        print(json.dumps(self.faults[-1]), file=sys.stderr, flush=True)

    def standstill_s(self, since: float) -> tuple[float, float]:
        """Return how long after a time the last site moved again that had stood still since then, and for how long
        the site stood still that did so longest.
        """
        before: dict[str, float] = {}
        again_s = 0.0
        longest_s = 0.0
        for one in self._log.requests():
            gap_s = one.started_at - before.get(one.host, one.started_at)
            if one.started_at > since and gap_s > STILL * self.delay_s:
                again_s = max(again_s, one.started_at - since)
                longest_s = max(longest_s, gap_s)
            before[one.host] = one.started_at
        return round(again_s, 1), round(longest_s, 1)

    def directories(self) -> list[int]:
        """Return how many directories each machine has on its disk that its shards have worked in."""
        counts = []
        for machine in self.machines:
            find = [*within(machine.spaces.pid), "find", str(self.folder / "disk")]
            found = subprocess.run(
                [*find, "-mindepth", "1", "-maxdepth", "1", "-type", "d"], capture_output=True, check=True
            )
            counts.append(len(found.stdout.splitlines()))
        return counts

    def broken(self, asked: Sequence[Logged]) -> list[str]:
        """Return the promises that these requests broke."""
        promise = Promise(delay_s_min=self.delay_s, factor=0.0, delay_s_max=self.delay_s)
        return [one.kind for one in judge(asked, promise, self.web.web) if one.kind != "repeated"]


def main() -> None:
    """Crawl while faults happen, in the order given or at random for some time; then have it end soon."""
    os.environ["RAY_AUTH_MODE"] = "disabled"
    folder, shared, settings = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3])
    options, delay_s, seconds = SimwebOptions(**json.loads(sys.argv[4])), float(sys.argv[5]), float(sys.argv[6])
    faults, dice = sys.argv[7:], random.Random(1)
    lay_wires()
    drill = None
    try:
        with SimwebProcess(options, shared) as web:
            drill = Drill(folder, web, delay_s)
            crawling = drill.begin(settings, f"file://{folder}/checkpoints")
            ends_at = time.monotonic() + seconds
            while faults or time.monotonic() < ends_at:
                drill.do(faults.pop(0) if faults else dice.choice(FAULTS))
                if not faults and not all(machine.is_on for machine in drill.machines):
                    drill.do("returned")
                assert crawling.poll() is None, "it ended"
            broken = drill.broken(web.requests())
            commands.run("set", str(drill.directory), "politeness.delay_s_min=0", "politeness.delay_s_max=0")
            status = ended(crawling, folder, LIMIT_S + seconds / 4)  # With what is left of the web's pages.
            directories = drill.directories()
        told = {"status": status, "faults": drill.faults, "broken": broken, "directories": directories}
        print(json.dumps({**told, "errors": drill.errors()}))
    finally:
        end(drill.crawling if drill is not None else None)
        for service in [drill.head, *drill.machines] if drill is not None else []:
            service.off()
        end(*[machine.spaces for machine in drill.machines] if drill is not None else [])


if __name__ == "__main__":
    main()
