"""A Ray cluster of several nodes on one machine, in a process of its own: nodes come, and are lost with all on them."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

SOURCE = Path(__file__).parents[2] / "src"
SYSTEM = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 300,
    "health_check_timeout_ms": 1_000,
    "health_check_failure_threshold": 5,
}
"""How soon a node that is gone is taken for lost: seconds instead of minutes."""


class Nodes:
    """The cluster while the context lasts. The head is node 0 and gets no shards; `address` is for `--cluster`."""

    def __init__(self, *, dashboard_port: int = 0, **system: int) -> None:
        """`dashboard_port` is that of the head's dashboard, which takes jobs; 0: there is none."""
        self._system = {**SYSTEM, **system}
        self._dashboard_port = dashboard_port
        self.folder = Path(tempfile.mkdtemp(prefix="gr-"))
        self._process: subprocess.Popen[str] | None = None
        self.address = ""
        self.raylets: list[int] = []
        """The process of each node that was ever there."""

    def __enter__(self) -> Self:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")}
        environment |= {"PYTHONPATH": str(SOURCE), "RAY_USAGE_STATS_ENABLED": "0"}
        environment["RAY_TMPDIR"] = str(self.folder)
        environment["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # Loopback alone, also for agents and jobs.
        (self.folder / "ray").mkdir()
        command = [sys.executable, __file__, json.dumps(self._system), str(self._dashboard_port)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env=environment, start_new_session=True,
        )  # fmt: skip
        self.address = self._told()
        self.raylets.append(int(self._told()))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def add(self, **offers: object) -> int:
        """Add a node and return its number; `offers` are arguments of its start, such as `resources`."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(offers) + "\n")
        self._process.stdin.flush()
        self.raylets.append(int(self._told()))
        return len(self.raylets) - 1

    def lose(self, number: int) -> None:
        """End a node and all that runs on it, as if its machine had been switched off."""
        kill_all(self.raylets[number])

    def processes(self, number: int, name: str) -> list[int]:
        """Return the processes on a node whose command line holds a name."""
        return [pid for pid in descendants(self.raylets[number]) if name in command_of(pid)]

    def everywhere(self, name: str) -> list[int]:
        """Return such processes of all nodes."""
        return [pid for number in range(len(self.raylets)) for pid in self.processes(number, name)]

    def _told(self) -> str:
        assert self._process is not None
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        assert line, "the cluster did not come up"
        return line


SHARD, KEEPER, COORDINATOR = "gossamer.api.member", "ray::ShardActor", "ray::CoordinatorActor"
"""What the command lines of a crawl's processes hold."""


class Chaos:
    """Kills what a crawl on nodes is made of: a shard, its keeper, the coordinator, or a whole node."""

    def __init__(self, nodes: Nodes, dice: random.Random) -> None:
        self.nodes = nodes
        self._dice = dice
        self.killed: Counter[str] = Counter()

    def kill(self, what: str) -> None:
        """Kill one of what there is; waits until there is one."""
        ends_at = time.monotonic() + 60
        while not self.try_to_kill(what):
            assert time.monotonic() < ends_at, f"no {what} to kill"
            time.sleep(0.05)

    def try_to_kill(self, what: str) -> bool:
        """Kill one of what there is; return whether there was one."""
        done: bool = getattr(self, f"_{what}")()
        self.killed[what] += done
        return done

    def _shard(self) -> bool:
        return self._one(SHARD)

    def _keeper(self) -> bool:
        return self._one(KEEPER)

    def _coordinator(self) -> bool:
        return self._one(COORDINATOR)

    def _node(self) -> bool:
        """Switch a machine off, and another on."""
        every = range(1, len(self.nodes.raylets))
        inhabited = [number for number in every if self.nodes.processes(number, SHARD)]
        if inhabited:
            self.nodes.lose(self._dice.choice(inhabited))
            self.nodes.add()
        return bool(inhabited)

    def _one(self, name: str) -> bool:
        found = self.nodes.everywhere(name)
        if found:
            with suppress(ProcessLookupError):
                os.kill(self._dice.choice(found), signal.SIGKILL)
        return bool(found)


def kill_all(root: int) -> None:
    """End a process and all its descendants."""
    for pid in [root, *descendants(root)]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def descendants(root: int) -> list[int]:
    """Return the processes that a process started, and those that they started."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError, IndexError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    found: list[int] = []
    waiting = [root]
    while waiting:
        mine = children.get(waiting.pop(), [])
        found += mine
        waiting += mine
    return found


def command_of(pid: int) -> str:
    """Return a process's command line; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def serve(system: dict[str, int], dashboard_port: int) -> None:
    """Run the cluster until standard input ends, adding nodes as told."""
    from ray._private import ray_constants  # noqa: PLC0415 - tests that import this need no Ray
    from ray.cluster_utils import Cluster  # noqa: PLC0415

    ray_constants.ENABLE_RAY_CLUSTER = False  # Loopback alone.
    store = {"object_store_memory": 80 << 20, "num_cpus": 1, "include_dashboard": False}
    cluster = Cluster(
        initialize_head=True,
        head_node_args={
            **store,
            "num_cpus": 0,
            "_system_config": system,
            "node_ip_address": "127.0.0.1",
            "include_dashboard": bool(dashboard_port),
            "dashboard_port": dashboard_port or None,
            "dashboard_agent_listen_port": 0,  # Any: the default is the same for every cluster on a machine.
        },
    )
    raylet = cluster.head_node.all_processes["raylet"][0].process.pid
    print(cluster.address, flush=True)
    print(raylet, flush=True)
    for number, line in enumerate(sys.stdin, 2):
        # Each has an address, by which shards find a directory of their machine that no other node has.
        address = f"127.0.0.{number}"
        node = cluster.add_node(wait=False, **{**store, **json.loads(line)}, node_ip_address=address)
        print(node.all_processes["raylet"][0].process.pid, flush=True)
    for node in cluster.list_all_nodes():
        for kind in node.all_processes.values():
            for started in kind:
                kill_all(started.process.pid)
    os._exit(0)


if __name__ == "__main__":
    serve(json.loads(sys.argv[1]), int(sys.argv[2]))
