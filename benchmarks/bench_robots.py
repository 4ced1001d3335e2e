"""What a check against robots.txt costs, beside protego.

Usage: PYTHONPATH=src python benchmarks/bench_robots.py
"""

from __future__ import annotations

import timeit
from collections.abc import Callable
from functools import partial

from protego import Protego

from gossamer.stages.robots.rules import RobotsRules

TYPICAL = b"""User-agent: *
Disallow: /search
Disallow: /admin/
Disallow: /*?sort=
Allow: /search/about
Disallow: /cgi-bin/
Disallow: /private/*.pdf$
Crawl-delay: 2
Sitemap: https://example.org/sitemap.xml

User-agent: badbot
Disallow: /
"""
LARGE = b"User-agent: *\n" + b"".join(b"Disallow: /dir%d/sub%d/\n" % (i % 100, i) for i in range(20_000))
PLAIN = "https://example.org/library/functions.html"
ESCAPED = "https://example.org/a/b?x=%D0%B6&sort=1"


def microseconds(work: Callable[[], object], number: int) -> float:
    return min(timeit.repeat(work, number=number, repeat=5)) / number * 1e6


def main() -> None:
    print("| file | what | ours µs | protego µs |")
    print("| --- | --- | --: | --: |")
    for name, text, number in (("typical, 12 lines", TYPICAL, 2_000), ("20,000 rules", LARGE, 2)):
        ours, theirs = RobotsRules.parse(text, bytes_max=1_000_000), Protego.parse(text.decode())
        rows: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
            "parse": (partial(RobotsRules.parse, text, bytes_max=1_000_000), partial(Protego.parse, text.decode())),
            "plain address": (partial(ours.allows, PLAIN), partial(theirs.can_fetch, PLAIN, "gossamer")),
            "address with escapes": (partial(ours.allows, ESCAPED), partial(theirs.can_fetch, ESCAPED, "gossamer")),
        }
        for what, (mine, other) in rows.items():
            times = number if what == "parse" else 2_000
            print(f"| {name} | {what} | {microseconds(mine, times):.1f} | {microseconds(other, times):.1f} |")


if __name__ == "__main__":
    main()
