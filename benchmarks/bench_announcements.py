"""Sitemaps and feeds: what reading one costs, ours and others' ways, and what hostile ones cost.

    python benchmarks/bench_announcements.py [--json FILE]

CPU seconds of this process, medians of three. Others' readers are measured where they are installed (lxml,
defusedxml, feedparser); none of them is needed.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import io
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

from gossamer.model.pages import Findings, Page
from gossamer.stages.process.announcements import Announcements

ENTRIES, FEED_ENTRIES = 50_000, 1_000
REPEATS = 3


def sitemap() -> bytes:
    entries = b"".join(
        b"  <url>\n    <loc>https://www.example.org/section/%d/page-%d.html?a=1&amp;b=2</loc>\n"
        b"    <lastmod>2026-11-%02dT10:00:00+00:00</lastmod>\n    <changefreq>weekly</changefreq>\n"
        b"    <priority>0.5</priority>\n  </url>\n" % (number % 97, number, number % 28 + 1)
        for number in range(ENTRIES)
    )
    space = b"http://www.sitemaps.org/schemas/sitemap/0.9"
    return b'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="%b">\n%b</urlset>\n' % (space, entries)


def rss() -> bytes:
    text = "Words that say something about what stands behind the link. " * 20
    items = "".join(
        f"<item><title>Title {number}</title><link>https://www.example.org/{number}/</link>"
        f"<pubDate>Fri, 20 Nov 2026 10:{number % 60:02d}:00 +0000</pubDate><guid isPermaLink='false'>{number}</guid>"
        f"<description><![CDATA[<p>{text}</p>]]></description></item>\n"
        for number in range(FEED_ENTRIES)
    )
    return f"<?xml version='1.0'?><rss version='2.0'><channel><title>T</title>{items}</channel></rss>".encode()


def ours(body: bytes) -> int:
    findings = Findings()
    page = Page("https://www.example.org/s.xml", "application/xml", "", (), body, link_type="sitemap_file")
    Announcements().process(page, findings)
    return len(findings.links)


def tree(body: bytes, parse: Callable[..., object], **options: object) -> int:
    """Walk with an iterating parser, as its users do: an element is looked at and emptied."""
    found = 0
    for _, element in parse(io.BytesIO(body), **options):  # type: ignore[attr-defined]
        if element.tag.endswith("}url"):
            found += bool([child.text for child in element])
            element.clear()
    return found


def readers() -> dict[str, Callable[[bytes], int]]:
    found: dict[str, Callable[[bytes], int]] = {
        "ours: expat, bounds, joins, dates": ours,
        "xml.etree iterparse": lambda body: tree(body, ET.iterparse),
    }
    for name in ("defusedxml.ElementTree", "lxml.etree"):
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        options = {"huge_tree": False, "resolve_entities": False, "no_network": True} if "lxml" in name else {}
        found[f"{name.partition('.')[0]} iterparse"] = lambda body, module=module, options=options: tree(
            body, module.iterparse, **options
        )
    return found


def feed_readers() -> dict[str, Callable[[bytes], int]]:
    found: dict[str, Callable[[bytes], int]] = {"ours": ours}
    try:
        feedparser = importlib.import_module("feedparser")
    except ImportError:
        return found
    return {**found, "feedparser": lambda body: len(feedparser.parse(body).entries)}


def hostile() -> dict[str, bytes]:
    return {
        "30 MB of nested elements": b"<urlset>" + b"<a>" * 10_000_000,
        "32 MB of empty elements": b"<urlset>" + b"<a/>" * 8_000_000,
        "30 MB in one attribute": b"<urlset a='" + b"x" * 30_000_000,
        "30 MB of ampersands": b"<urlset><url><loc>" + b"&" * 30_000_000,
        "gzip of 1 GB of spaces": gzip.compress(b"<urlset>" + b" " * 1_000_000_000, 1),
        "entities of entities": b"<!DOCTYPE x [<!ENTITY a 'aa'><!ENTITY b '&a;&a;'>]><urlset>&b;</urlset>",
    }


def seconds(work: Callable[[bytes], int], body: bytes) -> float:
    taken = []
    for _ in range(REPEATS):
        began = time.process_time()
        work(body)
        taken.append(time.process_time() - began)
    return statistics.median(taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    results: dict[str, float] = {}
    for title, body, entries, table in (
        (f"a sitemap of {ENTRIES:,} addresses", sitemap(), ENTRIES, readers()),
        (f"an RSS feed of {FEED_ENTRIES:,} entries", rss(), FEED_ENTRIES, feed_readers()),
    ):
        print(f"\n{title}, {len(body) / 1e6:.1f} MB")
        for name, work in table.items():
            taken_s = seconds(work, body)
            results[f"{title}: {name}"] = taken_s
            print(f"  {name:36} {taken_s * 1e3:9.1f} ms {taken_s * 1e6 / entries:9.2f} µs an entry")
    print("\nhostile documents")
    for name, body in hostile().items():
        taken_s = seconds(ours, body)
        results[name] = taken_s
        print(f"  {name:36} {taken_s * 1e3:9.1f} ms")
    target = parser.parse_args().json
    if target is not None:
        target.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
