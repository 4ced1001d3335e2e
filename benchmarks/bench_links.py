"""What it costs to find what is in a page: parse, links with anchor text, joins, title, directives.

Usage: PYTHONPATH=src python benchmarks/bench_links.py [DIRECTORY OF HTML FILES]
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

from gossamer.model.pages import Page
from gossamer.stages.process.chain import Modules
from gossamer.stages.process.html import TreeMarkup, bears_tree
from gossamer.stages.process.options import ProcessOptions
from gossamer.stages.process.scan import ScannedMarkup

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.stages.process.pages import standard_modules

DOCUMENTATION = Path("/usr/share/doc/python3.11/html")
ROUNDS = 7


def generated(count: int = 300) -> list[bytes]:
    """Pages of about 26 KB with 61 links, where no documentation is installed."""
    dice = random.Random(1)
    pages = []
    for _ in range(count):
        parts = ["<!doctype html><html><head><meta charset=utf-8><title>A page</title></head><body>"]
        for i in range(61):
            words = " ".join(f"word{dice.randrange(1000)}" for _ in range(35))
            link = f"../section{dice.randrange(40)}/page{dice.randrange(500)}.html#part{i}"
            parts.append(
                f'<div class="section"><p>{words} <a class="reference internal" href="{link}">link {i}</a>.</p></div>'
            )
        pages.append("".join(parts).encode())
    return pages


def seconds(work: Callable[[], object]) -> float:
    spent = []
    for _ in range(ROUNDS):
        started = time.process_time()
        work()
        spent.append(time.process_time() - started)
    return min(spent)


def main() -> None:
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else DOCUMENTATION
    bodies = [path.read_bytes() for path in sorted(directory.rglob("*.html"))] or generated()
    options = ProcessOptions()
    groups = {
        "pages below 50 KB": [body for body in bodies if len(body) < 50_000],
        "pages for the tree": [body for body in bodies if bears_tree(body, options)],
        "pages for the scan": [body for body in bodies if not bears_tree(body, options)],
        "all pages": bodies,
    }
    modules = Modules(standard_modules(options), options)
    print("| pages | count | KB | anchors | distinct links | all modules µs | tree alone µs | scan alone µs |")
    print("| --- | --: | --: | --: | --: | --: | --: | --: |")
    for name, group in groups.items():
        if not group:
            continue
        pages = [
            Page(f"https://docs.example.org/d/{i}.html", "text/html", "utf-8", (), body) for i, body in enumerate(group)
        ]
        links = sum(len(modules.process(page).findings.links) for page in pages)
        whole = seconds(lambda pages=pages: [modules.process(page) for page in pages])
        tree = seconds(lambda group=group: [TreeMarkup(body).anchors for body in group])
        scan = seconds(lambda group=group: [ScannedMarkup(body).anchors for body in group])
        count = len(group)
        anchors = sum(len(ScannedMarkup(body).anchors) for body in group)
        figures = [sum(map(len, group)) / 1000 / count, anchors / count, links / count]
        figures += [spent / count * 1e6 for spent in (whole, tree, scan)]
        print(f"| {name} | {count} | " + " | ".join(f"{figure:.0f}" for figure in figures) + " |")


if __name__ == "__main__":
    main()
