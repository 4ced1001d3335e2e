"""Two machines in network namespaces of their own, and what lies between them: run inside `unshare --net`.

The web is on the first machine, and the second reaches it by a way of its own: when the cluster's network is cut, the
shards over there could go on fetching. Prints what came of it as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from gossamer.lab.simweb.judge import Promise, judge, repeats
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from tests import commands
from tests.cluster.nodes import SYSTEM, command_of, descendants, kill_all

HEAD, OTHER, PORT = "10.9.0.1", "10.9.0.2", 6399
RAY = str(Path(sys.executable).with_name("ray"))
STORE = ("--object-store-memory", str(80 << 20))


def within(inside: int) -> list[str]:
    """Return what has a command run on another machine, that of a process: with its network and its file system."""
    return ["nsenter", "-t", str(inside), "-n", "-m"] if inside else []


def sh(*words: str, inside: int = 0) -> None:
    """Run a command, on another machine where asked."""
    subprocess.run([*within(inside), *words], check=True, capture_output=True)


def joined(other: int) -> None:
    """Lay two wires between the machines: `cluster0` for Ray, `web0` for what is crawled."""
    sh("ip", "link", "set", "lo", "up")
    sh("ip", "addr", "add", "127.0.0.1/16", "dev", "lo", inside=other)
    sh("ip", "link", "set", "lo", "up", inside=other)
    sh("ip", "addr", "del", "127.0.0.1/8", "dev", "lo", inside=other)
    for name, net in (("cluster", "10.9.0"), ("web", "10.8.0")):
        sh("ip", "link", "add", f"{name}0", "type", "veth", "peer", "name", f"{name}1")
        sh("ip", "link", "set", f"{name}1", "netns", str(other))
        sh("ip", "addr", "add", f"{net}.1/24", "dev", f"{name}0")
        sh("ip", "link", "set", f"{name}0", "up")
        sh("ip", "addr", "add", f"{net}.2/24", "dev", f"{name}1", inside=other)
        sh("ip", "link", "set", f"{name}1", "up", inside=other)
    for inside in (0, other):  # Addresses 127.16/16 are the web's, on both machines.
        sh("sh", "-c", "echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet", inside=inside)
    sh("ip", "route", "add", "127.16.0.0/16", "via", "10.8.0.1", "src", "10.8.0.2", inside=other)


def namespaces(seconds: int, *options: str) -> subprocess.Popen[bytes]:
    """Return a process that keeps namespaces of its own, once it has them: before that it is `unshare` in ours."""
    keeper = subprocess.Popen(["unshare", *options, "sleep", str(seconds)])
    until(lambda: command_of(keeper.pid).startswith("sleep"), 60, "no namespaces")
    return keeper


def until(condition: object, limit_s: float, what: str) -> None:
    """Wait for something."""
    assert callable(condition)
    ends_at = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < ends_at, what
        time.sleep(0.1)


def node(folder: Path, *words: str, inside: int = 0) -> subprocess.Popen[bytes]:
    """Start a Ray node that lives as long as its command."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")}
    environment |= {"RAY_TMPDIR": str(folder), "RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
    path = folder / f"node-{time.monotonic_ns()}.log"
    with path.open("wb") as log:
        started = subprocess.Popen(
            [*within(inside), RAY, "start", "--block", *STORE, *words], env=environment, stdout=log, stderr=log
        )
    until(lambda: b"runtime started" in path.read_bytes(), 180, f"no node: {path.read_text()[-500:]}")
    return started


def head_node(folder: Path) -> subprocess.Popen[bytes]:
    """Start the cluster's first node, on this machine."""
    system = ("--num-cpus", "1", "--include-dashboard", "false", "--system-config", json.dumps(SYSTEM))
    return node(folder, "--head", "--node-ip-address", HEAD, "--port", str(PORT), *system)


def end(*started: subprocess.Popen[bytes] | None) -> None:
    """End processes with all that they have started; None was never there."""
    for one in started:
        if one is not None:
            kill_all(one.pid)
            one.wait()


def members_of(started: subprocess.Popen[bytes]) -> list[int]:
    """Return the shards' processes on a node."""
    return [pid for pid in descendants(started.pid) if "gossamer.api.member" in command_of(pid)]


def cut(seconds: float, there: subprocess.Popen[bytes]) -> tuple[int, int]:
    """Cut the cluster's network for a while; the web's stays. Return how many shards a node had, and how many of their
    processes are still there when it comes back.
    """
    before = members_of(there)
    sh("ip", "link", "set", "cluster0", "down")
    time.sleep(seconds)
    left = [pid for pid in before if pid in members_of(there)]
    sh("ip", "link", "set", "cluster0", "up")
    return len(before), len(left)


def ended(crawling: subprocess.Popen[bytes], folder: Path, limit_s: float = 150.0) -> int:
    """Wait for the end of a crawl and return its exit status; print the status of one that does not end."""
    try:
        return crawling.wait(limit_s)
    except subprocess.TimeoutExpired:
        _, status, mistakes = commands.run("status", str(folder / "crawl"))
        errors = (folder / "errors").read_text()[-2000:]
        raise AssertionError(f"it does not end: {errors}\n{status}{mistakes}") from None


def main() -> None:
    """Crawl, with two cuts: one that nobody takes for a loss, and one that is longer than a tenure."""
    os.environ["RAY_AUTH_MODE"] = "disabled"  # Whatever token this machine has, nobody else is in this network.
    folder, settings = Path(sys.argv[1]), json.loads(sys.argv[2])
    options, delay_s = SimwebOptions(**json.loads(sys.argv[3])), float(sys.argv[4])
    other = namespaces(600, "-n")
    joined(other.pid)
    address = f"{HEAD}:{PORT}"
    nodes = [head_node(folder)]
    crawling = None
    try:
        nodes.append(
            node(folder, "--address", address, "--node-ip-address", OTHER, "--num-cpus", "1", inside=other.pid)
        )
        with SimwebProcess(options, folder / "web") as web:
            words = ["crawl", *web.seeds, "--scope", "any", "--allow-private", "--quiet", "--workers", "4"]
            words += ["--hosts", str(web.hosts_file), "-o", str(folder / "crawl"), "--cluster", address]
            words += [word for one in settings for word in ("--set", one)]
            with (folder / "errors").open("wb") as errors:
                crawling = subprocess.Popen([sys.executable, "-m", "gossamer", *words], stderr=errors)
            until(lambda: len(web.requests()) > 40, 180, "it does not crawl")
            until(lambda: members_of(nodes[1]), 60, "no shard on the other machine")
            kept = cut(0.7, nodes[1])
            time.sleep(1.0)
            cut_off = cut(8.0, nodes[1])
            status = ended(crawling, folder)
            asked = web.requests()
            promise = Promise(delay_s_min=delay_s, factor=0.0, delay_s_max=delay_s)
            broken = [one.kind for one in judge(asked, promise, web.web) if one.kind != "repeated"]
            again = sum(count - 1 for count in repeats(asked, web.web).values())
        result = {"status": status, "kept": kept, "cut_off": cut_off, "broken": broken, "again": again}
        print(json.dumps({**result, "errors": (folder / "errors").read_text()[-2000:]}))
    finally:
        end(*nodes, other, crawling)


if __name__ == "__main__":
    main()
