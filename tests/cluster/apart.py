"""Two machines that share neither a file system nor an address, with an object store between them, and a narrow wire:
run inside `unshare --net`.

The crawl is divided anew while it runs, and the second machine is lost with all that it holds. Prints as JSON what came
of it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from gossamer.lab.simweb.judge import Promise, judge
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from tests import commands
from tests.cluster.crawls import is_divided
from tests.cluster.partition import (
    HEAD,
    OTHER,
    PORT,
    end,
    ended,
    head_node,
    joined,
    members_of,
    namespaces,
    node,
    sh,
    until,
)
from tests.stages.archive.bucket import KEYS, Bucket

ADDRESS = f"{HEAD}:{PORT}"
THERE = ("--address", ADDRESS, "--node-ip-address", OTHER, "--num-cpus", "1")
RATE, QUEUED = "20mbit", "30ms"
"""Of the wire between the machines: what waits for longer is lost."""


def another_machine(folder: Path) -> subprocess.Popen[bytes]:
    """Return what keeps the namespaces of a machine, on which `folder` is an empty file system of its own."""
    machine = namespaces(600, "-n", "-m")
    sh("mount", "-t", "tmpfs", "none", str(folder), inside=machine.pid)
    joined(machine.pid)
    for name, inside in (("cluster0", 0), ("cluster1", machine.pid)):
        sh("tc", "qdisc", "add", "dev", name, "root", "tbf", "rate", RATE, "burst", "32kb", "latency", QUEUED,
           inside=inside)  # fmt: skip
    return machine


def replace(machine: int, nodes: list[subprocess.Popen[bytes]], folder: Path) -> None:
    """Lose the second machine with all that is on it; another one comes at its address."""
    end(nodes.pop())
    sh("umount", "--lazy", str(folder), inside=machine)
    sh("mount", "-t", "tmpfs", "none", str(folder), inside=machine)
    nodes.append(node(folder, *THERE, inside=machine))


def main() -> None:
    """Crawl with two shards, then with four, lose the second machine, and go on with three."""
    os.environ |= {"RAY_AUTH_MODE": "disabled", **KEYS}
    folder, shared, settings = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3])
    options, delay_s = SimwebOptions(**json.loads(sys.argv[4])), float(sys.argv[5])
    directory = folder / "crawl"
    machine, nodes, crawling = another_machine(folder), [], None
    try:
        nodes += [head_node(folder), node(folder, *THERE, inside=machine.pid)]
        with Bucket(HEAD) as bucket, SimwebProcess(options, shared) as web:
            words = ["crawl", *web.seeds, "--scope", "any", "--allow-private", "--quiet", "--workers", "2"]
            words += ["--hosts", str(web.hosts_file), "-o", str(directory), "--cluster", ADDRESS]
            sets = (*settings, "state.checkpoint_uri='s3://archive/apart'", bucket.sets[1])
            words += [word for one in sets for word in ("--set", one)]
            with (folder / "errors").open("wb") as errors:
                crawling = subprocess.Popen([sys.executable, "-m", "gossamer", *words], stderr=errors)
            until(lambda: len(web.requests()) > 40, 180, "it does not crawl")
            before = members_of(nodes[1])
            commands.run("scale", str(directory), "--workers", "4")
            until(lambda: is_divided(directory, 4), 120, "it is not divided among four")
            lost = members_of(nodes[1])
            replace(machine.pid, nodes, folder)
            until(
                lambda: sum(len(members_of(one)) for one in nodes) == 4, 90, "shards of the lost machine are not back"
            )
            commands.run("scale", str(directory), "--workers", "3")
            until(lambda: is_divided(directory, 3), 120, "it is not divided among three")
            commands.run("set", str(directory), "politeness.delay_s_min=0", "politeness.delay_s_max=0")
            status = ended(crawling, folder)
            promise = Promise(delay_s_min=0.0, factor=0.0, delay_s_max=delay_s)
            broken = [one.kind for one in judge(web.requests(), promise, web.web) if one.kind != "repeated"]
        told = {"status": status, "there": len(before), "lost": len(lost), "broken": broken}
        print(json.dumps({**told, "errors": (folder / "errors").read_text()[-2000:]}))
    finally:
        end(*nodes, machine, crawling)


if __name__ == "__main__":
    main()
