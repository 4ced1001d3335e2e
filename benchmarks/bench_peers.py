"""Real documentation behind nginx, crawled by Gossamer and by others, in turns, on the same site.

    python benchmarks/bench_peers.py [--rounds N] [--hosts N] [--parts PART…] [--peers NAME…] [--json FILE]

Everything counts, from the start of a command to its end. Gossamer writes WARC with request and metadata records,
tables and an index, and obeys robots.txt; *lean* is without the links table and request records. wget writes WARC
(`--warc-file`). Scrapy and crawlee store nothing. Colly (Go) is not in Debian, and so not here.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from crawls import HERE, Command, Nginx, figures, in_turns, print_table, write_json
from kinds import DOCUMENTATION, documentation

PROMISED = {
    "Scrapy as shipped": 9.0,
    "Scrapy at its fastest": 4.5,
    "wget --warc-file": 1.0,
    "crawlee at its fastest": 2.0,
}
"""Pages per CPU-second beside theirs, everything on."""
LEAN = 1.4
"""Times those, without the links table and request records."""


def commands(seeds: list[str], directory: Path) -> dict[str, Command]:
    """Return what is measured: a name, and the command of the n-th round."""
    python, peers = sys.executable, HERE / "peers"
    gossamer = [python, "-m", "gossamer", "crawl", *seeds, "--politeness", "own", "--allow-private", "--quiet"]
    lean = ["--set", "archive.links=false", "--set", "archive.warc_request_records=false"]
    wget = [
        "wget",
        "-q",
        "-r",
        "-l",
        "inf",
        "--delete-after",
        "-P",
        str(directory / "wget"),
        "--no-parent",
        "--accept-regex",
        "[./]html?$|/$|#",
    ]
    return {
        "Gossamer": lambda n: [*gossamer, "-o", f"{directory}/crawl-{n}"],
        "Gossamer, lean": lambda n: [*gossamer, *lean, "-o", f"{directory}/lean-{n}"],
        "Scrapy as shipped": lambda _: [python, str(peers / "scrapy_spider.py"), "shipped", *seeds],
        "Scrapy at its fastest": lambda _: [python, str(peers / "scrapy_spider.py"), "fastest", *seeds],
        "crawlee as shipped": lambda _: [python, str(peers / "crawlee_crawler.py"), "shipped", *seeds],
        "crawlee at its fastest": lambda _: [python, str(peers / "crawlee_crawler.py"), "fastest", *seeds],
        "wget --warc-file": lambda n: [*wget, f"--warc-file={directory}/wget-{n}", *seeds],
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--parts", nargs="*", choices=DOCUMENTATION, default=list(DOCUMENTATION))
    parser.add_argument("--peers", nargs="*")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if shutil.which("wget") is None:
        raise SystemExit("wget is missing: `make parts` installs it")
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary) / "site"
        root.mkdir()
        documentation(*given.parts)(root)
        with Nginx(root, Path(temporary) / "nginx", addresses=given.hosts) as nginx:
            ways = commands([f"{origin}/" for origin in nginx.origins], Path(temporary))
            if given.peers:
                ways = {name: way for name, way in ways.items() if name.startswith(("Gossamer", *given.peers))}
            runs = in_turns(ways, given.rounds, nginx)
    told = figures(runs)
    print_table(f"{given.hosts} hosts, {given.rounds} rounds", told)
    ours = runs["Gossamer"][0].pages
    for name, same in runs.items():
        missed = max(len(ours - run.pages) for run in same)
        if missed:
            print(f"{name} missed {missed} of {len(ours)} pages")
    write_json(given.json, told)
    short = [
        f"{name} {beside:.2f} of {least:.1f}"
        for name, least in PROMISED.items()
        if name in told
        for kind, wanted in (("Gossamer", least), ("Gossamer, lean", LEAN * least))
        if (beside := told[kind]["pages_per_cpu_s"] / told[name]["pages_per_cpu_s"]) < wanted
    ]
    if short:
        raise SystemExit("less than was promised: " + "; ".join(short))


if __name__ == "__main__":
    main()
