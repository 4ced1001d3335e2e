"""Gossamer beside other crawlers, on real documentation behind nginx and on the synthetic web: `make league`.

    python benchmarks/league/league.py [--rounds N] [--peers NAME…] [--trials NAME…] [--wcxb DIR] [--output DIR]

What a crawl found, asked for and waited for is read from the server's log, what it kept from its own output. Everything
counts from the start of a command to its end: processor time and memory (PSS) of the whole process tree. The crawlers
take turns in each round, so that other work on the machine falls on all of them. Writes league.html, league.md and
league.json.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from peers import PER_HOST, ROOT, UNREACHED, Peer, Task, peers
from report import write

sys.path[1:1] = [str(ROOT), str(ROOT / "benchmarks")]

import bench_text  # noqa: E402 - found by the line above
from kinds import documentation  # noqa: E402
from selectolax.lexbor import LexborHTMLParser  # noqa: E402
from tests.acceptance.nginx import Nginx  # noqa: E402

from gossamer.lab.simweb.judge import Promise, judge  # noqa: E402
from gossamer.lab.simweb.log import Logged  # noqa: E402
from gossamer.lab.simweb.options import SimwebOptions  # noqa: E402
from gossamer.lab.simweb.process import SimwebProcess  # noqa: E402
from gossamer.lab.simweb.truth import Truth  # noqa: E402

DEADLINE_S = 240.0
"""A crawl that has not ended by then is ended, and said to have been."""
SAMPLE_S, POLL_S = 0.1, 0.005
DOCS_HOSTS, LIGHT_HOSTS = 1, 3
"""Addresses that serve Python's documentation, and PostgreSQL's, whose pages are a sixth as large."""
TRIALS = ("docs", "light", "web", "kill", "polite")
DELAY_S = 0.1
TOLERANCE_S = 0.02
"""What a delay may lack at the server: both ends run on one machine, which may be busy."""
ORDINARY = (
    "robots_404", "robots_allow", "robots_part", "robots_empty", "robots_allow_inside", "robots_wildcard", "robots_403",
    "robots_deny_all", "robots_redirect", "robots_bom", "robots_crlf", "robots_bad_bytes", "compressed", "redirects",
    "copies", "charsets", "types", "frames", "distinct", "spellings",
)  # fmt: skip
"""No stalls, no traps, no errors to wait for, no robots.txt that names an agent: what no crawler prepares for."""
WEB = SimwebOptions(seed=1, hosts=20, pages=1_000, behaviours=ORDINARY, retry_after_s=1)
POLITE = SimwebOptions(
    seed=3, hosts=8, pages=160, links_per_page=10.0, crawl_delay_s=1.0,
    behaviours=("robots_allow", "robots_part", "robots_crawl_delay"),
    shares={"robots_allow": 0.5, "robots_part": 0.25, "robots_crawl_delay": 0.25},
)  # fmt: skip


class Run(NamedTuple):
    """One command from its start to its end."""

    cpu_s: float
    wall_s: float
    peak_bytes: int
    ended: bool
    """It came to its end by itself, with a status that means so."""


def members(session: int) -> list[int]:
    """Return the processes of a session: a command and all that it started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session:
                found.append(int(path.parent.name))
    return found


def pss_bytes(processes: Iterable[int]) -> int:
    """Return the memory of processes; what some share counts once."""
    total = 0
    for process in processes:
        with suppress(OSError):
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
            total += sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total


def run(peer: Peer, task: Task, out: Path, *, resumed: bool = False, kill: Callable[[], bool] | None = None) -> Run:
    """Run a crawl to its end, or until `kill` says that all its processes be killed."""
    (out / "kept").mkdir(parents=True, exist_ok=True)
    # Names resolve by the hosts file alone, in a mount namespace: the machine's files stay, no query leaves it.
    mounts = 'mount --bind "$0" /etc/hosts && mount --bind /dev/null /etc/resolv.conf && exec "$@"'
    bound = ["unshare", "-m" if os.geteuid() == 0 else "-rm", "sh", "-c", mounts, str(task.hosts_file)]
    began, peak = time.monotonic(), 0
    with (out / "errors.txt").open("ab") as errors:
        process = subprocess.Popen(
            [*bound, *peer.command(task, out / "kept", resumed)],
            stdout=subprocess.DEVNULL,
            stderr=errors,
            cwd=out,
            start_new_session=True,
        )
    sampled_at, killed = 0.0, False
    while not (waited := os.wait4(process.pid, os.WNOHANG))[0]:
        time.sleep(POLL_S)
        late = time.monotonic() - began > DEADLINE_S
        if late or (kill and kill()):
            killed = True
            for one in members(process.pid):
                with suppress(ProcessLookupError):
                    os.kill(one, signal.SIGKILL)
        elif time.monotonic() - sampled_at > SAMPLE_S:
            peak, sampled_at = max(peak, pss_bytes(members(process.pid))), time.monotonic()
    _, status, usage = waited
    process.returncode = os.waitstatus_to_exitcode(status)
    right = not killed and process.returncode in peer.failures
    return Run(usage.ru_utime + usage.ru_stime, time.monotonic() - began, peak, right)


def file_of(path: str) -> str:
    """Return the file that a path names."""
    return f"{path}index.html" if path.endswith("/") else path


def linked(root: Path) -> set[str]:
    """Return the HTML files below `root` that links lead to from its index.html."""
    waiting, known = ["/index.html"], {"/index.html"}
    while waiting:
        base = waiting.pop()
        for anchor in LexborHTMLParser((root / base[1:]).read_bytes()).css("a[href]"):
            url = urlsplit(urldefrag(urljoin(f"http://site{base}", anchor.attributes["href"] or "")).url)
            path = file_of(unquote(url.path))
            if url.netloc == "site" and path not in known and path.endswith(".html") and (root / path[1:]).is_file():
                known.add(path)
                waiting.append(path)
    return known


def kept_pages(counts: Counter[str], exist: set[str]) -> tuple[int, int]:
    """Return how many of the pages (host and file) are not among the URLs kept, and how many URLs were kept twice."""
    kept = {f"{urlsplit(url).hostname}{file_of(urlsplit(url).path)}" for url in counts}
    twice = sum(count > 1 for url, count in counts.items())
    return len(exist - kept), twice


def asked_of(log: Iterable[Logged]) -> set[str]:
    """Return the URLs that were sent whole with status 200, as they were written and unquoted."""
    sent = [one for one in log if one.status == 200 and one.whole]
    return {f"{one.host}{path}" for one in sent for path in (one.path, unquote(one.path))}


def found_of(wanted: Iterable[str], log: Iterable[Logged]) -> int:
    """Count the URLs that were asked for and answered, in any equal spelling."""
    asked = asked_of(log)
    bare = (f"{urlsplit(url).hostname}/{url.split('/', 3)[3]}" for url in wanted)
    return sum(one in asked or unquote(one) in asked for one in bare)


def gaps(log: Iterable[Logged], hosts: set[str] | None, needed_s: float) -> tuple[int, int]:
    """Return how many requests came sooner than `needed_s` after the start of the last to their host, of how many."""
    by_host: dict[str, list[float]] = defaultdict(list)
    for one in log:
        if one.host != "-" and (hosts is None or one.host in hosts) and one.path != "/robots.txt":
            by_host[one.host].append(one.started_at)
    between = [late - early for times in by_host.values() for early, late in pairwise(sorted(times))]
    return sum(gap < needed_s - TOLERANCE_S for gap in between), len(between)


class League:
    """Runs one round of each trial at a call; `figures` maps a trial to a peer to what each round showed."""

    def __init__(self, at: Path, chosen: list[str] | None) -> None:
        self._at, self._number = at, 0
        self._root, self._light = at / "site", at / "light"
        for root, part in ((self._root, "python"), (self._light, "postgresql")):
            root.mkdir()
            documentation(part)(root)
        every = [one for one in peers(self._root) if not chosen or one.name in chosen]
        self.peers = [one for one in every if not one.absent()]
        self.missing = UNREACHED | {one.name: f"{one.needs} is missing" for one in every if one.absent()}
        self.figures: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))

    def docs(self) -> None:
        """Python's documentation without delays: coverage, processor time, memory."""
        self._documentation("docs", self._root, DOCS_HOSTS)

    def light(self) -> None:
        """The same for PostgreSQL's documentation: light pages, three thousand of them."""
        self._documentation("light", self._light, LIGHT_HOSTS)

    def web(self) -> None:
        """The synthetic web without delays: coverage of ordinary oddities, and URLs that robots.txt forbids."""
        for peer in self.peers:
            simweb, ran = self._crawled(WEB, peer, 0.0)
            expected = Truth(simweb.web).walk(simweb.seeds).pages
            pages = [url for url, one in expected.items() if one.outcome == "fetched"]
            log = simweb.requests()
            denied = {(one.host, one.path) for one in judge(log, Promise(0, 0, 0), simweb.web)
                      if one.kind == "robots_denied"}  # fmt: skip
            self._note("web", peer, ran, found=found_of(pages, log), exist=len(pages), denied=len(denied))

    def polite(self) -> None:
        """A small synthetic web with a delay: whether it is kept, and Crawl-delay, and how long that takes."""
        for peer in [one for one in self.peers if one.polite]:
            simweb, ran = self._crawled(POLITE, peer, DELAY_S)
            slow = {host.name for host in simweb.web.hosts if host.robots == "robots_crawl_delay"}
            pages = [url for url, one in Truth(simweb.web).walk(simweb.seeds).pages.items() if one.outcome == "fetched"]
            log = simweb.requests()
            early, of = gaps(log, None, DELAY_S)
            broken, asked = gaps(log, slow, POLITE.crawl_delay_s)
            found = found_of(pages, log)
            self._note("polite", peer, ran, found=found, exist=len(pages), early=early, of=of, broken=broken,
                       asked=asked)  # fmt: skip

    def kill(self) -> None:
        """`kill -9` of all processes when half of the documentation was sent, and a restart: what was kept."""
        exist = {f"127.0.0.{n}{file}" for n in range(1, DOCS_HOSTS + 1) for file in linked(self._root)}
        for peer in [one for one in self.peers if one.kept and one.resume]:
            assert peer.kept is not None
            with self._nginx(self._root, DOCS_HOSTS) as nginx:
                log, out = nginx.at / "access.log", self._out()
                task = self._docs_task(nginx, DOCS_HOSTS, resumable=True)
                run(peer, task, out, kill=lambda log=log: log.read_bytes().count(b"\n") > len(exist) // 2)
                ran = run(peer, task, out, resumed=True)
                asked = Counter(one.host + one.path for one in nginx.log() if one.status == 200)
            lost, doubled = kept_pages(peer.kept(out / "kept"), exist)
            again = sum(count > 1 for url, count in asked.items() if not url.endswith("/robots.txt"))
            self._note("kill", peer, ran, lost=lost, doubled=doubled, again=again, exist=len(exist))

    def result(self) -> dict[str, Any]:
        """Return all figures so far, and what they hang on."""
        named = {one.name: {"stores": one.stores, "resume": one.resume} for one in self.peers}
        return {
            "per_host": PER_HOST, "delay_s": DELAY_S, "crawl_delay_s": POLITE.crawl_delay_s, "peers": named,
            "missing": self.missing, "trials": self.figures,
        }  # fmt: skip

    def _out(self) -> Path:
        self._number += 1
        return self._at / f"crawl-{self._number}"

    def _documentation(self, trial: str, root: Path, hosts: int) -> None:
        files = linked(root)
        exist = {f"127.0.0.{n}{file}" for n in range(1, hosts + 1) for file in files}
        for peer in self.peers:
            with self._nginx(root, hosts) as nginx:
                ran = run(peer, self._docs_task(nginx, hosts), self._out())
                pages = {one.host + file_of(one.path) for one in nginx.log() if one.status == 200}
            self._note(trial, peer, ran, found=len(exist & pages), exist=len(exist))

    def _nginx(self, root: Path, hosts: int) -> Nginx:
        return Nginx(root, self._at / f"nginx-{self._number}", addresses=hosts)

    def _docs_task(self, nginx: Nginx, hosts: int, *, resumable: bool = False) -> Task:
        seeds = tuple(f"{origin}/" for origin in nginx.origins)
        names = tuple(f"127.0.0.{n}" for n in range(1, hosts + 1))
        return Task(seeds, names, Path("/etc/hosts"), hosts, resumable=resumable)

    def _crawled(self, options: SimwebOptions, peer: Peer, delay_s: float) -> tuple[SimwebProcess, Run]:
        out = self._out()
        simweb = SimwebProcess(options, out / "simweb")
        with simweb:
            hosts = out / "hosts"
            hosts.write_text(f"127.0.0.1 localhost\n{simweb.hosts_file.read_text()}")
            ran = run(peer, Task(simweb.seeds, ("test", "example"), hosts, options.hosts, delay_s), out)
        return simweb, ran

    def _note(self, trial: str, peer: Peer, ran: Run, **values: int) -> None:
        row = {**ran._asdict(), **values}
        print(trial, peer.name, row, flush=True)
        self.figures[trial][peer.name].append(row)


def main_text(folder: Path) -> dict[str, float]:
    """Return Gossamer's F1 and precision on pages whose main content people have marked."""
    scored = bench_text.measured(bench_text.gossamer(), bench_text.marked_pages(folder))
    every = [one for kind in scored.values() for one in kind]
    return {"pages": len(every), "f1": mean(one.f1 for one in every), "precision": mean(one.precision for one in every)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", nargs="*")
    parser.add_argument("--trials", nargs="*", choices=TRIALS)
    parser.add_argument("--wcxb", type=Path, help="the folder `dev` of the WCXB benchmark")
    parser.add_argument("--output", type=Path, default=ROOT / ".parts/league")
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    text = main_text(given.wcxb) if given.wcxb else None
    with tempfile.TemporaryDirectory() as temporary:
        league = League(Path(temporary), given.peers)
        for number in range(given.rounds):
            for trial in given.trials or TRIALS:
                if trial != "polite" or number == 0:  # There the delays decide, which do not vary.
                    getattr(league, trial)()
            write(league.result() | {"text": text}, given.output)


if __name__ == "__main__":
    main()
