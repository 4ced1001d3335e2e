"""A whole crawl of each kind of site (kinds.py) behind nginx, beside the floor of the same libraries (floor.py).

    python benchmarks/bench_crawl.py [--kinds KIND…] [--rounds N] [--json FILE]

Everything is on: politeness, robots.txt, WARC with request and metadata records, tables, links, commit. A crawl counts
from the start of its first process to the end of its last. Both run in turns on the same site; medians over the rounds.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import trustme
from crawls import HERE, Command, Nginx, figures, in_turns, print_table, write_json
from kinds import KINDS, Kind

RATIO_MAX = 1.4
"""CPU of a crawl beside the floor's: what is aimed at, on every kind."""


def nginx_for(kind: Kind, at: Path) -> tuple[Nginx, Path | None]:
    """Return the server of a kind of site, and the certificate to trust."""
    (at / "site").mkdir(parents=True)
    kind.make(at / "site")
    server, certificate, authority_file = kind.server, None, None
    if kind.tls:
        server += "keepalive_timeout 0;"
        authority = trustme.CA()
        authority_file, certificate = at / "authority.pem", at / "server.pem"
        authority.cert_pem.write_to_path(str(authority_file))
        names = [f"127.0.0.{n}" for n in range(1, kind.hosts + 1)]
        authority.issue_cert(*names).private_key_and_cert_chain_pem.write_to_path(str(certificate))
    nginx = Nginx(at / "site", at / "nginx", certificate=certificate, h2=False, server=server, addresses=kind.hosts)
    return nginx, authority_file


def commands(kind: Kind, seeds: list[str], directory: Path, authority: Path | None) -> dict[str, Command]:
    """Return what is measured."""
    python = sys.executable
    options = ["--politeness", "own", "--allow-private", "--quiet", *kind.options]
    trusted = ["--set", f"fetch.ca_bundle={authority}"] if authority else []
    ca = ["--ca", str(authority)] if authority else []
    return {
        "Gossamer": lambda n: [
            python, "-m", "gossamer", "crawl", *seeds, "-o", f"{directory}/crawl-{n}", *options, *trusted,
        ],
        "floor": lambda n: [
            python, str(HERE / "floor.py"), *ca, *kind.options, f"{directory}/floor-{n}", *seeds,
        ],
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=list(KINDS))
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    told: dict[str, Any] = {}
    missed = []
    with tempfile.TemporaryDirectory() as temporary:
        for name in given.kinds:
            kind, at = KINDS[name], Path(temporary) / name
            server, authority = nginx_for(kind, at)
            with server as nginx:
                ways = commands(kind, [f"{origin}/" for origin in nginx.origins], at, authority)
                runs = in_turns(ways, given.rounds, nginx)
            if len({run.pages for same in runs.values() for run in same}) > 1:
                raise SystemExit(f"{name}: they did not fetch the same pages")
            told[name] = figures(runs)
            print_table(f"{name}, {given.rounds} rounds", told[name])
            ratio = 1 / told[name]["floor"]["gossamer_beside"]
            print(f"\ncrawl/floor {ratio:.2f} ({RATIO_MAX} is aimed at)", flush=True)
            if ratio > RATIO_MAX:
                missed.append(f"{name} {ratio:.2f}")
    write_json(given.json, told)
    if missed:
        print(f"\nmore than is aimed at: {', '.join(missed)}")


if __name__ == "__main__":
    main()
