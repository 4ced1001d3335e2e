"""What one link costs on its way from a page to the frontier: join, name, judge. Prints microseconds per link."""

from __future__ import annotations

import re
import sys
import timeit
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from gossamer.model.links import Link
from gossamer.scope.chain import scope_chain
from gossamer.scope.options import ScopeOptions
from gossamer.scope.roots import Roots
from gossamer.url.canonical import Canonicalizer
from gossamer.url.join import Joiner, join
from gossamer.url.name import Namer
from gossamer.url.rules import RULES

DOCUMENTATION = Path("/usr/share/doc/python3.11/html")
SITE = "http://127.0.0.1:8123/"
HREF = re.compile(r'<a\s[^>]*?href="([^"]*)"')

Pages = list[tuple[str, list[str]]]
T = TypeVar("T")


def pages() -> Pages:
    """Every ninth page of Python's documentation with its hrefs, or pages made up in its likeness."""
    files = sorted(DOCUMENTATION.rglob("*.html"))[::9]
    if files:
        texts = ((file, file.read_text(errors="replace")) for file in files)
        return [(SITE + str(file.relative_to(DOCUMENTATION)), HREF.findall(text)) for file, text in texts]
    hrefs = ["../index.html", "#top", "https://example.org/about?x=1", "/genindex.html", "mailto:me@example.org"]
    return [
        (f"{SITE}part{n}/page{n}.html", hrefs + [f"section{m}.html#part-{m}" for m in range(56)]) for n in range(60)
    ]


def flat(lists: Sequence[Sequence[T | None]]) -> list[T]:
    return [item for items in lists for item in items if item is not None]


def join_page(base: str, hrefs: Sequence[str]) -> list[str | None]:
    return [*map(Joiner(base).join, hrefs)]


def main() -> None:
    site = pages()
    total = sum(len(hrefs) for _, hrefs in site)
    joined = [join_page(base, hrefs) for base, hrefs in site]
    texts = [flat([urls]) for urls in joined]
    namer, canonicalizer, every_rule = Namer(), Canonicalizer(), Canonicalizer(tuple(RULES))
    roots = Roots("host")
    seed = namer.name(SITE)
    assert seed is not None
    roots.add_seed(seed)
    chain = scope_chain(ScopeOptions(), roots)
    links = [Link(url, "anchor", 1) for url in flat([namer.names(urls) for urls in texts])]
    ours = [link for link in links if link.url.host == seed.host]

    def line(what: str, work: Callable[[], object], count: int = total) -> None:
        best_s = min(timeit.repeat(work, number=1, repeat=7))
        sys.stdout.write(f"{what:<44}{best_s / count * 1e6:8.2f} µs a link\n")

    sys.stdout.write(f"{len(site)} pages, {total} links\n")
    line("join, one by one", lambda: [[join(base, href) for href in hrefs] for base, hrefs in site])
    line("join, by a page's joiner", lambda: [join_page(base, hrefs) for base, hrefs in site])
    line("key, default rules", lambda: [[canonicalizer.key(url) for url in urls] for urls in texts])
    line("key, default rules, the readable path", lambda: [[canonicalizer.key_by_rules(u) for u in s] for s in texts])
    line("key, every rule", lambda: [[every_rule.key(url) for url in urls] for urls in texts])
    line("names", lambda: [namer.names(urls) for urls in texts])
    line("joiner + names", lambda: [namer.names(flat([join_page(base, hrefs)])) for base, hrefs in site])
    line("chain, links of the same host", lambda: [chain.reason(link) for link in ours], len(ours))
    line("chain, all links", lambda: [chain.reason(link) for link in links], len(links))


if __name__ == "__main__":
    main()
