"""A whole crawl of real documentation behind nginx, beside the floor (floor.py), over each kind of connection.

    python benchmarks/bench_crawl.py [--rounds N] [--hosts N] [--parts PART…] [--connections KIND…] [--json FILE]

`keep-alive` is HTTP as nginx ships it, `http` and `https` make a new connection for every page. Everything is on:
politeness, robots.txt, WARC with request and metadata records, tables, links, commit. Both run in turns on the same
site; medians over the rounds. `--hosts N` serves the site at N addresses of loopback: start-up weighs less then.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import trustme
from crawls import DOCUMENTATION, HERE, Command, Nginx, figures, in_turns, print_table, site, write_json

RATIOS_MAX = {"keep-alive": 1.5, "http": 1.6, "https": 1.6}
"""CPU of a crawl beside the floor's: what was promised."""


def nginx_for(kind: str, root: Path, at: Path, addresses: int) -> tuple[Nginx, Path | None]:
    """Return the server of a kind of connections, and the certificate to trust."""
    server, certificate, authority_file = "", None, None
    if kind != "keep-alive":
        server = "keepalive_timeout 0;"
    at.mkdir()
    if kind == "https":
        authority = trustme.CA()
        authority_file, certificate = at / "authority.pem", at / "server.pem"
        authority.cert_pem.write_to_path(str(authority_file))
        names = [f"127.0.0.{n}" for n in range(1, addresses + 1)]
        authority.issue_cert(*names).private_key_and_cert_chain_pem.write_to_path(str(certificate))
    return Nginx(
        root, at / "nginx", certificate=certificate, h2=False, server=server, addresses=addresses
    ), authority_file


def commands(seeds: list[str], directory: Path, authority: Path | None) -> dict[str, Command]:
    """Return what is measured."""
    python = sys.executable
    options = ["--politeness", "own", "--allow-private", "--quiet"]
    trusted = ["--set", f"fetch.ca_bundle={authority}"] if authority else []
    ca = ["--ca", str(authority)] if authority else []
    return {
        "Gossamer": lambda n: [
            python, "-m", "gossamer", "crawl", *seeds, "-o", f"{directory}/crawl-{n}", *options, *trusted,
        ],
        "floor": lambda n: [python, str(HERE / "floor.py"), *ca, f"{directory}/floor-{n}", *seeds],
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--parts", nargs="*", choices=DOCUMENTATION, default=list(DOCUMENTATION))
    parser.add_argument("--connections", nargs="*", choices=RATIOS_MAX, default=list(RATIOS_MAX))
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    told: dict[str, Any] = {}
    missed = []
    with tempfile.TemporaryDirectory() as temporary:
        root = site(Path(temporary), given.parts)
        for kind in given.connections:
            at = Path(temporary) / kind
            server, authority = nginx_for(kind, root, at, given.hosts)
            with server as nginx:
                ways = commands([f"{origin}/" for origin in nginx.origins], at, authority)
                runs = in_turns(ways, given.rounds, nginx)
            if len({run.pages for same in runs.values() for run in same}) > 1:
                raise SystemExit("they did not fetch the same pages")
            told[kind] = figures(runs)
            print_table(f"{kind}, {given.hosts} hosts, {given.rounds} rounds", told[kind])
            ratio = 1 / told[kind]["floor"]["gossamer_beside"]
            print(f"\ncrawl/floor {ratio:.2f} ({RATIOS_MAX[kind]} promised)")
            if ratio > RATIOS_MAX[kind]:
                missed.append(kind)
    write_json(given.json, told)
    if missed:
        raise SystemExit(f"more than was promised: {', '.join(missed)}")


if __name__ == "__main__":
    main()
