"""What a whitelist of a million sites costs: to load, to hold, to ask. And exclude patterns by the thousand.

    python benchmarks/bench_scope.py [--json FILE]

CPU time; memory is what the process holds more afterwards. The domains are made up: a tenth with `www.`, under suffixes
of one and two labels in about the shares of lists of popular sites.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import tempfile
import time
from pathlib import Path

from gossamer.config.lists import whitelist_of
from gossamer.model.patterns import PatternSet
from gossamer.url.name import Namer
from gossamer.url.site import site_of

DOMAINS = 1_000_000
LOOKUPS = 100_000
SUFFIXES = (
    ["com"] * 50 + ["org"] * 8 + ["net"] * 6 + ["de"] * 6 + ["ru", "co.uk", "co.uk", "com.br", "co.jp", "fr", "it"]
)


def write(file: Path, dice: random.Random) -> None:
    with file.open("w") as lines:
        for n in range(DOMAINS):
            lines.write(f"{'www.' if n % 10 == 0 else ''}site{n}.{dice.choice(SUFFIXES)}\n")


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--json", type=Path)
    wanted = arguments.parse_args().json
    dice, found = random.Random(1), {}
    site_of("a.example.co.uk")  # The suffix list is there in every crawl.
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "sites.txt"
        write(file, dice)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        started = time.process_time()
        listed = whitelist_of(file)
        found["load, s"] = time.process_time() - started
        found["peak while loading, MB"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        found["held, MB"] = 8 * len(listed) / 1e6
        found["sites"] = float(len(listed))
    namer = Namer()
    urls = [namer.name(f"http://www.site{dice.randrange(2 * DOMAINS)}.com/") for _ in range(LOOKUPS)]
    for what, asked in (("look-up of a new site, µs", urls), ("look-up of a known site, µs", urls[:1_000] * 100)):
        started = time.process_time()
        for url in asked:
            assert url is not None
            listed.covers(url)
        found[what] = (time.process_time() - started) / len(asked) * 1e6
    for count in (1, 100, 5_000):
        patterns = PatternSet([rf"/path{n}/.*\.(?:jpg|png)$" for n in range(count)])
        texts = [f"http://h.example/path{n % 7_000}/a/b/c{n}.html" for n in range(LOOKUPS)]
        patterns.matches(texts[0])
        started = time.process_time()
        for text in texts:
            patterns.matches(text)
        found[f"{count} patterns, µs an address"] = (time.process_time() - started) / len(texts) * 1e6
    for what, value in found.items():
        sys.stdout.write(f"{what:<36}{value:12,.2f}\n")
    if wanted is not None:
        wanted.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
