"""What one link costs on its way from a page to the frontier: join, name, judge, in microseconds a link.

    python benchmarks/bench_urls.py [--json FILE]

Over pages of Python's and PostgreSQL's documentation (Debian: python3-doc, postgresql-doc), each set crawled from its
beginning, as a shard does it: what is remembered is forgotten before each round. CPU time, best of seven
rounds.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
import timeit
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from gossamer.model.links import Link
from gossamer.stages.scope.chain import scope_chain
from gossamer.stages.scope.options import ScopeOptions
from gossamer.stages.scope.roots import Roots
from gossamer.url.canonical import Canonicalizer
from gossamer.url.hosts import HostNameRules
from gossamer.url.join import Joiner, join
from gossamer.url.name import Namer
from gossamer.url.rules import RULES

SITES = {"python": "/usr/share/doc/python3*/html", "postgresql": "/usr/share/doc/postgresql-doc-*/html"}
PAGES_MAX = 250
SITE = "http://127.0.0.1:8123/"
HREF = re.compile(r'<a\s[^>]*?href="([^"]*)"', re.IGNORECASE)

Pages = list[tuple[str, list[str]]]
T = TypeVar("T")


def pages(pattern: str) -> Pages:
    """Return pages of a documentation with their hrefs, spread over all of it."""
    root = Path("/")
    folder = next(iter(sorted(root.glob(pattern.removeprefix("/")))), None)
    files = sorted(folder.rglob("*.html")) if folder is not None else []
    if not files:
        raise SystemExit(f"no pages in {pattern}: apt-get install python3-doc postgresql-doc")
    chosen = files[:: max(1, len(files) // PAGES_MAX)]
    texts = ((file, file.read_text(errors="replace")) for file in chosen)
    return [(SITE + str(file.relative_to(folder)), HREF.findall(text)) for file, text in texts]  # type: ignore[arg-type]


def flat(lists: Sequence[Sequence[T | None]]) -> list[T]:
    return [item for items in lists for item in items if item is not None]


def join_page(base: str, hrefs: Sequence[str]) -> list[str | None]:
    return [*map(Joiner(base).join, hrefs)]


def measured(site: Pages) -> dict[str, float]:
    """Return microseconds a link for each step, and how many pages and links there are."""
    total = sum(len(hrefs) for _, hrefs in site)
    texts = [flat([join_page(base, hrefs)]) for base, hrefs in site]
    hosts = HostNameRules({"www.": ""}, {".python.org": ".example.org"}, {"127.0.0.1": "docs.example.org"})
    every = Canonicalizer(tuple(RULES), hosts)
    roots, namer = Roots("host"), Namer()
    seed = namer.name(SITE)
    assert seed is not None
    roots.add_seed(seed)
    chain = scope_chain(ScopeOptions(), roots)
    links = [Link(url, "anchor", 1) for urls in texts for url in flat([namer.names(urls)])]
    found: dict[str, float] = {"pages": len(site), "links": total}

    def line(what: str, work: Callable[[], object], count: int = total) -> None:
        found[what] = min(timeit.repeat(work, timer=time.process_time, number=1, repeat=7)) / count * 1e6

    def named(canonicalizer: Canonicalizer) -> None:
        fresh = Namer(canonicalizer)
        for urls in texts:
            fresh.names(urls)

    def joined_and_named(canonicalizer: Canonicalizer) -> None:
        fresh = Namer(canonicalizer)
        for base, hrefs in site:
            fresh.names(flat([join_page(base, hrefs)]))

    default = Canonicalizer()
    line("join, one by one", lambda: [[join(base, href) for href in hrefs] for base, hrefs in site])
    line("join, by a page's joiner", lambda: [join_page(base, hrefs) for base, hrefs in site])
    line("key, default rules", lambda: [[default.key(url) for url in urls] for urls in texts])
    line("key, default rules, the readable path", lambda: [[default.key_by_rules(url) for url in u] for u in texts])
    line("key, every rule", lambda: [[every.key(url) for url in urls] for urls in texts])
    line("names, default rules", lambda: named(default))
    line("names, every rule", lambda: named(every))
    line("joiner + names, default rules", lambda: joined_and_named(default))
    line("joiner + names, every rule", lambda: joined_and_named(every))
    line("chain", lambda: [chain.reason(link) for link in links], len(links))
    return found


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--json", type=Path)
    wanted = arguments.parse_args().json
    results = {name: measured(pages(pattern)) for name, pattern in SITES.items()}
    sys.stdout.write(f"{'µs a link':<42}" + "".join(f"{name:>12}" for name in results) + "\n")
    for what in next(iter(results.values())):
        form = "12.0f" if what in {"pages", "links"} else "12.2f"
        sys.stdout.write(f"{what:<42}" + "".join(f"{found[what]:{form}}" for found in results.values()) + "\n")
    if wanted is not None:
        wanted.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
