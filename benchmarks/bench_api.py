"""What requests cost: to a crawl that serves itself, and to `gossamer serve`, which asks its socket.

Processor's time of the process that answers and time until the answer, each a mean over so many requests one after
another on one connection; and what a server of many crawls costs while it idles. `--json FILE` writes them.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import gossamer
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess

PATHS = ("/api/status", "/api/status?detail=true", "/api/hosts", "/metrics", "/api/openapi.json")
IDLE_S = 10.0
TICKS_S = os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=500)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, SimwebProcess(SimwebOptions.preset("small"), Path(folder)) as web:
        found = measured(Path(folder), web, given.requests)
    print(f"{'asked':<42} {'CPU µs':>8} {'ms':>8}")
    for name, (cpu_us, wall_ms) in found["requests"].items():
        print(f"{name:<42} {cpu_us:>8.0f} {wall_ms:>8.2f}")
    idle = found["idle"]
    print(f"a server of many, idle: {idle['cpu_ms_s']:.2f} ms of CPU a second, {idle['memory_mb']:.0f} MB")
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=2) + "\n")


def measured(folder: Path, web: SimwebProcess, requests: int) -> dict[str, dict[str, object]]:
    options = ("--allow-private", "--delay", "1", "--hosts", str(web.hosts_file), "--scope", "any")
    crawl = started(folder, "crawl", *web.seeds, "-o", "crawl", "--serve", "0", *options)
    found: dict[str, object] = {}
    port, child = port_of(crawl), child_of(crawl.pid)
    time.sleep(5)
    for path in PATHS:
        found[f"{path} of the crawl itself"] = cost(port, child, path, requests)
    server = started(folder, "serve", "crawl", "--port", "0")
    port = port_of(server)
    for path in PATHS[:2]:
        found[f"{path} of gossamer serve"] = cost(port, server.pid, path, requests)
    (folder / "many").mkdir()
    many = started(folder, "serve", "--folder", "many", "--port", "0")
    port_of(many)
    began = cpu_s(many.pid)
    time.sleep(IDLE_S)
    idle = {"cpu_ms_s": (cpu_s(many.pid) - began) / IDLE_S * 1e3, "memory_mb": memory_bytes(many.pid) / 1e6}
    for process in (server, many, crawl):
        process.terminate()
    for process in (server, many, crawl):
        process.communicate(timeout=60)
    return {"requests": found, "idle": dict(idle)}


def started(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "gossamer", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(Path(gossamer.__file__).parent.parent)}
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)


def port_of(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    for line in process.stdout:
        if "/#token=" in line:
            return int(line.partition("/#token=")[0].rpartition(":")[2])
    raise AssertionError("it serves nothing")


def child_of(pid: int) -> int:
    """Return the process that crawls, of the one that supervises it."""
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_S


def memory_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def cost(port: int, pid: int, path: str, requests: int) -> tuple[float, float]:
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def ask() -> None:
        line.request("GET", path)
        answer = line.getresponse()
        answer.read()
        assert answer.status == 200

    ask()
    cpu, wall = cpu_s(pid), time.perf_counter()
    for _ in range(requests):
        ask()
    took = (cpu_s(pid) - cpu) / requests * 1e6, (time.perf_counter() - wall) / requests * 1e3
    line.close()
    return took


if __name__ == "__main__":
    main()
